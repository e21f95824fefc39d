"""What the two papers on kernel learning claim of their synthetic experiments, at sizes that take seconds.

The whole experiments are commands: tests/benchmarks/heim_synthetic.py and mcfee_toy.py.
"""

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from tests.benchmarks import heim_synthetic, mcfee_toy


@pytest.fixture(scope="module")
def heim():
    """Two trials with 50 objects: few triplets, and many."""
    with threadpool_limits(1):
        return heim_synthetic.experiment(2, [100, 600], n=50, grid=(0.4, 0.1, 0.03))


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


def test_heim_tables_and_figures_are_drawn(heim, tmp_path):
    text = heim_synthetic.table(heim, [100, 600])
    assert text.count("\n") == 10 and "hinge-ak" in text and "rank of K0" in text
    heim_synthetic.figure(heim, [100, 600], str(tmp_path / "fig1.png"))
    assert (tmp_path / "fig1.png").stat().st_size > 5000


def test_mcfee_2011_figures_5_and_8(tmp_path):
    """Diagonal MKPOE beats the sum kernel by far and the best single kernel; noise kernels get a negligible share."""
    with threadpool_limits(1):
        results, learned = mcfee_toy.figure5(1, 1500, "diagonal")
    after = {name: pairs[0][1] for name, pairs in results.items()}
    assert after["MKPOE"] >= max(value for name, value in after.items() if name != "MKPOE") - 0.005
    assert after["MKPOE"] > after["sum"] + 0.1
    assert all(abs(after[f"noise {i}"] - 0.5) < 0.06 for i in range(1, 6))
    found, inner = learned[0]
    mass = np.array([w @ np.diag(k) for w, k in zip(found.weights, inner)])
    assert mass[5:].sum() < 0.03 * mass.sum()
    assert (np.stack(found.weights) == 0).mean() > 0.5  # sparse, as Fig. 8 shows
    mcfee_toy.weights_figure(found, inner, str(tmp_path / "fig8.png"))
    assert (tmp_path / "fig8.png").stat().st_size > 5000


def test_mcfee_2011_table_2():
    """Processing removes constraints and not accuracy."""
    with threadpool_limits(1):
        out = {name: pairs[0] for name, pairs in mcfee_toy.table2(1, 2000, "diagonal").items()}
    assert out["raw"][0] > out["length2"][0] and out["raw"][0] > out["canonical-reduced"][0]
    assert out["length2"][1] >= out["raw"][1] - 0.02 and out["canonical-reduced"][1] >= out["raw"][1] - 0.02
