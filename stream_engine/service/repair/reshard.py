"""States of N shares become states of M shares.

With the sources each new state is counted from their beginning up to the old positions, and is what `run --shard` would
have made; without them the sum of all counts goes into the first new state, and the others begin empty at the positions
of their own partitions, so that the merged new states are the merged old ones.

Invariant: the folder of new states appears whole, by one rename, or not at all.
"""

import os
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from connectors.disk import Disk, make_folders
from connectors.files.dead_letter_sink import SEGMENT_BYTES, DeadLetterFile
from stream_engine.service.repair.dead_letter_lines import SEGMENT_BITS, replayed, segments
from stream_engine.service.repair.read_again import Counted, ReadAgain
from stream_engine.service.repair.recount import count, empty_like, of_state
from stream_engine.service.repair.shares import check_whole_set, dealt, topic_and_number
from stream_engine.service.repair.stretches import MOVES
from stream_engine.service.settings import Settings
from stream_engine.state.engine import Engine
from stream_engine.state.snapshot import Snapshot
from stream_engine.state.store import NoSuchSnapshot, Store

SUMS = (
    "records",
    "events",
    "comparisons",
    "triplets",
    "quadruplets",
    "labels",
    "filtered",
    "empty",
    "kinds",
    "rejected",
)


class CannotReshard(RuntimeError):
    """The states cannot be cut anew so; one line."""


class NewState(NamedTuple):
    """A new state that was written."""

    directory: Path
    share: str | None
    snapshot: Snapshot


class Old(NamedTuple):
    """The states that are to be replaced, in the order of their first partition, with their newest snapshots."""

    states: list[str]
    snapshots: list[Snapshot]


def old_states(states: Sequence[str]) -> Old:
    """The newest snapshots of a whole set of states. Raises `NoSuchSnapshot`, `OverlappingStates`, `Corrupt`."""
    found = []
    for state in dict.fromkeys(os.path.normpath(state) for state in states):
        snapshot = Store(state).latest().snapshot
        if snapshot is None:
            raise NoSuchSnapshot(f"{state}: no snapshot there to reshard")
        found.append((state, snapshot))
    found.sort(key=lambda each: (min(each[1].positions, default=""), each[1].digest))
    old = Old([state for state, _ in found], [snapshot for _, snapshot in found])
    check_whole_set(*old)
    return old


def reshard(old: Old, into: int, out: Path, settings: Settings | None, disk: Disk) -> tuple[list[NewState], bool]:
    """Write the new states below `out`; also whether they are new there. `settings` name the sources, None: without.

    Raises `CannotReshard`, `OverlappingStates`, `SourceFailed`, `UnusableSource`, `OSError`.
    """
    if settings is not None:
        _check_deeds(old)
    temporary = out.parent / f".{out.name}.{os.getpid()}"
    _sweep(out)
    make_folders(disk, temporary)
    try:
        made = [_made(old, index, into, temporary / f"shard-{index}", settings, disk) for index in range(into)]
        if settings is not None:
            _check_sums(old, made)
        made = [each._replace(directory=out / each.directory.name) for each in made]
        if out.exists() and os.listdir(out):
            _check_same(out, made)
            return made, False
        disk.rename(temporary, out)
        disk.fsync_dir(out.parent)
        return made, True
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _made(old: Old, index: int, into: int, directory: Path, settings: Settings | None, disk: Disk) -> NewState:
    shares = dealt([name for snapshot in old.snapshots for name in snapshot.positions], into)
    mine = {name for name, share in shares.items() if share == index}
    folder = directory / "dead_letters"
    if settings is not None:
        engine, sinks = _counted(old, mine, folder, settings, disk)
    elif index == 0:
        engine, sinks = _sum(old), _carried(old, folder, disk)
    else:
        engine, sinks = empty_like(old.snapshots[0]), {"file": 0}
    _take_positions(engine, old, mine)
    _take_options(engine, old)
    engine.share = f"{index}/{into}" if into > 1 and any(map(topic_and_number, shares)) else None
    if settings is None:
        engine.note("reshard", into=into, counts_in="shard-0", from_states=len(old.states))
    else:
        _take_history(engine, old, mine, index == 0)
    engine.sinks, engine.sequence = sinks, 0
    snapshot, _ = Store(directory, disk).publish(engine.snapshot())
    return NewState(directory, engine.share, snapshot)


