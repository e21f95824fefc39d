"""SDP clustering beside cvxpy with SCS at 1e-5, at equal certified accuracy; certificates, spectral start, SPUR, warm.

What an SCS answer is worth is found as for ours: it is repaired to a feasible point and bounded through its own
multiplier. Ours is then solved to that gap or 1e-3, whichever is smaller, so it is never less accurate.
"""

import time

import numpy as np
from scipy import sparse

from stream_engine import Engine
from stream_engine.clustering import cvxpy_reference, partition
from stream_engine.clustering.cascade import solve
from stream_engine.clustering.similarity_matrix import checked
from stream_engine.clustering.spur import spur
from stream_engine.data.comparisons import Decoded
from stream_engine.refits import sdp_clustering
from tests.support.planted_similarities import adds3, planted

STAGE = "sdp"


def timed(call):
    """`(CPU seconds, what it returned)`."""
    began = time.process_time()
    out = call()
    return time.process_time() - began, out


def planted_sparse(n: int, k: int, power: float, seed: int = 0, epsilon: float = 0.75, delta: float = 0.5):
    """AddS-3 of the planted model for n too large for its similarity matrix: every comparison draws its own two
    similarities (a pair hardly ever comes twice). (W sparse, labels, comparisons)."""
    rng = np.random.default_rng(seed)
    c = int(n * np.log(n) ** power)
    labels = np.arange(n) * k // n
    anchor, near, far = rng.integers(n, size=(3, c))
    keep = (anchor != near) & (anchor != far) & (near != far)
    anchor, near, far = anchor[keep], near[keep], far[keep]
    same = (labels[anchor] == labels[near]).astype(int) - (labels[anchor] == labels[far])
    right = np.choose(same + 1, [(1 - delta) / 2, 0.5, (1 + delta) / 2])  # P(w(anchor, near) > w(anchor, far))
    true = (rng.random(len(anchor)) < right) ^ (rng.random(len(anchor)) < (1 - epsilon) / 2)
    near, far = np.where(true, near, far), np.where(true, far, near)
    ones = np.ones(len(anchor))
    at = np.tile(anchor, 2), np.concatenate([near, far])
    W = sparse.csr_array((np.concatenate([ones, -ones]), at), shape=(n, n))
    return checked(W + W.T), labels, len(anchor)


def against_scs(n: int, kind: str, power: float, target: float) -> dict:
    triplets, _ = planted(n, 4, power)
    W = adds3(triplets, n)
    how = {"k": 4} if kind == "k" else {"lam": 2 * np.sqrt(len(triplets) * np.log(n) / n)}
    theirs, scs = timed(lambda: solve(W, solver="cvxpy", tol=1e-4, **how))  # hands SCS a tenth of it: 1e-5
    tol = float(np.clip(scs.gap, 1e-6, 1e-3))
    mine, ours = timed(lambda: solve(W, tol=tol, **how))
    return {
        "stage": STAGE,
        "case": f"SDP-{kind} n={n} (ln n)^{power:g}",
        "ours": mine,
        "rival": theirs,
        "unit": "s",
        "ratio": theirs / mine,
        "target": target,
        "rival_name": "cvxpy SCS 1e-5",
        "notes": f"gap {ours.gap:.1e} (SCS {scs.gap:.1e}), objective {ours.objective:.6g} (SCS "
        f"{scs.objective:.6g}), {ours.iterations} its (SCS {scs.iterations}), rank {len(ours.x) + 1}",
    }


def against_stopped_scs(n: int, kind: str, power: float, target: float, iterations: int) -> dict:
    """Ours to a gap of 1e-3 against SCS that is stopped after so many iterations: while it is not done by then, the
    ratio is a lower bound of what `against_scs` gives in minutes."""
    triplets, _ = planted(n, 4, power)
    W = adds3(triplets, n)
    k, lam = (4, None) if kind == "k" else (None, 2 * np.sqrt(len(triplets) * np.log(n) / n))
    theirs, scs = timed(lambda: cvxpy_reference.solve(W, k, lam, solver="SCS", tol=1e-5, max_iterations=iterations))
    mine, ours = timed(lambda: solve(W, k=k, lam=lam, tol=1e-3))
    away = abs(scs.objective - ours.objective) / abs(ours.objective)
    return {
        "stage": STAGE,
        "case": f"SDP-{kind} n={n} (ln n)^{power:g}",
        "ours": mine,
        "rival": theirs,
        "unit": "s",
        "ratio": theirs / mine,
        "target": target,
        "rival_name": f"cvxpy SCS, {iterations} iterations at most",
        "notes": f"gap {ours.gap:.1e}, {ours.iterations} its, rank {len(ours.x) + 1}; SCS "
        f"{'done' if scs.optimal else 'not done'} after {scs.iterations} its, {away:.1e} from our objective",
    }


def floor(case: str, call, limit: float, notes) -> dict:
    """A stage with a limit in seconds instead of a rival."""
    mine, found = timed(call)
    return {
        "stage": STAGE,
        "case": case,
        "ours": mine,
        "rival": limit,
        "unit": "s",
        "ratio": limit / mine,
        "target": 1.0,
        "rival_name": "limit",
        "notes": notes(found),
    }


