"""Which partitions are read, and from which offset on when the stored one is not there any more. Pure functions.

Invariant: nothing that is there and was not read is passed over, and nothing that was read is read again; where the two
cannot be told apart (no topic id, and the partition ends before the position) the whole partition is taken as unread.
"""

import time
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from types import MappingProxyType
from typing import NamedTuple

from connectors import LostRecords, Position, SourceFailed, UnusableSource
from connectors.kafka.client import Address, Range, partition_name, partition_numbers

START_MODES = ("none", "earliest", "latest")  # where a first start begins in a partition; or at a time
ON_OFFSET_LOSS = ("fail", "earliest")  # what is done when the stored position is not there any more


def start_of(text: str) -> str | int:
    """Where a first start begins: one of `START_MODES`, or a time in milliseconds since 1970. Raises `UnusableSource`.

    >>> start_of("latest"), start_of("2026-11-01T00:00Z"), start_of("2026-11-01 01:00:00.5+01:00")
    ('latest', 1793491200000, 1793491200500)
    """
    if text in START_MODES:
        return text
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        moment = None
    if moment is None or moment.tzinfo is None:
        raise UnusableSource(
            f"start: got {text!r}, expected earliest, latest, or a time with its time zone such as 2026-11-01T00:00Z"
        )
    return round(moment.timestamp() * 1000)


class Start(NamedTuple):
    """Where a first start begins, see `start_of`: in every partition, but for some of them."""

    everywhere: str | int
    by_partition: Mapping[int, str | int] = MappingProxyType({})

    def in_partition(self, partition: int) -> str | int:
        """Where a partition begins."""
        return self.by_partition.get(partition, self.everywhere)

    def times(self, partitions: Collection[int]) -> dict[int, int]:
        """The partitions that begin at a time, with that time."""
        starts = {partition: self.in_partition(partition) for partition in partitions}
        return {partition: start for partition, start in starts.items() if isinstance(start, int)}

    def check(self, address: Address) -> None:
        """Raise `UnusableSource` where nothing was chosen, and for a time to come: what is written before it would be
        skipped, or not, depending on when the run starts."""
        if "none" in (self.everywhere, *self.by_partition.values()):
            raise UnusableSource(
                f"{address}: no position of this topic is stored and none was chosen to begin at;"
                " choose start = earliest or latest or a time (--start)"
            )
        for start in (self.everywhere, *self.by_partition.values()):
            if isinstance(start, int) and start > time.time() * 1000:
                moment = datetime.fromtimestamp(start / 1000).astimezone().isoformat()
                raise UnusableSource(f"{address}: start: got {moment}, which is in the future; use latest")


EARLIEST = Start("earliest")  # of what is not there at the first start: nothing of it is skipped


class OffsetLoss(NamedTuple):
    """Why a stored position cannot be gone on from: retention or a new topic has taken it away."""

    why: str
    go_on_at: int  # the first offset that was not read and is there
    records: int | None = 0  # how many are lost by it, as offsets tell; None: they are another topic's by now


def offset_loss(stored: Position, span: Range, mark: int, cut: int | None = None) -> OffsetLoss | None:
    """Why a stored position cannot be gone on from; None when it can.

    >>> same, other = 7, 8
    >>> offset_loss(Position(5, same), Range(0, 9), same), offset_loss(Position(5, same), Range(5, 5), 0)
    (None, None)
    >>> offset_loss(Position(5, same), Range(6, 9), same)
    OffsetLoss(why='retention has deleted it', go_on_at=6, records=1)
    >>> offset_loss(Position(5, same), Range(0, 9), other).go_on_at
    0
    >>> offset_loss(Position(5, same), Range(0, 3), same).go_on_at
    3
    >>> offset_loss(Position(5, same), Range(0, 9), same, cut=4).go_on_at
    4
    """
    if stored.mark and mark and stored.mark != mark:
        return OffsetLoss("it belongs to an earlier topic of this name, which was deleted", span.first, None)
    if stored.offset < span.first:
        return OffsetLoss("retention has deleted it", span.first, span.first - stored.offset)
    if cut is not None:  # what is behind `cut` was never read, wherever the end may be by now
        return OffsetLoss(
            "the log was cut back behind it (a broker that lacked it became leader)",
            min(max(cut, span.first), span.end),
        )
    if stored.offset > span.end:
        same = stored.mark and mark  # else the topic may be another one, none of which was read
        why = "the partition ends before it (the log was truncated, or the topic recreated)"
        return OffsetLoss(why, span.end, 0) if same else OffsetLoss(why, span.first, None)
    return None


