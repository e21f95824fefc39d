"""Where a state and what was recounted from its sources differ: counters, labels, each section by the names of keys.

Objects are compared by name, so the order in which they came does not matter. What depends on the order of arrival (the
guard, ledgers, object ids) is compared only where there was one order: a single partition.
"""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from stream_engine.accumulators import Forgetting, accumulator
from stream_engine.state.engine import Engine
from stream_engine.state.object_index import ObjectIndex
from stream_engine.state.snapshot import Snapshot, encode

Arrays = Mapping[str, np.ndarray]
PLAIN = ("records", "events", "comparisons", "triplets", "quadruplets", "labels", "filtered", "empty")
_NOT_OF_SOURCES = (
    "progressive",
    "sinks",
    "history",
    "lost",
    "dead_letters",
    "share",
    "input",
)  # counters that no record leads to
_KEYS = (("anchor", "lo", "hi"), ("i", "j", "k", "l"), ("i", "j"), ("rows",))  # arrays that are keys of the others


def differences(snapshot: Snapshot, recounted: Engine, one_order: bool) -> Iterator[str]:
    """One line for each thing that differs, the state's figure first. O(state)."""
    yield from _counters(snapshot, recounted, one_order)
    yield from _labels(snapshot.labels, recounted.labels, one_order)
    names = ObjectIndex(snapshot.objects)
    known = len(names)
    new_id = names.ids(recounted.objects.names)
    strangers = [str(names.names[i]) for i in range(known, len(names))][:1]
    missing = np.setdiff1d(np.arange(known), new_id)
    if strangers:
        yield f"objects: {len(names) - known} are in the sources and not in the state, the first is {strangers[0]!r}"
    if len(missing):
        first = names.names[int(missing[0])]
        yield f"objects: {len(missing)} are in the state and not in the sources, the first is {first!r}"
    forgetting = Forgetting(**snapshot.settings.get("forgetting", {}))
    for name, each in recounted.accumulators.items():
        kind = accumulator(name, forgetting)
        if kind.mergeable or one_order:
            ours, theirs = snapshot.section(name), each.renamed(each.state(), new_id)
            passed_over = () if one_order else kind.arrival
            yield from _section(name, ours, theirs, names.names, kind.tolerance, passed_over)
    if one_order and not (strangers or len(missing)):
        if recounted.guard:
            yield from _section(
                "partial_order", snapshot.section("partial_order"), recounted.guard.state(), names.names
            )
        if (new_id != np.arange(known)).any():
            yield "objects: they came in another order"


def equal_bytes(snapshot: Snapshot, recounted: Engine) -> bool:
    """Whether the recounted state, with what no source can tell taken from the snapshot, has the same bytes."""
    again = recounted.snapshot()
    counters = {name: value for name, value in again.counters.items() if name not in _NOT_OF_SOURCES}
    counters |= {name: snapshot.counters[name] for name in _NOT_OF_SOURCES if name in snapshot.counters}
    again = again._replace(sequence=snapshot.sequence, counters=counters, positions=snapshot.positions)
    return encode(again)[1].digest == snapshot.digest


def _counters(snapshot: Snapshot, recounted: Engine, one_order: bool) -> Iterator[str]:
    ours, theirs = snapshot.counters, recounted.counters
    for name in PLAIN:
        if ours[name] != theirs[name]:
            yield f"counters: {name}: state {ours[name]:,}, sources {theirs[name]:,}"
    tables = ("kinds", "rejected", "guard") if one_order else ("kinds", "rejected")
    for name in tables:
        for key in sorted(ours[name].keys() | theirs[name].keys()):
            mine, their = ours[name].get(key, 0), theirs[name].get(key, 0)
            if mine != their:
                yield f"counters: {name} {key}: state {mine:,}, sources {their:,}"
    unknown = set(ours["unknown_fields"]) ^ set(theirs["unknown_fields"])
    if unknown:
        yield f"counters: unknown_fields: {', '.join(sorted(unknown))} in one of both"


