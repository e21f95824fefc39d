"""Refits that are asked to end give the best that they have, and say that it is not finished."""

import json
import os
import signal
import subprocess
import sys

import numpy as np
import pytest

from stream_engine import Engine
from stream_engine.refits import ENDS_EARLY, refit_module
from stream_engine.state.store import Store
from tests.support.generators import decoded, planted_triplets


@pytest.fixture(scope="module")
def snapshot():
    """A continuum, whose clusters no certificate proves."""
    rng, engine = np.random.default_rng(0), Engine()
    engine.learn(decoded(planted_triplets(rng, rng.normal(size=(24, 2)), 800, 0.1), 24))
    return engine.snapshot()


GIVEN = {"sdp_clustering": {"k": 3, "tol": 1e-9}}


@pytest.mark.parametrize("kind", sorted(ENDS_EARLY))
def test_the_best_so_far_is_told_as_such(kind, snapshot):
    module, calls = refit_module(kind), {True: 0, False: 0}

    def made(enough):
        def progress(done, total, **figures):
            calls[enough] += 1
            assert 0 <= done <= total
            return enough

        return module.refit(snapshot, module.Params(**GIVEN.get(kind, {})), 0, None, progress)

    early, whole = made(True), made(False)
    assert calls[True] < calls[False]
    if "gap" in early.report:
        assert early.report["gap"] > whole.report["gap"]
    if kind == "sdp_clustering":
        assert not early.report["certified"] and early.report["gap"] > 1e-9
        assert early.report["objective"] <= whole.report["objective"] + 1e-9 <= early.report["upper_bound"] + 1e-6
    if kind == "embedding":
        assert len(early.report["tried"]) < len(whole.report["tried"])
        assert early.report["accuracy"] is None or early.report["standard_error"] >= whole.report["standard_error"]


def test_ctrl_c_publishes_the_best_so_far(snapshot, tmp_path):
    Store(tmp_path).publish(snapshot)
    command = [sys.executable, "-m", "stream_engine", "refit", "--state", str(tmp_path), "sdp_clustering"]
    given = {**GIVEN["sdp_clustering"], "tol": 1e-15, "max_iterations": 10**9}
    pipe = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen([*command, "--params", json.dumps(given), "--progress", "json"], **pipe) as process:
        first = json.loads(process.stdout.readline())
        os.kill(process.pid, signal.SIGINT)
        _, errors = process.communicate(timeout=60)
    assert process.returncode == 0, errors
    report = Store(tmp_path).latest_artifact("sdp_clustering", 1, 24).report
    assert first["total"] <= 10**9 and report["iterations"] < 10**6
    assert report["solved"].startswith("not to the requested tolerance")
