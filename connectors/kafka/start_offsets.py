"""Which partitions are read, and from which offset on when the stored one is not there any more. Pure functions.

Invariant: nothing that is there and was not read is passed over, and nothing that was read is read again; where the two
cannot be told apart (no topic id, and the partition ends before the position) the whole partition is taken as unread.
"""

from collections.abc import Collection
from typing import NamedTuple

from connectors import Position, UnusableSource
from connectors.kafka.address import Address, partition_numbers
from connectors.kafka.client import Range


class Loss(NamedTuple):
    """A stored position that retention or a new topic has taken away."""

    why: str
    go_on_at: int  # the first offset that was not read and is there


def loss_of(stored: Position, span: Range, mark: int, cut: int | None = None) -> Loss | None:
    """Why a stored position cannot be gone on from; None when it can.

    >>> same, other = 7, 8
    >>> loss_of(Position(5, same), Range(0, 9), same), loss_of(Position(5, same), Range(5, 5), 0)
    (None, None)
    >>> loss_of(Position(5, same), Range(6, 9), same)
    Loss(why='retention has deleted it', go_on_at=6)
    >>> loss_of(Position(5, same), Range(0, 9), other).go_on_at, loss_of(Position(5, same), Range(0, 3), same).go_on_at
    (0, 3)
    >>> loss_of(Position(5, same), Range(0, 9), same, cut=4).go_on_at
    4
    """
    if stored.mark and mark and stored.mark != mark:
        return Loss("it belongs to an earlier topic of this name, which was deleted", span.first)
    if stored.offset < span.first:
        return Loss("retention has deleted it", span.first)
    if cut is not None:  # what is behind `cut` was never read, wherever the end may be by now
        return Loss(
            "the log was cut back behind it (a broker that lacked it became leader)",
            min(max(cut, span.first), span.end),
        )
    if stored.offset > span.end:
        same = stored.mark and mark  # else the topic may be another one, none of which was read
        return Loss(
            "the partition ends before it (a log cut back, or a topic made anew)", span.end if same else span.first
        )
    return None


def chosen_partitions(
    address: Address, partitions: Collection[int] | None, shard: tuple[int, int] | None
) -> frozenset[int] | tuple[int, int]:
    """The chosen partitions, or (i, n) for those with p % n == i; all of them are (0, 1)."""
    if sum(choice is not None for choice in (address.partitions, partitions, shard)) > 1:
        raise UnusableSource(f"{address}: choose ?partitions=, partitions or shard, only one of them")
    if address.partitions is not None:
        return address.partitions
    if partitions is not None:
        return partition_numbers(partitions, str(address))
    index, count = shard or (0, 1)
    if not 0 <= index < count:
        raise UnusableSource(f"{address}: got shard {index}/{count}, expected i/n with 0 <= i < n")
    return index, count
