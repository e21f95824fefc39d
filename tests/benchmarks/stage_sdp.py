"""SDP clustering beside cvxpy with SCS at 1e-5, at equal certified accuracy; certificates, spectral start, SPUR, warm.

What an SCS answer is worth is found as for ours: it is repaired to a feasible point and bounded through its own
multiplier. Ours is then solved to that gap or 1e-3, whichever is smaller, so it is never less accurate.
"""

from functools import partial

import numpy as np
from scipy import sparse

from stream_engine.clustering import partition
from stream_engine.clustering.cascade import solve
from stream_engine.clustering.similarity_matrix import checked
from stream_engine.clustering.spur import spur
from stream_engine.refits import sdp_clustering
from stream_engine.testing.refits import as_batch, published
from tests.benchmarks.rows import row, timed
from tests.support import sdp_reference
from tests.support.planted_similarities import adds3, planted

STAGE = "sdp"
SAID = ("k", "gap", "iterations", "certified_by")


def how(kind: str, c: int, n: int) -> dict:
    """SDP-k or SDP-lambda at the lambda of SPUR, for c comparisons."""
    return {"k": 4} if kind == "k" else {"lam": 2 * np.sqrt(c * np.log(n) / n)}


def planted_sparse(n: int, k: int, power: float, epsilon: float = 0.75, delta: float = 0.5):
    """AddS-3 of the planted model for n too large for its similarity matrix: every comparison draws its own two
    similarities (a pair hardly ever comes twice)."""
    rng = np.random.default_rng(0)
    labels = np.arange(n) * k // n
    anchor, near, far = rng.integers(n, size=(3, int(n * np.log(n) ** power)))
    keep = (anchor != near) & (anchor != far) & (near != far)
    anchor, near, far = anchor[keep], near[keep], far[keep]
    same = (labels[anchor] == labels[near]).astype(int) - (labels[anchor] == labels[far])
    right = np.choose(same + 1, [(1 - delta) / 2, 0.5, (1 + delta) / 2])  # P(w(anchor, near) > w(anchor, far))
    true = (rng.random(len(anchor)) < right) ^ (rng.random(len(anchor)) < (1 - epsilon) / 2)
    near, far = np.where(true, near, far), np.where(true, far, near)
    votes = np.repeat([1.0, -1.0], len(anchor))
    W = sparse.csr_array((votes, (np.tile(anchor, 2), np.concatenate([near, far]))), shape=(n, n))
    return checked(W + W.T)


def beside_scs(n: int, kind: str, power: float, target: str, iterations: int | None = None) -> dict:
    """Ours to SCS's own gap; with `iterations` SCS is stopped after so many and ours goes to a gap of 1e-3: while SCS
    is not done by then, the ratio is a lower bound."""
    triplets, _ = planted(n, 4, power)
    W, form = adds3(triplets, n), how(kind, len(triplets), n)
    if iterations:
        options = {"k": None, "lam": None} | form | {"solver": "SCS", "tol": 1e-5, "max_iterations": iterations}
        scs, theirs = timed(lambda: sdp_reference.solve(W, **options))
        ours, mine = timed(lambda: solve(W, tol=1e-3, **form))
        told = f"SCS {'done' if scs.optimal else 'not done'}"
    else:
        scs, theirs = timed(lambda: sdp_reference.solve(W, **{"k": None, "lam": None} | form, solver="SCS", tol=1e-5))
        gap = sdp_reference.certified_gap(W, form.get("k"), form.get("lam"), scs)
        ours, mine = timed(lambda: solve(W, tol=float(np.clip(gap, 1e-6, 1e-3)), **form))
        told = f"SCS: gap {gap:.1e}"
    notes = f"gap {ours.gap:.1e}, objective {ours.objective:.6g}, {ours.iterations} its, rank {len(ours.x) + 1}; "
    notes += f"{told}, {scs.objective:.6g}, {scs.iterations} its"
    return row(STAGE, f"SDP-{kind} n={n} (ln n)^{power:g}", mine, "s", theirs, "cvxpy SCS 1e-5", target, notes)


