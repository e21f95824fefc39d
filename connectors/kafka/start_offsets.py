"""Which partitions are read, and from which offset on when the stored one is not there any more. Pure functions.

Invariant: nothing that is there and was not read is passed over, and nothing that was read is read again; where the two
cannot be told apart (no topic id, and the partition ends before the position) the whole partition is taken as unread.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import NamedTuple

from connectors import LostRecords, Position, SourceFailed, UnusableSource
from connectors.kafka.client import Address, Range, partition_name, partition_numbers

START_MODES = ("none", "earliest", "latest")  # where a partition without a stored position begins, at a first start
ON_OFFSET_LOSS = ("fail", "earliest")  # what is done when the stored position is not there any more


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
        why = "the partition ends before it (a log cut back, or a topic made anew)"
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
    at_end: bool,
    on_loss: str,
    cut: Mapping[int, int] = MappingProxyType({}),
) -> StartingPoints:
    """Where to begin in the partitions of `ranges`: at the stored position, or where there is none, at one end.

    `on_loss` "earliest" goes on with what is left of a lost position, "fail" raises `SourceFailed`.

    >>> topic = Address(("h:1",), "t")
    >>> ranges = {0: Range(0, 9), 1: Range(2, 4)}
    >>> points = starting_points(topic, {0: Position(5)}, ranges, 7, at_end=False, on_loss="fail")
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
            offsets[partition] = span.end if at_end else span.first
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
    left = f"offsets {span.first} to {span.end - 1} are left" if span.end > span.first else "nothing is left"
    problem = f"{where}: wanted offset {position.offset}, but {loss.why}; {left}"
    if on_loss == "fail":
        raise SourceFailed(f"{problem}. To go on with what is left: --on-offset-loss earliest")
    gone = f"{loss.go_on_at - position.offset} offsets are lost, " if loss.go_on_at > position.offset else ""
    return f"{problem}; {gone}reading on from {loss.go_on_at} (on-offset-loss is earliest)"


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
