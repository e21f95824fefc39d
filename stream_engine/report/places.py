"""Where objects lie: by the embedding, and by other similarities to stand beside it.

Kernel PCA of AddS-3 and of k1, as the papers draw it. Of a similarity S, with J = 1 - 11'/n, it is the rows of
V sqrt(L) for the largest eigenvalues L of J S J; those that are not above 0 are excluded. Exact, O(n^3), so only up to
`MOST` objects.
"""

from collections.abc import Iterator

import numpy as np
from scipy.linalg import eigh

from stream_engine.counts import kernels
from stream_engine.data.symmetric_matrices import dense_matrix
from stream_engine.exports.object_places import ObjectCoordinates, of_embedding, of_picture, of_supported
from stream_engine.state.published import Published
from stream_engine.state.snapshot import triplet_columns

MOST = 1000  # objects
AXES = 3


def maps(published: Published, unasked: np.ndarray) -> Iterator[ObjectCoordinates]:
    """All maps, the picture of the embedding and its axes first; an object that is `unasked` (n,) is on no other."""
    n = len(published.snapshot.objects)
    for made in (of_picture, of_embedding, of_supported):
        if (found := made(published, n)) is not None:
            yield found
    for name, points in _kernels(published, n):
        if points.shape[1] >= 2:
            points[unasked] = np.nan
            yield ObjectCoordinates(name, points, None)


def _kernels(published: Published, n: int) -> Iterator[tuple[str, np.ndarray]]:
    adds = published.snapshot.section("adds3")
    if not 3 <= n <= MOST or not adds or not len(adds["w"]):
        return
    yield "AddS-3 (kernel PCA)", kernel_pca(dense_matrix(adds["i"], adds["j"], adds["w"], n))
    columns = triplet_columns(published.snapshot)
    if len(columns.anchor):
        yield "k1 (kernel PCA)", kernel_pca(kernels.k1(columns))


def kernel_pca(similarity: np.ndarray, axes: int = AXES) -> np.ndarray:
    """(n, <= axes) coordinates; columns whose eigenvalue is not above 0 are excluded.

    >>> line = np.array([[0.0], [1.0], [3.0]])
    >>> np.abs(kernel_pca(line @ line.T, 1)).round(6).ravel().tolist()
    [1.333333, 0.333333, 1.666667]
    """
    S = np.asarray(similarity, float)
    centred = S - S.mean(axis=0) - S.mean(axis=1)[:, None] + S.mean()
    most = min(axes, len(S))
    values, vectors = eigh(centred, subset_by_index=(len(S) - most, len(S) - 1))
    values, vectors = values[::-1], vectors[:, ::-1]
    kept = values > 1e-9 * max(float(np.abs(values).max(initial=0.0)), 1e-300)
    return vectors[:, kept] * np.sqrt(values[kept])
