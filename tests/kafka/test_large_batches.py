"""A compressed batch that holds more than a message may: one message with a problem, whatever it would unpack to."""

import pytest
from kafka.record.default_records import DefaultRecordBatch, DefaultRecordBatchBuilder

from connectors import Record, open_source
from connectors.kafka.kafka_python_internals import LARGE_BATCHES
from stream_engine.formats.options import EventOptions
from stream_engine.input.decoding import RecordDecoder
from tests.support.facts import states
from tests.support.process import until

MOST = 1 << 20
CODECS = {"gzip": 1, "snappy": 2, "lz4": 3, "zstd": 4}
EVENT = b'{"anchor": "a", "near": "b", "far": "c"}'


def batch(codec: int, values: list[bytes], first: int = 5) -> DefaultRecordBatch:
    """A batch as a broker gives it, of the offsets from `first` on."""
    builder = DefaultRecordBatchBuilder(2, codec, False, -1, -1, -1, 1 << 28)
    for number, value in enumerate(values):
        assert builder.append(number, timestamp=1_700_000_000_000, key=None, value=value, headers=[])
    made = bytearray(builder.build())
    made[:8] = first.to_bytes(8, "big")
    return DefaultRecordBatch(made)


@pytest.fixture(autouse=True)
def bounded():
    before = LARGE_BATCHES.most
    LARGE_BATCHES.bound(MOST)
    yield
    LARGE_BATCHES.bound(before or MOST)


@pytest.mark.parametrize("codec", CODECS.values(), ids=CODECS)
def test_what_a_batch_may_hold_is_unpacked_as_ever(codec):
    values = [EVENT, b"x" * 900_000, b"", EVENT]
    assert [(each.offset, bytes(each.value)) for each in batch(codec, values)] == [*enumerate(values, 5)]
    assert not LARGE_BATCHES.met


@pytest.mark.parametrize("codec", [CODECS[name] for name in ("gzip", "lz4", "zstd")])
def test_a_batch_that_holds_more_is_one_message_at_its_last_offset(codec):
    large = batch(codec, [EVENT, b"x" * (50 << 20), EVENT])
    packed = bytes(large._buffer[large._pos :])
    (only,) = large
    assert only.offset == 7 and len(LARGE_BATCHES.met) == 1
    value, problem = LARGE_BATCHES.problem(bytes(only.value))
    assert value == packed and not LARGE_BATCHES.met
    assert states(problem, "3 messages … 5 … 7") and "1,048,576" in problem
    assert LARGE_BATCHES.problem(EVENT) == (EVENT, "") and LARGE_BATCHES.problem(None) == (b"", "")


@pytest.mark.kafka
def test_the_stream_goes_on_behind_a_batch_that_is_too_large(broker, new_topic, send):
    topic = new_topic()
    options = {"compression_type": "gzip", "max_request_size": 1 << 27}
    for value in (EVENT, b"[" + b"0," * (20 << 20) + b"0]", EVENT):
        send(topic, [value], **options)
    source = open_source(f"kafka://{broker.bootstrap}/{topic}", {}, options={"max_batch_bytes": MOST}, start="earliest")
    records: list[Record] = []
    try:
        until(lambda: records.extend(source.poll(0.2)) or len(records) >= 3, what="three messages")
    finally:
        source.close()
    assert [(each.offset, each.too_large) for each in records] == [(0, False), (1, True), (2, False)]
    blocks = list(RecordDecoder(EventOptions()).blocks(records))
    assert [letter.reason for block in blocks for letter in block.dead_letters] == ["too_large"]
    assert sum(block.decoded.events.get("triplet", 0) for block in blocks) == 2
