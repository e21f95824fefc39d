"""cvxpy as a second solver of the published program: the same optimum and report, a size, and the fallback."""

import numpy as np
import pytest

from stream_engine.clustering import sdp_by_cvxpy
from stream_engine.clustering.cascade import solve
from stream_engine.kernel_learning import programs
from stream_engine.kernel_learning.gram_comparisons import excess, triplet_rows
from stream_engine.refits import CannotRefit, SolverFailed, kernel_refits, refit_module
from stream_engine.refits.sdp_clustering import Params
from tests.support.kernel_reference import planted
from tests.support.planted_similarities import planted_adds3, snapshot_of

N = 14
_, TRIPLETS = planted(3, N, 160, flip=0.2)
SNAPSHOT = snapshot_of(TRIPLETS)
WITHOUT = {each: 0 for each in ("test", "stability") if each in Params.__struct_fields__}  # only the program
GIVEN = {  # kind: parameters that need no selection, the name of the tolerance, one that the engine reaches
    "sdp_clustering": ({"k": 3} | WITHOUT, "tol", 1e-5),
    "partial_order_embedding": ({"beta": 300.0, "constraints": "raw"}, "tolerance", 1e-3),
    "kernel_learning": ({"lambda1": 2.0, "lambda2": 1.0, "loss": "hinge"}, "tolerance", 1e-4),
}


@pytest.fixture(autouse=True)
def without_figures(monkeypatch):
    """They are most of a fit, and no program is solved for them that is looked at here."""
    monkeypatch.setattr(kernel_refits.KernelEvaluation, "evaluate", lambda *_: None)


def made(kind, seed=0, progress=None, **more):
    module, (given, tolerance, value) = refit_module(kind), GIVEN[kind]
    params = module.Params(**(given | {tolerance: value} | more))
    return module.refit(SNAPSHOT, params, seed, None, progress or (lambda done, total, **figures: None))


@pytest.mark.parametrize("kind", GIVEN)
def test_cvxpy_finds_the_same_optimum_with_the_same_report(kind):
    own, second = made(kind), made(kind, solver="cvxpy")
    assert (own.report["solver"], second.report["solver"]) == ("engine", "cvxpy")
    assert own.report.keys() == second.report.keys() and own.arrays.keys() - second.arrays.keys() <= {"warm_v"}
    value = GIVEN[kind][2]
    assert second.report["gap"] <= value and own.report["gap"] <= value
    assert second.report["objective"] == pytest.approx(own.report["objective"], rel=2 * value)
    if kind == "sdp_clustering":
        assert second.report["certified"] and second.report["certified_by"] == "dual bound"
        assert max(abs(each) for each in second.report["residuals"].values()) < 1e-9


def test_sdp_lambda_by_cvxpy_has_the_trace_of_the_engines():
    own, second = (made("sdp_clustering", k=None, lam=3.0, solver=solver) for solver in ("engine", "cvxpy"))
    assert second.report["trace"] == pytest.approx(own.report["trace"], abs=0.01)
    assert second.report["k_by"] == "lam" and second.report["k"] == own.report["k"]


def test_spur_chooses_and_cvxpy_solves():
    own, second = (made("sdp_clustering", k=None, solver=solver) for solver in ("engine", "cvxpy"))
    assert second.report["k"] == own.report["k"] and second.report["criterion"] == own.report["criterion"]
    assert second.report["solver"] == ("cvxpy" if second.report["k"] > 1 else "engine")


@pytest.mark.parametrize("kind", GIVEN)
def test_where_the_engine_misses_its_tolerance_cvxpy_comes_closer(kind, monkeypatch):
    value = 1e-6
    found = made(kind, **{GIVEN[kind][1]: value}, max_iterations=1)
    assert found.report["solver"] == "cvxpy" and found.report["gap"] <= value
    for module in (programs, sdp_by_cvxpy):
        monkeypatch.setattr(module, "MAX_OBJECTS", N - 1)
    if kind == "kernel_learning":
        with pytest.raises(SolverFailed, match="after 1 iterations"):
            made(kind, **{GIVEN[kind][1]: value}, max_iterations=1)
        return
    alone = made(kind, **{GIVEN[kind][1]: value}, max_iterations=1)
    assert alone.report["solver"] == "engine"
    assert alone.report["gap"] > value
    assert not alone.report["certified"]
    if kind != "sdp_clustering":  # it minimises
        assert alone.report["bound"] <= found.report["objective"] <= alone.report["objective"] * (1 + value)


@pytest.mark.parametrize("kind", ["sdp_clustering", "partial_order_embedding"])
def test_what_is_ended_early_is_not_solved_again(kind):
    found = made(kind, progress=lambda done, total, **figures: True, **{GIVEN[kind][1]: 1e-6})
    assert found.report["solver"] == "engine" and not found.report["certified"]


@pytest.mark.parametrize("kind", GIVEN)
def test_above_the_size_cvxpy_is_refused_in_one_line(kind, monkeypatch):
    for module in (programs, sdp_by_cvxpy):
        monkeypatch.setattr(module, "MAX_OBJECTS", N - 1)
    with pytest.raises(CannotRefit) as caught:
        made(kind, solver="cvxpy")
    text = str(caught.value)
    assert "\n" not in text
    assert text.startswith(kind)
    assert f"got {N}" in text
    assert f"at most {N - 1}" in text
    assert "engine" in text and "objects" in text
    monkeypatch.setattr(programs, "MAX_OBJECTS", 100)
    monkeypatch.setattr(programs, "MAX_COMPARISONS", 20)
    if kind != "sdp_clustering":
        with pytest.raises(CannotRefit, match="at most 20"):
            made(kind, solver="cvxpy")


def test_the_bound_of_the_second_solver_holds_for_the_first_and_reversely():
    W, _, _ = planted_adds3(24, 3, 2.0)
    for given in ({"k": 3}, {"k": 20}, {"lam": 4.0}):
        own, second = solve(W, **given, tol=1e-6), sdp_by_cvxpy.solve(W, **given, tol=1e-6)
        assert own.certified and second.certified
        assert own.objective <= second.upper_bound and second.objective <= own.upper_bound


def test_programs_of_nothing_to_learn_and_without_k0():
    rows = triplet_rows(TRIPLETS)
    none = programs.full(rows, N, [None], np.full(len(rows), 1e-3))
    assert np.abs(none.weights[0]).max() < 1e-6
    mu = programs.rckl(TRIPLETS, N, [np.eye(N) / N], "mkl", "hinge", 1.0, 1.0, np.ones(len(rows)))
    assert mu.kernel is None and excess(np.eye(N), rows).any() == False  # noqa: E712  I answers nothing: mu = 0
    assert mu.weights[0] == pytest.approx(0.0, abs=1e-6)
