"""What the sections of one snapshot say of each other: a comparison is counted in several of them, and they must agree.

The loaders check each array for itself; here are the relations between them. O(state).
"""

from collections.abc import Iterator, Mapping

import numpy as np

from stream_engine.guard.partial_order import topological_order
from stream_engine.guard.stored_states import always_first
from stream_engine.state.snapshot import Snapshot, triplet_columns
from stream_engine.statistics.adds_of_triplets import adds3

CODED = 2**21  # objects whose triplets fit one integer


def broken(snapshot: Snapshot) -> Iterator[str]:
    """One line for each relation that does not hold."""
    yield from _totals(snapshot)
    yield from _names(snapshot)
    yield from _adds(snapshot)
    yield from _order(snapshot)


def _totals(snapshot: Snapshot) -> Iterator[str]:
    counters = snapshot.counters
    parts = counters["triplets"] + counters["quadruplets"]
    if counters["comparisons"] != parts:
        yield f"comparisons: {counters['comparisons']:,}, but triplets and quadruplets are {parts:,}"
    kinds = sum(counters["kinds"].values())
    if counters["events"] != kinds:
        yield f"events: {counters['events']:,}, but {kinds:,} by kind"
    for name, section in (("triplets", "triplet_counts"), ("quadruplets", "quadruplet_counts")):
        counts = snapshot.section(section)
        total = int(counts["n_lo"].sum(dtype=np.int64) + counts["n_hi"].sum(dtype=np.int64)) if counts else None
        if total is not None and total != counters[name]:
            yield f"{name}: {counters[name]:,}, but {section} add up to {total:,}"
    verdicts, most = sum(counters["guard"].values()), counters["comparisons"]
    weighted = any(name.startswith("deltas://") for name in snapshot.positions)  # one verdict a key, not a comparison
    left = _left(snapshot)  # verdicts on what has left stay in the count
    wrong = verdicts < most if left else verdicts > most if weighted else verdicts != most
    if snapshot.settings["guard"] and wrong and not (weighted and left):
        yield f"guard: {verdicts:,} verdicts on {most:,} comparisons"


def _left(snapshot: Snapshot) -> bool:
    """Whether answers were taken out again: the guard goes on from what it had judged by them."""
    return any(deed["did"] == "forget" for deed in snapshot.counters.get("history", ()))


def _names(snapshot: Snapshot) -> Iterator[str]:
    names = list(snapshot.objects)
    if len(set(names)) != len(names):
        twice = next(name for name in names if names.count(name) > 1)
        yield f"objects: {twice!r} is there more than once"


def _adds(snapshot: Snapshot) -> Iterator[str]:
    n = len(snapshot.objects)
    stored: Mapping[str, np.ndarray] = snapshot.section("adds3")
    if snapshot.section("triplet_counts") and stored:
        columns = triplet_columns(snapshot)
        sizes = np.diff(columns.start)
        lo, hi = np.repeat(columns.lo, sizes), np.repeat(columns.hi, sizes)
        net = columns.n_lo.astype(np.int64) - columns.n_hi
        i, j, w = adds3(columns.anchor, lo, hi, net, n)
        if not all(np.array_equal(a, b) for a, b in zip((i, j, w), (stored["i"], stored["j"], stored["w"]))):
            yield "adds3: is not the AddS of triplet_counts"
    four = snapshot.section("adds4")
    for name, section in (("adds3", stored), ("adds4", four)):
        if section and int(section["w"].sum(dtype=np.int64)):
            yield f"{name}: adds up to {int(section['w'].sum(dtype=np.int64)):,}, expected 0: +1 and -1 a comparison"
    alike = stored and four and not snapshot.counters["quadruplets"]
    if alike and not all(np.array_equal(stored[key], four[key]) for key in ("i", "j", "w")):
        yield "adds4: differs from adds3 although there are no quadruplets"


def _order(snapshot: Snapshot) -> Iterator[str]:
    section = snapshot.section("partial_order")
    if not section:
        return
    kept = section["kept"]
    try:
        topological_order(kept)
    except ValueError:
        yield f"partial_order: the {len(kept):,} kept comparisons hold a cycle"
        return
    accepted = snapshot.counters["guard"]["accepted"]
    if always_first(snapshot.settings["guard"], snapshot.counters.get("history", ())) and len(kept) > accepted:
        yield f"partial_order: {len(kept):,} comparisons are kept, {accepted:,} were accepted"
    if uncounted := _uncounted(snapshot, kept):
        yield f"partial_order: {uncounted:,} kept triplets were never counted"


def _uncounted(snapshot: Snapshot, kept: np.ndarray) -> int:
    """How many kept rows that share an object are not among the triplets counted in that direction."""
    if not snapshot.section("triplet_counts") or not len(kept) or len(snapshot.objects) > CODED:
        return 0
    rows, n = kept.astype(np.int64), max(len(snapshot.objects), 1)
    shared = [(rows[:, a] == rows[:, b]) for a, b in ((0, 2), (0, 3), (1, 2), (1, 3))]
    others = ((1, 3), (1, 2), (0, 3), (0, 2))
    anchors = (0, 0, 1, 1)
    columns = triplet_columns(snapshot)
    sizes = np.diff(columns.start)
    lo, hi = (np.repeat(column, sizes).astype(np.int64) for column in (columns.lo, columns.hi))
    code = columns.anchor.astype(np.int64) * n
    forth, back = (code + lo)[columns.n_lo > 0] * n + hi[columns.n_lo > 0], (code + hi)[columns.n_hi > 0] * n
    back = back + lo[columns.n_hi > 0]
    counted = np.concatenate([forth, back])
    missing = 0
    for which, (near, far), anchor in zip(shared, others, anchors):
        asked = (rows[which, anchor] * n + rows[which, near]) * n + rows[which, far]
        missing += int(np.count_nonzero(~np.isin(asked, counted)))
    return missing