def _counted(old: Old, mine: set[str], folder: Path, settings: Settings, disk: Disk) -> tuple[Engine, dict]:
    """What the partitions of one new state hold, and its dead letters."""
    until = {name: position for snapshot in old.snapshots for name, position in snapshot.positions.items()}
    history = [deed for snapshot in old.snapshots for deed in snapshot.counters.get("history", ())]
    again = ReadAgain(of_state(settings, old.snapshots[0]), Counted(until, history), mine.__contains__)
    engine, sink = empty_like(old.snapshots[0]), DeadLetterFile(folder, disk=disk)
    count(again, engine, sink.append)
    if again.problems:
        raise CannotReshard(f"{again.problems[0]}; without SOURCE the sum of all states goes into the first new one")
    return engine, {"file": sink.flush()}


def _sum(old: Old) -> Engine:
    """What `merge` makes of the old states."""
    engine = Engine.restore(old.snapshots[0])
    for snapshot in old.snapshots[1:]:
        engine.merge(Engine.restore(snapshot))
    return engine


def _take_positions(engine: Engine, old: Old, mine: set[str]) -> None:
    everything = [item for snapshot in old.snapshots for item in snapshot.positions.items()]
    engine.positions = {name: position for name, position in everything if name in mine}


def _take_options(engine: Engine, old: Old) -> None:
    """How all of them read their input; nothing where they did not read it alike."""
    made_with = [snapshot.counters.get("input", {}) for snapshot in old.snapshots]
    engine.counters["input"] = dict(made_with[0]) if all(each == made_with[0] for each in made_with) else {}


def _take_history(engine: Engine, old: Old, mine: set[str], first: bool) -> None:
    """What was lost and done in the partitions of a new state; what is of no partition goes to the first."""
    for snapshot in old.snapshots:
        for name, lost in snapshot.counters.get("lost", {}).items():
            if name in mine or (first and not any(name in each.positions for each in old.snapshots)):
                engine.lost[name] = engine.lost.get(name, 0) + lost
        for deed in snapshot.counters.get("history", ()):
            if deed.get("partition") in mine:
                engine.history.append(deed)
    engine.history.sort(key=lambda deed: deed["time"])


def _carried(old: Old, folder: Path, disk: Disk) -> dict[str, Any]:
    """The dead letters of all states in a new folder, one state after the other, and what a snapshot says of them.

    Those that were replayed come first, so that one mark for all reasons divides them from the others.
    """
    kept = [snapshot.counters.get("sinks", {}) for snapshot in old.snapshots]
    found = [segments(Path(state) / "dead_letters", sinks.get("file", 0)) for state, sinks in zip(old.states, kept)]
    for segment in (each for some in found for each in some):
        if segment.size < segment.wanted:
            raise CannotReshard(
                f"{segment.path} holds {segment.size:,} bytes, the snapshot relies on {segment.wanted:,}; dead letters "
                "are lost. Restore the file"
            )
    marks = [sinks.get("replayed", {}) for sinks in kept]
    writer, boundary = _Lines(folder, disk), 0
    for again in (True, False):
        for some, mark in zip(found, marks):
            for segment in some:
                writer.append(line for line, was in replayed(segment, mark) if was is again)
        if again:
            boundary = writer.position
    writer.sync()
    reasons = sorted(set().union(*marks))
    return {"file": writer.position} | ({"replayed": dict.fromkeys(reasons, boundary)} if reasons else {})


