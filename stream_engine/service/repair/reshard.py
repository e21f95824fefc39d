"""States of N shares become states of M shares.

The sum of all counts goes into the first new state, and the others begin empty at the positions of their own
partitions, so that the merged new states are the merged old ones.

Invariant: the folder of new states appears whole, by one rename, or not at all.
"""

import os
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from connectors.disk import Disk, make_folders
from connectors.files.dead_letters import DeadLetterFile, check_folder
from stream_engine.service.dead_letters import letters_of
from stream_engine.service.repair.recount import empty_like
from stream_engine.service.repair.shares import check_whole_set, dealt, topic_and_number
from stream_engine.state.engine import Engine
from stream_engine.state.snapshot import Snapshot
from stream_engine.state.store import NoSuchSnapshot, Store


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


def reshard(old: Old, into: int, out: Path, disk: Disk) -> tuple[list[NewState], bool]:
    """Write the new states below `out`; also whether they are new there.

    Raises `CannotReshard`, `OverlappingStates`, `OSError`.
    """
    temporary = out.parent / f".{out.name}.{os.getpid()}"
    _sweep(out)
    make_folders(disk, temporary)
    try:
        made = [_made(old, index, into, temporary / f"shard-{index}", disk) for index in range(into)]
        made = [each._replace(directory=out / each.directory.name) for each in made]
        if out.exists() and os.listdir(out):
            _check_same(out, made)
            return made, False
        disk.rename(temporary, out)
        disk.fsync_dir(out.parent)
        return made, True
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _made(old: Old, index: int, into: int, directory: Path, disk: Disk) -> NewState:
    shares = dealt([name for snapshot in old.snapshots for name in snapshot.positions], into)
    mine = {name for name, share in shares.items() if share == index}
    folder = directory / "dead_letters"
    if index == 0:
        engine, sinks = _sum(old), _carried(old, folder, disk)
    else:
        engine, sinks = empty_like(old.snapshots[0]), {"file": 0}
    _take_positions(engine, old, mine)
    _take_options(engine, old)
    engine.share = f"{index}/{into}" if into > 1 and any(map(topic_and_number, shares)) else None
    engine.note("reshard", into=into, counts_in="shard-0", from_states=len(old.states))
    engine.sinks, engine.sequence = sinks, 0
    snapshot, _ = Store(directory, disk).publish(engine.snapshot())
    return NewState(directory, engine.share, snapshot)


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


def _carried(old: Old, folder: Path, disk: Disk) -> dict[str, Any]:
    """The dead letters of all states in a new folder, one state after the other, and the position after them."""
    sink = DeadLetterFile(folder, disk=disk)
    for state, snapshot in zip(old.states, old.snapshots):
        sinks, there = snapshot.counters.get("sinks", {}), Path(state) / "dead_letters"
        if problems := [
            f"{each.name} {each.problem}" for each in check_folder(there, sinks.get("file", 0)) if each.problem
        ]:
            raise CannotReshard(f"{there}: {problems[0]}. Restore the file")
        for kept in letters_of(sinks, there):
            if kept.letter is not None:
                sink.append([kept.letter])
    return {"file": sink.flush()}


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
