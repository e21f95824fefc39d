"""The partial order, stage by stage, beside its rivals in the same run. CPU time, fixed seeds, one thread.

`rows(quick)` gives one dict a figure: stage, case, ours, rival, rival_name, ratio (ours / rival for rates, None where
there is no rival), unit, target, notes. `quick` takes smaller worlds and says so in `notes`.
"""

import tracemalloc
from time import process_time

import numpy as np

from stream_engine.data.triplet_columns import columns_from_triplets
from stream_engine.guard.partial_order import (
    PartialOrder,
    Verdicts,
    canonical_order,
    topological_order,
    transitive_reduction,
    weight_kept,
)


def food_like(n: int, edges: int, flip: float, seed: int = 0, repeats: bool = False) -> tuple[np.ndarray, np.ndarray]:
    """`(rows, points)`: triplets as (m, 4) edges over n points in the unit cube, distinct keys unless `repeats`."""
    rng = np.random.default_rng(seed)
    points = rng.random((n, 3))
    t = rng.integers(n, size=(2 * edges if n < 200 and not repeats else int(1.2 * edges) + 10, 3))
    t = t[(t[:, 0] != t[:, 1]) & (t[:, 0] != t[:, 2]) & (t[:, 1] != t[:, 2])]
    if not repeats:
        key = (t[:, 0] * n + t[:, 1:].min(axis=1)) * n + t[:, 1:].max(axis=1)
        t = t[np.sort(np.unique(key, return_index=True)[1])]
    t = t[:edges]
    rows = np.stack([t[:, 0], t[:, 1], t[:, 0], t[:, 2]], axis=1).astype(np.int32)
    turned = against_truth(rows, points) ^ (rng.random(len(rows)) < flip)
    rows[turned] = rows[turned][:, [2, 3, 0, 1]]
    return rows, points


def against_truth(rows: np.ndarray, points: np.ndarray) -> np.ndarray:
    """(m,) bool: the near pair of the row is in truth the farther one."""

    def length(i, j):
        return ((points[rows[:, i]] - points[rows[:, j]]) ** 2).sum(axis=1)

    return length(0, 1) > length(2, 3)


def truth_weight(rows: np.ndarray, points: np.ndarray, columns) -> int:
    """The net votes that the true order keeps."""
    both = np.concatenate([rows, rows[:, [2, 3, 0, 1]]])
    both = both[~against_truth(both, points)]
    return weight_kept(np.unique(np.sort(both.reshape(-1, 2, 2), axis=2).reshape(-1, 4), axis=0), columns).kept


def seconds(work, *arguments):
    """`(result, CPU seconds)`."""
    started = process_time()
    result = work(*arguments)
    return result, process_time() - started


def timed(rows: np.ndarray, parts: int) -> tuple[PartialOrder, np.ndarray, np.ndarray]:
    """`(guard, verdict codes, microseconds a comparison in each of so many parts)`."""
    guard, codes, cost = PartialOrder(), [], []
    for part in np.array_split(rows, parts):
        got, spent = seconds(guard.judge_rows, part)
        codes.append(got)
        cost.append(1e6 * spent / len(part))
    return guard, np.concatenate(codes), np.array(cost)


def numbered_slowly(rows: np.ndarray) -> list[tuple[int, int]]:
    """Edges between pairs numbered by first appearance, as a user of a graph library would make them."""
    ids: dict = {}
    return [
        (ids.setdefault((min(i, j), max(i, j)), len(ids)), ids.setdefault((min(k, l), max(k, l)), len(ids)))
        for i, j, k, l in rows.tolist()
    ]


def rustworkx_guard(rows: np.ndarray) -> tuple[int, float]:
    """`(accepted, CPU seconds)` of PyDAG(check_cycle=True) on the same edges."""
    import rustworkx

    edges = numbered_slowly(rows)
    graph = rustworkx.PyDAG(check_cycle=True)
    graph.add_nodes_from(range(max(map(max, edges)) + 1))
    accepted, started = 0, process_time()
    for u, v in edges:
        try:
            graph.add_edge(u, v, None)
            accepted += 1
        except rustworkx.DAGWouldCycle:
            continue
    return accepted, process_time() - started


