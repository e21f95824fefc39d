"""The whole engine on a real broker: exactly once through kills, shards and merge, dead letters, outages."""

import json
import signal
import time
import urllib.error
import urllib.request

import pytest

from tests.kafka.exactly_once import trial
from tests.support.kafka_reading import on_topic
from tests.support.process import engine, jsonl, one_line, records, started, stopped, summary, until

pytestmark = pytest.mark.kafka

GOOD = [
    json.dumps(dict(zip(("anchor", "near", "far"), names))).encode() for names in ("abc", "bca", "cad", "dab", "acb")
]


def consumed(state, n: int, *arguments) -> str:
    """Run the engine on a topic until it has read n records, then stop it; returns what it said."""
    running = started(
        "run", *arguments, "--state", state, "--no-refits", "--log-format", "json", "--snapshot-interval", "0.2"
    )

    try:
        until(lambda: records(state) >= n, what=f"{n} records in {state}")
    finally:
        said = stopped(running)
    assert running.returncode == 0, said
    return said


def test_exactly_once_in_small(own_broker, new_topic, tmp_path):
    figures = trial(tmp_path, own_broker, new_topic(partitions=3), events=30_000, partitions=3, kills=3, restarts=1)
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


def test_shards_and_merge_are_one_process(broker, new_topic, tmp_path):
    topic = new_topic(partitions=4)
    import random

    from tests.end_to_end.test_service import stream

    events = jsonl(tmp_path / "events.jsonl", [e for e in stream(random.Random(9), 600) if isinstance(e, dict)])
    said = engine("produce", events, f"kafka://{broker.bootstrap}/{topic}").stdout
    n = len(events.read_text().splitlines())
    assert f"{n:,} events in {n:,} messages" in said
    uri = f"kafka://{broker.bootstrap}/{topic}"
    consumed(tmp_path / "one", n, uri, "--start", "earliest")
    for i in range(2):
        mine = sum(offset for name, offset in summary(tmp_path / "one")["positions"].items() if int(name[-1]) % 2 == i)
        consumed(tmp_path / f"s{i}", mine, uri, "--start", "earliest", "--shard", f"{i}/2")
    engine("merge", tmp_path / "s0", tmp_path / "s1", "--out", tmp_path / "sum")
    whole, parts = summary(tmp_path / "one"), summary(tmp_path / "sum")
    for figure in (
        "objects",
        "events",
        "comparisons",
        "unique_triplets",
        "contradicting_pairs",
        "rejected",
        "positions",
    ):
        assert whole[figure] == parts[figure], figure
    assert "twice" in one_line(
        engine("merge", tmp_path / "one", tmp_path / "s0", "--out", tmp_path / "x", status=1).stderr
    )


def test_dead_letter_topic_beside_the_file(broker, new_topic, send, tmp_path):
    topic, dead = new_topic(), new_topic()
    send(topic, [GOOD[0], (b"key", b"{bad"), b'{"anchor": "a"}'])
    uri = f"kafka://{broker.bootstrap}"
    consumed(
        tmp_path / "s",
        3,
        f"{uri}/{topic}",
        "--start",
        "earliest",
        "--dead-letters",
        f"{uri}/{dead}",
        "--max-reject-ratio",
        "1",
    )
    letters = on_topic(broker.bootstrap, dead)
    assert [letter.value for letter in letters] == [b"{bad", b'{"anchor": "a"}'] and letters[0].key is not None
    headers = {key.rpartition(".")[2]: value.decode() for key, value in letters[1].headers}
    assert headers["topic"] == topic and headers["offset"] == "2"
    assert "missing_field" in headers.values()
    assert len((tmp_path / "s" / "dead_letters" / "000001.jsonl").read_text().splitlines()) == 2


def test_not_ready_while_the_broker_is_away_and_back_again(own_broker, new_topic, send, tmp_path):
    topic = new_topic()
    send(topic, GOOD)
    running = started(
        "run",
        f"kafka://{own_broker.bootstrap}/{topic}",
        "--state",
        tmp_path / "s",
        "--start",
        "earliest",
        "--no-refits",
        "--listen",
        "127.0.0.1:0",
        "--log-format",
        "json",
        "--snapshot-interval",
        "0.2",
    )
    try:
        address = json.loads(running.stderr.readline())["address"]

        def ready() -> int:
            try:
                with urllib.request.urlopen(f"http://{address}/readyz", timeout=120) as answer:
                    return answer.status
            except urllib.error.HTTPError as error:
                with error:
                    return error.code

        until(lambda: ready() == 200, what="readiness")
        own_broker.stop()
        until(lambda: ready() == 503, what="being away to be noticed")
        own_broker.restart()
        until(lambda: ready() == 200, what="readiness again")
        send(topic, GOOD)
        until(lambda: records(tmp_path / "s") == 2 * len(GOOD), what="the rest")
    finally:
        began = time.monotonic()
        said = stopped(running, signal.SIGTERM)
    assert running.returncode == 0 and time.monotonic() - began < 10, said


def test_a_first_start_must_choose_and_lost_offsets_are_told(broker, new_topic, send, admin, tmp_path):
    topic = new_topic()
    uri = f"kafka://{broker.bootstrap}/{topic}"
    send(topic, GOOD)
    assert "--start" in one_line(engine("run", uri, "--state", tmp_path / "s", "--no-refits", status=2).stderr).replace(
        "start =", "--start"
    )
    consumed(tmp_path / "s", 5, uri, "--start", "earliest")
    send(topic, GOOD * 2)
    from kafka import TopicPartition

    admin.delete_records({TopicPartition(topic, 0): 9})
    said = one_line(engine("run", uri, "--state", tmp_path / "s", "--no-refits", status=1).stderr)
    assert topic in said and "5" in said and "9" in said and "earliest" in said
    said = consumed(tmp_path / "s", 11, uri, "--on-offset-loss", "earliest")
    assert "lost" in said or "missing" in said or "deleted" in said


def test_the_readmes_commands(broker, new_topic, tmp_path):
    from tests.house.test_readme import KAFKA

    here = f"kafka://{broker.bootstrap}/{new_topic()}"
    events = jsonl(tmp_path / "events.jsonl", [json.loads(value) for value in GOOD])
    produce, run = (
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
