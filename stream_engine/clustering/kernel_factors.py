"""Kernels k1 and k2 of many objects as their factors, K = Phi Phi^T, and kernel k-means on them."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy import sparse

from stream_engine.clustering import partition
from stream_engine.clustering.similarity_matrix import checked
from stream_engine.counts import kernels, landmark_designs
from stream_engine.data.triplet_columns import Columns


class KernelFactor(NamedTuple):
    """A kernel with a zero diagonal as its factor, K = Phi Phi^T.

    It takes the place of an (n, n) array, which is never computed as a whole: it has a shape, a restriction to some
    objects, and products with few columns.
    """

    phi: sparse.csc_array  # (n, features), rows of length 1 or 0

    @property
    def shape(self) -> tuple[int, int]:
        """(n, n)."""
        return (self.phi.shape[0],) * 2

    def n_answered(self) -> np.ndarray:
        """(n,) the number of decided questions with each object as anchor; for k2, of other objects that it was
        compared with. O(entries)."""
        return np.bincount(self.phi.indices[self.phi.data != 0], minlength=self.shape[0])

    def among(self, ids: np.ndarray) -> "np.ndarray | KernelFactor":
        """The kernel among these objects, in this order: an array up to KERNEL_LIMIT of them, else a factor. O(entries)
        and the product, by BLAS if there are few features, as in a landmark design."""
        phi = self.phi[ids]
        if len(ids) > kernels.KERNEL_LIMIT:
            return KernelFactor(phi)
        phi = phi.toarray() if phi.shape[1] <= kernels.MAX_FEATURE_COLUMNS else phi
        product = phi @ phi.T
        return checked(product.toarray() if sparse.issparse(product) else product)

    def __matmul__(self, columns: sparse.csr_array) -> np.ndarray:
        """K @ other for few columns, with the diagonal of K. O(entries * columns)."""
        return (self.phi @ (self.phi.T @ columns)).toarray()


def of_counts(columns: Columns, kernel: str) -> "np.ndarray | KernelFactor":
    """k1 or k2 (`kernel`) with a zero diagonal: an array up to KERNEL_LIMIT objects, else its factor."""
    if columns.n_objects <= kernels.KERNEL_LIMIT:
        return checked(kernels.k1(columns) if kernel == "k1" else kernels.k2(columns))
    return KernelFactor(factor(columns, kernel))


def factor(columns: Columns, kernel: str) -> sparse.csc_array:
    """Phi of k1 or k2 (`kernel`); of a landmark design for k2 the adapted, narrow one (`counts.landmark_designs`)."""
    if kernel == "k1":
        return kernels.features1(columns)
    marks = landmark_designs.landmarks2(columns)
    return landmark_designs.features2(columns, marks) if len(marks) else kernels.features2(columns)


# As Kleindessner & von Luxburg 2017 (sec. 4.2) cluster, there up to 10,000 objects: k-means on the rows of F, K ~ F F^T
# on its leading centred axes; the mean does not matter to k-means.
MIN_AXES = 32  # leading axes of K for k-means


def kernel_k_means(
    W: KernelFactor, k: int, seed: int, refine: bool, progress: Callable[..., bool | None]
) -> tuple[np.ndarray, float]:
    """Labels (n,) of k clusters by k-means on k - 1 eigenvectors of HKH, and their value sum_a B_aa / n_a.

    With `refine`, k-means on F from there, if that is better. O(entries) for F with few features, and k-means.

    >>> from stream_engine.data.triplet_columns import columns_from_triplets
    >>> rows = np.array([[a, 4, 5] for a in (0, 1)] + [[a, 5, 4] for a in (2, 3)])
    >>> K = KernelFactor(kernels.features1(columns_from_triplets(rows, 6))[:4])
    >>> labels, value = kernel_k_means(K, 2, 0, True, lambda *_, **__: None)
    >>> labels.tolist(), round(value, 6)
    ([0, 0, 1, 1], 2.0)
    """
    n = W.shape[0]
    if k <= 1 or k >= n:
        labels = np.zeros(n, np.int32) if k <= 1 else np.arange(n, dtype=np.int32)
        return labels, value(W, labels)
    axes = min(max(MIN_AXES, k), n - 1, max(W.phi.shape[1], k))
    values, vectors = kernels.eigenpairs(W.phi, axes, centred=True)
    progress(1, 3, k=k)
    labels = partition.k_means(vectors[:, : k - 1], k, seed, partition.STARTS)
    objective = value(W, labels)
    progress(2, 3, k=k, objective=objective)
    if refine:
        better = partition.k_means_from(vectors * np.sqrt(values), labels)
        if value(W, better) > objective:
            labels, objective = better, value(W, better)
    return labels, objective


def value(W: KernelFactor, labels: np.ndarray) -> float:
    """sum_a B_aa / n_a, the diagonal of W being 0: |sum of Phi_i|^2 - (objects that answered), over n_a. O(entries)."""
    sizes = np.bincount(labels)
    inside = sparse.csr_array(
        (np.ones(len(labels)), labels, np.arange(len(labels) + 1)), shape=(len(labels), len(sizes))
    )
    sums = (W.phi.T @ inside).toarray()
    answering = np.bincount(labels, W.n_answered() > 0)
    return float((((sums**2).sum(axis=0) - answering) / sizes).sum())