def row(case, ours, unit, target="", rival=None, rival_name="", notes="", stage="guard", ratio=None):
    if ratio is None and rival:
        ratio = ours / rival
    return {
        "stage": stage,
        "case": case,
        "ours": ours,
        "rival": rival,
        "rival_name": rival_name,
        "ratio": ratio,
        "unit": unit,
        "target": target,
        "notes": notes,
    }


def against_rustworkx(quick: bool) -> list[dict]:
    """A food-like stream beside rustworkx, from its first edges to the whole; last tenth beside the first.

    The rival searches all that the far pair reaches, which is little in a young graph, so the ratio grows with the
    stream. In sorted order nearly every edge joins a pair that nothing reaches yet, which is kindest to the rival.
    """
    out = []
    for flip in (0.1, 0.15, 0.2):
        rows, _ = food_like(100, 190_376, flip)
        _, codes, cost = timed(rows, 10)
        case = f"food-like, {flip:.0%} flips"
        notes = f"whole stream {1e6 / cost.mean():,.0f} edges/s, {Verdicts(*np.bincount(codes, minlength=4).tolist())}"
        out.append(row(f"{case}, last tenth", cost[-1], "us/edge", "<= 1.5 x first", cost[0], "first tenth", notes))
    rows, _ = food_like(100, 190_376, 0.15)
    for prefix in (10_000, 30_000) if quick else (10_000, 30_000, 60_000, len(rows)):
        out.append(beside_rustworkx(f"food-like, 15% flips, first {prefix:,} edges", rows[:prefix]))
    part = rows[:30_000]
    return [*out, beside_rustworkx("the same 30,000 edges in sorted order", part[np.lexsort(part.T[::-1])])]


def beside_rustworkx(case: str, rows: np.ndarray) -> dict:
    """The same edges to both, in the same order."""
    guard, codes, cost = timed(rows, 1)
    accepted, spent = rustworkx_guard(rows)
    assert accepted == (codes == 0).sum() == len(guard.kept()), "rustworkx keeps another set"
    rival = "rustworkx PyDAG(check_cycle=True)"
    return row(case, 1e6 / cost[0], "edges/s", "", len(rows) / spent, rival, f"same {accepted:,} kept")


def every_size(quick: bool) -> list[dict]:
    """What a comparison costs, and what the guard holds at the end, over few, some and many objects."""
    out = []
    for n, m in ((100, 1_000_000), (1_000, 5_000_000), (100_000, 2_000_000)):
        m = m // 10 if quick else m
        rows, _ = food_like(n, m, 0.15, repeats=True)
        guard, codes, cost = timed(rows, 20)
        notes = f"by fifth {' '.join(f'{c.mean():.2f}' for c in np.split(cost, 5))}; "
        notes += f"kept {np.mean(codes == 0):.3f}; {sum(a.nbytes for a in guard.graph) / m:.0f} bytes a comparison"
        target = "<= 1.5" if (n, quick) == (1_000, False) else ""
        case = f"{m:,} comparisons over {n:,} objects, 15% flips"
        out.append(row(case, cost.mean(), "us/comparison", target, notes=notes))
    return out


