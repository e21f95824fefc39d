"""States of N shares become states of M shares."""

import os
import shutil
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from connectors.disk import Disk, make_folders
from connectors.files.dead_letters import DeadLetterFile, check_folder
from stream_engine.service.dead_letters import letters_of
from stream_engine.service.repair.recount import empty_like
from stream_engine.service.repair.seek import is_of_a_topic
from stream_engine.state.engine import Engine, OverlappingStates
from stream_engine.state.snapshot import Snapshot
from stream_engine.state.store import NoSuchSnapshot, Store


class CannotReshard(RuntimeError):
    """The states cannot be cut anew so; one line."""


class NewState(NamedTuple):
    """A new state that was written."""

    directory: Path
    share: str | None
    snapshot: Snapshot


Old = list[tuple[str, Snapshot]]  # the states to replace, in the order of their first partition, each at its newest


def old_states(states: Sequence[str]) -> Old:
    """The newest snapshots of a whole set of states. Raises `NoSuchSnapshot`, `OverlappingStates`, `Corrupt`."""
    states_found = []
    for state in dict.fromkeys(os.path.normpath(state) for state in states):
        snapshot = Store(state).latest().snapshot
        if snapshot is None:
            raise NoSuchSnapshot(f"{state}: no snapshot there to reshard")
        states_found.append((state, snapshot))
    states_found.sort(key=lambda entry: (min(entry[1].positions, default=""), entry[1].digest))
    _check_whole_set(states_found)
    return states_found


def _check_whole_set(old: Old) -> None:
    """Raise `OverlappingStates` unless the states are of one kind, read disjoint partitions, and miss none."""
    state_of: dict[str, str] = {}
    for state, snapshot in old:
        if snapshot.settings != old[0][1].settings:
            kinds = f"{snapshot.settings}, {old[0][0]} has {old[0][1].settings}"
            raise OverlappingStates(f"{state}: states of different kinds: {kinds}")
        for name in snapshot.positions:
            if name in state_of:
                raise OverlappingStates(
                    f"{state}: has read {name}, and so has {state_of[name]}; its events would count twice"
                )
            state_of[name] = state
    shares = {state: snapshot.counters.get("share") for state, snapshot in old}
    if known_shares := {share for share in shares.values() if share}:
        count = int(min(known_shares).partition("/")[2])
        all_shares = {f"{index}/{count}" for index in range(count)}
        if known_shares != all_shares or None in shares.values():
            shares_text = ", ".join(f"{state} {share or 'all partitions'}" for state, share in shares.items())
            missing = ", ".join(sorted(all_shares - known_shares)) or "nothing"
            raise OverlappingStates(f"the states are no whole set of shares: {shares_text}; missing: {missing}")
    topics = {topic_number for name in state_of if (topic_number := topic_and_number(name))}
    for topic, number in sorted(topics):
        if number and (topic, number - 1) not in topics:
            raise OverlappingStates(f"{topic}/{number - 1} is in none of the states, {topic}/{number} is")


def topic_and_number(name: str) -> tuple[str, int] | None:
    """The topic and number of a partition; None of anything else.

    >>> topic_and_number("votes/3"), topic_and_number("/data/a.jsonl/3")
    (('votes', 3), None)
    """
    if not is_of_a_topic(name):
        return None
    topic, _, number = name.rpartition("/")
    return topic, int(number)


def share_of_partitions(names: Iterable[str], count: int) -> dict[str, int]:
    """The new share of each partition.

    >>> share_of_partitions(["t/0", "t/1", "t/2", "labels:/l.csv"], 2)
    {'labels:/l.csv': 0, 't/0': 0, 't/1': 1, 't/2': 0}
    """
    return {name: topic_number[1] % count if (topic_number := topic_and_number(name)) else 0 for name in sorted(names)}


