"""Dead letters on a real topic: what is in them, that they are durable, and that a replay adds none."""

import time
from functools import partial

import pytest

from connectors import SINKS, DeadLetter, SinkUnavailable, UnusableSource, resolve
from connectors.kafka.dead_letter_sink import PREFIX, VALUE_BYTES, KafkaDeadLetters
from tests.kafka.conftest import collect_sockets
from tests.support import kafka_reading

pytestmark = pytest.mark.kafka


def letter(i: int, value: bytes | None = None, partition: str = "votes/3", key: bytes | None = None) -> DeadLetter:
    return DeadLetter(partition, i // 2, i % 2, "syntax", f"no. {i} — nicht lesbar", value or b"bad %d" % i, key)


@pytest.fixture
def on_topic(broker):
    """`on_topic(topic)`: everything that is there, in order of partition and offset."""
    return partial(kafka_reading.on_topic, broker.bootstrap)


@pytest.fixture
def open_sink(broker):
    made = []

    def make(topic, position=None, **more):
        made.append(resolve("kafka", SINKS)(f"{broker.bootstrap}/{topic}", position, version="1.2", **more))
        return made[-1]

    yield make
    for sink in made:
        sink.close()


def fields(record) -> dict[str, str]:
    return {name.removeprefix(PREFIX): value.decode() for name, value in record.headers}


def test_a_letter_holds_the_bytes_and_where_and_why(new_topic, open_sink, on_topic):
    topic = new_topic()
    sink = open_sink(topic)
    sink.append([letter(7, b"\xff{", key=b"k"), letter(2, partition="/data/a.jsonl"), letter(3, partition="/data/7")])
    assert sink.flush() == {"0": 3}
    first, second, third = on_topic(topic)
    assert (first.key, first.value) == (b"k", b"\xff{")
    assert fields(first) == {
        "topic": "votes",
        "partition": "3",
        "offset": "3",
        "index": "1",
        "reason": "syntax",
        "message": "no. 7 — nicht lesbar",
        "engine.version": "1.2",
    }
    assert fields(second)["partition"] == "/data/a.jsonl" and "topic" not in fields(second)
    assert fields(third)["partition"] == "/data/7" and "topic" not in fields(third)


def test_a_replay_from_any_snapshot_adds_none(new_topic, open_sink, on_topic):
    partitions = 3
    topic = new_topic(partitions)
    letters = [letter(i, partition=f"votes/{i % 2}") for i in range(30)]
    sink = open_sink(topic)
    snapshots = [(0, None)]  # letters before it, and the sink's position in it
    for end in (10, 20):
        sink.append(letters[end - 10 : end])
        snapshots.append((end, sink.flush()))
    sink.append(letters[20:25])
    sink.flush()  # durable, but the process dies before the snapshot is published
    sink.close()
    for taken, position in reversed(snapshots):
        again = open_sink(topic, position)
        again.append(letters[taken:])
        end = again.flush()
        again.close()
        found = on_topic(topic)
        assert len(found) == 30 and {r.value for r in found} == {each.value for each in letters}
        assert end == {str(p): sum(r.partition == p for r in found) for p in range(partitions)}


def test_another_source_under_the_same_name_is_not_taken_for_a_replay(new_topic, open_sink, on_topic):
    topic = new_topic()
    first = open_sink(topic)
    first.append([letter(0, b"of the first life")])
    first.flush()
    second = open_sink(topic)
    second.append([letter(0, b"of the second life"), letter(0, b"of the first life")])
    second.flush()
    assert [r.value for r in on_topic(topic)] == [b"of the first life", b"of the second life"]


def test_foreign_messages_are_passed_over_and_a_topic_made_anew_is_begun(new_topic, send, open_sink, on_topic):
    topic = new_topic()
    send(topic, [b"not one of ours", (b"k", None)])
    sink = open_sink(topic, {"0": 99})
    sink.append([letter(1)])
    assert sink.flush() == {"0": 3}
    assert sink.flush() == {"0": 3}


def test_large_values_are_cut_and_say_so(new_topic, open_sink, on_topic):
    topic = new_topic()
    for _ in range(2):
        sink = open_sink(topic)
        sink.append([letter(1, b"x" * (VALUE_BYTES + 5)), letter(2, b"y" * VALUE_BYTES)])
        sink.flush()
    cut, whole = on_topic(topic)
    assert len(cut.value) == len(whole.value) == VALUE_BYTES
    assert fields(cut)["value.length"] == str(VALUE_BYTES + 5) and "value.length" not in fields(whole)


def test_a_missing_topic_or_option_is_named(broker, new_topic, open_sink):
    with pytest.raises(UnusableSource, match="/no-such-topic"):
        open_sink("no-such-topic")
    with pytest.raises(UnusableSource, match="unknown no_such_option"):
        open_sink(new_topic(), options={"no_such_option": 1})
    open_sink(new_topic(), options={"group_id": "of the source", "compression_type": "zstd"})


@pytest.mark.filterwarnings("ignore:.*unclosed:ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")
def test_an_absent_broker_is_waited_for_and_nothing_is_lost_or_repeated(own_broker, new_topic, on_topic):
    topic, other = new_topic(), new_topic()
    options = {"reconnect_backoff_max_ms": 200, "bootstrap_timeout_ms": 500, "request_timeout_ms": 2000}
    sink = KafkaDeadLetters(f"{own_broker.bootstrap}/{topic}", None, options=options, patience=1.0)
    sink.append([letter(i) for i in range(5)])
    assert sink.flush() == {"0": 5}
    # a producer that gives up: what became of its letters is then read from the topic
    short = options | {"delivery_timeout_ms": 900, "request_timeout_ms": 600}
    given_up = KafkaDeadLetters(f"{own_broker.bootstrap}/{other}", None, options=short, patience=2.0)
    own_broker.kill()
    try:
        late = KafkaDeadLetters(f"{own_broker.bootstrap}/{topic}", {"0": 5}, options=options, patience=0.5)
        for each in (sink, late, given_up):
            each.append([letter(i) for i in range(5, 10)])
            began = time.monotonic()
            with pytest.raises(SinkUnavailable, match="5"):
                each.flush()
            assert time.monotonic() - began < 20
    finally:
        own_broker.start()
    sink._patience = late._patience = given_up._patience = 30
    assert sink.flush() == {"0": 10}
    assert late.flush() == {"0": 10}
    assert given_up.flush() == {"0": 5}
    assert [r.value for r in on_topic(topic)] == [b"bad %d" % i for i in range(10)]
    assert [r.value for r in on_topic(other)] == [b"bad %d" % i for i in range(5, 10)]
    began = time.monotonic()
    sink.close(), late.close(), given_up.close()
    collect_sockets()
    assert time.monotonic() - began < 10
