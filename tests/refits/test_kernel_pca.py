"""Kernel PCA against the formula written out, with and without the shift, and by its factor."""

import numpy as np
import pytest

from stream_engine.clustering import similarity_of_snapshot
from stream_engine.counts import kernels
from stream_engine.data import available_memory
from stream_engine.refits import CannotRefit
from stream_engine.refits.kernel_pca import Params, refit
from stream_engine.state.snapshot import triplet_columns
from tests.clustering.test_spur import snapshot_of
from tests.support.generators import planted_triplets


def world(n: int = 18, size: int = 900, seed: int = 0):
    rng = np.random.default_rng(seed)
    points = rng.normal(size=(n, 2))
    snapshot = snapshot_of(planted_triplets(rng, points, size, 0.05))
    return snapshot, points[[int(name[1:]) for name in snapshot.objects]]


def by_formula(K: np.ndarray, d: int) -> tuple[np.ndarray, np.ndarray]:
    """Eigenvalues and inner products of the map of K: nothing of their signs."""
    n = len(K)
    H = np.eye(n) - 1 / n
    values, vectors = np.linalg.eigh(H @ K @ H)
    values, vectors = np.maximum(values[::-1][:d], 0), vectors[:, ::-1][:, :d]
    return values, (vectors * values) @ vectors.T


@pytest.mark.parametrize("name", ["k1", "k2"])
@pytest.mark.parametrize("shift", [True, False])
def test_the_map_is_that_of_the_kernel(name, shift):
    snapshot, _ = world()
    K = getattr(kernels, name)(triplet_columns(snapshot))
    lowest = np.linalg.eigvalsh(K)[0]
    assert lowest > 1e-3
    values, gram = by_formula(K - lowest * np.eye(len(K)) if shift else K, 3)
    made = refit(snapshot, Params(name, 3, shift), 0)
    X = made.arrays["coordinates"]
    np.testing.assert_allclose(made.arrays["eigenvalues"], values, atol=1e-9)
    np.testing.assert_allclose(X @ X.T, gram, atol=1e-9)
    np.testing.assert_allclose(X.mean(axis=0), 0, atol=1e-9)
    assert made.arrays["mapped"].all()
    trace = np.trace(K) - K.sum() / len(K) - (lowest * (len(K) - 1) if shift else 0)
    np.testing.assert_allclose(made.report["explained"], values / trace, atol=1e-9)
    assert made.report["lambda_min"] == (pytest.approx(lowest) if shift else None)
    no_shift = refit(snapshot, Params(name, 3, False), 0).arrays["coordinates"]
    np.testing.assert_allclose(np.abs(np.corrcoef(X[:, 0], no_shift[:, 0])[0, 1]), 1)  # the shift turns nothing


def test_what_is_no_kernel_is_made_one_by_the_shift():
    snapshot, _ = world()
    W = similarity_of_snapshot.similarity(snapshot, "adds3").W
    W = W if isinstance(W, np.ndarray) else W.toarray()
    H = np.eye(len(W)) - 1 / len(W)
    lowest = np.linalg.eigvalsh(H @ W @ H)[0]
    assert lowest < 0
    values, gram = by_formula(W - lowest * np.eye(len(W)), 2)
    made = refit(snapshot, Params("adds3", 2), 0).arrays
    np.testing.assert_allclose(made["eigenvalues"], values, rtol=1e-9)
    np.testing.assert_allclose(made["coordinates"] @ made["coordinates"].T, gram, atol=1e-6)


def test_the_map_of_the_embedding_is_the_embedding():
    from stream_engine.embedding.of_snapshot import points

    snapshot, _ = world()
    X = points(snapshot).X
    X = X - X.mean(axis=0)
    made = refit(snapshot, Params("embedding", X.shape[1], shift=False), 0).arrays["coordinates"]
    np.testing.assert_allclose(made @ made.T, X @ X.T, atol=1e-9)


def test_by_the_factor_it_is_the_same(monkeypatch):
    snapshot, _ = world(90, 8000)
    whole = refit(snapshot, Params("k1", 3, shift=False), 0)
    monkeypatch.setattr(kernels, "KERNEL_LIMIT", 50)
    assert isinstance(similarity_of_snapshot.similarity(snapshot, "k1").W, similarity_of_snapshot.Factored)
    by_factor = refit(snapshot, Params("k1", 3, shift=False), 0)
    for name in ("coordinates", "eigenvalues"):
        np.testing.assert_allclose(by_factor.arrays[name], whole.arrays[name], atol=1e-7)
    np.testing.assert_allclose(by_factor.report["explained"], whole.report["explained"], atol=1e-9)
    with pytest.raises(CannotRefit, match="kernel_pca.*90 objects.*50"):
        refit(snapshot, Params("k1", 3), 0)


def test_objects_of_which_nothing_is_known_lie_at_zero_and_are_told(monkeypatch):
    snapshot, _ = world(6, 300)
    more = snapshot_of(np.array([[0, 1, 2], [1, 0, 2], [3, 4, 5], [3, 5, 4]]))
    made = refit(more, Params("k2"), 0).arrays
    assert not made["coordinates"][~made["mapped"]].any() and not made["mapped"].all()
    with pytest.raises(CannotRefit, match="objects: 2 of 2 names"):
        refit(snapshot, Params(objects=("x", "y")), 0)
    monkeypatch.setattr(available_memory, "available", lambda: 1)
    with pytest.raises(CannotRefit, match="kernel_pca.*PCA.*6 objects.*GB"):
        refit(snapshot, Params(), 0)
