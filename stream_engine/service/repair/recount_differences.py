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
    stored, recounted_counters = snapshot.counters, recounted.counters
    n_late = max(0, stored["rejected"].get("bad_time", 0) - recounted_counters["rejected"].get("bad_time", 0))
    for name in ("records", "events"):
        limit = stored[name] + (n_late if name == "events" else 0)
        if recounted_counters[name] > limit:
            yield f"counters: {name}: state {stored[name]:,}, sources {recounted_counters[name]:,}"
    if n_late:
        return
    names = ObjectIndex(snapshot.objects)
    n_known = len(names)
    new_id = names.ids(recounted.objects.names)
    if len(names) > n_known:
        first_name = str(names.names[n_known])
        yield f"objects: {len(names) - n_known} are in the sources and not in the state, the first is {first_name!r}"
        return
    counts = recounted.accumulators.get("triplet_counts")
    if counts is not None and (n_more := _more_triplets(snapshot, counts.renamed(counts.state(), new_id))):
        yield f"triplet_counts: {n_more:,} triplets occur more often in the sources than in the state"


def _more_triplets(snapshot: Snapshot, recounted: Mapping[str, np.ndarray]) -> int:
    rows = [triplet_rows(snapshot.section("triplet_counts")), triplet_rows(recounted)]
    keys = np.concatenate([np.column_stack([counts_of[name] for name in TRIPLET]) for counts_of in rows])
    sign = np.repeat([-1, 1], [len(counts_of["n_lo"]) for counts_of in rows])
    _, key = np.unique(keys, axis=0, return_inverse=True)
    is_more = np.zeros(int(key.max(initial=-1)) + 1, bool)
    for name in COUNTS:
        counts = np.concatenate([counts_of[name] for counts_of in rows]).astype(np.int64) * sign
        is_more |= np.bincount(key.reshape(-1), counts, minlength=len(is_more)) > 0
    return int(is_more.sum())


def differences(snapshot: Snapshot, recounted: Engine, one_order: bool) -> Iterator[str]:
    """One line for each counter, label and array that differs, the state's figure first. O(state).

    Objects are compared by name, so the order in which they came does not matter. What depends on the order of arrival
    (the guard, ledgers, object ids) is compared only where there was one order: a single partition.
    """
    stored_counters, recounted_counters = snapshot.counters, recounted.counters
    pairs = [(name, stored_counters[name], recounted_counters[name]) for name in TOTALS]
    for name in ("kinds", "rejected", "guard") if one_order else ("kinds", "rejected"):
        keys = sorted(stored_counters[name].keys() | recounted_counters[name].keys())
        pairs += [
            (f"{name} {key}", stored_counters[name].get(key, 0), recounted_counters[name].get(key, 0)) for key in keys
        ]
    yield from (f"counters: {name}: state {a:,}, sources {b:,}" for name, a, b in pairs if a != b)
    if unknown := set(stored_counters["unknown_fields"]) ^ set(recounted_counters["unknown_fields"]):
        yield f"counters: unknown_fields: {', '.join(sorted(unknown))} in one of both"
    labels = (snapshot.labels, recounted.labels)
    differing_labels = {
        name for name in labels[0].keys() | labels[1].keys() if labels[0].get(name) != labels[1].get(name)
    }
    if not one_order:  # of two classes the last one holds, whichever that was
        differing_labels &= labels[0].keys() ^ labels[1].keys()
    if differing_labels:
        yield f"labels: {len(differing_labels):,} differ, the first of {min(differing_labels)!r}"
    names = ObjectIndex(snapshot.objects)
    n = len(names)
    new_id = names.ids(recounted.objects.names)
    missing = np.setdiff1d(np.arange(n), new_id)
    if len(names) > n:
        first_name = str(names.names[n])
        yield f"objects: {len(names) - n} are in the sources and not in the state, the first is {first_name!r}"
    if len(missing):
        first_name = names.names[int(missing[0])]
        yield f"objects: {len(missing)} are in the state and not in the sources, the first is {first_name!r}"
    forgetting = Forgetting(**snapshot.settings.get("forgetting", {}))
    for name, accumulator_state in recounted.accumulators.items():
        kind = accumulator(name, forgetting)
        if kind.mergeable or one_order:
            ignored = () if one_order else kind.arrival
            recounted_arrays = {
                key: array
                for key, array in accumulator_state.renamed(accumulator_state.state(), new_id).items()
                if key not in ignored
            }
            stored_arrays = {key: array for key, array in snapshot.section(name).items() if key not in ignored}
            yield from _arrays(name, stored_arrays, recounted_arrays, kind.tolerance)
    if one_order and len(names) == n and not len(missing):
        if recounted.guard:
            yield from _arrays("partial_order", snapshot.section("partial_order"), recounted.guard.state())
        if (new_id != np.arange(n)).any():
            yield "objects: they came in another order"


def _arrays(
    name: str, stored: Mapping[str, np.ndarray], recounted: Mapping[str, np.ndarray], tolerance: float = 0.0
) -> Iterator[str]:
    """One line for each array of a section that differs; decayed counts may, by `tolerance` of the largest one."""
    for key in sorted(stored.keys() | recounted.keys()):
        a, b = stored.get(key), recounted.get(key)
        if a is None or b is None or a.shape != b.shape:
            sizes = ["none" if array is None else f"{len(array):,}" for array in (a, b)]
            yield f"{name}: {key}: state {sizes[0]}, sources {sizes[1]} entries"
        elif a.dtype.kind == "f":
            max_difference = tolerance * float(np.abs(a).max(initial=1.0)) if tolerance else 0.0
            if not np.allclose(a, b, rtol=0, atol=max_difference, equal_nan=True):
                yield f"{name}: {key}: differs by more than {max_difference:.3g}"
        elif differ := int(np.count_nonzero(a != b)):
            yield f"{name}: {key}: {differ:,} of {a.size:,} entries differ"
