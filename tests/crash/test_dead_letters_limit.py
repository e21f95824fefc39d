"""Power cut before every disk operation of a run whose dead letters are limited."""

from connectors import Position, Record
from connectors.files.dead_letters import DeadLetterFile, letters_before
from stream_engine.formats.options import EventOptions
from stream_engine.input.decoding import RecordDecoder
from stream_engine.service.dead_letter_limit import limit_folder, remove_segments
from stream_engine.state.engine import Engine
from stream_engine.state.snapshot import encode
from stream_engine.state.store import Store
from tests.support.simulated_disk import SimDisk, crash_images

FOLDER = "/state/dead_letters"
SEGMENT, KEEP = 100, 400  # bytes


def consume(disk: SimDisk, promises: list) -> Engine:
    """A run with a snapshot after every record, whose dead letters may be 400 bytes."""
    store = Store("/state", disk)
    latest = store.latest().snapshot
    engine = Engine.restore(latest) if latest else Engine()
    sink = DeadLetterFile(FOLDER, engine.sinks.get("file", 0), disk=disk, segment_bytes=SEGMENT)
    remove_segments(sink, engine.sinks)
    reading = RecordDecoder(EventOptions())
    for offset in range(engine.positions.get("m", Position(0)).offset, 7):
        record = Record(b'{"anchor": "%d"}' % offset, "m", offset, offset + 1, unit="message")
        (block,) = reading.blocks([record])
        sink.append(block.dead_letters)
        engine.learn(block.decoded, {"m": Position(offset + 1)})
        engine.sinks["file"] = sink.flush()
        limit_folder(sink, KEEP, engine.sinks, engine.counters["dead_letters"])
        snapshot, _ = store.publish(engine.snapshot())
        promises.append(snapshot.sequence)
        store.prune(2)
        remove_segments(sink, snapshot.counters["sinks"])
    return engine


def bytes_of(engine: Engine) -> bytes:
    return b"".join(encode(engine.snapshot())[0])


def test_limits_that_die_anywhere_remove_and_count_the_same():
    whole = SimDisk()
    engine = consume(whole, [])
    expected, there = bytes_of(engine), whole.listdir(FOLDER)
    gone = engine.counters["dead_letters"]
    assert gone["removed"] > 2 and gone["removed"] + len(list(letters_before(FOLDER, 1 << 60, whole))) == 7
    for n, _, image in crash_images(consume):
        if n % 4:  # one operation in four
            continue
        resumed = consume(image, [])
        assert bytes_of(resumed) == expected and image.listdir(FOLDER) == there, n