def _labels(ours: Mapping[str, str], theirs: Mapping[str, str], one_order: bool) -> Iterator[str]:
    differ = sorted(name for name in ours.keys() | theirs.keys() if ours.get(name) != theirs.get(name))
    if not one_order:  # of two classes the last one holds, whichever that was
        differ = [name for name in differ if name not in ours or name not in theirs]
    if differ:
        first = differ[0]
        yield (
            f"labels: {len(differ):,} differ, the first of {first!r}: state {ours.get(first)!r}, "
            f"sources {theirs.get(first)!r}"
        )


def _section(
    name: str,
    ours: Arrays,
    theirs: Arrays,
    names: Any,
    tolerance: float = 0.0,
    passed_over: tuple[str, ...] = (),
) -> Iterator[str]:
    """How many keys differ and the first one; or which arrays, where there are no keys."""
    differ = [
        key
        for key in sorted(ours.keys() | theirs.keys())
        if key not in passed_over and not _same(ours.get(key), theirs.get(key), tolerance)
    ]
    if not differ:
        return
    mine, their = _by_key(ours), _by_key(theirs)
    if mine is None or their is None:
        yield f"{name}: {', '.join(differ)} differ"
        return
    yield from _keys(name, mine, their, names, tolerance)


def _same(ours: np.ndarray | None, theirs: np.ndarray | None, tolerance: float) -> bool:
    if ours is None or theirs is None or ours.shape != theirs.shape:
        return False
    if tolerance and ours.dtype.kind == "f" and ours.size:
        return bool(
            np.allclose(ours, theirs, rtol=0, atol=tolerance * float(np.abs(ours).max(initial=1.0)), equal_nan=True)
        )
    return bool(np.array_equal(ours, theirs, equal_nan=ours.dtype.kind == "f"))


def _by_key(arrays: Arrays) -> tuple[np.ndarray, dict[str, np.ndarray]] | None:
    """(m, k) int64 keys and the values of each; None for a section that has none."""
    if "kept" in arrays:
        rows = arrays["kept"].astype(np.int64)
        return rows, {"kept": np.ones(len(rows), np.int64)}
    if "below" in arrays:  # judgements: a value stands for several rows, and a row may stand many times
        return None
    for keys in _KEYS:
        if not set(keys) <= arrays.keys():
            continue
        columns = dict(arrays)
        if "start" in columns:
            sizes = np.diff(columns.pop("start"))
            columns |= {field: np.repeat(columns[field], sizes) for field in ("lo", "hi")}
        rows = np.column_stack([columns.pop(field) for field in keys]).astype(np.int64)
        values = {key: value for key, value in columns.items() if value.shape[:1] == (len(rows),) and value.ndim == 1}
        return (rows, values) if values else (rows, {"there": np.ones(len(rows), np.int64)})
    return None


def _keys(name: str, mine: Any, their: Any, names: Any, tolerance: float) -> Iterator[str]:
    rows, entry = np.unique(np.vstack([mine[0], their[0]]), axis=0, return_inverse=True)
    entry = entry.reshape(-1)
    split = len(mine[0])
    wrong = np.zeros(len(rows), bool)
    sides: list[dict[str, np.ndarray]] = [{}, {}]
    for key in mine[1].keys() & their[1].keys():
        for side, values, at in ((0, mine[1][key], entry[:split]), (1, their[1][key], entry[split:])):
            spread = np.zeros(len(rows), values.dtype)
            spread[at] = values
            sides[side][key] = spread
        a, b = sides[0][key], sides[1][key]
        off = tolerance * float(np.abs(a).max(initial=1.0)) if a.dtype.kind == "f" else 0
        wrong |= np.abs(a.astype(np.float64) - b) > off if tolerance else a != b
    if wrong.any():
        first = int(np.flatnonzero(wrong)[0])
        told = " ".join(repr(str(names[int(i)])) for i in rows[first])
        figures = [" ".join(f"{key} {side[key][first]}" for key in sorted(side)) for side in sides]
        yield (
            f"{name}: {np.count_nonzero(wrong):,} of {len(rows):,} keys differ, the first is ({told}): "
            f"state {figures[0]}, sources {figures[1]}"
        )
    else:
        yield f"{name}: the same keys in another order"
