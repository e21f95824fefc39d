"""Leading axes of k1 of a landmark design of many objects: in feature space, read in blocks, beside the dense way.

    python -m tests.benchmarks.landmark_factors [--objects 1000000] [--keys 100000000] [--landmarks 50] [--k 50]
                                                [--dense OBJECTS]

Each object is asked about `keys / objects` random pairs of the landmarks. The dense way is Phi as an array and Phi^T
Phi by BLAS, run on the first --dense objects only where all would not fit (0: not at all). Seconds of the CPU, and
the most resident.
"""

import argparse
import resource
import time

import numpy as np
from scipy import sparse as sp

from stream_engine.statistics import feature_space, kernels


def phi(objects: int, keys: int, landmarks: int, seed: int = 0) -> sp.csc_array:
    """Sparse unit rows of random signs, a landmark design's feature map, made column by column."""
    rng, width = np.random.default_rng(seed), landmarks * (landmarks - 1) // 2
    share = keys / (objects * width)
    columns = [np.flatnonzero(rng.random(objects, np.float32) < share).astype(np.int32) for _ in range(width)]
    start = np.cumsum([0, *map(len, columns)])
    value = np.where(
        np.concatenate([rng.random(len(c), np.float32) < 0.5 + 0.4 * np.sin(p) for p, c in enumerate(columns)]),
        1.0,
        -1.0,
    )
    made = sp.csc_array((value, np.concatenate(columns), start), shape=(objects, width))
    length = np.sqrt(np.bincount(made.indices, minlength=objects))
    made.data /= length[made.indices]
    return made


def dense(made: sp.csc_array, k: int) -> np.ndarray:
    """Eigenvalues by an array of Phi."""
    array = made.toarray()
    values, right = np.linalg.eigh(array.T @ array)
    array @ right[:, ::-1][:, :k]
    return values[::-1][:k]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--objects", type=int, default=10**6)
    parser.add_argument("--keys", type=int, default=10**8)
    parser.add_argument("--landmarks", type=int, default=50)
    parser.add_argument("--k", type=int, default=50)
    parser.add_argument("--dense", type=int, default=100_000, metavar="OBJECTS")
    given = parser.parse_args()
    feature_space.projected(phi(300, 600, 5), np.eye(10))  # compiled
    feature_space.column_gram(phi(300, 600, 5))
    made = phi(given.objects, given.keys, given.landmarks)

    def said(what: str, begin: float, note: str = "") -> None:
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
        print(f"{what:44}{time.process_time() - begin:>8.1f} s, at most{peak:>6.2f} GB   {note}", flush=True)

    said("made", time.process_time(), f"{made.shape[0]:,} x {made.shape[1]:,}, {made.nnz:,} entries")
    for name, run in (
        ("Phi^T Phi", lambda: feature_space.column_gram(made)),
        ("factors", lambda: kernels.factors(made, given.k)),
        ("eigenpairs", lambda: kernels.eigenpairs(made, given.k)),
    ):
        begin = time.process_time()
        run()
        said(f"{name}, all {given.objects:,}", begin)
    if given.dense:
        part = made[: given.dense].tocsc()
        part.sort_indices()
        begin = time.process_time()
        mine = kernels.eigenpairs(part, given.k)[0]
        said(f"eigenpairs, {given.dense:,}", begin)
        begin = time.process_time()
        theirs = dense(part, given.k)
        said(f"the dense way, {given.dense:,}", begin, f"eigenvalues agree to {np.abs(mine / theirs - 1).max():.0e}")


if __name__ == "__main__":
    main()
