"""Beyond dense limits: refits of a subset, nearest clusters for the rest, kernels as factors, nothing of size n^2."""

import tracemalloc

import numpy as np
import pytest

from stream_engine import exports
from stream_engine.clustering import kernel_factors, similarity_matrix, similarity_of_snapshot, stability
from stream_engine.clustering.kernel_factors import KernelFactor
from stream_engine.counts import kernels
from stream_engine.counts.gram_matrices import read_only
from stream_engine.data import symmetric_matrices
from stream_engine.data.comparisons import Triplet
from stream_engine.data.triplet_columns import columns_from_triplets
from stream_engine.refits import refit_module
from stream_engine.state.engine import Engine
from stream_engine.state.published import Published
from tests.support.facts import states
from tests.support.generators import planted_triplets
from tests.support.process import engine, jsonl, one_line


def world(seed: int = 0, n: int = 18, size: int = 1500) -> Engine:
    """Three planted groups; objects of high number are asked about less, the last one never."""
    rng, made = np.random.default_rng(seed), Engine(guard=False)
    made.objects.ids([f"o{i}" for i in range(n)])
    weights = np.linspace(3, 0.3, n - 1)
    said = []
    for _ in range(size):
        a, b, c = rng.choice(n - 1, 3, replace=False, p=weights / weights.sum()).tolist()
        if (c - a) % 3 == 0 != (b - a) % 3:
            b, c = c, b
        said.append(Triplet(f"o{a}", f"o{b}", f"o{c}"))
    made.learn_many(said)
    return made


@pytest.mark.parametrize("sparse", [False, True])
def test_the_most_evidence_comes_first(sparse):
    """Against the sums in plain Python; ties by id; a choice without links among itself is left out."""
    from scipy import sparse as sp

    snapshot = world().snapshot()
    W = similarity_of_snapshot.similarity(snapshot, "adds3").W
    W = sp.csr_array(W) if sparse else W
    full = W.toarray() if sparse else W
    sums = [sum(abs(x) for x in row) for row in full.tolist()]
    for wanted in (2, 5, 17, 40):
        expected = sorted(sorted((i for i, s in enumerate(sums) if s), key=lambda i: (-sums[i], i))[:wanted])
        expected = [i for i in expected if any(full[i, j] for j in expected)]
        assert similarity_of_snapshot.subset_ids(snapshot, W, 1, wanted).tolist() == expected
    named = similarity_of_snapshot.subset_ids(snapshot, W, 1, ("o3", "o1", "o17"))
    assert named.tolist() == [1, 3]
    with pytest.raises(similarity_of_snapshot.NoCounts, match="2 of 3 names .* 'x'"):
        similarity_of_snapshot.subset_ids(snapshot, W, 1, ("x", "o1", "y"))


@pytest.mark.parametrize("kind, params", [("spectral", {"k": 3}), ("sdp_clustering", {"k": 3})])
def test_the_rest_joins_the_nearest_cluster(kind, params):
    module, snapshot = refit_module(kind), world().snapshot()
    W = similarity_of_snapshot.similarity(snapshot, "adds3").W
    some = tuple(f"o{i}" for i in (0, 3, 6, 9, 12, 15, 1, 4, 2))  # clusters of unequal size: the mean is not the sum
    ids = similarity_of_snapshot.subset_ids(snapshot, W, 1, some)
    alone = module.refit(snapshot, module.Params(**params, objects=some), 0).arrays["labels"]
    assert (alone >= 0).nonzero()[0].tolist() == ids.tolist() and set(alone[ids].tolist()) == {0, 1, 2}
    labels = module.refit(snapshot, module.Params(**params, objects=some, rest="nearest"), 0).arrays["labels"]
    assert labels[ids].tolist() == alone[ids].tolist() and labels[17] == -1
    for i in set(range(17)) - set(ids.tolist()):
        means = [np.mean([W[i, j] for j in ids if alone[j] == a]) for a in range(3)]
        assert labels[i] == int(np.argmax(means))
    W = np.array([[0, 0, 0, 0, 1], [0, 0, 0, 0, 1], [0, 0, 0, 0, 1], [0, 0, 0, 0, 2], [1, 1, 1, 2, 0]])
    assert stability.with_nearest_cluster(np.array([0, 0, 0, 1, -1], np.int32), W).tolist() == [
        0,
        0,
        0,
        1,
        1,
    ]  # 3 votes in sum, 1 in the mean
    assert stability.with_nearest_cluster(np.full(5, -1, np.int32), W).tolist() == [-1] * 5


SOME = tuple(f"o{i}" for i in range(12))


