"""The partial order beside its rivals in the same run: judging, memory, hostile orders, reduction.

Rivals: rustworkx's PyDAG(check_cycle=True) and transitive_reduction. CPU time, one thread.
"""

import tracemalloc

import numpy as np
import rustworkx

from stream_engine.order.partial_order import (
    PartialOrder,
    Verdicts,
    topological_order,
    transitive_reduction,
)
from tests.benchmarks.rows import row, timed

STAGE = "guard"


def food_like(n: int, edges: int, flip: float, repeats: bool = False) -> np.ndarray:
    """Triplets as (m, 4) edges over n points in the unit cube, distinct keys unless `repeats`."""
    rng = np.random.default_rng(0)
    points = rng.random((n, 3))
    t = rng.integers(n, size=(2 * edges if n < 200 and not repeats else int(1.2 * edges) + 10, 3))
    t = t[(t[:, 0] != t[:, 1]) & (t[:, 0] != t[:, 2]) & (t[:, 1] != t[:, 2])]
    if not repeats:
        key = (t[:, 0] * n + t[:, 1:].min(axis=1)) * n + t[:, 1:].max(axis=1)
        t = t[np.sort(np.unique(key, return_index=True)[1])]
    rows = t[:edges, [0, 1, 0, 2]].astype(np.int32)
    near, far = (((points[rows[:, i]] - points[rows[:, j]]) ** 2).sum(axis=1) for i, j in ((0, 1), (2, 3)))
    turned = (near > far) ^ (rng.random(len(rows)) < flip)
    rows[turned] = rows[turned][:, [2, 3, 0, 1]]
    return rows


def judged(rows: np.ndarray, parts: int) -> tuple[PartialOrder, np.ndarray, np.ndarray]:
    """`(guard, verdict codes, microseconds a comparison in each of so many parts)`."""
    guard = PartialOrder()
    made = [(len(part), *timed(guard.judge_rows, part)) for part in np.array_split(rows, parts)]
    return guard, np.concatenate([codes for _, codes, _ in made]), np.array([1e6 * s / m for m, _, s in made])


def numbered(rows: np.ndarray) -> list[tuple[int, int]]:
    """Edges between pairs numbered by first appearance, as a user of a graph library would make them."""
    ids: dict = {}
    return [
        (ids.setdefault((min(i, j), max(i, j)), len(ids)), ids.setdefault((min(k, l), max(k, l)), len(ids)))
        for i, j, k, l in rows.tolist()
    ]


def checked_by_rustworkx(edges: list[tuple[int, int]]) -> int:
    """How many edges PyDAG(check_cycle=True) accepts."""
    graph = rustworkx.PyDAG(check_cycle=True)
    graph.add_nodes_from(range(max(map(max, edges)) + 1))
    accepted = 0
    for u, v in edges:
        try:
            graph.add_edge(u, v, None)
            accepted += 1
        except rustworkx.DAGWouldCycle:
            continue
    return accepted


def beside_rustworkx(quick: bool) -> list[dict]:
    """A food-like stream from its first edges to the whole. The rival searches all that the far pair reaches, which is
    little in a young graph, so the ratio grows with the stream; sorted order is kindest to it."""
    rows = food_like(100, 190_376, 0.15)
    sizes = (10_000, 30_000) if quick else (10_000, 30_000, 60_000, len(rows))
    cases = {f"food-like, 15% flips, first {size:,} edges": rows[:size] for size in sizes}
    part, out = rows[:30_000], []
    cases["the same 30,000 edges in sorted order"] = part[np.lexsort(part.T[::-1])]
    for case, part in cases.items():
        guard, codes, cost = judged(part, 1)
        accepted, spent = timed(checked_by_rustworkx, numbered(part))
        assert accepted == (codes == 0).sum() == len(guard.kept()), "rustworkx keeps another set"
        notes = f"same {accepted:,} kept"
        out.append(row(STAGE, case, 1e6 / cost[0], "edges/s", len(part) / spent, "rustworkx PyDAG", notes=notes))
    return out


