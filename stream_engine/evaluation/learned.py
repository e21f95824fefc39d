"""Predictors made of artifacts: clusterings, learned kernels, embeddings, feature models."""

from itertools import repeat

import numpy as np

from stream_engine.data.mapped_arrays import blocks
from stream_engine.data.packed_names import unpack_names
from stream_engine.data.symmetric_matrices import DENSE_LIMIT
from stream_engine.evaluation import FEATURE_MODEL, Margins, Predictor, Probability
from stream_engine.evaluation.answer_probabilities import STE, log_odds, probabilities, probability
from stream_engine.evaluation.coordinates import squared_distances
from stream_engine.evaluation.similarities import by_similarity
from stream_engine.evaluation.subset import renumbering
from stream_engine.state.artifact import Artifact, figure
from stream_engine.state.published import Published


def _array(published: Published, kind: str, name: str, max_objects: int = DENSE_LIMIT) -> np.ndarray | None:
    """An array of the newest artifact; None if the artifact is newer than the snapshot. After a damaged snapshot, the
    state continues from an older one, and comparisons are read again that such an artifact was fitted to."""
    artifact = published.artifacts.get(kind)
    if artifact is None or artifact.sequence > published.snapshot.sequence or name not in artifact.arrays:
        return None
    array = np.asarray(artifact.arrays[name])
    return array if 3 <= len(array) <= max_objects else None


def clusters(published: Published) -> Predictor | None:
    """A pair within a cluster is nearer than one across clusters; undecided between two pairs of the same kind."""
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
    """Distances of the kernel of RCKL, between all objects that it was learned on or extended to; NaN about others."""
    return _distances(published, "kernel_learning")


def partial_order_embedding(published: Published) -> Predictor | None:
    """Distances of the partial order embedding."""
    return _distances(published, "partial_order_embedding")


def embedding(published: Published) -> Predictor | None:
    """Log odds of the embedding's probabilities for an unknown participant. NaN about objects without answers."""
    if _array(published, "embedding", "X", max_objects=1 << 31) is None:  # nothing is computed for all pairs of objects
        return None
    probability = of_embedding(published.artifacts["embedding"])
    return Predictor(lambda rows: log_odds(probability(rows)))


def of_embedding(artifact: Artifact) -> Probability:
    """By an artifact of the refit `embedding`, for an unknown participant."""
    points, has_answers = np.asarray(artifact.arrays["X"]), np.asarray(artifact.arrays["asked"], bool)
    lapse, alpha = float(artifact.arrays["lapse"]), float(artifact.report["alpha"])
    if "draws" in artifact.arrays:
        return of_draws(artifact.arrays["draws"], has_answers, artifact.arrays["draw_lapse"])
    of_map = of_points(points, has_answers, lapse, alpha, figure(artifact.report, "scale") or 1.0)
    return _with_group_map(artifact, of_map, has_answers) if "group_X" in artifact.arrays else of_map


def _with_group_map(artifact: Artifact, of_weights: Probability, has_answers: np.ndarray) -> Probability:
    """By the group's weights and one map for everybody, with the latter's share."""
    group_map = artifact.report["individual_differences"]["group_map"]
    points, share = np.asarray(artifact.arrays["group_X"]), group_map["share"]
    of_map = of_points(points, has_answers, group_map["lapse"], group_map["alpha"], group_map["scale"])
    return lambda rows: (1 - share) * of_weights(rows) + share * of_map(rows)


SHARED_COLUMNS = ((0, 2), (0, 3), (1, 2), (1, 3))  # columns of rows i, j, k, l in which two pairs can share an object


def of_dimensions(weights: np.ndarray, has_answers: np.ndarray) -> Probability:
    """By weights of objects on dimensions (n, d), see `embedding.sparse_fit`; NaN about objects without answers, and
    about pairs that share no object. O(m d)."""

    def probability_of(rows: np.ndarray) -> np.ndarray:
        p = np.full(len(rows), np.nan)
        inside = np.flatnonzero(((rows >= 0) & (rows < len(weights))).all(axis=1))
        answerable = inside[has_answers[rows[inside]].all(axis=1)]
        answerable = answerable[np.any([rows[answerable, a] == rows[answerable, b] for a, b in SHARED_COLUMNS], axis=0)]
        for part in blocks(len(answerable)):
            i, j, k, l = (np.asarray(weights[column], float) for column in rows[answerable[part]].T)
            p[answerable[part]] = probability((i * j).sum(axis=1) - (k * l).sum(axis=1), 0.0)
        return p

    return probability_of


