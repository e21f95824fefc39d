"""Kernels against the formulas written out over every feature, on little worlds; then the roads against each other."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse as sp

from stream_engine.counts import feature_space, gram_matrices, kernels
from stream_engine.counts.quadruplet_counts import QuadrupletCounts
from stream_engine.data import available_memory
from stream_engine.data.triplet_columns import columns_from_rows, columns_from_triplets
from stream_engine.state.snapshot import frozen
from tests.support.facts import stating
from tests.support.generators import dense_batch
from tests.support.landmark_worlds import columns_of, counted, landmark_world, share


def by_formula(triplets: np.ndarray, n: int, which: int) -> np.ndarray:
    """k1 (which = 1) or k2: every feature of every object, then unit length, then inner products."""
    seen, phi = counted(triplets), []
    for a in range(n):
        phi.append([])
        for i in range(n):
            for j in range(i + 1, n) if which == 1 else range(n):
                this, that = ((a, i, j), (a, j, i)) if which == 1 else ((i, a, j), (i, j, a))
                phi[a].append(share(seen.get(this, 0), seen.get(that, 0)) if len({a, i, j}) == 3 else 0.0)
    phi = np.array(phi).reshape(n, -1)
    length = np.sqrt((phi * phi).sum(axis=1, keepdims=True))
    phi = np.divide(phi, length, out=np.zeros_like(phi), where=length > 0)
    return phi @ phi.T


@st.composite
def triplet_worlds(draw):
    rng, n = np.random.default_rng(draw(st.integers(0, 2**32 - 1))), draw(st.integers(3, 7))
    return dense_batch(rng, n, draw(st.integers(0, 80)), quadruplets=0).triplets, n + draw(st.integers(0, 2))


KERNELS = {"k1": (kernels.k1, kernels.features1, 1), "k2": (kernels.k2, kernels.features2, 2)}
both = pytest.mark.parametrize("kernel,features,which", KERNELS.values(), ids=KERNELS)


@both
@settings(max_examples=40, deadline=None)
@given(world=triplet_worlds(), seed=st.integers(0, 99))
def test_kernel_is_the_formula(kernel, features, which, world, seed):
    triplets, n = world
    columns = columns_of(triplets, n)
    expected, found = by_formula(triplets, n, which), kernel(columns)
    np.testing.assert_allclose(found, expected, atol=1e-14)
    assert np.array_equal(found, found.T) and np.linalg.eigvalsh(found)[0] > -1e-12
    assert set(found.diagonal()) <= {0.0, 1.0}
    phi = features(columns)
    np.testing.assert_allclose((phi @ phi.T).toarray(), expected, atol=1e-14)
    some = np.random.default_rng(seed).permutation(n)[: seed % (n + 1)]
    np.testing.assert_allclose(kernel(columns, rows=some), expected[some], atol=1e-14)


def test_contradictions_that_cancel_leave_no_feature():
    """Equal votes both ways: value 0, so the object has no direction and its row stays zero."""
    columns = columns_from_triplets(np.array([[0, 1, 2], [0, 2, 1], [3, 1, 2]]), 4)
    assert kernels.k1(columns).diagonal().tolist() == [0, 0, 0, 1]
    assert kernels.k2(columns).diagonal().tolist() == [0, 1, 1, 0]


def test_counts_beyond_int32():
    many = columns_from_rows([0, 3], [1, 1], [2, 2], [2**40, 3 * 2**40], [0, 2**40], 4)
    assert many.n_lo.dtype == np.int64
    assert kernels.k1(many).tolist() == kernels.k1(many._replace(n_lo=many.n_lo >> 38, n_hi=many.n_hi >> 38)).tolist()
    assert kernels.k2(many)[1, 2] == 0.0 and kernels.k2(many)[1, 1] == 1.0


@pytest.mark.parametrize("n", [0, 1, 3])
def test_no_comparisons(n):
    columns = columns_of(np.empty((0, 3), np.int32), n)
    for kernel, features, _ in KERNELS.values():
        assert kernel(columns).shape == (n, n) and not kernel(columns).any()
        assert features(columns).shape[0] == n and features(columns).nnz == 0
        values, vectors = kernels.eigenpairs(features(columns), n)
        assert values.tolist() == [0.0] * n and vectors.shape == (n, n)
    assert kernels.landmarks(columns).tolist() == []
    assert kernels.shift(kernels.k1(columns))[1] == 0.0
    assert kernels.mulk4(QuadrupletCounts().state(), n).shape == (n, n)


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), size=st.integers(0, 60))
def test_mulk4_is_the_formula(seed, size):
    n, batch = 6, dense_batch(np.random.default_rng(seed), 6, size, quadruplets=1.0)
    counts = QuadrupletCounts()
    counts.update(batch)
    seen = {(frozenset(row[:2]), frozenset(row[2:])) for row in batch.quadruplets.tolist()}
    pairs = [frozenset((k, l)) for k in range(n) for l in range(k + 1, n)]

    def s(i, r, pair):
        return ((frozenset((i, r)), pair) in seen) - ((pair, frozenset((i, r))) in seen)

    expected = [[sum(s(i, r, p) * s(j, r, p) for r in range(n) for p in pairs) for j in range(n)] for i in range(n)]
    assert kernels.mulk4(frozen(counts.state()), n).tolist() == np.array(expected, float).tolist()


@both
def test_landmark_design_takes_blas_blocks_and_agrees(kernel, features, which, monkeypatch):
    """More rows than a block, both roads in one product for k2, whole against factor and against rows."""
    monkeypatch.setattr(gram_matrices, "BLOCK_ROWS", 512)
    n = 2 * gram_matrices.BLOCK_ROWS + 150
    triplets, marks = landmark_world(np.random.default_rng(which), n, 8, 60_000, which)
    columns = columns_of(triplets, n)
    assert kernels.landmarks(columns).tolist() == (marks.tolist() if which == 1 else [])
    raw = {1: kernels._raw1, 2: kernels._raw2}[which](columns)
    filled = np.diff(raw.start) > gram_matrices.DENSE_FILL * n
    assert filled.sum() >= gram_matrices.MIN_DENSE_COLUMNS and filled.all() == (which == 1)
    found, phi = kernel(columns), features(columns)
    some = np.array(sorted({n - 1, 0, gram_matrices.BLOCK_ROWS, 7, *marks.tolist()}))[::-1]
    np.testing.assert_allclose(found[some], (phi[some] @ phi.T).toarray(), atol=1e-12)
    np.testing.assert_allclose(kernel(columns, rows=some), found[some], atol=1e-12)
    general = gram_matrices.gram(raw, unit=True, dense_fill=np.inf)
    np.testing.assert_allclose(found, general, atol=1e-12)


@pytest.mark.parametrize("centred", [False, True])
@pytest.mark.parametrize("n,pairs", [(120, 8), (120, 400), (9, 30)], ids=["feature space", "lanczos", "small"])
def test_eigenpairs_are_those_of_the_kernel(n, pairs, centred):
    rng = np.random.default_rng(0)
    choice = [(i, j) for i in range(n) for j in range(i + 1, n)]
    chosen = rng.choice(len(choice), pairs, replace=False)
    lo, hi = np.array(choice)[chosen[rng.integers(pairs, size=3000)]].T
    rows = np.stack([rng.integers(n, size=3000), lo, hi], axis=1)
    rows = rows[(rows[:, 0] != lo) & (rows[:, 0] != hi)]
    columns = columns_of(rows.astype(np.int32), n)
    kernel, phi = kernels.k1(columns), kernels.features1(columns)
    if centred:
        kernel = kernel - kernel.mean(axis=0) - kernel.mean(axis=1)[:, None] + kernel.mean()
    values, vectors = kernels.eigenpairs(phi, 4, centred)
    np.testing.assert_allclose(values, np.linalg.eigvalsh(kernel)[::-1][:4], atol=1e-10)
    np.testing.assert_allclose(kernel @ vectors, vectors * values, atol=1e-8)
    np.testing.assert_allclose(vectors.T @ vectors, np.eye(4), atol=1e-8)
    assert (vectors[np.abs(vectors).argmax(axis=0), np.arange(4)] > 0).all()
    assert all(np.array_equal(a, b) for a, b in zip(kernels.eigenpairs(phi, 4, centred), (values, vectors)))


@pytest.mark.parametrize("gain", [0, 10**9], ids=["scattered", "BLAS"])
@pytest.mark.parametrize("centred", [False, True])
def test_feature_space_is_read_in_blocks_by_either_road(gain, centred, monkeypatch):
    """Against the dense matrix, in several blocks, rows of very different fill, some empty."""
    monkeypatch.setattr(feature_space, "BLAS_GAIN", gain)
    monkeypatch.setattr(feature_space, "STRIP", 1)
    rng = np.random.default_rng(3)
    dense = rng.standard_normal((900, 23)) * (rng.random((900, 23)) < rng.random((900, 1)) ** 3)
    dense[300:620] = 0
    phi = sp.csc_array(dense)
    np.testing.assert_allclose(feature_space.column_gram(phi), dense.T @ dense, atol=1e-11)
    mean = dense.mean(axis=0) if centred else np.zeros(23)
    kernel = (dense - mean) @ (dense - mean).T
    for k in (5, 40):
        values, vectors = kernels.eigenpairs(phi, k, centred)
        np.testing.assert_allclose(values[:23], np.linalg.eigvalsh(kernel)[::-1][:k][:23], atol=1e-9)
        np.testing.assert_allclose(kernel @ vectors, vectors * values, atol=1e-8)
        assert vectors.shape == (900, k) and not vectors[:, 23:].any()


def test_factors_are_the_best_of_their_rank_and_whole_ones_give_the_kernel():
    dense = np.random.default_rng(5).standard_normal((400, 12)) * (np.arange(400)[:, None] % 3 > 0)
    kernel = dense @ dense.T
    phi = sp.csc_array(dense)
    whole, some = kernels.factors(phi, 12), kernels.factors(phi, 4)
    assert some.dtype == np.float32
    assert some.shape == (400, 4)
    assert np.array_equal(whole[:, :4], some)
    np.testing.assert_allclose(whole @ whole.T, kernel, atol=1e-4)
    values, vectors = np.linalg.eigh(kernel)
    best = (vectors[:, -4:] * values[-4:]) @ vectors[:, -4:].T
    np.testing.assert_allclose(some @ some.T, best, atol=1e-4)
    assert kernels.factors(phi, 0).shape == (400, 0)
    with pytest.raises(ValueError, match="13.*12"):
        kernels.factors(phi, 13)


def test_shift_makes_the_smallest_eigenvalue_zero():
    columns = columns_of(dense_batch(np.random.default_rng(1), 8, 300, quadruplets=0).triplets, 8)
    kernel = kernels.k1(columns)
    shifted, smallest = kernels.shift(kernel)
    assert smallest > 0.01 and abs(np.linalg.eigvalsh(shifted)[0]) < 1e-12
    assert np.array_equal(shifted - np.diag(shifted.diagonal()), kernel - np.eye(8))


def test_too_large_a_result_is_refused_with_the_numbers(monkeypatch):
    monkeypatch.setattr(available_memory, "available", lambda: 100_000_000)
    columns = columns_of(np.array([[0, 1, 2]], np.int32), 4000)
    with pytest.raises(ValueError, match=r"k1.*4000.*4000 float64.*0\.13 GB.*0\.1 GB"):
        kernels.k1(columns)
    assert kernels.k1(columns, rows=np.array([0])).shape == (1, 4000)
    monkeypatch.undo()
    with pytest.raises(ValueError, match=stating("k2 … 2000000 x 2000000 … 32,000.0 GB")):
        kernels.k2(columns._replace(n_objects=2_000_000))


@pytest.mark.parametrize("rows", [[1, 1], [3], [-1]])
def test_rows_are_distinct_objects(rows):
    with pytest.raises(ValueError, match=r"k1.*0 \.\. 2"):
        kernels.k1(columns_of(np.array([[0, 1, 2]], np.int32), 3), rows=np.array(rows))


def test_eigenpairs_refuses_more_than_there_are():
    with pytest.raises(ValueError, match="4.*0 <=.*<= 3"):
        kernels.eigenpairs(kernels.features1(columns_of(np.array([[0, 1, 2]], np.int32), 3)), 4)
