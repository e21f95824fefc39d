"""What the two papers on kernel learning claim of their synthetic experiments, at sizes that take seconds.

The whole experiments are those of `python -m tests.benchmarks papers`.
"""

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from stream_engine.kernel_learning.pair_lists import triplet_rows
from tests.benchmarks import heim_synthetic, mcfee_toy


@pytest.fixture(scope="module")
def heim():
    """Two trials with 50 objects, {(loss, form, size): outcomes}: few triplets, and many."""
    out: dict = {}
    with threadpool_limits(1):
        for trial in range(2):
            w = heim_synthetic.world(trial, 50)
            for rounds in (2, 12):
                train, check = w.rounds[:rounds].reshape(-1, 3), w.rounds[20 : 20 + rounds // 2].reshape(-1, 3)
                for loss in ("ste", "hinge"):
                    for form in ("t", "mkl", "ak"):
                        found = heim_synthetic.validated(train, check, w, form, loss, (0.4, 0.1, 0.03))
                        out.setdefault((loss, form, 50 * rounds), []).append(found)
    return out


@pytest.mark.parametrize("loss", ["ste", "hinge"])
def test_heim_2014_figure_1(heim, loss):
    """AK is nowhere worse than T, as good as MKL with few triplets and better with many; MKL stays where it started."""
    error = {
        (form, size): np.mean([o.error for o in heim[loss, form, size]])
        for form in ("t", "mkl", "ak")
        for size in (100, 600)
    }
    assert error["ak", 100] <= error["t", 100] - 0.03 and error["ak", 600] <= error["t", 600]
    assert error["ak", 100] <= error["mkl", 100] + 0.02 and error["ak", 600] <= error["mkl", 600] - 0.08
    assert error["mkl", 100] - error["mkl", 600] <= 0.05 < error["t", 100] - error["t", 600]


@pytest.mark.parametrize("loss", ["ste", "hinge"])
def test_heim_2014_figure_2(heim, loss):
    """Weights in the order of the ground truth's 1/4, 1/6, 1/12; the three noise kernels have next to none."""
    mu = np.mean([o.mu for o in heim[loss, "ak", 600]], axis=0)
    assert mu[0] > mu[1] > mu[2] > 0
    assert mu[3:].sum() < 0.05 * mu.sum()


def test_mcfee_2011_figures_5_and_8():
    """Diagonal MKPOE is at least as good as the best single kernel; noise kernels get a negligible share."""
    t = mcfee_toy.toy(0)
    train, triplets, test = mcfee_toy.split(t, 0, 1500)
    rows, after = triplet_rows(triplets), {}
    choices = {"upper": t.kernels[:1], "noise 1": t.kernels[5:6], "sum": [sum(t.kernels)], "MKPOE": t.kernels}
    with threadpool_limits(1):
        for name, kernels in choices.items():
            inner = [np.ascontiguousarray(k[np.ix_(train, train)]) for k in kernels]
            found, _ = mcfee_toy.beta_and_fit(rows, np.ones(len(rows)), inner, True, 0)
            after[name] = mcfee_toy.accuracy(found, kernels, train, test)
    assert after["MKPOE"] >= after["upper"] - 0.005 and after["MKPOE"] > after["sum"] + 0.1
    assert abs(after["noise 1"] - 0.5) < 0.06
    mass = np.array([w @ np.diag(k) for w, k in zip(found.weights, inner)])
    assert mass[5:].sum() < 0.03 * mass.sum()
    assert (np.stack(found.weights) == 0).mean() > 0.5  # sparse, as Fig. 8 shows


def test_mcfee_2011_table_2():
    """Processing removes constraints and not accuracy."""
    world = mcfee_toy.noisy_split(0, 2000)
    with threadpool_limits(1):
        out = {
            name: mcfee_toy.processed(world, name, True, 0, None, mcfee_toy.MULTIPLES)
            for name in ("raw", "length2", "algorithm1-reduced")
        }
    for name in ("length2", "algorithm1-reduced"):
        assert out[name]["size"] < out["raw"]["size"] and out[name]["accuracy"] >= out["raw"]["accuracy"] - 0.02
