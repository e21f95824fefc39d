"""k1 and k2 against scipy's route from the same counts, bare BLAS of the same size, and the paper's times.

`rows(quick)` as in stage_counts. CPU time on one BLAS thread; every product is also compared with its rival's.
"""

import tracemalloc

import numpy as np
import scipy.sparse as sp
from threadpoolctl import threadpool_limits

from stream_engine.data import available_memory
from stream_engine.data.triplet_columns import Columns, pair_of_entry
from stream_engine.statistics import kernels
from tests.benchmarks.stage_counts import best, counted, landmark, row, seconds, uniform


def columns_of(triplets: np.ndarray, n: int) -> Columns:
    return Columns(**counted(triplets, n).state(), n_objects=n)


def votes(columns: Columns) -> np.ndarray:
    return (columns.n_lo - columns.n_hi) / (columns.n_lo + columns.n_hi)


def unit_gram(phi: sp.csr_array) -> np.ndarray:
    length = np.sqrt(phi.multiply(phi).sum(axis=1))
    phi = sp.diags_array(np.divide(1.0, length, out=np.zeros_like(length), where=length > 0)) @ phi
    return (phi @ phi.T).toarray()


def scipy_k1(columns: Columns) -> np.ndarray:
    """The careful way: the columns are a CSC matrix already, only its product is left to scipy."""
    v = votes(columns)
    length = np.sqrt(np.bincount(columns.anchor, v * v, columns.n_objects))
    v /= length[columns.anchor]
    phi = sp.csc_array((v, columns.anchor, columns.start), shape=(columns.n_objects, len(columns.lo)))
    return (phi @ phi.T).toarray()


def scipy_k2(columns: Columns) -> np.ndarray:
    v, pair, n = votes(columns), pair_of_entry(columns), columns.n_objects
    lo, hi, anchor = (a.astype(np.int64) for a in (columns.lo[pair], columns.hi[pair], columns.anchor))
    entries = np.concatenate([v, -v]), (np.concatenate([lo, hi]), np.concatenate([anchor * n + hi, anchor * n + lo]))
    return unit_gram(sp.csr_array(entries, shape=(n, n * n)))


def general(quick: bool):
    for size in (100_000,) if quick else (1_000_000, 10_000_000):
        columns = columns_of(uniform(1000, size), 1000)
        for name, ours, scipys in (("k1", kernels.k1, scipy_k1), ("k2", kernels.k2, scipy_k2)):
            apart = np.abs(ours(columns) - scipys(columns)).max()
            assert apart < 1e-10, f"{name} and scipy's product differ by {apart}"
            mine, theirs = best(lambda: ours(columns), lambda: scipys(columns), runs=1 if size > 1e6 else 5)  # noqa: B023
            yield row(
                "kernels",
                f"{name}, n = 1,000, {size:,} triplets",
                mine * 1e3,
                theirs * 1e3,
                "scipy sparse product",
                theirs / mine,
                "ms",
                ">= 10",
                f"largest difference {apart:.0e}",
            )


def landmarks(quick: bool):
    n, of, size = (1_500, 10, 60_000) if quick else (10_000, 30, 1_500_000)
    paper = {"k1": 100, "k2": 180}
    for which, (name, ours) in enumerate((("k1", kernels.k1), ("k2", kernels.k2)), 1):
        columns = columns_of(landmark(n, of, size, which), n)
        width = of * (of - 1) // (3 - which)
        dense = np.random.default_rng(0).standard_normal((n, width))
        mine, blas = best(lambda: ours(columns), lambda: dense @ dense.T, memory=16 * n * n)  # noqa: B023
        notes = "" if quick else f"the paper: {paper[name]} s"
        yield row(
            "kernels",
            f"{name}, landmark {n:,} x {of}, {size:,} triplets",
            mine,
            blas,
            f"bare BLAS, {n:,} x {width}",
            blas / mine,
            "s",
            f">= {1 / 1.4:.2f} (at most 1.4 times BLAS)",
            notes,
        )
    yield factor(columns_of(landmark(n, of, size), n))


def factor(columns: Columns) -> dict:
    """Ten leading eigenvectors without the matrix, and with it."""

    def with_matrix():
        kernel = kernels.k1(columns)
        return sp.linalg.eigsh(kernel, 10, v0=np.ones(len(kernel)))

    def without():
        return kernels.eigenpairs(kernels.features1(columns), 10)

    assert np.allclose(without()[0], with_matrix()[0][::-1]), "the factor's eigenvalues are not the matrix's"
    mine, theirs = min(seconds(without) for _ in range(3)), seconds(with_matrix)
    return row(
        "kernels",
        f"10 eigenvectors of k1, landmark {columns.n_objects:,}",
        mine * 1e3,
        theirs * 1e3,
        "k1, then Lanczos on the matrix",
        theirs / mine,
        "ms",
        "-",
    )


def largest(quick: bool):
    """20,000 landmark objects: the size at which one BLAS call crashes, and where memory begins to matter."""
    n = 3_000 if quick else 20_000
    needed = int(1.6 * 8 * n * n)
    if available_memory.available() < needed:
        yield row(
            "kernels",
            f"k1, landmark {n:,} x 30",
            None,
            None,
            "memory",
            None,
            "s",
            "<= 1.5 times the result",
            f"not run: needs {needed / 1e9:.1f} GB",
        )
        return
    columns = columns_of(landmark(n, 30, 150 * n), n)
    tracemalloc.start()
    took = seconds(lambda: kernels.k1(columns))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    yield row(
        "kernels",
        f"k1, landmark {n:,} x 30, {150 * n:,} triplets",
        took,
        900.0 if not quick else None,
        "the paper's time",
        None if quick else 900.0 / took,
        "s",
        "does not crash",
    )
    yield row(
        "kernels",
        f"k1, landmark {n:,} x 30: peak memory",
        peak / 1e6,
        8e-6 * n * n,
        "the result",
        8 * n * n / peak,
        "MB",
        ">= 0.67 (at most 1.5 times the result)",
    )


def rows(quick: bool) -> list[dict]:
    """All figures of this stage; about three minutes and 4 GB, or a few seconds if quick."""
    with threadpool_limits(1):
        found = [*general(quick), *landmarks(quick), *largest(quick)]
    return [{**one, "target": "-" if quick else one["target"]} for one in found]
