"""A message that kills the process, and dead letters of messages: put aside, and read again, on a real topic."""

import json

import pytest

from tests.support.kafka_runs import GOOD, consumed
from tests.support.killed_runs import KILLED, killed
from tests.support.process import engine, process, summary

pytestmark = pytest.mark.kafka


def test_a_message_that_kills_the_process_is_put_aside_and_read_later(broker, new_topic, send, tmp_path):
    topic, state = new_topic(partitions=2), tmp_path / "s"
    send(topic, [*GOOD, b'{"probe": "b",\n "near": "a", "far": "c"}'])
    send(topic, [*GOOD[:2], b'{"anchor": "poison", "near": "a", "far": "c"}', *GOOD[2:]], partition=1)
    run = (f"kafka://{broker.bootstrap}/{topic}", "--start", "earliest")
    assert killed([-1] * 3, "run", *run, "--state", state, "--no-refits") == [KILLED] * 3
    consumed(state, 12, *run)
    found = summary(state)
    assert found["rejected"] == {"missing_field": 1, "process_died": 1} and found["events"] == 10
    shown = engine("dead-letters", "show", "--state", state, "--reason", "process_died", "--json").stdout
    letter = json.loads(shown)
    assert (letter["partition"], letter["offset"]) == (f"{topic}/1", 2) and "poison" in letter["value"]
    again = tmp_path / "again.jsonl"
    raw = ("dead-letters", "show", "--raw", "--state", state)
    assert process(*raw, "--reason", "missing_field").stdout == '{"probe": "b",  "near": "a", "far": "c"}\n'
    again.write_text(process(*raw, "--reason", "process_died").stdout)
    engine("run", again, "--state", state, "--no-refits")  # as if the decoder had been mended
    assert summary(state)["events"] == 11
