"""Reading a source in tests: until so many records are there, with a deadline instead of a sleep."""

import time
from collections.abc import Callable, Mapping

from kafka import KafkaConsumer, TopicPartition
from kafka.consumer.fetcher import ConsumerRecord

from connectors import Position, Record, Source

SECONDS = 600.0  # only a failure takes so long


LIBRDKAFKA = {
    "metadata_max_age_ms": "topic.metadata.refresh.interval.ms",
    "fetch_max_wait_ms": "fetch.wait.max.ms",
    "max_partition_fetch_bytes": "max.partition.fetch.bytes",
    "reconnect_backoff_max_ms": "reconnect.backoff.max.ms",
    "request_timeout_ms": "socket.timeout.ms",
    "group_id": "group.id",
    "security_protocol": "security.protocol",
    "sasl_mechanism": "sasl.mechanism",
    "sasl_plain_username": "sasl.username",
    "sasl_plain_password": "sasl.password",
    "ssl_cafile": "ssl.ca.location",
    "no_such_option": "no.such.option",
}


def named_for(client: str, options: Mapping[str, object]) -> dict[str, object]:
    """Options that tests give under kafka-python's names, as the client's library calls them."""
    names = LIBRDKAFKA if client == "confluent" else {}
    return {"client": client, **{names.get(key, key): value for key, value in options.items()}}


def read(source: Source, count: int, seconds: float = SECONDS) -> list[Record]:
    """Poll until `count` records are there; fails after `seconds`."""
    records: list[Record] = []
    deadline = time.monotonic() + seconds
    while len(records) < count:
        assert time.monotonic() < deadline, f"{len(records)} of {count} records after {seconds:g} s: {source.notices()}"
        records += source.poll(0.2)
    return records


def idle(source: Source, seconds: float) -> list[Record]:
    """Everything that comes within `seconds`."""
    records, deadline = [], time.monotonic() + seconds
    while time.monotonic() < deadline:
        records += source.poll(0.1)
    return records


def until(true: Callable[[], object], source: Source, seconds: float = SECONDS) -> list[Record]:
    """Poll until the condition holds; returns what came meanwhile."""
    records, deadline = [], time.monotonic() + seconds
    while not true():
        assert time.monotonic() < deadline, f"not within {seconds:g} s; notices: {source.notices()}"
        records += source.poll(0.1)
    return records


def positions(records: list[Record]) -> dict[str, Position]:
    """What a snapshot after these records holds."""
    return {record.partition: Position(record.next_offset, record.mark) for record in records}


def on_topic(bootstrap: str, topic: str) -> list[ConsumerRecord]:
    """Everything that is on a topic up to its end as it is now, in order of partition and offset."""
    consumer = KafkaConsumer(bootstrap_servers=bootstrap, enable_auto_commit=False, isolation_level="read_committed")
    try:
        places = [TopicPartition(topic, partition) for partition in consumer.partitions_for_topic(topic)]
        consumer.assign(places)
        consumer.seek_to_beginning()
        ends = consumer.end_offsets(places)
        found: list[ConsumerRecord] = []
        deadline = time.monotonic() + SECONDS
        while any(consumer.position(place) < end for place, end in ends.items()):
            assert time.monotonic() < deadline, f"{topic}: not at {ends} after {SECONDS:g} s"
            found += [record for some in consumer.poll(timeout_ms=500).values() for record in some]
        return sorted(found, key=lambda record: (record.partition, record.offset))
    finally:
        consumer.close()
