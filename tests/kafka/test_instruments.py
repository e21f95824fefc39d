"""The instruments of /metrics that only a topic drives, on a real broker; `tests/service/test_every_instrument.py` has
the others."""

import time
from pathlib import Path

import pytest
from kafka import KafkaAdminClient, TopicPartition

from stream_engine.service.metrics import Metrics
from stream_engine.state.store import Store
from tests.support.instruments import ON_KAFKA, Driven
from tests.support.kafka_runs import run, values

pytestmark = pytest.mark.kafka


def test_lag_in_seconds_empty_values_and_lost_offsets(broker, new_topic, send, admin: KafkaAdminClient, tmp_path: Path):
    name, driven = new_topic(partitions=1), Driven()
    send(name, [*values(6), (b"k", None), b"", (b"k", None)])
    uri, partition = f"kafka://{broker.bootstrap}/{name}", f"{name}/0"
    before = time.time()
    metrics: Metrics = run(uri, tmp_path / "s", 9)
    driven.check(metrics, 3, "empty_values_total")
    driven.check(metrics, lambda age: 0 <= age < time.time() - before + 120, "lag_seconds", partition=partition)
    driven.check(metrics, 9, "records_total", partition=partition)
    send(name, values(8))
    admin.delete_records({TopicPartition(name, 0): 14})
    again = run(uri, tmp_path / "s", 12, **{"input.on_offset_loss": "earliest"})
    counters = Store(tmp_path / "s").latest().snapshot.counters
    assert [deed["did"] for deed in counters["history"]] == ["offsets lost"] and counters["lost"] == {partition: 5}
    driven.check(again, 1, "history_total", did="offsets lost")
    driven.check(again, 5, "records_lost_total", partition=partition)
    driven.check(again, 3, "records_total", partition=partition)
    driven.check(again, 17, "position", partition=partition)
    assert {each.split(" partition=")[0] for each in driven.right} >= ON_KAFKA
