"""A state with dead letters on a disk, as a run leaves it: for tests of what is done to it afterwards."""

from collections.abc import Iterable

import numpy as np

from connectors import Position, Record
from connectors.disk import Disk
from connectors.files.dead_letter_sink import DeadLetterFile
from stream_engine.formats.options import EventOptions
from stream_engine.service.ingest import Ingest
from stream_engine.state.engine import Engine
from stream_engine.state.snapshot import Snapshot
from stream_engine.state.store import Store


def published(store: Store, folder: str, values: Iterable[bytes], options: EventOptions, disk: Disk) -> Snapshot:
    """The state that has read these messages, in a snapshot, its letters before it in the folder."""
    engine, sink = Engine(), DeadLetterFile(folder, 0, disk=disk, segment_bytes=600)
    records = [Record(value, "t/0", i, i + 1, unit="message") for i, value in enumerate(values)]
    for block in Ingest(options).blocks(records):
        sink.append(block.dead_letters)
        engine.learn(block.decoded, block.positions(), block.counts().total())
    engine.positions.setdefault("t/0", Position(0))
    engine.sinks["file"] = sink.flush()
    return store.publish(engine.snapshot())[0]


def meaning(snapshot: Snapshot) -> tuple:
    """What of a state does not depend on the order in which it learned: counts by name, and the counters."""
    names = snapshot.objects
    columns = snapshot.section("triplet_counts")
    keys = np.diff(columns["start"])
    lo, hi = np.repeat(columns["lo"], keys), np.repeat(columns["hi"], keys)
    triplets = [
        (names[anchor], *sorted([(names[one], int(a)), (names[other], int(b))]))
        for anchor, one, other, a, b in zip(columns["anchor"], lo, hi, columns["n_lo"], columns["n_hi"], strict=True)
    ]
    sums = [
        (section, *sorted([names[i], names[j]]), int(w))
        for section in ("adds3", "adds4")
        for i, j, w in zip(*(snapshot.section(section)[axis] for axis in "ijw"), strict=True)
    ]
    left_out = ("sinks", "history", "guard", "progressive", "unknown_fields", "input")
    counters = {name: value for name, value in snapshot.counters.items() if name not in left_out}
    return (
        sorted(triplets) + sorted(sums),
        sorted(names),
        dict(snapshot.labels),
        counters,
        sum(snapshot.counters["guard"].values()),
    )
