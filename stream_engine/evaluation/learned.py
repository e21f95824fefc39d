"""Predictors made of artifacts: the blocks of a clustering, the distances of learned kernels."""

from collections.abc import Callable
from itertools import repeat

import numpy as np

from stream_engine.data.mapped_arrays import blocks
from stream_engine.data.symmetric_matrices import DENSE_LIMIT
from stream_engine.evaluation import Margins, Predictor
from stream_engine.evaluation.answer_probabilities import STE, log_odds, probabilities, probability
from stream_engine.evaluation.coordinates import squared_distances
from stream_engine.evaluation.similarities import by_similarity
from stream_engine.evaluation.subset import renumbering
from stream_engine.state.artifact import Artifact, figure
from stream_engine.state.published import Published

SHARED = ((0, 2), (0, 3), (1, 2), (1, 3))  # columns of rows i, j, k, l in which two pairs may share an object
Probability = Callable[[np.ndarray], np.ndarray]
LINEAR_LIMIT = 1 << 31  # objects of a model that holds nothing for pairs of them


def _array(published: Published, kind: str, name: str, most: int = DENSE_LIMIT) -> np.ndarray | None:
    """An array of the newest artifact, unless it is newer than the snapshot that the state goes on from: after a
    damaged snapshot comparisons are read again that such an artifact has already seen."""
    artifact = published.artifacts.get(kind)
    if artifact is None or artifact.sequence > published.snapshot.sequence or name not in artifact.arrays:
        return None
    array = np.asarray(artifact.arrays[name])
    return array if 3 <= len(array) <= most else None


def clusters(published: Published) -> Predictor | None:
    """The same block is nearer than another one; undecided where both or neither are of one block."""
    labels = _array(published, "sdp_clustering", "labels")
    if labels is None or not (labels >= 0).any():
        return None
    n = len(labels)

    def margins(rows: np.ndarray) -> np.ndarray:
        i, j, k, l = np.where(rows < n, labels[np.minimum(rows, n - 1)], -1).T
        margin = (i == j).astype(float) - (k == l)
        margin[(i < 0) | (j < 0) | (k < 0) | (l < 0)] = np.nan
        return margin

    return Predictor(margins)


def kernel_learning(published: Published) -> Predictor | None:
    """Distances of the kernel that RCKL learned: of all objects that it learned or was extended to, NaN about
    others."""
    return _distances(published, "kernel_learning")


def partial_order_embedding(published: Published) -> Predictor | None:
    """Distances of the partial order embedding."""
    return _distances(published, "partial_order_embedding")


def embedding(published: Published) -> Predictor | None:
    """Log odds of the embedding's probabilities, for somebody unknown. NaN about objects that nothing was asked
    about."""
    if _array(published, "embedding", "X", LINEAR_LIMIT) is None:
        return None
    given = of_embedding(published.artifacts["embedding"])
    return Predictor(lambda rows: log_odds(given(rows)))


def of_embedding(artifact: Artifact) -> Probability:
    """By an artifact of the refit `embedding`."""
    points, asked = np.asarray(artifact.arrays["X"]), np.asarray(artifact.arrays["asked"], bool)
    lapse, alpha = float(artifact.arrays["lapse"]), float(artifact.report["alpha"])
    if "draws" in artifact.arrays:
        return of_draws(artifact.arrays["draws"], asked, artifact.arrays["draw_lapse"])
    return of_points(points, asked, lapse, alpha, figure(artifact.report, "scale") or 1.0)


def of_dimensions(weights: np.ndarray, asked: np.ndarray) -> Probability:
    """By weights of objects on dimensions (n, d), see `embedding.sparse_fit`; NaN about objects that were never `asked`
    (n,) about, and about pairs that share no object. O(m d)."""

    def given(rows: np.ndarray) -> np.ndarray:
        p = np.full(len(rows), np.nan)
        inside = np.flatnonzero(((rows >= 0) & (rows < len(weights))).all(axis=1))
        known = inside[asked[rows[inside]].all(axis=1)]
        known = known[np.any([rows[known, a] == rows[known, b] for a, b in SHARED], axis=0)]
        for part in blocks(len(known)):
            i, j, k, l = (np.asarray(weights[column], float) for column in rows[known[part]].T)
            p[known[part]] = probability((i * j).sum(axis=1) - (k * l).sum(axis=1), 0.0)
        return p

    return given


def of_points(points: np.ndarray, asked: np.ndarray, lapse: float, alpha: float, scale: float = 1.0) -> Probability:
    """By the embedding's formula over points (n, d); NaN about objects that were never `asked` (n,) about. O(m d)."""

    def given(rows: np.ndarray) -> np.ndarray:
        p = np.full(len(rows), np.nan)
        inside = np.flatnonzero(((rows >= 0) & (rows < len(points))).all(axis=1))
        known = inside[asked[rows[inside]].all(axis=1)]
        p[known] = probabilities(points, rows[known], lapse, alpha, scale=scale)
        return p

    return given


def of_draws(draws: np.ndarray, asked: np.ndarray, lapse: np.ndarray | float) -> Probability:
    """By the mean over draws (s, n, d) of an embedding's points, with lapse rates (s,) or one; NaN about objects that
    were never `asked` (n,) about. O(s m d)."""
    lapses = np.broadcast_to(lapse, len(draws))

    def given(rows: np.ndarray) -> np.ndarray:
        return np.mean([of_points(*each)(rows) for each in zip(draws, repeat(asked), lapses, repeat(STE))], axis=0)

    return given


def _distances(published: Published, kind: str) -> Predictor | None:
    gram = _array(published, kind, "K")
    if gram is None:
        return None
    arrays = published.artifacts[kind].arrays
    over_subset = by_similarity(-squared_distances(gram))
    if "ids" not in arrays:
        return over_subset
    if "factor" in arrays:
        return Predictor(_by_factor(np.asarray(arrays["factor"]), np.asarray(arrays["known"])), over_subset.scale)
    return Predictor(_of_subset(over_subset, renumbering(arrays["ids"], len(arrays["known"]))), over_subset.scale)


def _of_subset(over_subset: Predictor, new_id: np.ndarray) -> Margins:
    """Margins over all objects by a predictor over a subset, in which they have the id `new_id` (n,), or -1."""

    def margins(rows: np.ndarray) -> np.ndarray:
        inside = np.where(rows < len(new_id), new_id[np.minimum(rows, len(new_id) - 1)], -1)
        of_subset = (inside >= 0).all(axis=1)
        margin = np.full(len(rows), np.nan)
        margin[of_subset] = over_subset.margins(inside[of_subset])
        return margin

    return margins


def _by_factor(factor: np.ndarray, known: np.ndarray) -> Margins:
    """Margins |F_k - F_l|^2 - |F_i - F_j|^2 over a factor (n, r) of K; O(m r), in blocks."""

    def margins(rows: np.ndarray) -> np.ndarray:
        margin = np.full(len(rows), np.nan)
        for part in blocks(len(rows)):
            block = rows[part]
            asked = np.flatnonzero((block < len(known)).all(axis=1))
            asked = asked[(known[block[asked]] > 0).all(axis=1)]
            i, j, k, l = (factor[column].astype(float) for column in block[asked].T)
            margin[part][asked] = ((k - l) ** 2).sum(axis=1) - ((i - j) ** 2).sum(axis=1)
        return margin

    return margins
