"""`produce` against the real broker: what arrives decodes to what the file decodes to."""

import json
import random

import pyarrow as pa
import pyarrow.parquet
import pytest

from connectors import SinkUnavailable
from connectors.kafka.client import parse_address
from connectors.kafka.sender import Sender
from connectors.kafka.source import KafkaSource
from stream_engine.__main__ import main
from tests.support.event_worlds import CSV, meaning
from tests.support.facts import states
from tests.support.kafka_producing import produce
from tests.support.kafka_reading import idle, read
from tests.support.process import until

EVENTS = [
    {"anchor": "a", "near": 1, "far": "c"},
    {"type": "odd_one_out", "objects": ["a", "b", "c"], "odd": "c"},
    {"type": "ranking", "anchor": "ä", "ranked": ["x", "y", "z"], "worker": "w"},
    {"type": "quadruplet", "near": ["a", "b"], "far": ["c", "d"]},
    {"type": "label", "object": "a", "label": None},
]


@pytest.fixture
def arrived(broker):
    def values(topic, count):
        source = KafkaSource(f"{broker.bootstrap}/{topic}", {}, start="earliest", options={"fetch_max_wait_ms": 50})
        try:
            return [(r.value, r.format) for r in read(source, count) + idle(source, 0.1)]
        finally:
            source.close()

    return values


@pytest.mark.kafka
def test_lines_arrive_as_they_are(broker, new_topic, arrived, tmp_path):
    batch = 2
    lines = [json.dumps(event, ensure_ascii=False).encode() for event in EVENTS] + [b"{not json"]
    path = tmp_path / "events.jsonl"
    path.write_bytes(b"\n".join(lines[:3]) + b"\r\n\n" + b"\n".join(lines[3:]))
    topic, heard = new_topic(), []
    done, skipped = produce(
        [str(path)],
        f"kafka://{broker.bootstrap}/{topic}",
        batch=batch,
        progress=heard.append,
        options={"group_id": "of the engine", "compression_type": "zstd"},
    )
    values = [value for value, _ in arrived(topic, -(-len(lines) // batch))]
    assert [line for value in values for line in value.split(b"\n")] == lines
    assert done[:3] == (6, len(values), sum(map(len, values)))
    assert skipped == 0
    assert sum(heard) == 6
    assert [each for value in values for each in meaning("json", value)] == meaning("json", path.read_bytes())


@pytest.mark.kafka
def test_tables_arrive_with_their_meaning(broker, new_topic, arrived, tmp_path):
    header, _, rows = CSV.encode().partition(b"\n")
    meant = [*meaning("csv", rows, header + b"\n"), ("1", "a", "c")]
    (tmp_path / "events.csv").write_text(CSV)
    table = pa.table({"anchor": [1, 2], "near": ["a", "b"], "far": ["c", None]})
    pa.parquet.write_table(table, tmp_path / "events.parquet")
    topic = new_topic()
    done, skipped = produce(
        [str(tmp_path / "events.csv"), str(tmp_path / "events.parquet")],
        f"kafka://{broker.bootstrap}/{topic}",
        batch=3,
        encoding="arrow",
    )
    found = arrived(topic, done.messages)
    assert {format for _, format in found} == {"arrow"}
    assert done.items == 8 and skipped == 1
    assert sorted((each for value, _ in found for each in meaning("arrow", value)), key=repr) == sorted(meant, key=repr)


@pytest.mark.kafka
def test_a_missing_topic_fails_in_a_line(broker, tmp_path):
    path = tmp_path / "events.jsonl"
    path.write_text("{}\n")
    with pytest.raises(SinkUnavailable, match="/no-such-topic"):
        produce([str(path)], f"kafka://{broker.bootstrap}/no-such-topic", patience=1.5)


@pytest.mark.kafka
@pytest.mark.parametrize("noticed_by", ["flush", "send"])
def test_a_message_that_only_the_broker_refuses_is_told(broker, new_topic, noticed_by):
    """Larger than this topic takes: by then `send` has returned, and a later call says so."""
    address = parse_address(f"{broker.bootstrap}/{new_topic(max_message_bytes='2000')}")
    with Sender(address, {}, 60.0) as sending:
        sending.send(b"good")
        sending.flush()
        sending.send(random.Random(0).randbytes(5000))
        with pytest.raises(SinkUnavailable, match=f"^{address}: "):
            if noticed_by == "flush":
                sending.flush()
            else:
                until(lambda: sending.send(b"after it"), what="that a later one is refused")


@pytest.mark.kafka
def test_questions_to_ask_arrive_one_a_message(broker, new_topic, arrived, tmp_path, capfd):
    (tmp_path / "names.txt").write_text("a\nb\nc\nd\n")
    asking = ["ask", "--state", str(tmp_path / "none"), "--objects", str(tmp_path / "names.txt"), "--n", "5"]
    topic = new_topic()
    assert main([*asking, "--out", f"kafka://{broker.bootstrap}/{topic}"]) == 0
    assert states(capfd.readouterr().out, f"5 … coverage … 4 … 5 … kafka://{broker.bootstrap}")
    assert main(asking) == 0
    assert [value.decode() for value, _ in arrived(topic, 5)] == capfd.readouterr().out.splitlines()
