"""The whole engine on a real broker: exactly once through kills, shards and merge, outages."""

import json

import pytest

from tests.kafka.exactly_once import trial
from tests.support.kafka_runs import GOOD, consumed
from tests.support.process import engine, jsonl, records, started, stopped, summary, until

pytestmark = pytest.mark.kafka


def test_exactly_once_in_small(own_broker, new_topic, tmp_path):
    some = {"events": 30_000, "partitions": 3, "kills": 3, "restarts": 1, "lives": (0.3, 1.5)}
    figures = trial(tmp_path, own_broker, new_topic(partitions=3), **some)
    assert figures["malformed"] > 0 and figures["aborted"] > 0


def test_messages_of_every_kind(broker, new_topic, send, tmp_path):
    import pyarrow as pa

    topic = new_topic()
    sink = pa.BufferOutputStream()
    table = pa.table({"anchor": ["a", "b"], "near": ["b", "c"], "far": ["c", "a"]})
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    send(
        topic,
        [
            GOOD[0],
            b"[" + b",".join(GOOD) + b"]",
            b"\n".join(GOOD),
            sink.getvalue().to_pybytes(),
            b"",
            (b"key", None),
            b"{bad",
        ],
    )
    uri = f"kafka://{broker.bootstrap}/{topic}"
    consumed(tmp_path / "s", 7, uri, "--start", "earliest")
    found = summary(tmp_path / "s")
    assert (found["comparisons"], found["records"], found["empty"]) == (1 + 5 + 5 + 2, 7, 2)
    assert found["rejected"] == {"not_parseable": 1} and list(found["positions"].values()) == [7]
    send(topic, GOOD[:1])
    consumed(tmp_path / "s", 8, uri)  # goes on where the state ends, without options


def test_the_readmes_commands(broker, new_topic, tmp_path):
    from tests.support.readme import KAFKA

    here = f"kafka://{broker.bootstrap}/{new_topic()}"
    events = jsonl(tmp_path / "events.jsonl", [json.loads(value) for value in GOOD])
    produce, run, *_ = (
        command.replace("kafka://127.0.0.1:9092/comparisons", here).replace("127.0.0.1:9108", "127.0.0.1:0").split()[1:]
        for command in KAFKA
    )
    assert f"{len(GOOD)} events" in engine(*produce, cwd=events.parent).stdout
    run[run.index("state-k")] = str(tmp_path / "state-k")
    running = started(*run, "--snapshot-interval", "0.2")
    try:
        until(lambda: records(tmp_path / "state-k") == len(GOOD))
    finally:
        said = stopped(running)
    assert running.returncode == 0, said
