"""When to snapshot and when to refit: pure functions of counters and time."""

from collections.abc import Callable, Collection, Mapping
from typing import NamedTuple

GROWTH = 1 / 4  # of what the last snapshot held: as a state costs by its size, all snapshots cost five times the last
BYTES_EACH = 4  # of a comparison; a ranking of many is as short as that
LEAST_BLOCK = 4096  # bytes
LEAST_GROWTH = 10_000_000  # comparisons: seconds of work, which the interval covers


class SnapshotRule(NamedTuple):
    """A snapshot is due every `every` comparisons (0: never; None: when a quarter more than the last one held has come,
    and ten million at least) or `interval` seconds (0: never), whichever is first."""

    every: int | None = None
    interval: float = 60.0

    def comparisons(self, held: int) -> int:
        """How many after a snapshot that held so many make the next one due; 0: none do.

        >>> SnapshotRule().comparisons(0), SnapshotRule().comparisons(10**9), SnapshotRule(10).comparisons(10**9)
        (10000000, 250000000, 10)
        """
        return max(LEAST_GROWTH, int(GROWTH * held)) if self.every is None else self.every


def block_bytes(every: int | None, most: int) -> int:
    """How large a block of records may be, for a snapshot every so many comparisons to come about when it is due: a
    comparison is `BYTES_EACH` at least in any format, so that a block holds a fraction of them.

    >>> block_bytes(None, 8 << 20), block_bytes(0, 8 << 20), block_bytes(10_000, 8 << 20), block_bytes(1, 8 << 20)
    (8388608, 8388608, 40000, 4096)
    """
    return min(most, max(LEAST_BLOCK, BYTES_EACH * every)) if every else most


class Grown(NamedTuple):
    """How many comparisons the last snapshot held, and how many have come since."""

    held: int
    since: int


def snapshot_due(rule: SnapshotRule, grown: Grown, seconds: float, asked: str, changed: Callable[[], bool]) -> str:
    """Why a snapshot is due now ("" when none is): `asked` (why someone asks: "signal", "drift", or ""),
    "comparisons" or "interval".

    `seconds` count from the last snapshot. Without a change since then nothing is due, asked or not; whether there was
    one is asked last, because it costs a look at every position.

    >>> rule = SnapshotRule(10, 5.0)
    >>> snapshot_due(rule, Grown(7, 10), 0.0, "", lambda: True), snapshot_due(rule, Grown(7, 0), 9.0, "", lambda: False)
    ('comparisons', '')
    """
    due, enough = asked, rule.comparisons(grown.held)
    if not due and enough and grown.since >= enough:
        due = "comparisons"
    if not due and rule.interval and seconds >= rule.interval:
        due = "interval"
    return due if due and changed() else ""


def refits_due(kinds: Collection[str], running: Collection[str], done: Mapping[str, int], sequence: int) -> list[str]:
    """Refits to start on snapshot `sequence`: at most one run per kind, and none twice on one snapshot.

    A newer snapshot replaces a waiting one by itself: what is due is always judged against the newest.

    >>> refits_due(["sdp_clustering", "triplet_boost"], ["sdp_clustering"], {"triplet_boost": 3}, 4)
    ['triplet_boost']
    """
    return [kind for kind in kinds if kind not in running and done.get(kind, 0) < sequence]


def too_many_rejected(ratio: float, rejected: int, seen: int, at_least: int = 100) -> bool:
    """True when a stream is plainly of another format: more than `ratio` of at least `at_least` events were refused.

    >>> too_many_rejected(0.5, 60, 100), too_many_rejected(0.5, 9, 9), too_many_rejected(1.0, 100, 100)
    (True, False, False)
    """
    return seen >= at_least and rejected > ratio * seen