def snapshot(triplets: np.ndarray, n: int):
    """What an engine publishes that has read these triplets."""
    engine = Engine()
    none = np.empty((0, 4), np.int32)
    engine.learn(
        Decoded(
            [str(i) for i in range(n)],
            triplets.astype(np.int32),
            none,
            np.empty(0, np.int64),
            [],
            {"triplet": len(triplets)},
            [],
        )
    )
    return engine.snapshot()


def warm(n: int, kind: str) -> dict:
    """A refit after 5 % more comparisons, from the state of the last one and from nothing."""
    triplets, _ = planted(n, 4, 3.0)
    triplets = triplets[np.random.default_rng(0).permutation(len(triplets))]
    some = triplets[: int(len(triplets) / 1.05)]

    def how(c):
        return {"k": 4} if kind == "k" else {"lam": 2 * np.sqrt(c * np.log(n) / n)}

    tol = 1e-4 if n < 1000 else 1e-3
    before = solve(adds3(some, n), tol=tol, **how(len(some)))
    W = adds3(triplets, n)
    cold, first = timed(lambda: solve(W, tol=tol, **how(len(triplets))))
    mine, again = timed(lambda: solve(W, tol=tol, start=before.state, **how(len(triplets))))
    return {
        "stage": STAGE,
        "case": f"warm SDP-{kind} n={n} +5 %",
        "ours": mine,
        "rival": cold,
        "unit": "s",
        "ratio": cold / mine,
        "target": 1.0,
        "rival_name": "cold start",
        "notes": f"{again.iterations} its (cold {first.iterations}), gaps {again.gap:.1e} (cold {first.gap:.1e})",
    }


def rows(quick: bool) -> list[dict]:
    """The table of this stage. Quick: seconds; else the sizes of the targets, some minutes."""
    solve(adds3(planted(40, 2, 2.0)[0], 40), k=3, tol=1e-2)  # compile
    solve(adds3(planted(20, 2, 2.0)[0], 20), k=3, tol=1e-2, solver="cvxpy")  # import
    out = [
        against_scs(200, "lam", 3.0, 8.0),
        against_scs(200, "k", 2.5, 8.0),
        against_scs(200, "k", 3.0, 8.0),
        against_scs(400, "lam", 3.0, 10.0),
    ]
    triplets, _ = planted(1000, 4, 4.0)
    published = snapshot(triplets, 1000)
    out.append(
        floor(
            "certified refit n=1000 (ln n)^4",
            lambda: sdp_clustering.refit(published, sdp_clustering.Params(k=4), 0),
            0.3,
            lambda made: f"{made.report['certified_by']}, {made.report['iterations']} its",
        )
    )
    W = adds3(triplets, 1000)
    out.append(
        floor(
            "SPUR n=1000 (ln n)^4, certifies",
            lambda: spur(W, len(triplets), tol=1e-3),
            1.0,
            lambda choice: f"k={choice.k}, {choice.iterations} its",
        )
    )
    out.append(warm(400, "lam"))
    n = 20_000 if quick else 50_000
    W, labels, _ = planted_sparse(n, 4, 2.0)
    out.append(
        floor(
            f"spectral start and refinement n={n} (ln n)^2",
            lambda: partition.refined(W, partition.spectral_partition(W, 4)),
            10.0,
            lambda found: f"ARI {agreement(labels, found):.3f}, {W.nnz / 1e6:.1f} M entries",
        )
    )
    return out if quick else out + full()


def full() -> list[dict]:
    """The large sizes."""
    out = [
        against_scs(400, "k", 3.0, 4.0),
        against_scs(400, "k", 4.0, 4.0),
        against_stopped_scs(1000, "lam", 3.0, 40.0, 200),
        against_stopped_scs(1000, "k", 3.0, 4.0, 200),
        warm(400, "k"),
        warm(1000, "lam"),
        warm(1000, "k"),
    ]
    triplets, labels = planted(1000, 4, 3.0)
    out.append(
        floor(
            "SPUR n=1000 (ln n)^3, solves",
            lambda: spur(adds3(triplets, 1000), len(triplets), tol=1e-3),
            60.0,
            lambda choice: f"k={choice.k}, {choice.iterations} its, gap {choice.solution.gap:.1e}",
        )
    )
    triplets, _ = planted(4000, 4, 3.0)
    W, lam = adds3(triplets, 4000), 2 * np.sqrt(len(triplets) * np.log(4000) / 4000)
    out.append(
        floor(
            "SDP-lam n=4000 (ln n)^3",
            lambda: solve(W, lam=lam, tol=1e-4),
            60.0,
            lambda s: f"gap {s.gap:.1e} by {s.certified_by}, {s.iterations} its, trace {s.trace:.2f}",
        )
    )
    return out


def agreement(labels, found) -> float:
    from sklearn.metrics import adjusted_rand_score

    return adjusted_rand_score(labels, found)
