"""A run that does not get on says so and waits quietly: a broker, a transaction or a disk that hangs."""

import json
import signal
import time

import pytest
from kafka import KafkaProducer

from tests.support.process import summary, until
from tests.support.running_engine import Engine

pytestmark = pytest.mark.kafka
SOON_STALLED = """
import sys
from stream_engine.__main__ import main
from stream_engine.service import source_health
source_health.STALL_SECONDS = 1.0
sys.exit(main())
"""
EVENT = b'{"anchor": "a", "near": "b", "far": "c", "note": "%s"}'


def test_a_hanging_broker_and_a_hanging_transaction_are_said_aloud(own_broker, new_topic, send, tmp_path):
    topic = new_topic(2)
    slow, stuck = f"{topic}/0", f"{topic}/1"
    send(topic, [EVENT % (b"x" * 2000)] * 2000, batch_size=0)  # one a request: it takes a while to read them
    engine = Engine(
        tmp_path,
        f"kafka://{own_broker.bootstrap}/{topic}",
        program=("-c", SOON_STALLED),
        config="[kafka]\nmax_partition_fetch_bytes = 1000\nmax_poll_records = 20\n",
    )
    try:
        until(
            lambda: engine.figure("lag_records", slow) > 0 and engine.figure("records_total", slow) > 0,
            what="lag",
            seconds=120,
        )
        own_broker.process.send_signal(signal.SIGSTOP)
        try:
            until(lambda: engine.figure("stalled"), what="the watchdog", seconds=120)
            assert engine.figure("stalls_total") >= 1 and engine.figure("lag_records", slow) > 0
            assert any("stalled" in each for each in engine.said_of(slow))
        finally:
            own_broker.process.send_signal(signal.SIGCONT)
        until(lambda: not engine.figure("stalled"), what="the end of the stall", seconds=120)
        assert engine.said_of(slow) and engine.said_of(stuck) == []
        producer = KafkaProducer(bootstrap_servers=own_broker.bootstrap, transactional_id=f"tx-{topic}")
        producer.init_transactions()
        producer.begin_transaction()
        producer.send(topic, value=EVENT % b"late", partition=1)
        producer.flush()
        before = engine.figure("records_total", slow)
        until(
            lambda: send(topic, [EVENT % b""]) and any("stalled" in each for each in engine.said_of(stuck)),
            what="the watchdog, although the other partition moves on",
            seconds=120,
        )
        assert engine.figure("stalled") == 1 and engine.figure("lag_records", stuck) >= 1
        assert engine.figure("records_total", slow) > before and engine.get("/readyz")
        producer.commit_transaction()
        producer.close()
        until(lambda: not engine.figure("stalled"), what="the end of the stall", seconds=120)
        until(lambda: engine.figure("records_total", stuck) == 1, what="the record that was held up", seconds=120)
    finally:
        engine.stop()


HANGING_DISK = """
import os, sys, time
from stream_engine.service import source_health
source_health.STALL_SECONDS = 1.0
from connectors import disk
sync = disk._fsync
def hanging(path, flags):
    while os.path.exists(os.environ["DISK_HANGS"]):
        time.sleep(0.02)
    sync(path, flags)
disk._fsync = hanging
from stream_engine.__main__ import main
sys.exit(main())
"""


def test_a_hanging_disk_holds_the_stream_up_quietly_and_in_bounded_memory(broker, new_topic, send, tmp_path):
    topic, hangs = new_topic(), tmp_path / "hangs"
    send(topic, [EVENT % b"", b"{bad"])
    engine = Engine(
        tmp_path,
        f"kafka://{broker.bootstrap}/{topic}",
        "--snapshot-every",
        "500",
        "--snapshot-interval",
        "0",
        program=("-c", HANGING_DISK),
        DISK_HANGS=str(hangs),
    )
    try:
        until(lambda: engine.figure("records_total") == 2, what="the first records", seconds=120)
        hangs.touch()
        resident = engine.resident()
        send(topic, [EVENT % (b"x" * 20_000) if i % 100 else b"{bad" for i in range(4000)], linger_ms=5)  # 80 MB
        until(lambda: engine.figure("stalled"), what="the watchdog", seconds=120)
        read, cpu, began = engine.figure("records_total"), engine.cpu(), time.monotonic()
        time.sleep(1.5)
        assert engine.cpu() - cpu < 0.5 * (time.monotonic() - began), "a busy loop while the disk hangs"
        assert engine.figure("records_total") == read < 3000
        assert engine.resident() - resident < 50 << 20
        assert engine.get("/readyz") and engine.figure("ready") == 1  # the source can be reached
        assert engine.figure("snapshot_failures_total") == 0
        assert set(engine.said_of("snapshot") + engine.said_of("dead letters")) == {"stalled: no progress"}
        hangs.unlink()
        until(
            lambda: engine.figure("records_total") == 4002 and not engine.figure("stalled"),
            what="the rest",
            seconds=120,
        )
    finally:
        hangs.unlink(missing_ok=True)
        engine.stop()
    found = summary(engine.state)
    assert found["records"] == 4002 and found["rejected"] == {"not_parseable": 41}
    letters = [
        json.loads(line)["offset"]
        for path in sorted((engine.state / "dead_letters").glob("*.jsonl"))
        for line in path.read_text().splitlines()
    ]
    assert letters == [1, *range(2, 4002, 100)]
