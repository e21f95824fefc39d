"""k1 or k2 of many objects as its factor: K = Phi Phi^T is never made whole, only multiplied by, or made for a subset
of them. Of a landmark design for k2 the factor is the adapted, narrow one (`counts.landmark_designs`).

Kernel k-means in feature space is what Kleindessner & von Luxburg 2017 (sec. 4.2) cluster with, there to 10,000
objects: k-means on the rows of F, K ~ F F^T on its AXES leading centred axes; means do not matter to k-means.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy import sparse as sp

from stream_engine.clustering import partition
from stream_engine.clustering.similarity_matrix import checked
from stream_engine.counts import kernels, landmark_designs
from stream_engine.data.triplet_columns import Columns

AXES = 32  # at least, for k-means


class Factored(NamedTuple):
    """A kernel with a zero diagonal in place of an (n, n) array; it has a shape, a restriction to some objects, and
    products with few columns."""

    phi: sp.csc_array  # (n, features), rows of length 1 or 0

    @property
    def shape(self) -> tuple[int, int]:
        """(n, n)."""
        return (self.phi.shape[0],) * 2

    def answered(self) -> np.ndarray:
        """(n,) how many decided questions each object has answered; for k2, beside how many others it was seen from
        anchors. O(entries)."""
        return np.bincount(self.phi.indices[self.phi.data != 0], minlength=self.shape[0])

    def restricted(self, ids: np.ndarray) -> "np.ndarray | Factored":
        """Among these objects, in this order: as an array up to KERNEL_LIMIT of them, else as a factor. O(entries) and
        the product: in BLAS with few features, as in a landmark design."""
        phi = self.phi[ids]
        if len(ids) > kernels.KERNEL_LIMIT:
            return Factored(phi)
        phi = phi.toarray() if phi.shape[1] <= kernels.FEW_COLUMNS else phi
        product = phi @ phi.T
        return checked(product.toarray() if sp.issparse(product) else product)

    def __matmul__(self, other: sp.csr_array) -> np.ndarray:
        """K @ other for few columns, with the diagonal of K. O(entries * columns)."""
        return (self.phi @ (self.phi.T @ other)).toarray()


def of_counts(columns: Columns, which: str) -> "np.ndarray | Factored":
    """k1 or k2 (`which`) with a zero diagonal, whole up to KERNEL_LIMIT objects."""
    if columns.n_objects <= kernels.KERNEL_LIMIT:
        return checked(kernels.k1(columns) if which == "k1" else kernels.k2(columns))
    return Factored(factor(columns, which))


def factor(columns: Columns, which: str) -> sp.csc_array:
    """Phi of k1 or k2 (`which`), as narrow as the design allows."""
    if which == "k1":
        return kernels.features1(columns)
    marks = landmark_designs.landmarks2(columns)
    return landmark_designs.features2(columns, marks) if len(marks) else kernels.features2(columns)


def clustered(W: Factored, k: int, seed: int, refine: bool, progress: Callable[..., None]) -> tuple[np.ndarray, float]:
    """Labels (n,) of k clusters and their value sum_a B_aa / n_a, of k-means on k - 1 eigenvectors of HKH; `refine`:
    and of k-means on F from there, where that is better. O(entries) for F with few features, and k-means.

    >>> from stream_engine.data.triplet_columns import columns_from_triplets
    >>> rows = np.array([[a, 4, 5] for a in (0, 1)] + [[a, 5, 4] for a in (2, 3)])
    >>> K = Factored(kernels.features1(columns_from_triplets(rows, 6))[:4])
    >>> labels, value = clustered(K, 2, 0, True, lambda *_, **__: None)
    >>> labels.tolist(), round(value, 6)
    ([0, 0, 1, 1], 2.0)
    """
    n = W.shape[0]
    if k <= 1 or k >= n:
        labels = np.zeros(n, np.int32) if k <= 1 else np.arange(n, dtype=np.int32)
        return labels, value(W, labels)
    axes = min(max(AXES, k), n - 1, max(W.phi.shape[1], k))
    values, vectors = kernels.eigenpairs(W.phi, axes, centred=True)
    progress(1, 3, k=k)
    labels = partition.k_means(vectors[:, : k - 1], k, seed, partition.STARTS)
    reached = value(W, labels)
    progress(2, 3, k=k, objective=reached)
    if refine:
        better = partition.k_means_from(vectors * np.sqrt(values), labels)
        if value(W, better) > reached:
            labels, reached = better, value(W, better)
    return labels, reached


def value(W: Factored, labels: np.ndarray) -> float:
    """sum_a B_aa / n_a, the diagonal of W being 0: |sum of Phi_i|^2 - (objects that answered), over n_a. O(entries)."""
    sizes = np.bincount(labels)
    inside = sp.csr_array((np.ones(len(labels)), labels, np.arange(len(labels) + 1)), shape=(len(labels), len(sizes)))
    sums = (W.phi.T @ inside).toarray()
    answering = np.bincount(labels, W.answered() > 0)
    return float((((sums**2).sum(axis=0) - answering) / sizes).sum())