def _check_topics_only(old: Old) -> None:
    """Raise `CannotReshard` if a state has read something that belongs to no share."""
    for state, snapshot in old:
        files = [name for name in snapshot.positions if not is_of_a_topic(name) and not name.startswith("labels:")]
        if files:
            further = f" and {len(files) - 1:,} more" if len(files) > 1 else ""
            raise CannotReshard(
                f"{state}: has read {min(files)}{further}, expected only partitions of topics: files belong to no "
                "shard and would be counted twice. Keep one state (--into 1), or read the files again, each part into "
                "a state of its own, and sum these with merge"
            )


# The sum of all counts goes into the first new state, and the others begin empty at the positions of their own
# partitions, so that the merged new states are the merged old ones. A partition of a topic belongs to the share of its
# number, as `run --shard I/N` has it. The file of labels goes to the first.
#
# Invariants: the folder of new states appears whole, by one rename, or not at all. No event is counted twice by a run
# that goes on with a new state. Files and deltas belong to no share, and a run may name any of them; so a state that
# has read some is refused, unless there is only one new state.
def reshard(
    old: Old, into: int, out: Path, disk: Disk, folders: Mapping[str, Path] = MappingProxyType({})
) -> list[NewState]:
    """Write the new states below `out`; `folders`: of dead letters, by state, where they are not in
    DIR/dead_letters. Raises `CannotReshard`, `OverlappingStates`, `OSError`."""
    if out.exists() and os.listdir(out):
        raise CannotReshard(f"{out}: is not empty; name another --out")
    if into > 1:
        _check_topics_only(old)
    temporary = out.parent / f".{out.name}.new"
    shutil.rmtree(temporary, ignore_errors=True)  # left by a process that died
    make_folders(disk, temporary)
    try:
        new_states = [
            _new_state(old, index, into, temporary / f"shard-{index}", disk, folders) for index in range(into)
        ]
        disk.rename(temporary, out)
        disk.fsync_dir(out.parent)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
    return [new_state._replace(directory=out / new_state.directory.name) for new_state in new_states]


def _new_state(old: Old, index: int, into: int, directory: Path, disk: Disk, folders: Mapping[str, Path]) -> NewState:
    snapshots = [snapshot for _, snapshot in old]
    positions = {name: position for snapshot in snapshots for name, position in snapshot.positions.items()}
    shares = share_of_partitions(positions, into)
    engine, sinks = empty_like(snapshots[0]), {"file": 0}
    if index == 0:  # what `merge` makes of the old states
        engine = Engine.restore(snapshots[0])
        sinks = _copy_dead_letters(old, directory / "dead_letters", disk, folders)
        for snapshot in snapshots[1:]:
            engine.merge(Engine.restore(snapshot))
    engine.positions = {name: position for name, position in positions.items() if shares[name] == index}
    made_with = [snapshot.counters.get("input", {}) for snapshot in snapshots]
    engine.counters["input"] = dict(made_with[0]) if all(options == made_with[0] for options in made_with) else {}
    engine.share = f"{index}/{into}" if into > 1 and any(map(topic_and_number, shares)) else None
    engine.note("reshard", into=into, counts_in="shard-0", from_states=len(old))
    engine.sinks, engine.sequence = sinks, 0
    snapshot, _ = Store(directory, disk).publish(engine.snapshot())
    return NewState(directory, engine.share, snapshot)


def _copy_dead_letters(old: Old, folder: Path, disk: Disk, folders: Mapping[str, Path]) -> dict[str, Any]:
    """The dead letters of all states in a new folder, one state after the other, and the position after them."""
    sink = DeadLetterFile(folder, disk=disk)
    for state, snapshot in old:
        sinks, letter_folder = snapshot.counters.get("sinks", {}), folders.get(state, Path(state) / "dead_letters")
        for segment in check_folder(letter_folder, sinks.get("file", 0)):
            if segment.problem:
                raise CannotReshard(
                    f"{letter_folder}: {segment.name} {segment.problem}. Restore the file, or "
                    "name the folder of each state (merge --dead-letters) if runs had --dead-letters"
                )
        for letter in letters_of(sinks, letter_folder):
            if letter.letter is not None:
                sink.append([letter.letter])
    return {"file": sink.flush()}
