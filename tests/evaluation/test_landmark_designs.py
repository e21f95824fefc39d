"""The narrow feature map of k2 against the formula, and which designs are taken for one."""

import numpy as np
import pytest

from stream_engine.clustering import kernel_factors
from stream_engine.counts import kernels
from stream_engine.counts.landmark_designs import features2, landmarks2
from tests.support.landmark_worlds import columns_of, counted, landmark_world, share


def by_formula(triplets: np.ndarray, n: int, marks: np.ndarray) -> np.ndarray:
    """Sec. 2.3: of the features of k2 those whose two fixed objects are landmarks, then unit length."""
    seen = counted(triplets)
    pairs = [(i, j) for i in marks.tolist() for j in marks.tolist() if i != j]
    phi = np.array(
        [
            [share(seen.get((i, a, j), 0), seen.get((i, j, a), 0)) if a not in (i, j) else 0.0 for i, j in pairs]
            for a in range(n)
        ]
    )
    length = np.linalg.norm(phi, axis=1, keepdims=True)
    return np.divide(phi, length, out=np.zeros_like(phi), where=length > 0)


@pytest.mark.parametrize("seed", range(6))
def test_the_narrow_features_are_the_formula_and_give_k2_of_ordinary_objects(seed):
    rng = np.random.default_rng(seed)
    n, of = int(rng.integers(20, 40)), int(rng.integers(3, 6))
    triplets, marks = landmark_world(rng, n, of, int(rng.integers(100, 900)), 2)
    triplets = np.concatenate([triplets, triplets[: len(triplets) // 3, [0, 2, 1]]])  # contradictions too
    columns = columns_of(triplets, n)
    narrow = features2(columns, marks)
    dense = narrow.toarray()
    expected = by_formula(triplets, n, marks)
    np.testing.assert_allclose(dense @ dense.T, expected @ expected.T, atol=1e-12)
    assert narrow.shape[1] <= of * (of - 1) and narrow.has_sorted_indices
    ordinary = np.setdiff1d(np.arange(n), marks)
    block = np.ix_(ordinary, ordinary)
    np.testing.assert_allclose((dense @ dense.T)[block], kernels.k2(columns)[block], atol=1e-12)
    if len(triplets) > 400:
        assert landmarks2(columns).tolist() == marks.tolist()
        assert (kernel_factors.factor(columns, "k2") != narrow).nnz == 0


def test_other_designs_are_not_taken_for_one():
    rng = np.random.default_rng(0)
    for rows in (
        landmark_world(rng, 40, 5, 2000, 1)[0],  # k1's: everybody is an anchor
        np.array([rng.choice(40, 3, replace=False) for _ in range(2000)], np.int32),
        np.empty((0, 3), np.int32),
        np.array([[0, 1, 2]], np.int32),
    ):
        columns = columns_of(rows, 40)
        assert landmarks2(columns).tolist() == []
        assert (kernel_factors.factor(columns, "k2") != kernels.features2(columns)).nnz == 0
    rows, marks = landmark_world(rng, 40, 5, 2000, 2)
    ordinary = np.setdiff1d(np.arange(40), marks)[:2]
    one_more = np.concatenate([rows, [[marks[0], *ordinary]]]).astype(np.int32)
    assert landmarks2(columns_of(one_more, 40)).tolist() == []  # a question about two ordinary objects
    sparse = rows[(rows[:, 0] == marks[0]) | (rows[:, 0] == marks[1])]
    assert landmarks2(columns_of(sparse, 40)).tolist() == []  # two anchors, five are asked about
    with pytest.raises(ValueError, match="features2.*2"):
        features2(columns_of(rows, 40), marks[:2])