def limited(case: str, limit: float, call, *arguments, **options) -> dict:
    """A limit in seconds instead of a rival."""
    found, mine = timed(partial(call, *arguments, **options))
    said = getattr(found, "report", None) or {name: getattr(found, name, None) for name in SAID}
    told = {name: said[name] for name in SAID if said.get(name) is not None}
    return row(STAGE, case, mine, "s", limit, "limit", ">= 1", ", ".join(f"{name} {v}" for name, v in told.items()))


def warm(n: int, kind: str) -> dict:
    """A refit after 5 % more comparisons, from the state of the last one and from nothing."""
    triplets, _ = planted(n, 4, 3.0)
    triplets = triplets[np.random.default_rng(0).permutation(len(triplets))]
    some, tol = triplets[: int(len(triplets) / 1.05)], 1e-4 if n < 1000 else 1e-3
    before = solve(adds3(some, n), tol=tol, **how(kind, len(some), n))
    W, form = adds3(triplets, n), how(kind, len(triplets), n)
    first, cold = timed(lambda: solve(W, tol=tol, **form))
    again, mine = timed(lambda: solve(W, tol=tol, start=before.state, **form))
    notes = f"{again.iterations} its (cold {first.iterations}), gaps {again.gap:.1e} (cold {first.gap:.1e})"
    return row(STAGE, f"warm SDP-{kind} n={n} +5 %", mine, "s", cold, "cold start", ">= 1", notes)


def rows(quick: bool) -> list[dict]:
    """The table of this stage. Quick: seconds; else the sizes of the targets, some minutes."""
    solve(adds3(planted(40, 2, 2.0)[0], 40), k=3, tol=1e-2)  # compile
    sdp_reference.solve(adds3(planted(20, 2, 2.0)[0], 20), 3, None, tol=1e-2)  # import
    cases = [(200, "lam", 3.0, ">= 8"), (200, "k", 2.5, ">= 8"), (200, "k", 3.0, ">= 8"), (400, "lam", 3.0, ">= 10")]
    out = [beside_scs(*case) for case in cases]
    triplets, _ = planted(1000, 4, 4.0)
    snapshot, W = published(as_batch(triplets, 1000), {}), adds3(triplets, 1000)
    large = planted_sparse(n := 20_000 if quick else 50_000, 4, 2.0)
    out += [
        limited("certified refit n=1000 (ln n)^4", 0.3, sdp_clustering.refit, snapshot, sdp_clustering.Params(k=4), 0),
        limited("SPUR n=1000 (ln n)^4, certifies", 1.0, spur, W, len(triplets), tol=1e-3),
        warm(400, "lam"),
        limited(f"spectral start and refinement n={n} (ln n)^2", 10.0, started, large),
    ]
    return out if quick else out + full()


def started(W) -> np.ndarray:
    """What the cascade begins with."""
    return partition.refined(W, partition.spectral_partition(W, 4))


def full() -> list[dict]:
    """The large sizes."""
    cases = [(400, "k", 3.0, ">= 4"), (400, "k", 4.0, ">= 4")]
    out = [beside_scs(*case) for case in [*cases, (1000, "lam", 3.0, ">= 40", 200), (1000, "k", 3.0, ">= 4", 200)]]
    out += [warm(400, "k"), warm(1000, "lam"), warm(1000, "k")]
    triplets, _ = planted(1000, 4, 3.0)
    larger, _ = planted(4000, 4, 3.0)
    W, larger_W, form = adds3(triplets, 1000), adds3(larger, 4000), how("lam", len(larger), 4000)
    out.append(limited("SPUR n=1000 (ln n)^3, solves", 60.0, spur, W, len(triplets), tol=1e-3))
    return [*out, limited("SDP-lam n=4000 (ln n)^3", 60.0, solve, larger_W, tol=1e-4, **form)]
