"""How a state differs from what was recounted from its sources."""

from collections.abc import Iterator, Mapping

import numpy as np

from stream_engine.counts import Forgetting, accumulator
from stream_engine.counts.removal import COUNTS, TRIPLET, triplet_rows
from stream_engine.state.engine import Engine
from stream_engine.state.object_index import ObjectIndex
from stream_engine.state.snapshot import Snapshot

TOTALS = ("records", "events", "comparisons", "triplets", "quadruplets", "labels", "filtered", "empty")


def excess(snapshot: Snapshot, recounted: Engine) -> Iterator[str]:
    """One line for each counter, object and triplet of which the sources hold more than the state, events that were
    rejected for their time aside. O(n log n)."""
    ours, theirs = snapshot.counters, recounted.counters
    late = max(0, ours["rejected"].get("bad_time", 0) - theirs["rejected"].get("bad_time", 0))
    for name in ("records", "events"):
        allowed = ours[name] + (late if name == "events" else 0)
        if theirs[name] > allowed:
            yield f"counters: {name}: state {ours[name]:,}, sources {theirs[name]:,}"
    if late:
        return
    names = ObjectIndex(snapshot.objects)
    known = len(names)
    new_id = names.ids(recounted.objects.names)
    if len(names) > known:
        only = str(names.names[known])
        yield f"objects: {len(names) - known} are in the sources and not in the state, the first is {only!r}"
        return
    counts = recounted.accumulators.get("triplet_counts")
    if counts is not None and (more := _more_triplets(snapshot, counts.renamed(counts.state(), new_id))):
        yield f"triplet_counts: {more:,} triplets occur more often in the sources than in the state"


def _more_triplets(snapshot: Snapshot, theirs: Mapping[str, np.ndarray]) -> int:
    rows = [triplet_rows(snapshot.section("triplet_counts")), triplet_rows(theirs)]
    keys = np.concatenate([np.column_stack([each[name] for name in TRIPLET]) for each in rows])
    sign = np.repeat([-1, 1], [len(each["n_lo"]) for each in rows])
    _, key = np.unique(keys, axis=0, return_inverse=True)
    more = np.zeros(int(key.max(initial=-1)) + 1, bool)
    for name in COUNTS:
        counts = np.concatenate([each[name] for each in rows]).astype(np.int64) * sign
        more |= np.bincount(key.reshape(-1), counts, minlength=len(more)) > 0
    return int(more.sum())


def differences(snapshot: Snapshot, recounted: Engine, one_order: bool) -> Iterator[str]:
    """One line for each counter, label and array that differs, the state's figure first. O(state).

    Objects are compared by name, so the order in which they came does not matter. What depends on the order of arrival
    (the guard, ledgers, object ids) is compared only where there was one order: a single partition.
    """
    ours, theirs = snapshot.counters, recounted.counters
    pairs = [(name, ours[name], theirs[name]) for name in TOTALS]
    for name in ("kinds", "rejected", "guard") if one_order else ("kinds", "rejected"):
        keys = sorted(ours[name].keys() | theirs[name].keys())
        pairs += [(f"{name} {key}", ours[name].get(key, 0), theirs[name].get(key, 0)) for key in keys]
    yield from (f"counters: {name}: state {a:,}, sources {b:,}" for name, a, b in pairs if a != b)
    if unknown := set(ours["unknown_fields"]) ^ set(theirs["unknown_fields"]):
        yield f"counters: unknown_fields: {', '.join(sorted(unknown))} in one of both"
    labels = (snapshot.labels, recounted.labels)
    unlike = {name for name in labels[0].keys() | labels[1].keys() if labels[0].get(name) != labels[1].get(name)}
    if not one_order:  # of two classes the last one holds, whichever that was
        unlike &= labels[0].keys() ^ labels[1].keys()
    if unlike:
        yield f"labels: {len(unlike):,} differ, the first of {min(unlike)!r}"
    names = ObjectIndex(snapshot.objects)
    n = len(names)
    new_id = names.ids(recounted.objects.names)
    missing = np.setdiff1d(np.arange(n), new_id)
    if len(names) > n:
        only = str(names.names[n])
        yield f"objects: {len(names) - n} are in the sources and not in the state, the first is {only!r}"
    if len(missing):
        only = names.names[int(missing[0])]
        yield f"objects: {len(missing)} are in the state and not in the sources, the first is {only!r}"
    forgetting = Forgetting(**snapshot.settings.get("forgetting", {}))
    for name, each in recounted.accumulators.items():
        kind = accumulator(name, forgetting)
        if kind.mergeable or one_order:
            skipped = () if one_order else kind.arrival
            again = {key: array for key, array in each.renamed(each.state(), new_id).items() if key not in skipped}
            stored = {key: array for key, array in snapshot.section(name).items() if key not in skipped}
            yield from _arrays(name, stored, again, kind.tolerance)
    if one_order and len(names) == n and not len(missing):
        if recounted.guard:
            yield from _arrays("partial_order", snapshot.section("partial_order"), recounted.guard.state())
        if (new_id != np.arange(n)).any():
            yield "objects: they came in another order"


def _arrays(
    name: str, ours: Mapping[str, np.ndarray], theirs: Mapping[str, np.ndarray], tolerance: float = 0.0
) -> Iterator[str]:
    """One line for each array of a section that differs; decayed counts may, by `tolerance` of the largest one."""
    for key in sorted(ours.keys() | theirs.keys()):
        a, b = ours.get(key), theirs.get(key)
        if a is None or b is None or a.shape != b.shape:
            sizes = ["none" if each is None else f"{len(each):,}" for each in (a, b)]
            yield f"{name}: {key}: state {sizes[0]}, sources {sizes[1]} entries"
        elif a.dtype.kind == "f":
            allowed = tolerance * float(np.abs(a).max(initial=1.0)) if tolerance else 0.0
            if not np.allclose(a, b, rtol=0, atol=allowed, equal_nan=True):
                yield f"{name}: {key}: differs by more than {allowed:.3g}"
        elif differ := int(np.count_nonzero(a != b)):
            yield f"{name}: {key}: {differ:,} of {a.size:,} entries differ"
