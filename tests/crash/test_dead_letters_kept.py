"""Power cut before every disk operation of a replay of dead letters, and of a run whose dead letters are limited."""

import json

import pyarrow as pa
import pytest

from connectors import Position, Record
from connectors.files.dead_letter_reader import letters_before
from connectors.files.dead_letter_sink import DeadLetterFile
from stream_engine.formats.bounds import Bounds
from stream_engine.formats.options import EventOptions
from stream_engine.service import letters_replay
from stream_engine.service.ingest import Ingest
from stream_engine.service.letters_kept import LettersKept
from stream_engine.service.letters_replay import live_letters, replay
from stream_engine.service.metrics import Metrics
from stream_engine.state.engine import Engine
from stream_engine.state.snapshot import encode
from stream_engine.state.store import Store
from tests.service.test_prediction_monitor import Lines
from tests.support.dead_letter_world import meaning, published
from tests.support.simulated_disk import SimDisk, crash_images

FOLDER = "/state/dead_letters"
MAPPED = EventOptions(columns={"anchor": ("probe",)})
VALUES = [
    *(json.dumps({"probe": f"p{i % 3}", "near": f"n{i}", "far": "f"}).encode() for i in range(6)),
    b'{"type": "quadruplet", "near": ["a", "b"], "far": ["c", "d"]}',
    b"{bad",
    b'[{"probe": "q", "near": "n", "far": "f"}, {"probe": "q", "near": "n", "far": "n"}]',
    b'{"type": "label", "object": "a", "label": "x"}',
    b'{"type": "duel", "probe": "q", "near": "n", "far": "f"}',
]


def left(store: Store) -> list[tuple]:
    """The letters that wait, as they would stand after any replay."""
    sinks = store.latest().snapshot.counters["sinks"]
    return sorted(kept.letter for kept in live_letters(sinks, FOLDER, store.disk))


def again(disk: SimDisk, promises: list, **more) -> None:
    store = Store("/state", disk)
    promises.append(replay(store, store.latest().snapshot, FOLDER, MAPPED, **more).snapshot or 1)


@pytest.fixture(scope="module")
def before() -> SimDisk:
    """A disk with the state that has read all events without the mapping."""
    disk = SimDisk()
    published(Store("/state", disk), FOLDER, VALUES, EventOptions(), disk)
    return disk.copy()


@pytest.fixture(scope="module")
def right() -> Store:
    """The state that has read them right the first time."""
    store = Store("/state", SimDisk())
    published(store, FOLDER, VALUES, MAPPED, store.disk)
    return store


def test_after_a_replay_the_state_is_the_one_that_had_read_them_right(before, right):
    store = Store("/state", before.copy())
    report = replay(store, store.latest().snapshot, FOLDER, MAPPED)
    assert (report.letters, report.right, report.events) == (10, 7, 7) and report.snapshot == 2
    assert report.again == {"not_distinct": 1, "not_parseable": 1, "unknown_type": 1}
    replayed = store.latest().snapshot
    assert meaning(replayed) == meaning(right.latest().snapshot)
    assert [tuple(letter) for letter in left(store)] == [tuple(letter) for letter in left(right)]
    (deed,) = replayed.counters["history"]
    assert (deed["did"], deed["letters"], deed["right"]) == ("replay", 10, 7)
    second = replay(store, replayed, FOLDER, MAPPED)
    assert (second.right, second.events, second.snapshot) == (0, 0, None) and store.sequences() == [1, 2]


def test_a_replay_of_one_reason_leaves_the_others(before):
    store = Store("/state", before.copy())
    report = replay(store, store.latest().snapshot, FOLDER, MAPPED, reason="not_parseable")
    assert (report.letters, report.right, report.snapshot) == (1, 0, None)
    assert replay(store, store.latest().snapshot, FOLDER, MAPPED, reason="missing_field").right == 7
    rejected = store.latest().snapshot.counters["rejected"]
    assert rejected == {"not_distinct": 1, "not_parseable": 1, "unknown_type": 1}
    assert len(left(store)) == 3


