"""The counting job on Spark reads the real broker: what was committed, from every partition, and nothing aborted."""

import json
from pathlib import Path

import numpy as np
import pytest
from kafka import KafkaProducer

from stream_engine.data.comparisons import EVENT_TYPES
from tests.support import spark_cluster, spark_twice
from tests.support.event_worlds import some_event
from tests.support.kafka_producing import produce
from tests.support.kafka_runs import consumed
from tests.support.process import jsonl, until
from tests.support.spark_states import check

pytestmark = [pytest.mark.spark, pytest.mark.kafka]


def test_a_job_on_spark_counts_what_was_committed(broker, new_topic, send, tmp_path):
    """Two partitions, a transaction aborted in between, tombstones, Arrow beside JSON; a second run takes up what came
    after the first. One process reads the values that count."""
    topic, rng = new_topic(2), np.random.default_rng(3)
    made = [[some_event(rng, EVENT_TYPES[rng.integers(6)], True) for _ in range(100)] for _ in range(3)]
    values = [[json.dumps(event).encode() for event in part] + [b"{", b"[]"] for part in made]
    send(topic, values[0], partition=0)
    aborted = KafkaProducer(bootstrap_servers=broker.bootstrap, transactional_id=f"t-{topic}")
    aborted.init_transactions()
    for abort in (True, False):
        aborted.begin_transaction()
        for value in values[1]:
            aborted.send(topic, value=value, partition=1)
        aborted.flush()
        aborted.abort_transaction() if abort else aborted.commit_transaction()
    aborted.close()
    out, log, jars = tmp_path / "out", tmp_path / "log", spark_cluster.kafka_jars()
    job = [f"kafka://{broker.bootstrap}/{topic}", "--out", str(out), "--per-batch", "250"]
    turn = tmp_path / "turn"
    run = spark_cluster.submit(log, Path(spark_twice.__file__), turn, *job, jars=jars)
    until(lambda: spark_twice.DONE in log.read_text() or run.poll() is not None, what="the first run", seconds=400)
    first = len(list((out / "delta").glob("batch=*")))
    send(topic, [(b"key", value) for value in values[2]] + [(b"gone", None)], partition=0)
    good = jsonl(tmp_path / "good.jsonl", [{"anchor": "a", "near": "b", "far": "c"}] * 30)
    produce([str(good)], f"kafka://{broker.bootstrap}/{topic}", options={}, batch=10, encoding="arrow")
    turn.touch()
    spark_cluster.ended(run, log)
    assert len(list((out / "delta").glob("batch=*"))) > first > 1
    whole = ("--start", "earliest", "--guard", "off", "--max-reject-ratio", "1")
    consumed(tmp_path / "state", 3 * 102 + 1 + 3, f"kafka://{broker.bootstrap}/{topic}", *whole)
    check(out, tmp_path / "state", tmp_path)
