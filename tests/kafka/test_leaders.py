"""A partition's leader moves, by election and by death, while all write and read: nothing is lost or repeated."""

import json
import threading
import time

import pytest
from kafka import KafkaAdminClient, KafkaProducer, TopicPartition
from kafka.errors import KafkaError, TopicAlreadyExistsError

from connectors.kafka.source import KafkaSource
from tests.kafka.conftest import patiently
from tests.support.kafka_reading import SECONDS, named_for, read
from tests.support.process import records, summary, until
from tests.support.running_engine import Engine

pytestmark = pytest.mark.kafka
TOPIC = "led"
FAST = {"fetch_max_wait_ms": 50, "reconnect_backoff_max_ms": 300, "request_timeout_ms": 5000, "max_poll_records": 100}


class Writer(threading.Thread):
    """Numbered events to each partition in turn until told to stop; `sent` counts those acknowledged by all in-sync
    replicas."""

    def __init__(self, bootstrap: list[str]):
        super().__init__()
        self.producer = KafkaProducer(
            bootstrap_servers=bootstrap,
            acks="all",
            linger_ms=5,
            request_timeout_ms=5000,
            delivery_timeout_ms=120_000,
            reconnect_backoff_max_ms=300,
        )
        self.enough, self.written, self.failures = threading.Event(), 0, []

    def run(self) -> None:
        while not self.enough.wait(0.02):
            for _ in range(10):
                value = b'{"anchor": "a", "near": "b", "far": "c", "id": %d}' % (self.written // 2)
                future = self.producer.send(TOPIC, value=value, partition=self.written % 2)
                future.add_errback(self.failures.append)
                self.written += 1
        self.producer.close(timeout=120)


def test_leaders_elected_and_killed_in_the_middle(three_brokers, tmp_path):
    bootstrap = [each.bootstrap for each in three_brokers]
    admin = KafkaAdminClient(bootstrap_servers=bootstrap)
    topic = {TOPIC: {"assignments": {0: [1, 2, 3], 1: [2, 3, 1]}, "configs": {"min.insync.replicas": "2"}}}

    def created() -> bool:
        """False while brokers that wait for a processor do not know all others: the controller may be nobody's node."""
        try:
            admin.create_topics(topic)
        except TopicAlreadyExistsError:
            pass
        except KafkaError:
            return False
        return True

    def leader() -> int:
        """Of partition 0; -1 while there is none, or no answer."""
        try:
            [described] = admin.describe_topics([TOPIC])
        except KafkaError:
            return -1
        return {each["partition_index"]: each["leader_id"] for each in described["partitions"]}.get(0, -1)

    def elected() -> bool:
        try:
            return (
                not admin.list_partition_reassignments()
                and bool(admin.elect_leaders(0, {TOPIC: [0]}))
                and leader() == 3
            )
        except KafkaError:
            return False

    until(created, what="the topic")
    until(lambda: leader() == 1, what="the first leader")
    uri = f"{','.join(bootstrap)}/{TOPIC}"
    engine = Engine(tmp_path, f"kafka://{uri}", "--snapshot-interval", "0.2")
    sources = {
        client: KafkaSource(uri, {}, start="earliest", options=named_for(client, FAST))
        for client in ("kafka-python", "confluent")
    }
    found: dict[str, list] = {client: [] for client in sources}
    writer = Writer(bootstrap)
    writer.start()
    try:

        def read_on(count: int) -> None:
            """So many records more from each source, partition 0 among them."""
            for client, source in sources.items():
                ends = time.monotonic() + SECONDS
                before = sum(r.partition == f"{TOPIC}/0" for r in found[client])
                while sum(r.partition == f"{TOPIC}/0" for r in found[client]) - before < count:
                    assert time.monotonic() < ends, (client, source.notices())
                    found[client] += source.poll(0.1)

        read_on(100)
        admin.alter_partition_reassignments({TopicPartition(TOPIC, 0): [3, 1, 2]})  # the same three, another first
        until(elected, what="the elected leader")
        read_on(100)
        three_brokers[2].kill()
        admin.close()
        admin = patiently(KafkaAdminClient, bootstrap_servers=bootstrap[:2])
        until(lambda: leader() in (1, 2), what="a leader in place of the dead one")
        read_on(100)
        writer.enough.set()
        writer.join(120)
        assert not writer.failures, writer.failures[:1]
        for client, source in sources.items():
            found[client] += read(source, writer.written - len(found[client]))
            assert source.poll(0.3) == [] and source.ready()
        until(lambda: records(engine.state) == writer.written, what="all records in the engine", seconds=120)
    finally:
        writer.enough.set()
        writer.join(120)
        admin.close()
        for source in sources.values():
            source.close()
        engine.stop()
    per_partition = {0: (writer.written + 1) // 2, 1: writer.written // 2}
    for client, got in found.items():
        for partition, n in per_partition.items():
            mine = [r for r in got if r.partition == f"{TOPIC}/{partition}"]
            assert [r.offset for r in mine] == list(range(n)), client
            assert [json.loads(r.value)["id"] for r in mine] == list(range(n)), client
    counted = summary(engine.state)
    assert counted["comparisons"] == writer.written and counted["rejected"] == {}
    assert counted["positions"] == {f"{TOPIC}/{p}": n for p, n in per_partition.items()}
