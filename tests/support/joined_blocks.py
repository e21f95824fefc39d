"""Consecutive blocks as one block: the same as decoding their values together. O(names + comparisons)."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from stream_engine.data.comparisons import EVENT_TYPES, DecodedEvents, Kinds, Provenance
from stream_engine.formats.event_block import nothing
from stream_engine.formats.event_columns import Pool


def all_of(decoder: Any, values: Sequence[Any]) -> tuple[DecodedEvents, list[int]]:
    """All values by `many`, however few it takes at a time; also returns the value of each rejected event."""
    parts: list[DecodedEvents] = []
    refused_in: list[int] = []
    at = 0
    while at < len(values):
        part, found = decoder.many(values[at:])
        parts.append(part)
        refused_in += [at + n for n in found]
        at += len(values) - at if part.values is None else part.values
    return joined(parts), refused_in


def joined(parts: Sequence[DecodedEvents]) -> DecodedEvents:
    """Consecutive blocks as one, none of which has comparisons to come. Rejected events keep their own locations.

    >>> one = nothing()._replace(names=["a", "b", "c"], triplets=np.array([[0, 1, 2]], np.int32))
    >>> two = one._replace(names=["c", "a", "d"])
    >>> both = joined([one, two])
    >>> both.names, both.triplets.tolist()
    (('a', 'b', 'c', 'd'), [[0, 1, 2], [2, 0, 3]])
    """
    pool, empty = Pool(), nothing()
    ids = [pool.ids(part.names) for part in parts]
    before = np.cumsum([0, *(len(part.triplets) for part in parts)])
    events: Counter[str] = Counter()
    for part in parts:
        events.update(part.events)
    provenance = [part.provenance for part in parts if part.provenance]
    kinds = [part.kinds for part in parts if part.kinds]
    return DecodedEvents(
        pool.texts(),
        np.concatenate([empty.triplets, *(new[part.triplets] for new, part in zip(ids, parts, strict=True))]),
        np.concatenate([empty.quadruplets, *(new[part.quadruplets] for new, part in zip(ids, parts, strict=True))]),
        np.concatenate(
            [empty.quadruplet_at, *(part.quadruplet_at + m for m, part in zip(before[:-1], parts, strict=True))]
        ),
        [label for part in parts for label in part.labels],
        {name: events[name] for name in EVENT_TYPES if name in events},
        [refused for part in parts for refused in part.rejected],
        sum(part.filtered for part in parts),
        sum(part.empty for part in parts),
        frozenset().union(*(part.unknown_fields for part in parts)),
        _joined_provenance(provenance) if parts and len(provenance) == len(parts) else None,
        _joined_kinds(kinds) if parts and len(kinds) == len(parts) else None,
    )


def _joined_kinds(parts: Sequence[Kinds]) -> Kinds:
    before = _events_before(parts)
    return Kinds(
        np.concatenate([part.of_triplet + e for e, part in zip(before, parts, strict=True)]),
        np.concatenate([part.of_quadruplet + e for e, part in zip(before, parts, strict=True)]),
        np.concatenate([part.kind for part in parts]),
        parts[0].continues,
        parts[-1].goes_on,
    )


def _joined_provenance(parts: Sequence[Provenance]) -> Provenance:
    workers, samplers, before = Pool(), Pool(), _events_before(parts)
    new = [np.append(workers.ids(part.workers), -1).astype(np.int32) for part in parts]
    asked = [np.append(samplers.ids(list(part.samplers)), -1).astype(np.int32) for part in parts]
    return Provenance(
        np.concatenate([part.of_triplet + e for e, part in zip(before, parts, strict=True)]),
        np.concatenate([part.of_quadruplet + e for e, part in zip(before, parts, strict=True)]),
        np.concatenate([part.kind for part in parts]),
        np.concatenate([numbers[part.worker] for numbers, part in zip(new, parts, strict=True)]),
        list(workers.texts()),
        np.concatenate([part.weight for part in parts]),
        np.concatenate([part.time for part in parts]),
        np.concatenate([numbers[part.catch_worker] for numbers, part in zip(new, parts, strict=True)]),
        np.concatenate([part.catch_passed for part in parts]),
        parts[0].continues,
        np.concatenate([numbers[part.sampler] for numbers, part in zip(asked, parts, strict=True)]),
        list(samplers.texts()),
        *(np.concatenate([getattr(part, name) for part in parts]) for name in ("seconds", "shown", "position")),
    )


def _events_before(parts: Sequence[Kinds] | Sequence[Provenance]) -> np.ndarray:
    """(parts,) int32: how many accepted events come before each part."""
    return np.cumsum([0, *(len(part.kind) for part in parts)]).astype(np.int32)[:-1]
