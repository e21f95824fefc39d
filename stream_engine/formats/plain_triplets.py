"""The most common block: only valid triplet events, in one pass over their members.

Invariant: the result is what `expand` and `first_appearance` return for such events; for others there is no result, and
`expand` handles them. O(members), in a quarter of the time.
"""

import numpy as np

from stream_engine.data.comparisons import EVENT_TYPES, Decoded, Kinds, Provenance
from stream_engine.data.compiled import njit
from stream_engine.data.compiled_arguments import read_only
from stream_engine.data.packed_names import Names
from stream_engine.formats import expand_in_pieces
from stream_engine.formats.event_columns import Origins, Piece
from stream_engine.formats.event_fields import TRIPLET
from stream_engine.formats.expand import name_flags


def plain_triplets(events: Piece, texts: Names) -> Decoded | None:
    """The comparisons of events that are all valid triplets; None for any others, for no events, for more than one
    piece, and for events with a worker, time or sampler."""
    m, origins = len(events.kind), events.origins
    if events.votes is not None:
        return None
    if not 0 < m <= expand_in_pieces.COMPARISONS_AT_ONCE or len(events.members) != 3 * m:
        return None
    if origins is not None and not all(column.strides == (0,) for column in origins):
        return None
    if (events.kind != TRIPLET).any() or (events.size != 3).any() or name_flags(texts).any():
        return None
    triplets, order = np.empty((m, 3), np.int32), np.empty(len(texts), np.int32)
    used = _numbered(read_only(events.members, np.int32), triplets, order)
    if used < 0:
        return None
    none, of_triplet = np.empty(0, np.int64), np.arange(m, dtype=np.int32)
    kinds = Kinds(of_triplet, none.astype(np.int32), events.kind)
    return Decoded(
        texts.taken(order[:used]),
        triplets,
        np.empty((0, 4), np.int32),
        none,
        [],
        {EVENT_TYPES[TRIPLET]: m},
        [],
        provenance=None if origins is None else _told_nothing(kinds, origins),
        kinds=kinds,
    )


def _told_nothing(kinds: Kinds, origins: Origins) -> Provenance:
    """That of events which name neither worker nor sampler."""
    worker, weight, time, sampler = origins
    return Provenance(*kinds[:3], worker, [], weight, time, sampler=sampler)


@njit(cache=True, nogil=True)
def _numbered(members, triplets, order):
    """Triplets with names renumbered by first appearance, the old numbers in `order`; how many names, or -1 where two
    of a triplet are the same."""
    new = np.full(len(order), -1, np.int32)
    count = 0
    for t in range(len(triplets)):
        a, b, c = members[3 * t], members[3 * t + 1], members[3 * t + 2]
        if a in (b, c) or b == c:
            return -1
        for column in range(3):
            old = members[3 * t + column]
            if new[old] < 0:
                new[old], order[count] = count, old
                count += 1
            triplets[t, column] = new[old]
    return count