@pytest.mark.parametrize(
    "how",
    [
        {"k": 3},
        {"k": 17},
        {},
        {"k": 3, "objects": SOME, "rest": "nearest"},
    ],
    ids=str,
)
def test_k1_of_many_objects_is_clustered_in_feature_space(how, monkeypatch):
    """The same clusters as by the whole kernel, with the same value of sum_a B_aa / n_a."""
    snapshot, module = world(size=4000).snapshot(), refit_module("spectral")
    whole = module.refit(snapshot, module.Params(similarity="k1", **how), 0).arrays
    monkeypatch.setattr(kernels, "KERNEL_LIMIT", 11)
    W = similarity_of_snapshot.similarity(snapshot, "k1").W
    assert isinstance(similarity_of_snapshot.restrict(W, np.arange(12)), KernelFactor)
    made = module.refit(snapshot, module.Params(similarity="k1", **how), 0).arrays
    assert stability.agreement(whole["labels"], made["labels"]) == 1.0 and int(made["k"]) == int(whole["k"])
    assert ((made["labels"] < 0) == (whole["labels"] < 0)).all() and len(set(made["labels"])) == int(made["k"]) + 1
    assert abs(float(made["objective"]) - float(whole["objective"])) < 1e-9


def test_clusters_in_feature_space_are_refined_where_that_is_better():
    rng = np.random.default_rng(0)
    rows = planted_triplets(rng, rng.normal(size=(20, 2)), 3000, 0.0)
    W = KernelFactor(kernels.features1(columns_from_triplets(rows, 20)))
    each = (kernel_factors.kernel_k_means(W, 4, 0, refine, lambda *_, **__: None) for refine in (False, True))
    (_, rough), (_, refined) = each
    assert rough < refined


def test_a_file_of_objects_on_the_command_line(tmp_path):
    rows = [{"anchor": f"o{a}", "near": f"o{(a + 3) % 9}", "far": f"o{(a + 1 + a % 2) % 9}"} for a in range(9)]
    engine("run", jsonl(tmp_path / "e.jsonl", rows), "--state", tmp_path / "s", "--no-refits")
    chosen = tmp_path / "names"
    chosen.write_text("o0\no3\no6\no1\n")
    said = engine("refit", "--state", tmp_path / "s", "spectral", "--objects", chosen, "--set", "k=1").stdout
    assert "objects in clusters: 4" in said
    engine("export", "--state", tmp_path / "s", "--out", tmp_path / "x", "--format", "npz")
    (tmp_path / "empty").write_text("\n")
    (tmp_path / "latin").write_bytes("é\n".encode("latin-1"))
    for wrong, expected in (("absent", "--objects"), (tmp_path / "empty", "names"), (tmp_path / "latin", "utf-8")):
        done = engine("refit", "--state", tmp_path / "s", "spectral", "--objects", wrong, status=2)
        assert states(one_line(done.stderr), expected)
    line = one_line(engine("refit", "--state", tmp_path / "s", "reliability", "--objects", chosen, status=2).stderr)
    assert "objects" in line and "reliability" in line


def test_nothing_of_size_n_squared_is_made(tmp_path):
    """60,000 objects: one n^2 array of bytes is 3.6 GB; counts, snapshot, exports and a refit stay under 0.2 GB."""
    n, rng = 60_000, np.random.default_rng(0)
    made = Engine(guard=False)
    names = [f"o{i}" for i in range(n)]
    anchor, pair = rng.integers(10, n, 20_000), rng.permuted(np.tile(np.arange(10), (20_000, 1)), axis=1)[:, :2]
    tracemalloc.start()
    try:
        made.objects.ids(names)
        made.learn_many([Triplet(names[a], names[b], names[c]) for a, (b, c) in zip(anchor.tolist(), pair.tolist())])
        published = Published(made.snapshot(), {})
        for what in ("summary", "adds3", "adds4", "triplet_counts", "k1", "k2"):
            assert exports.contents(what, published)
        spectral = refit_module("spectral")
        labels = spectral.refit(published.snapshot, spectral.Params(k=2, objects=200, rest="nearest"), 0).arrays[
            "labels"
        ]
        assert (labels >= 0).sum() > 5_000
        assert tracemalloc.get_traced_memory()[1] < 200e6
    finally:
        tracemalloc.stop()


def test_similarity_of_a_triangle_in_order_is_that_of_any_order(monkeypatch):
    """The way of large n against sorting and summing, and sums of rows against the dense ones, in several blocks."""
    rng, n = np.random.default_rng(4), 300
    pairs = np.array([(i, j) for i in range(n) for j in range(i + 1, n) if rng.random() < 0.03 and i % 7], np.int32)
    w = rng.integers(-9, 10, len(pairs)) * (rng.random(len(pairs)) < 0.9)
    mixed = rng.permutation(len(pairs))
    fast, slow = (
        similarity_matrix.from_triangle(*pairs[order].T, w[order], n) for order in (np.arange(len(pairs)), mixed)
    )
    assert symmetric_matrices._in_order(*map(read_only, pairs.T)) and not symmetric_matrices._in_order(
        *map(read_only, pairs[mixed].T)
    )
    slow.sort_indices()
    assert all(np.array_equal(getattr(fast, part), getattr(slow, part)) for part in ("indptr", "indices", "data"))
    for x in (fast, slow):
        assert np.array_equal(x.toarray(), x.toarray().T) and x.toarray()[tuple(pairs.T)].tolist() == w.tolist()
    monkeypatch.setattr("stream_engine.data.mapped_arrays.BLOCK", 7)
    assert similarity_of_snapshot._sizes(fast).tolist() == np.abs(slow.toarray()).sum(axis=1).tolist()
