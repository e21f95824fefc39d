"""Made data: dense little worlds in which every branch is reached, and the planted models of the papers."""

import numpy as np

from stream_engine.data.comparisons import Batch, Provenance, canonical_quadruplet


def dense_batch(rng: np.random.Generator, n_objects: int = 5, size: int = 60, quadruplets: float = 0.3) -> Batch:
    """Random comparisons over so few objects that repeats, contradictions and cycles all occur."""
    triplets, quads, at = [], [], []
    for _ in range(size):
        if n_objects >= 4 and rng.random() < quadruplets:
            i, j, k, l = (int(x) for x in rng.choice(n_objects, 4, replace=False))
            quads.append(canonical_quadruplet(i, j, k, l))
            at.append(len(triplets))
        else:
            triplets.append(rng.choice(n_objects, 3, replace=False))
    return Batch(
        np.array(triplets, np.int32).reshape(-1, 3),
        np.array(quads, np.int32).reshape(-1, 4),
        np.array(at, np.int64),
        n_objects,
    )


def planted_triplets(rng, points: np.ndarray, size: int, flip: float = 0.0) -> np.ndarray:
    """(size, 3) int32 triplets with replacement over points (n, d), Euclidean, each answer flipped with probability."""
    n = len(points)
    anchor = rng.integers(n, size=size)
    near = (anchor + rng.integers(1, n, size=size)) % n
    far = (anchor + rng.integers(1, n, size=size)) % n
    clash = near == far
    while clash.any():
        far[clash] = (anchor[clash] + rng.integers(1, n, size=clash.sum())) % n
        clash = near == far
    wrong = np.linalg.norm(points[anchor] - points[near], axis=1) > np.linalg.norm(points[anchor] - points[far], axis=1)
    wrong ^= rng.random(size) < flip
    near[wrong], far[wrong] = far[wrong], near[wrong]
    return np.stack([anchor, near, far], axis=1).astype(np.int32)


def planted_similarities(n: int, k: int, delta: float, sigma: float, rng) -> tuple[np.ndarray, np.ndarray]:
    """Perrot et al. 2020, sec. 4: a symmetric (n, n) matrix of Gaussian similarities with mu_in - mu_out =
    sqrt(2) sigma Phi^-1((1 + delta) / 2), and the (n,) labels of k equal clusters."""
    from scipy.stats import norm

    labels = np.arange(n) * k // n
    gap = np.sqrt(2) * sigma * norm.ppf((1 + delta) / 2)
    w = np.triu(rng.normal(0, sigma, (n, n)) + gap * (labels[:, None] == labels), 1)
    return w + w.T, labels


def similarity_triplets(rng, w: np.ndarray, size: int, flip: float = 0.0) -> np.ndarray:
    """(size, 3) int32 triplets over a similarity matrix: near is the more similar one, flipped with probability."""
    n = len(w)
    anchor = rng.integers(n, size=size)
    near = (anchor + rng.integers(1, n, size=size)) % n
    far = (anchor + rng.integers(1, n, size=size)) % n
    keep = near != far
    anchor, near, far = anchor[keep], near[keep], far[keep]
    wrong = (w[anchor, near] < w[anchor, far]) ^ (rng.random(len(anchor)) < flip)
    near[wrong], far[wrong] = far[wrong], near[wrong].copy()
    return np.stack([anchor, near, far], axis=1).astype(np.int32)


def as_batch(triplets: np.ndarray, n_objects: int) -> Batch:
    """Triplets alone as a batch."""
    return Batch(np.asarray(triplets, np.int32), np.empty((0, 4), np.int32), np.empty(0, np.int64), n_objects)


def with_provenance(rng, batch: Batch, workers: tuple[str, ...] = ("u", "v", "w", "x"), untimed: float = 0.1) -> Batch:
    """The batch with an event a comparison: who said it (or nobody), when (out of order, or nothing) and its weight."""
    m, q = len(batch.triplets), len(batch.quadruplets)
    time = rng.uniform(0, 40, m + q).round(1)
    time[rng.random(m + q) < untimed] = np.nan
    used = [str(name) for name in rng.permutation(workers)]
    provenance = Provenance(
        np.arange(m, dtype=np.int32),
        np.arange(m, m + q, dtype=np.int32),
        np.repeat(np.int8([0, 1]), [m, q]),
        rng.integers(-1, len(used), m + q).astype(np.int32),
        used,
        rng.choice([0.0, 0.25, 1.0, 3.7], m + q),
        time,
        rng.integers(-1, len(used), 3).astype(np.int32),
        rng.random(3) < 0.5,
    )
    return batch._replace(provenance=provenance)


def concatenated(stream: list[Batch]) -> Batch:
    """Batches that follow each other as one; those with provenance all have an event a comparison."""
    before = np.cumsum([0] + [len(batch.triplets) for batch in stream])
    whole = Batch(
        np.concatenate([batch.triplets for batch in stream]),
        np.concatenate([batch.quadruplets for batch in stream]),
        np.concatenate([batch.quadruplet_at + at for batch, at in zip(stream, before)]),
        max(batch.n_objects for batch in stream),
    )
    provenance, events, workers = [batch.provenance for batch in stream], 0, []
    parts: list[list[np.ndarray]] = []
    for one in provenance:
        who = np.array(
            [workers.index(w) if w in workers else workers.append(w) or len(workers) - 1 for w in one.workers] + [-1]
        )
        parts.append(
            [
                one.of_triplet + events,
                one.of_quadruplet + events,
                one.kind,
                who[one.worker],
                one.weight,
                one.time,
                who[one.catch_worker],
                one.catch_passed,
            ]
        )
        events += len(one.kind)
    of_triplet, of_quadruplet, kind, worker, weight, time, catch_worker, catch_passed = (
        np.concatenate(column) for column in zip(*parts)
    )
    return whole._replace(
        provenance=Provenance(
            of_triplet.astype(np.int32),
            of_quadruplet.astype(np.int32),
            kind,
            worker.astype(np.int32),
            workers,
            weight,
            time,
            catch_worker.astype(np.int32),
            catch_passed,
        )
    )


def taken(batch: Batch, triplets: np.ndarray, quadruplets: np.ndarray) -> Batch:
    """Some comparisons of a batch with an event a comparison, in this order, triplets first."""
    provenance = batch.provenance
    events = np.concatenate([provenance.of_triplet[triplets], provenance.of_quadruplet[quadruplets]]).astype(np.int64)
    m, q = len(triplets), len(quadruplets)
    return Batch(
        batch.triplets[triplets],
        batch.quadruplets[quadruplets],
        np.full(q, m, np.int64),
        batch.n_objects,
        provenance._replace(
            of_triplet=np.arange(m, dtype=np.int32),
            of_quadruplet=np.arange(m, m + q, dtype=np.int32),
            kind=provenance.kind[events],
            worker=provenance.worker[events],
            weight=provenance.weight[events],
            time=provenance.time[events],
            catch_worker=provenance.catch_worker[:0],
            catch_passed=provenance.catch_passed[:0],
        ),
    )