def test_letters_that_together_are_too_much_are_read_one_after_the_other(monkeypatch):
    """A decoder may take fewer values than it is given; and of what is too large only a part may be kept."""
    few = EventOptions(columns={"anchor": ("probe",)}, bounds=Bounds(max_bytes=2_000, max_rows=1))
    table = pa.table({"probe": ["a", "b"], "near": ["c", "d"], "far": ["e", "f"]})
    disk, stream = SimDisk(), pa.BufferOutputStream()
    with pa.ipc.new_stream(stream, table.schema) as writer:
        writer.write_table(table)
    monkeypatch.setattr(letters_replay, "SHOWN", 3_000)
    store = Store("/state", disk)
    values = [*VALUES[:3], stream.getvalue().to_pybytes(), b" " * 4_000 + VALUES[3]]
    assert published(store, FOLDER, values, few._replace(columns={}), disk).counters["rejected"]["too_large"] == 2
    report = replay(store, store.latest().snapshot, FOLDER, few._replace(bounds=Bounds(max_bytes=100_000, max_rows=9)))
    assert (report.letters, report.right, report.events, report.not_whole) == (4, 4, 5, 1)
    assert [letter.reason for letter in left(store)] == ["too_large"]
    assert store.latest().snapshot.counters["rejected"] == {"too_large": 1}


def test_a_dry_run_says_the_same_and_changes_nothing(before):
    disk = before.copy()
    store = Store("/state", disk)
    contents = disk.contents()
    told = replay(store, store.latest().snapshot, FOLDER, MAPPED, dry_run=True)
    assert disk.contents() == contents
    assert told == replay(store, store.latest().snapshot, FOLDER, MAPPED)._replace(snapshot=None)


def test_a_replay_that_dies_anywhere_counts_every_letter_once(before, right):
    expected, letters, images = meaning(right.latest().snapshot), left(right), 0
    for n, promises, image in crash_images(again, before.copy):
        store = Store("/state", image)
        assert store.latest().snapshot.sequence >= max(promises, default=1), n
        again(image, [])
        assert meaning(store.latest().snapshot) == expected, n
        assert left(store) == letters, n
        images += 1
    assert images > 15


# ---- limits

EVERY = 100  # bytes of a segment


def consume(disk: SimDisk, promises: list) -> Engine:
    """A run with a snapshot after every record, whose dead letters may be 400 bytes."""
    store = Store("/state", disk)
    latest = store.latest().snapshot
    engine = Engine.restore(latest) if latest else Engine()
    sink = DeadLetterFile(FOLDER, engine.sinks.get("file", 0), disk=disk, segment_bytes=EVERY)
    kept = LettersKept(FOLDER, store, (400, 0), 2, Metrics(), Lines())
    kept.carry_out(engine.sinks)
    reading = Ingest(EventOptions())
    for offset in range(engine.positions.get("m", Position(0)).offset, 7):
        record = Record(b'{"anchor": "%d"}' % offset, "m", offset, offset + 1, unit="message")
        (block,) = reading.blocks([record])
        sink.append(block.dead_letters)
        engine.learn(block.decoded, {"m": Position(offset + 1)})
        engine.sinks["file"] = sink.flush()
        kept.decide(sink, engine.sinks, engine.counters["dead_letters"])
        snapshot, _ = store.publish(engine.snapshot())
        promises.append(snapshot.sequence)
        store.prune(2)
        kept.carry_out(snapshot.counters["sinks"])
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


def test_segments_that_a_kept_snapshot_relies_on_stay():
    disk = SimDisk()
    consume(disk, [])
    kept = Store("/state", disk).sequences()
    assert len(kept) > 1
    for sequence in kept:
        position = Store("/state", disk).read(sequence).counters["sinks"]["file"]
        sink = DeadLetterFile(FOLDER, position, disk=disk.copy())  # raises where a segment it needs is gone
        assert sink.flush() == position and not sink.lost