def of_features(published: Published) -> tuple[Probability, tuple[str, ...]] | None:
    """`(probability by an artifact of the refit `alignment`, names of objects without comparisons)`: the ids of these
    objects follow those of the snapshot. None without an artifact."""
    artifact = published.artifacts.get(FEATURE_MODEL)
    if artifact is None:
        return None
    positions, has_features = np.asarray(artifact.arrays["points"]), np.asarray(artifact.arrays["known"], bool)
    new_names = unpack_names(artifact.arrays["more_utf8"], artifact.arrays["more_offsets"])
    id_of = {name: i for i, name in enumerate(published.snapshot.objects)}
    new_objects = [name for name in new_names if name not in id_of]
    for i, name in enumerate(new_objects, len(published.snapshot.objects)):
        id_of[name] = i
    points = np.zeros((len(id_of), positions.shape[1]), positions.dtype)
    is_known = np.zeros(len(id_of), bool)
    points[: len(positions)], is_known[: len(positions)] = positions, has_features
    ids = [id_of[name] for name in new_names]
    points[ids], is_known[ids] = artifact.arrays["more_points"], True
    return of_points(points, is_known, 0.0, STE), tuple(new_objects)


def of_points(
    points: np.ndarray, has_answers: np.ndarray, lapse: float, alpha: float, scale: float = 1.0
) -> Probability:
    """By the embedding's formula over points (n, d); NaN about objects without answers. O(m d)."""

    def probability_of(rows: np.ndarray) -> np.ndarray:
        p = np.full(len(rows), np.nan)
        inside = np.flatnonzero(((rows >= 0) & (rows < len(points))).all(axis=1))
        answerable = inside[has_answers[rows[inside]].all(axis=1)]
        p[answerable] = probabilities(points, rows[answerable], lapse, alpha, scale=scale)
        return p

    return probability_of


def of_draws(draws: np.ndarray, has_answers: np.ndarray, lapse: np.ndarray | float) -> Probability:
    """By the mean over draws (s, n, d) of an embedding's points, with lapse rates (s,) or one; NaN about objects
    without answers. O(s m d)."""
    lapses = np.broadcast_to(lapse, len(draws))

    def mean_probability(rows: np.ndarray) -> np.ndarray:
        return np.mean(
            [of_points(*draw)(rows) for draw in zip(draws, repeat(has_answers), lapses, repeat(STE))], axis=0
        )

    return mean_probability


def _distances(published: Published, kind: str) -> Predictor | None:
    gram = _array(published, kind, "K")
    if gram is None:
        return None
    arrays = published.artifacts[kind].arrays
    over_subset = by_similarity(-squared_distances(gram))
    if "ids" not in arrays:
        return over_subset
    if "factor" in arrays:
        return Predictor(by_factor(np.asarray(arrays["factor"]), np.asarray(arrays["known"])), over_subset.scale)
    return Predictor(_of_subset(over_subset, renumbering(arrays["ids"], len(arrays["known"]))), over_subset.scale)


def _of_subset(over_subset: Predictor, new_id: np.ndarray) -> Margins:
    """Margins over all objects by a predictor over a subset, in which object i has the id `new_id` (n,), or -1."""

    def margins(rows: np.ndarray) -> np.ndarray:
        inside = np.where(rows < len(new_id), new_id[np.minimum(rows, len(new_id) - 1)], -1)
        of_subset = (inside >= 0).all(axis=1)
        margin = np.full(len(rows), np.nan)
        margin[of_subset] = over_subset.margins(inside[of_subset])
        return margin

    return margins


def by_factor(factor: np.ndarray, is_known: np.ndarray) -> Margins:
    """Margins |F_k - F_l|^2 - |F_i - F_j|^2 over a factor (n, r) of K; O(m r), in blocks."""

    def margins(rows: np.ndarray) -> np.ndarray:
        margin = np.full(len(rows), np.nan)
        for part in blocks(len(rows)):
            block = rows[part]
            answerable = np.flatnonzero((block < len(is_known)).all(axis=1))
            answerable = answerable[(is_known[block[answerable]] > 0).all(axis=1)]
            i, j, k, l = (factor[column].astype(float) for column in block[answerable].T)
            margin[part][answerable] = ((k - l) ** 2).sum(axis=1) - ((i - j) ** 2).sum(axis=1)
        return margin

    return margins
