"""Probabilities of answers: each model by its formula, calibrated on what it never had, the best one chosen."""

import numpy as np
import pytest

from stream_engine.evaluation.probability import COUNTED, count_model, model
from stream_engine.refits import embedding, kernel_learning, partial_order_embedding
from stream_engine.state.published import Published
from tests.support.learned import snapshot_of

N = 12
REFITS = {
    "embedding": embedding,
    "kernel_learning": kernel_learning,
    "partial_order_embedding": partial_order_embedding,
}
LEARNED = tuple(REFITS)


def truth(points, rows):
    i, j, k, l = rows.T
    near, far = (((points[a] - points[b]) ** 2).sum(axis=1) for a, b in ((i, j), (k, l)))
    return 0.05 + 0.9 / (1 + np.exp(near - far))  # a tenth of the answers are coins


def asked(rng, m):
    rows = np.array([rng.choice(N, 3, replace=False) for _ in range(m)])
    return rows[:, [0, 1, 0, 2]].astype(np.int32)


@pytest.fixture(scope="module")
def world():
    """Answers with the probability of a known formula, by 20 workers: points, snapshot with an object never asked."""
    rng = np.random.default_rng(0)
    points = rng.normal(size=(N, 2))
    rows = asked(rng, 2000)
    said = rng.random(len(rows)) < truth(points, rows)
    lines = [
        {"anchor": f"o{a}", "near": f"o{b if yes else c}", "far": f"o{c if yes else b}", "worker": f"w{n % 20}"}
        for n, ((a, b, _, c), yes) in enumerate(zip(rows.tolist(), said.tolist()))
    ]
    snapshot = snapshot_of(lines)
    order = np.array([int(name[1:]) for name in snapshot.objects])
    return points[order], snapshot


@pytest.fixture(scope="module")
def artifacts(world):
    return {name: module.refit(world[1], module.Params(), 0) for name, module in REFITS.items()}


@pytest.mark.parametrize("name", [*LEARNED, *COUNTED])
def test_probabilities_are_those_of_the_world(world, artifacts, name):
    points, snapshot = world
    rows = asked(np.random.default_rng(1), 4000)
    p = model(Published(snapshot, artifacts), name).probability(rows)
    assert ((p > 0) & (p < 1)).all()
    np.testing.assert_allclose(p + model(Published(snapshot, artifacts), name).probability(rows[:, [2, 3, 0, 1]]), 1)
    expected = truth(points, rows)
    bins = np.minimum((10 * p).astype(int), 9)
    gap = np.abs(np.bincount(bins, p - expected)).sum() / len(p)
    assert gap < (0.03 if name in LEARNED else 0.06)
    assert np.abs(p - expected).mean() < {"embedding": 0.08, "kernel_learning": 0.08}.get(name, 0.2)


def test_the_best_is_that_of_the_least_held_out_log_loss(world, artifacts):
    losses = {name: artifacts[name].report["log_loss"] for name in LEARNED}
    assert model(Published(world[1], artifacts)).name == min(losses, key=losses.get)
    for name in LEARNED:
        assert model(Published(world[1], {name: artifacts[name]})).name == name
        worse = artifacts[name]._replace(report={**artifacts[name].report, "log_loss": 9.0})
        assert model(Published(world[1], {**artifacts, name: worse})).name != name
        none = artifacts[name]._replace(report={**artifacts[name].report, "log_loss": None})
        assert model(Published(world[1], {**artifacts, name: none})).name != name
    assert model(Published(world[1], {})).name == "adds3"


def test_a_kernel_of_a_subset_is_the_best_only_where_there_is_no_other(world, artifacts):
    few = kernel_learning.refit(world[1], kernel_learning.Params(objects=4, lambda1=0.1), 0)
    few = few._replace(report={**few.report, "log_loss": 0.01})
    assert model(Published(world[1], {"embedding": artifacts["embedding"], "kernel_learning": few})).name == "embedding"
    assert model(Published(world[1], {"kernel_learning": few})).name == "kernel_learning"


@pytest.mark.parametrize("name", [*LEARNED, *COUNTED])
def test_unknown_objects_have_no_probability(world, artifacts, name):
    rows = np.array([[0, 1, 0, 2], [0, -1, 0, 2], [0, 1, 0, N], [N + 7, 1, N + 7, 2]], np.int32)
    p = model(Published(world[1], artifacts), name).probability(rows)
    assert np.isnan(p).tolist() == [False, True, True, True]


@pytest.mark.parametrize("name", COUNTED)
def test_what_counts_calibrate_by_is_held_out(world, name):
    """Figures are of judgements that neither counts nor calibration had: near those of the world, not better."""
    points, snapshot = world
    made, figures = count_model(snapshot, name)
    assert figures.by == "judgements"
    assert figures.worker is not None
    assert made.log_loss == figures.judgement.log_loss
    rows = asked(np.random.default_rng(3), 4000)
    expected, p = truth(points, rows), made.probability(rows)
    loss = -(expected * np.log(p) + (1 - expected) * np.log(1 - p)).mean()
    assert abs(made.log_loss - loss) < 0.08


@pytest.mark.parametrize("name", COUNTED)
def test_coins_are_no_evidence(name):
    """Answers that mean nothing look sure to counts that hold them; calibrated on others they are coins."""
    rng = np.random.default_rng(1)
    lines = [dict(zip(("anchor", "near", "far"), map(str, row[[0, 1, 3]]))) for row in asked(rng, 700)]
    p = count_model(snapshot_of(lines), name)[0].probability(asked(rng, 500))
    assert np.abs(p - 0.5).mean() < 0.08
