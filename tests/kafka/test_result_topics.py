"""Tables of results on compacted topics: a reader from the start holds the newest table, whatever is killed."""

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress

import numpy as np
import pytest

from connectors import SinkUnavailable, UnusableSource
from connectors.kafka.written_topics import TableTopic
from stream_engine.exports.table_rows import rows
from stream_engine.state.store import Store
from tests.support.kafka_reading import on_topic
from tests.support.process import ENVIRONMENT, engine, jsonl, started, until

pytestmark = pytest.mark.kafka
SEND = [sys.executable, "-m", "stream_engine.service.result_sender"]


def replayed(broker, topic: str) -> dict[bytes, bytes]:
    """The table that a consumer holds which reads the committed messages from the start."""
    held = {record.key: record.value for record in on_topic(broker.bootstrap, topic)}
    return {key: value for key, value in held.items() if value}


def events(objects: int, seed: int) -> list[dict]:
    """Fifty triplets about o0, o1, ...; every object occurs."""
    rng = np.random.default_rng(seed)
    chosen = [rng.permutation(objects)[:3] for _ in range(50)]
    chosen += [[i, (i + 1) % objects, (i + 2) % objects] for i in range(objects)]
    return [dict(zip(("anchor", "near", "far"), (f"o{i}" for i in three), strict=True)) for three in chosen]


@pytest.fixture
def topic(new_topic):
    return new_topic(cleanup_policy="compact")


def settings(folder, broker, topic: str) -> str:
    (folder / "engine.toml").write_text(f'[publish]\nobjects = "kafka://{broker.bootstrap}/{topic}"\n')
    return str(folder / "engine.toml")


def run_arguments(tmp_path, broker, topic) -> list:
    source, state = tmp_path / "answers.jsonl", tmp_path / "state"
    return ["run", source, "--state", state, "--no-refits", "--config", settings(tmp_path, broker, topic)]


def test_a_table_is_replaced_as_a_whole_and_earlier_writers_are_shut_out(broker, topic):
    first, second = TableTopic(f"{broker.bootstrap}/{topic}"), TableTopic(f"{broker.bootstrap}/{topic}")
    try:
        first.open()
        first.change({b"a": b"1", b"b": b"2"}, {"snapshot": "1"})
        second.open()
        with pytest.raises((SinkUnavailable, UnusableSource)):
            first.change({b"a": b"stale"}, {"snapshot": "0"})
        second.change({b"b": None, b"c": b"3"}, {"snapshot": "2"})
        assert second.rows() == replayed(broker, topic) == {b"a": b"1", b"c": b"3"}
    finally:
        first.close()
        second.close()
    newest = {record.key: dict(record.headers) for record in on_topic(broker.bootstrap, topic)}
    assert newest[b"a"] == {"snapshot": b"1"} and newest[b"b"] == {"snapshot": b"2"}


def test_replay_gives_the_newest_table_after_kills(broker, topic, tmp_path):
    source, arguments = tmp_path / "answers.jsonl", run_arguments(tmp_path, broker, topic)
    rng, lines = np.random.default_rng(5), []
    for turn in range(4):
        lines += events(5 + 3 * turn, turn)
        jsonl(source, lines)
        killed = started(*arguments)
        until((tmp_path / "state" / "snapshots").is_dir)
        time.sleep(float(rng.uniform(0.0, 1.5)))  # before, while and after it sends
        with suppress(ProcessLookupError):  # where it has ended
            os.killpg(killed.pid, signal.SIGKILL)
        killed.communicate()
        sending = subprocess.Popen(
            [*SEND, tmp_path / "state", "latest"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=ENVIRONMENT
        )
        asked = {"tables": {"objects": f"kafka://{broker.bootstrap}/{topic}"}, "kafka": {}}
        sending.stdin.write(json.dumps(asked).encode())
        sending.stdin.close()
        time.sleep(float(rng.uniform(0.3, 2.0)))
        sending.kill()
        sending.wait()
        sending.stdout.close()
    engine(*arguments)
    wanted = rows(Store(tmp_path / "state").published("latest"), "objects")
    assert replayed(broker, topic) == wanted and set(wanted) == {f"o{i}".encode() for i in range(14)}
    snapshot = Store(tmp_path / "state").newest()
    last = on_topic(broker.bootstrap, topic)[-1]
    assert dict(last.headers) == {"snapshot": str(snapshot.sequence).encode(), "digest": snapshot.digest.encode()}


def test_a_forgotten_object_leaves_the_topic(broker, topic, tmp_path):
    jsonl(tmp_path / "answers.jsonl", events(6, 0))
    engine(*run_arguments(tmp_path, broker, topic))
    assert b"o3" in replayed(broker, topic)
    engine("forget", "--state", tmp_path / "state", "--object", "o3")
    engine(*run_arguments(tmp_path, broker, topic))
    assert replayed(broker, topic).keys() == {f"o{i}".encode() for i in (0, 1, 2, 4, 5)}


def test_a_topic_that_is_missing_is_said_and_counting_goes_on(broker, tmp_path):
    jsonl(tmp_path / "answers.jsonl", events(6, 0))
    done = engine(*run_arguments(tmp_path, broker, "no-such-topic"))
    assert "no-such-topic" in done.stderr and "compact" in done.stderr
    assert Store(tmp_path / "state").newest().counters["triplets"] == 56