def large_and_hostile(quick: bool) -> list[dict]:
    """Past the giant component, and reversed chains."""
    n, m = (600, 450_000) if quick else (2000, 5_000_000)
    rows, _ = food_like(n, m, 0.05, repeats=True)
    guard, codes, cost = timed(rows, 20)
    worst = f"by twentieth: {' '.join(f'{c:.1f}' for c in cost)}; kept {np.mean(codes == 0):.4f}"
    size = sum(a.nbytes for a in guard.graph) / 1e6
    out = [
        row(
            f"{m:,} edges over {n:,} objects, 5% flips, last twentieth",
            cost[-1],
            "us/edge",
            "<= 12",
            notes=f"{worst}; {size:.0f} MB" + ("; smaller than the target's 5 M over 2,000" if quick else ""),
        )
    ]
    state, spent = seconds(guard.state)
    _, again = seconds(PartialOrder.from_state, state)
    out.append(row(f"{len(state['kept']):,} kept: state()", spent, "s", notes=f"from_state() {again:.2f} s"))
    at = 2 * np.arange(30_000, dtype=np.int32)[::-1]
    chain = np.stack([at, at + 1, at + 2, at + 3], axis=1)
    out.append(row("reversed chain of 30,000", timed(chain, 1)[2][0], "us/edge", "<= 2"))
    return out


def weighted(quick: bool) -> list[dict]:
    """The canonical order beside the true order."""
    out = []
    for m in (190_000,) if quick else (190_000, 1_000_000):
        rows, points = food_like(100, m, 0.15, repeats=True)
        columns = columns_from_triplets(rows[:, [0, 1, 3]], 100)
        truth = truth_weight(rows, points, columns)
        found, spent = seconds(canonical_order, columns)
        out.append(
            row(
                f"food-like, {m:,} votes, 15% flips: weight kept by the canonical order",
                found.weight.kept,
                "votes",
                ">= 1.0 x",
                truth,
                "the true order",
                f"fraction {found.weight.fraction:.4f}, {spent:.2f} s",
                "order",
            )
        )
    return out


def reductions(quick: bool) -> list[dict]:
    """Transitive reduction beside rustworkx; a million edges, time and memory."""
    import rustworkx

    rows, _ = food_like(100, 60_000 if quick else 190_376, 0.05)
    guard, codes, _ = timed(rows, 1)
    kept = guard.kept()
    reduced, spent = min((seconds(transitive_reduction, kept) for _ in range(3)), key=lambda result: result[1])
    out = []
    for name, edges in (("in order of arrival", rows[codes == 0]), ("in sorted order", kept)):
        graph = rustworkx.PyDiGraph()
        numbers = numbered_slowly(edges)
        graph.add_nodes_from(range(max(map(max, numbers)) + 1))
        graph.add_edges_from_no_data(numbers)
        (rival, _), took = seconds(rustworkx.transitive_reduction, graph)
        assert rival.num_edges() == len(reduced), "rustworkx leaves another number of edges"
        out.append(
            row(
                f"food-like, {len(kept):,} edges, rival's graph built {name}",
                1 / spent,
                "1/s",
                ">= 1,000 x",
                1 / took,
                "rustworkx.transitive_reduction",
                f"{len(reduced):,} left; {1e3 * spent:.1f} ms against {took:.2f} s",
                "reduction",
            )
        )
    n, m = (500, 250_000) if quick else (1000, 1_010_000)
    kept = timed(food_like(n, m, 0.02, repeats=True)[0], 1)[0].kept()
    reduced, spent = seconds(transitive_reduction, kept)
    tracemalloc.start()
    transitive_reduction(kept)
    peak = tracemalloc.get_traced_memory()[1] / 1e6
    tracemalloc.stop()
    out.append(
        row(
            f"{len(kept):,} edges over {n:,} objects",
            spent,
            "s",
            "<= 3 s and <= 500 MB",
            stage="reduction",
            notes=f"{len(topological_order(kept)):,} pairs, {len(reduced):,} left, {peak:.0f} MB of arrays at most",
        )
    )
    return out


def rows(quick: bool) -> list[dict]:
    """All figures of this stage; kernels are compiled before anything is timed."""
    warm, _ = food_like(12, 400, 0.2, repeats=True)
    guard = timed(warm, 2)[0]
    PartialOrder.from_state(guard.state())
    transitive_reduction(guard.kept())
    canonical_order(columns_from_triplets(warm[:, [0, 1, 3]], 12))
    return [
        *every_size(quick),
        *against_rustworkx(quick),
        *large_and_hostile(quick),
        *weighted(quick),
        *reductions(quick),
    ]
