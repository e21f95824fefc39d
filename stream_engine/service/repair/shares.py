"""Who reads which partition: the shares of a set of states, and the shares of the states that are to take their place.

A partition of a topic belongs to the share of its number, as `run --shard I/N` has it. Files and deltas have no number:
they are dealt out in the order of their names, and a run names its own. The file of labels goes to the first.
"""

from collections.abc import Iterable, Mapping, Sequence

from stream_engine.service.repair.places import CannotMove, unit_of
from stream_engine.state.engine import OverlappingStates
from stream_engine.state.snapshot import Snapshot


def topic_and_number(name: str) -> tuple[str, int] | None:
    """The topic and number of a partition; None of anything else.

    >>> topic_and_number("votes/3"), topic_and_number("/data/a.jsonl/3")
    (('votes', 3), None)
    """
    try:
        if unit_of(name) != "message":
            return None
    except CannotMove:
        return None
    topic, _, number = name.rpartition("/")
    return topic, int(number)


def dealt(names: Iterable[str], count: int) -> dict[str, int]:
    """The new share of each partition.

    >>> dealt(["t/0", "t/1", "t/2", "/b.csv", "/a.csv", "labels:/l.csv"], 2)
    {'t/0': 0, 't/1': 1, 't/2': 0, '/a.csv': 0, '/b.csv': 1, 'labels:/l.csv': 0}
    """
    numbered = {name: found for name in names if (found := topic_and_number(name))}
    shares = {name: number % count for name, (_, number) in sorted(numbered.items())}
    rest = sorted(set(names) - numbered.keys())
    files = [name for name in rest if name.startswith(("/", "deltas://"))]
    shares |= {name: place % count for place, name in enumerate(files)}
    return shares | {name: 0 for name in rest if name not in shares}


def check_whole_set(states: Sequence[str], snapshots: Sequence[Snapshot]) -> None:
    """Raise `OverlappingStates` unless the states are of one kind, read disjoint partitions, and miss none."""
    first = snapshots[0]
    read: dict[str, str] = {}
    for state, snapshot in zip(states, snapshots):
        if snapshot.settings != first.settings:
            raise OverlappingStates(
                f"{state}: states of different kinds: {snapshot.settings}, {states[0]} has {first.settings}"
            )
        for name in snapshot.positions:
            if name in read:
                raise OverlappingStates(
                    f"{state}: has read {name}, and so has {read[name]}; its events would count twice"
                )
            read[name] = state
    _check_shares({state: snapshot.counters.get("share") for state, snapshot in zip(states, snapshots)})
    _check_numbers(read)


def _check_shares(shares: Mapping[str, str | None]) -> None:
    told = ", ".join(f"{state} {share or 'all partitions'}" for state, share in shares.items())
    known = {share for share in shares.values() if share}
    if not known:
        return
    counts = {share.partition("/")[2] for share in known}
    wanted = {f"{index}/{counts}" for counts in counts for index in range(int(counts))}
    if len(counts) > 1 or None in shares.values() or known != wanted:
        missing = ", ".join(sorted(wanted - known)) if len(counts) == 1 else ""
        raise OverlappingStates(
            f"the states are no whole set of shares: {told}" + (f"; missing: {missing}" if missing else "")
        )


def _check_numbers(read: Iterable[str]) -> None:
    topics: dict[str, set[int]] = {}
    for name in read:
        if found := topic_and_number(name):
            topics.setdefault(found[0], set()).add(found[1])
    for topic, numbers in topics.items():
        if missing := sorted(set(range(max(numbers) + 1)) - numbers):
            raise OverlappingStates(
                f"{topic}/{missing[0]} is in none of the states, {topic}/{max(numbers)} is: one is missing"
            )