class _Lines:
    """Lines of dead letters written to segments, as the sink does."""

    def __init__(self, folder: Path, disk: Disk):
        self._folder, self._disk, self._number, self._length = folder, disk, 1, 0
        self._written: dict[Path, None] = {}

    @property
    def position(self) -> int:
        """Behind the last line."""
        return (self._number - 1 << SEGMENT_BITS) + self._length

    def append(self, given: Iterable[bytes]) -> None:
        """Write lines, a piece at a time."""
        for piece in _pieces(given):
            if self._length >= SEGMENT_BYTES:
                self._number, self._length = self._number + 1, 0
            if not self._written:
                make_folders(self._disk, self._folder)
            path = self._folder / f"{self._number:06d}.jsonl"
            self._disk.append(path, piece)
            self._written[path] = None
            self._length += sum(map(len, piece))

    def sync(self) -> None:
        """Make them durable."""
        for path in self._written:
            self._disk.fsync(path)
        if self._written:
            self._disk.fsync_dir(self._folder)


def _pieces(lines: Iterable[bytes]) -> Iterator[list[bytes]]:
    rest = iter(lines)
    while piece := list(islice(rest, 1000)):
        yield piece


def _check_deeds(old: Old) -> None:
    """Raise `CannotReshard` for what operators did that no source knows of."""
    for state, snapshot in zip(old.states, old.snapshots):
        for deed in snapshot.counters.get("history", ()):
            if deed["did"] not in (*MOVES, "reshard"):
                raise CannotReshard(
                    f"{state}: {deed['did']} of {deed['time']} is not in the sources, counting from them would undo "
                    "it; leave SOURCE away: the sum of all states then goes into the first new one"
                )


def _check_sums(old: Old, made: Sequence[NewState]) -> None:
    """Raise `CannotReshard` where the new states together have not counted what the old ones have."""
    before, after = (_sums(snapshots) for snapshots in (old.snapshots, [each.snapshot for each in made]))
    for name in sorted(before.keys() | after.keys()):
        if before.get(name, 0) != after.get(name, 0):
            raise CannotReshard(
                f"the sources give {name} {after.get(name, 0):,}, the states have {before.get(name, 0):,}: give the "
                "--columns, --type, --where, --labels of their runs; `verify` says where they differ"
            )


def _sums(snapshots: Sequence[Snapshot]) -> dict[str, int]:
    sums: dict[str, int] = {}
    for snapshot in snapshots:
        for name in SUMS:
            value: Any = snapshot.counters[name]
            for key, n in value.items() if isinstance(value, Mapping) else [("", value)]:
                sums[f"{name} {key}".strip()] = sums.get(f"{name} {key}".strip(), 0) + n
    return sums


def _check_same(out: Path, made: Sequence[NewState]) -> None:
    """Raise `CannotReshard` unless the folder holds just these states, whenever they were made."""
    for name in sorted({*os.listdir(out), *(each.directory.name for each in made)}):
        snapshot = next((each.snapshot for each in made if each.directory.name == name), None)
        there = Store(out / name).latest().snapshot if (out / name).is_dir() else None
        if snapshot is None or there is None or _timeless(there) != _timeless(snapshot):
            raise CannotReshard(f"{out}: is not empty and holds something else ({name}); name another --out")


def _timeless(snapshot: Snapshot) -> tuple:
    counters = dict(snapshot.counters)
    deeds = [{key: value for key, value in deed.items() if key != "time"} for deed in counters.pop("history", ())]
    arrays = {name: array.tobytes() for name, array in snapshot.arrays.items()}
    return snapshot.sequence, dict(snapshot.positions), list(snapshot.objects), counters, deeds, arrays


def _sweep(out: Path) -> None:
    """Remove what a dead process left beside; the locks of the old states keep others away."""
    prefix = f".{out.name}."
    for left in out.parent.glob(f"{prefix}*") if out.parent.is_dir() else ():
        if left.name.removeprefix(prefix).isdecimal():
            shutil.rmtree(left)