class StartingPoints(NamedTuple):
    """Where reading begins."""

    positions: dict[int, Position]  # of every partition
    ends: dict[int, int]  # where it ended then
    without_position: frozenset[int]  # those that no stored position gave
    notices: list[str]  # what was lost, for people
    losses: list[LostRecords]  # the same for the state


def starting_points(
    address: Address,
    stored: Mapping[int, Position],
    ranges: Mapping[int, Range],
    mark: int,
    *,
    on_loss: str,
    start: Start = EARLIEST,
    at_times: Mapping[int, int] = MappingProxyType({}),
    cut: Mapping[int, int] = MappingProxyType({}),
) -> StartingPoints:
    """Where to begin in the partitions of `ranges`: at the stored position, or where there is none, where `start` says.

    `at_times`: the first offset at the time of `start`, for partitions that hold something from that time on.
    `on_loss` "earliest" goes on with what is left of a lost position, "fail" raises `SourceFailed`.

    >>> topic = Address(("h:1",), "t")
    >>> ranges = {0: Range(0, 9), 1: Range(2, 4)}
    >>> points = starting_points(topic, {0: Position(5)}, ranges, 7, on_loss="fail")
    >>> points.positions, points.without_position
    ({0: Position(offset=5, mark=7), 1: Position(offset=2, mark=7)}, frozenset({1}))
    """
    offsets: dict[int, int] = {}
    without_position, notices, losses = set(), list[str](), list[LostRecords]()
    for partition, span in sorted(ranges.items()):
        position = stored.get(partition)
        loss = None if position is None else offset_loss(position, span, mark, cut.get(partition))
        if position is not None and loss is None:
            offsets[partition] = position.offset
            continue
        without_position.add(partition)
        if position is None or loss is None:
            earliest = start.in_partition(partition) == "earliest"
            offsets[partition] = span.first if earliest else at_times.get(partition, span.end)
        else:
            offsets[partition] = loss.go_on_at
            notices.append(_accepted(loss, f"{address}: partition {partition}", position, span, on_loss))
            name = partition_name(address.topic, partition)
            losses.append(LostRecords(name, position.offset, loss.go_on_at, loss.records, loss.why))
    positions = {partition: Position(offset, mark) for partition, offset in offsets.items()}
    ends = {partition: span.end for partition, span in ranges.items()}
    return StartingPoints(positions, ends, frozenset(without_position), notices, losses)


def _accepted(loss: OffsetLoss, where: str, position: Position, span: Range, on_loss: str) -> str:
    """The notice about a loss that is gone on from. Raises `SourceFailed` for one that is not."""
    available = f"offsets {span.first} to {span.end - 1} are left" if span.end > span.first else "nothing is left"
    problem = f"{where}: wanted offset {position.offset}, but {loss.why}; {available}"
    if on_loss == "fail":
        raise SourceFailed(f"{problem}. To continue with the remaining records: --on-offset-loss earliest")
    gone = f"{loss.go_on_at - position.offset} offsets are lost, " if loss.go_on_at > position.offset else ""
    return f"{problem}; {gone}resuming at {loss.go_on_at} (on-offset-loss is earliest)"


@dataclass(frozen=True)
class Selection:
    """The partitions that were named, or else those p with p % count == index, also those to come."""

    named: frozenset[int] | None = None
    index: int = 0
    count: int = 1

    def of(self, partitions: Collection[int]) -> frozenset[int]:
        """Those of `partitions` that are to be read."""
        if self.named is not None:
            return self.named & frozenset(partitions)
        return frozenset(partition for partition in partitions if partition % self.count == self.index)

    def missing(self, partitions: Collection[int]) -> frozenset[int]:
        """Those that a topic of these partitions ought to have; a shard may be empty."""
        return (self.named or frozenset()) - frozenset(partitions)


def selected_partitions(
    address: Address, partitions: Collection[int] | None, shard: tuple[int, int] | None
) -> Selection:
    """The partitions to read. Raises `UnusableSource` when they are chosen in two ways, or none is."""
    if sum(choice is not None for choice in (address.partitions, partitions, shard)) > 1:
        raise UnusableSource(f"{address}: choose ?partitions=, partitions or shard, only one of them")
    if address.partitions is not None:
        return Selection(address.partitions)
    if partitions is not None:
        return Selection(partition_numbers(partitions, str(address)))
    index, count = shard or (0, 1)
    if not 0 <= index < count:
        raise UnusableSource(f"{address}: got shard {index}/{count}, expected i/n with 0 <= i < n")
    return Selection(None, index, count)