def every_size(quick: bool) -> list[dict]:
    """What a comparison costs over few, some and many objects, past the giant component, and in reversed chains."""
    out = []
    for n, m, flip, target in (
        (100, 1_000_000, 0.15, "<= 1.5 x first tenth"),
        (1_000, 5_000_000, 0.15, "<= 1.5"),
        (100_000, 2_000_000, 0.15, ""),
        (2_000, 5_000_000, 0.05, "<= 12 at the end"),
    ):
        rows = food_like(n, m // 10 if quick else m, flip, repeats=True)
        guard, codes, cost = judged(rows, 20)
        held = sum(a.nbytes for a in guard.graph) / len(rows)
        notes = f"by fifth {' '.join(f'{c.mean():.2f}' for c in np.split(cost, 5))}; {held:.0f} bytes a comparison; "
        notes += str(Verdicts(*np.bincount(codes, minlength=4).tolist()))
        case = f"{len(rows):,} comparisons over {n:,} objects, {flip:.0%} flips"
        out.append(row(STAGE, case, cost.mean(), "us/comparison", cost[:2].mean(), "first tenth", target, notes))
    state, spent = timed(guard.state)
    _, again = timed(PartialOrder.from_state, state)
    out.append(row(STAGE, f"{len(state['kept']):,} kept: state()", spent, "s", notes=f"from_state() {again:.2f} s"))
    at = 2 * np.arange(30_000, dtype=np.int32)[::-1]
    chain = np.stack([at, at + 1, at + 2, at + 3], axis=1)
    out.append(row(STAGE, "reversed chain of 30,000", judged(chain, 1)[2][0], "us/edge", target="<= 2"))
    return out


def reductions(quick: bool) -> list[dict]:
    """Transitive reduction beside rustworkx; a million edges, time and memory."""
    rows = food_like(100, 60_000 if quick else 190_376, 0.05)
    guard, codes, _ = judged(rows, 1)
    kept = guard.kept()
    reduced, spent = min((timed(transitive_reduction, kept) for _ in range(3)), key=lambda made: made[1])
    out = []
    for name, edges in (("in order of arrival", rows[codes == 0]), ("in sorted order", kept)):
        graph, numbers = rustworkx.PyDiGraph(), numbered(edges)
        graph.add_nodes_from(range(max(map(max, numbers)) + 1))
        graph.add_edges_from_no_data(numbers)
        (rival, _), took = timed(rustworkx.transitive_reduction, graph)
        assert rival.num_edges() == len(reduced), "rustworkx leaves another number of edges"
        case, notes = f"food-like, {len(kept):,} edges, rival's graph built {name}", f"{len(reduced):,} left"
        out.append(row("reduction", case, spent, "s", took, "rustworkx", ">= 1,000 x", notes))
    n, m = (500, 250_000) if quick else (1000, 1_010_000)
    kept = judged(food_like(n, m, 0.02, repeats=True), 1)[0].kept()
    reduced, spent = timed(transitive_reduction, kept)
    tracemalloc.start()
    transitive_reduction(kept)
    peak = tracemalloc.get_traced_memory()[1] / 1e6
    tracemalloc.stop()
    notes = f"{len(topological_order(kept)):,} pairs, {len(reduced):,} left, {peak:.0f} MB of arrays at most"
    case = f"{len(kept):,} edges over {n:,} objects"
    return [*out, row("reduction", case, spent, "s", target="<= 3 s and <= 500 MB", notes=notes)]


def rows(quick: bool) -> list[dict]:
    """All figures of this stage; kernels are compiled before anything is timed."""
    warm = food_like(12, 400, 0.2, repeats=True)
    guard = judged(warm, 2)[0]
    PartialOrder.from_state(guard.state())
    transitive_reduction(guard.kept())
    return [row for part in (every_size, beside_rustworkx, reductions) for row in part(quick)]
