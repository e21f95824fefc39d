"""An order of objects that does not depend on their ids."""

import numpy as np
from scipy import sparse

from stream_engine.data.hashing import splitmix64


def canonical_order(W) -> np.ndarray:
    """(n,) a permutation of the objects that depends on W only up to renaming, apart from ties.

    Three rounds of Weisfeiler-Lehman colours: an object's colour is the wrapping 64-bit sum, over its entries, of a
    mix of the value and the other object's colour; such sums do not depend on their order. With the objects put into
    this order a solver gives the same partition whatever ids they have. Objects that tie keep their order. O(nnz).

    >>> W = np.array([[0, 5, 1], [5, 0, 2], [1, 2, 0.]])
    >>> p = np.array([2, 0, 1])
    >>> np.array_equal(W[canonical_order(W)], W[p][:, p][canonical_order(W[p][:, p])][:, np.argsort(p)])
    True
    """
    coo = sparse.coo_array(W)
    i, j = coo.coords
    values = (coo.data + 0.0).view(np.uint64)
    colour = np.zeros(W.shape[0], np.uint64)
    for _ in range(3):
        after = splitmix64(colour)
        np.add.at(after, i, splitmix64(values ^ splitmix64(colour[j])))
        colour = after
    return np.argsort(colour, kind="stable")
