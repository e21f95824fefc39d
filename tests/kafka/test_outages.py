"""The broker goes away: at the start, in the middle, for good; and a batch that is damaged on its disk.

Needs a broker that may be killed, so it never uses one that is there already.
"""

import struct
import threading
import time
from functools import partial

import pytest
from kafka import KafkaProducer

from connectors import SourceFailed
from connectors.kafka import source as kafka_source
from connectors.kafka.source import MAX_FRESH_CLIENTS, KafkaSource
from tests.kafka.conftest import collect_sockets
from tests.support.kafka_reading import named_for, positions, read, until

pytestmark = pytest.mark.kafka
FAST = {
    "metadata_max_age_ms": 1000,
    "fetch_max_wait_ms": 50,
    "reconnect_backoff_max_ms": 300,
    "request_timeout_ms": 5000,
    "bootstrap_timeout_ms": 1000,
}


CLIENTS = "kafka-python", "confluent"


@pytest.fixture
def open_source(own_broker, monkeypatch):
    monkeypatch.setattr(kafka_source, "BACK_OFF", (0.05, 0.3))
    made = []

    def make(topic, client, options=None):
        source = KafkaSource(
            f"{own_broker.bootstrap}/{topic}",
            {},
            start="earliest",
            options=named_for(client, {**FAST, **(options or {})}),
        )
        made.append(source)
        return source

    yield make
    for source in made:
        source.close()


def is_away(source: KafkaSource) -> bool:
    return not source.ready()


def first_notices(source: KafkaSource) -> list[str]:
    """Poll until there is a notice."""
    notices: list[str] = []
    until(lambda: notices.extend(source.notices()) or notices, source)
    return notices


@pytest.fixture(autouse=True)
def running_again(own_broker):
    yield
    collect_sockets()
    if own_broker.process is None:
        own_broker.start()


def test_killed_and_restarted_in_the_middle_loses_and_repeats_nothing(own_broker, new_topic, open_source):
    topic = new_topic(2)
    total, half = 4000, threading.Event()

    def write() -> None:
        producer = KafkaProducer(
            bootstrap_servers=own_broker.bootstrap,
            request_timeout_ms=5000,
            delivery_timeout_ms=600_000,
            reconnect_backoff_max_ms=300,
            linger_ms=5,
        )
        for i in range(total):
            producer.send(topic, value=b"%d" % (i // 2), partition=i % 2)
            if i == total // 2:
                half.set()
            if i % 20 == 0:
                time.sleep(0.01)
        producer.close(timeout=600)

    sources = [open_source(topic, client, {"max_poll_records": 100}) for client in CLIENTS]
    writer = threading.Thread(target=write)
    writer.start()
    found = [read(source, 200) for source in sources]
    half.wait(600)
    own_broker.kill()
    for source, records in zip(sources, found):
        records += until(partial(is_away, source), source)
        began, cpu, quickest = time.monotonic(), time.process_time(), 9.0
        while time.monotonic() - began < 2:
            slice_began = time.monotonic()
            records += source.poll(0.2)
            quickest = min(quickest, time.monotonic() - slice_began)
            assert not source.ready()
        assert quickest < 1.0, "a poll that does not keep its timeout"
        assert time.process_time() - cpu < 1.0, "a busy loop while the broker is away"
        assert len(source.notices()) == 1, "told once"
    own_broker.start()
    for source, records in zip(sources, found):
        while len(records) < total:
            records += read(source, 1)
    writer.join(60)
    for source, records in zip(sources, found):
        until(lambda source=source: source.ready() and not any(source.lag().values()), source)
        notices = first_notices(source)
        for partition in (0, 1):
            mine = [r for r in records if r.partition == f"{topic}/{partition}"]
            assert [r.value for r in mine] == [b"%d" % i for i in range(total // 2)]
            assert [r.offset for r in mine] == list(range(total // 2))
        assert len(notices) == 1, "told once"


def test_down_at_the_start_and_a_damaged_batch_stops_with_its_place(own_broker, new_topic, send, open_source):
    """One outage: sources that were open close at once, others begin, and a batch is damaged on the disk."""
    topic, damaged = new_topic(), new_topic()
    send(topic, [b"x"])
    send(damaged, [b"good", b"also good"])
    [bad] = send(damaged, [b"damaged " * 10])
    send(damaged, [b"behind"])
    closing = [open_source(topic, client, {"group_id": "g"}) for client in CLIENTS]
    read_before = [read(source, 1) for source in closing]
    own_broker.stop()
    for source, records in zip(closing, read_before):
        until(partial(is_away, source), source)
        source.published(positions(records))  # a commit that nobody will answer
    closing += [open_source(topic, client) for client in CLIENTS]
    for source in closing:
        source.poll(0.3)
        began = time.monotonic()
        source.close()
        assert time.monotonic() - began < 10
    sources = [open_source(topic, client) for client in CLIENTS]
    for source in sources:
        notices = first_notices(source)
        assert len(notices) == 1
        assert not source.ready() and source.lag() == {}
        quickest = 9.0
        for _ in range(5):
            began = time.monotonic()
            assert source.poll(0.1) == []
            quickest = min(quickest, time.monotonic() - began)
        assert quickest < 0.5, "a poll that does not keep its timeout"
    [segment] = (own_broker.folder / "data" / f"{damaged}-0").glob("*.log")
    content = bytearray(segment.read_bytes())
    content[content.index(b"damaged")] ^= 0xFF
    segment.write_bytes(content)
    own_broker.start()
    for source in sources:
        assert [r.value for r in read(source, 1)] == [b"x"]
        until(source.ready, source)
        assert len(source.notices()) == 1
    for source in [open_source(damaged, client) for client in CLIENTS]:
        assert [r.value for r in read(source, 2)] == [b"good", b"also good"]
        said = rf"{MAX_FRESH_CLIENTS} .*{damaged}/0@{bad}.*(?i:crc).*delete-records"
        with pytest.raises(SourceFailed, match=said):
            while True:
                source.poll(0.2)
        assert len(source.notices()) == MAX_FRESH_CLIENTS


@pytest.mark.parametrize("client", CLIENTS)
def test_big_messages_are_asked_for_in_small_numbers(new_topic, send, open_source, client):
    topic = new_topic()
    values = [struct.pack(">I", i) + bytes(8 << 20) for i in range(12)]  # 8 MiB each, some kB on the wire
    small = {"compression_type": "gzip", "max_request_size": 16 << 20, "batch_size": 1}
    send(topic, values, **small)
    source = open_source(topic, client)
    first = read(source, 1)
    sizes = []
    records = list(first)
    while len(records) < 12:
        found = source.poll(1)
        sizes.append(sum(len(r.value) for r in found))
        records += found
    assert [r.value[:4] for r in records] == [v[:4] for v in values]
    assert max(sizes) <= 32 << 20
