"""k1 and k2 beside scipy's route from the same counts, bare BLAS of the same size, and the paper's times.

CPU time on one BLAS thread; every product is also compared with its rival's.
"""

from collections.abc import Iterator

import numpy as np
import scipy.sparse as sp
from threadpoolctl import threadpool_limits

from stream_engine.counts import kernels
from stream_engine.data.triplet_columns import Columns, pair_of_entry
from tests.benchmarks.rows import best, row
from tests.benchmarks.stage_counts import counted, landmark, uniform

STAGE = "kernels"


def columns_of(triplets: np.ndarray, n: int) -> Columns:
    return Columns(**counted(triplets, n).state(), n_objects=n)


def unit_gram(phi) -> np.ndarray:
    length = np.sqrt(phi.multiply(phi).sum(axis=1))
    phi = sp.diags_array(np.divide(1.0, length, out=np.zeros_like(length), where=length > 0)) @ phi
    return (phi @ phi.T).toarray()


def scipy_k1(columns: Columns) -> np.ndarray:
    """The careful way: the columns are a CSC matrix already, only its product is left to scipy."""
    v = (columns.n_lo - columns.n_hi) / (columns.n_lo + columns.n_hi)
    v /= np.sqrt(np.bincount(columns.anchor, v * v, columns.n_objects))[columns.anchor]
    phi = sp.csc_array((v, columns.anchor, columns.start), shape=(columns.n_objects, len(columns.lo)))
    return (phi @ phi.T).toarray()


def scipy_k2(columns: Columns) -> np.ndarray:
    v = (columns.n_lo - columns.n_hi) / (columns.n_lo + columns.n_hi)
    pair, n = pair_of_entry(columns), columns.n_objects
    lo, hi, anchor = (a.astype(np.int64) for a in (columns.lo[pair], columns.hi[pair], columns.anchor))
    entries = np.concatenate([v, -v]), (np.concatenate([lo, hi]), np.concatenate([anchor * n + hi, anchor * n + lo]))
    return unit_gram(sp.csr_array(entries, shape=(n, n * n)))


def general(quick: bool) -> Iterator[dict]:
    """Triplets at random."""
    for size in (100_000,) if quick else (1_000_000, 10_000_000):
        columns = columns_of(uniform(1000, size), 1000)
        for name, ours, scipys in (("k1", kernels.k1, scipy_k1), ("k2", kernels.k2, scipy_k2)):
            apart = np.abs(ours(columns) - scipys(columns)).max()
            assert apart < 1e-10, f"{name} and scipy's product differ by {apart}"
            mine, theirs = best(lambda: ours(columns), lambda: scipys(columns), runs=1 if size > 1e6 else 5)  # noqa: B023
            case = f"{name}, n = 1,000, {size:,} triplets"
            yield row(STAGE, case, mine * 1e3, "ms", theirs * 1e3, "scipy sparse product", ">= 10")


def landmarks(quick: bool) -> Iterator[dict]:
    """The landmark design of the paper."""
    n, of, size = (1_500, 10, 60_000) if quick else (10_000, 30, 1_500_000)
    for which, (name, ours, paper) in enumerate((("k1", kernels.k1, 100), ("k2", kernels.k2, 180)), 1):
        columns = columns_of(landmark(n, of, size, which), n)
        dense = np.random.default_rng(0).standard_normal((n, of * (of - 1) // (3 - which)))
        mine, blas = best(lambda: ours(columns), lambda: dense @ dense.T, memory=16 * n * n)  # noqa: B023
        notes = "" if quick else f"the paper: {paper} s"
        case = f"{name}, landmark {n:,} x {of}, {size:,} triplets"
        yield row(STAGE, case, mine, "s", blas, f"bare BLAS, {n:,} x {dense.shape[1]}", ">= 0.71", notes)


def rows(quick: bool) -> list[dict]:
    """All figures of this stage; about two minutes and 2 GB, or a few seconds if quick."""
    with threadpool_limits(1):
        return [*general(quick), *landmarks(quick)]
