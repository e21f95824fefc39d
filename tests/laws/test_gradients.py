"""Every objective that is handed to a minimiser with its gradient, against finite differences, as it is handed over.

A descent with half a gradient of one term ends near by, so that no test of what it finds notices. Here the product's
own fits run, and whatever they give to `scipy.optimize.minimize` or to `embedding.descent.minimise` is compared at
random points. The list of fits is complete: calls of both are searched for in the source.
"""

import ast
import importlib

import numpy as np
import pytest
from scipy.optimize import minimize

from stream_engine.alignment import transforms
from stream_engine.clustering import position_fits
from stream_engine.embedding import gradient
from stream_engine.embedding.calibration import calibrate
from stream_engine.embedding.descent import minimise
from stream_engine.embedding.fit import Setting, with_setting
from stream_engine.embedding.individual import fit_weights
from stream_engine.embedding.posterior import Posterior, calibrated_scale
from stream_engine.embedding.questions import of_answers, of_rows
from stream_engine.kernel_learning import factored, linear
from tests.conftest import ROOT
from tests.support.individual_worlds import world
from tests.support.kernel_reference import random_problem
from tests.support.plain_answers import unnamed


def one_map(alpha: float = 0.0):
    rows = np.random.default_rng(0).permuted(np.tile(np.arange(6), (60, 1)), axis=1)[:, :4]
    worker = np.arange(60) % 3
    return with_setting(of_rows(rows, 6, np.ones(60), worker), Setting("t-ste" if alpha else "ste", 2, 0.3))


def weights(kernel: str):
    made = world(0, people=4, each=60, n=7)
    questions = of_answers(made.answers)
    return fit_weights(questions, with_setting(questions, Setting(kernel, 2, 0.3)), 3.0)


def columns():
    rng = np.random.default_rng(0)
    linear.solve(linear.dense_map(rng.normal(size=(20, 4)), np.full(4, 0.5)), np.ones(20))


def factors(loss: str):
    factored.solve(random_problem(np.random.default_rng(0), loss))


def rows_of_four() -> np.ndarray:
    return np.random.default_rng(0).permuted(np.tile(np.arange(6), (60, 1)), axis=1)[:, :4].astype(np.int32)


def given_positions():
    questions = of_rows(rows_of_four(), 6, np.ones(60), np.zeros(60, np.int64))
    position_fits.fits_of_positions(questions, np.random.default_rng(0).normal(size=(6, 2)))


def calibrated_margins():
    calibrate(np.random.default_rng(0).normal(size=40), np.arange(1.0, 41.0), 0.1)


def calibrated_draws():
    rng = np.random.default_rng(0)
    calibrated_scale([(Posterior(rng.normal(size=(3, 6, 2)), rng.uniform(0.1, 0.3, 3)), rows_of_four(), np.ones(60))])


def transforms_of_features(learn):
    answers = unnamed(rows_of_four())
    next(learn(np.random.default_rng(0).normal(size=(6, 3)), answers, [3.0]))


FITS = {
    "stream_engine.alignment.transforms": (
        lambda: transforms_of_features(transforms.weights),
        lambda: transforms_of_features(transforms.linear_maps),
    ),
    "stream_engine.clustering.position_fits": (given_positions,),
    "stream_engine.embedding.calibration": (calibrated_margins,),
    "stream_engine.embedding.fit": (one_map, lambda: one_map(1.0)),
    "stream_engine.embedding.individual": (lambda: weights("ste"), lambda: weights("t-ste")),
    "stream_engine.embedding.posterior": (calibrated_draws,),
    "stream_engine.kernel_learning.linear": (columns,),
    "stream_engine.kernel_learning.factored": (lambda: factors("ste"), lambda: factors("hinge")),
}


def test_every_call_of_a_minimiser_is_listed():
    """By the name that scipy gives it: a new optimiser, or a new place, is to be compared too."""
    found = set()
    for path in (ROOT / "stream_engine").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") in ("minimize", "minimise", "least_squares"):
                found.add(".".join(path.relative_to(ROOT).with_suffix("").parts))
    assert found == FITS.keys()


@pytest.mark.parametrize("module", FITS)
def test_the_gradient_is_the_slope_of_the_objective(module, monkeypatch):
    compared, rng = 0, np.random.default_rng(1)

    def comparing(objective, start, **more):
        nonlocal compared
        assert name == "minimise" or more["jac"] is True
        found = minimise(objective, start, **more) if name == "minimise" else minimize(objective, start, **more)
        for at in (np.asarray(start), found.x):
            at = at + 0.1 * rng.normal(size=at.shape)
            at = np.abs(at) if more.get("bounds") else at
            slope = objective(at)[1]
            for _ in range(3):
                along = rng.normal(size=at.shape)
                by_hand = (objective(at + 1e-6 * along)[0] - objective(at - 1e-6 * along)[0]) / 2e-6
                size = np.linalg.norm(slope) * np.linalg.norm(along)
                assert abs(slope @ along - by_hand) < 1e-4 * size + 1e-6, (slope @ along, by_hand)
                compared += 1
        return found

    fits = importlib.import_module(module)
    name = "minimise" if hasattr(fits, "minimise") else "minimize"
    monkeypatch.setattr(fits, name, comparing)
    monkeypatch.setattr(gradient, "ALONE", 0)  # otherwise one map is fitted without a Python function
    for each in FITS[module]:
        each()
    assert compared >= 6
