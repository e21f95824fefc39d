"""Every refit that says how well it foretells says it of answers that neither fitted nor chose.

Where all answers, and all labels, are coins, half of what was never heard comes as expected. A figure of what was
fitted is far above, one of what chose the best of several a little: pooled over worlds both show. A new refit is tested
by being registered, once its report has a figure by one of these names.
"""

import json

import msgspec
import numpy as np
import pytest

from stream_engine.counts import ACCUMULATORS
from stream_engine.formats import decoder
from stream_engine.formats.options import EventOptions
from stream_engine.refits import REFITS, beta_choice, refit_module
from stream_engine.state.artifact import figure
from stream_engine.state.engine import Engine
from tests.refits.laws import PARAMS

N, ANSWERS, WORKERS, WORLDS = 9, 240, 12, 6
FIGURES = {  # where a share of right answers stands in a report, and of how many it is
    ("accuracy",): ("held_out_comparisons",),
    ("by_worker", "accuracy"): ("by_worker", "comparisons"),
    ("held_out", "accuracy"): ("held_out", "objects"),
    ("predictor_agreement",): ("predictor_tested_on",),
}
QUICK = {"triplet_boost": {"rounds": 300}, "partial_order_embedding": {"tolerance": 1e-2}}
SAY_SO = {"kernel_learning", "partial_order_embedding", "embedding", "triplet_boost", "reliability"}  # today


def coins(seed: int):
    rng = np.random.default_rng([seed, 77])
    lines = []
    for at in range(ANSWERS):
        a, b, c = rng.permutation(N)[:3].tolist()
        lines.append({"anchor": f"o{a}", "near": f"o{b}", "far": f"o{c}", "worker": f"w{at % WORKERS}"})
    engine = Engine(tuple(ACCUMULATORS))
    engine.learn(decoder("json", EventOptions(provenance=True))("\n".join(map(json.dumps, lines)).encode()))
    labels = dict(zip((f"o{i}" for i in range(N)), rng.permutation(list("xyxyxyxyx")).tolist()))
    return engine.snapshot()._replace(labels=labels)


def told(reports: list[dict]) -> dict[tuple, tuple[float, float]]:
    """Of each figure that all reports have: the share over all, and how many answers it is of."""
    found = {}
    for path, of in FIGURES.items():
        each = [(figure(report, *path), figure(report, *of)) for report in reports]
        if all(share is not None and many for share, many in each):
            right, total = sum(share * many for share, many in each), sum(many for _, many in each)
            found[path] = right / total, total * (ANSWERS / WORKERS if path == ("predictor_agreement",) else 1)
    return found


@pytest.fixture(scope="module")
def worlds():
    return [coins(seed) for seed in range(WORLDS)]


@pytest.mark.parametrize("name", REFITS)
def test_of_coins_half_come_as_expected(name, worlds, monkeypatch):
    monkeypatch.setattr(beta_choice, "MULTIPLES", (2.0, 8.0))
    module = refit_module(name)
    params = msgspec.convert({**PARAMS.get(name, {}), **QUICK.get(name, {})}, module.Params)
    reports = [module.refit(worlds[0], params, 0).report]
    if not told(reports):
        assert name not in SAY_SO
        pytest.skip("its report has no figure of answers that were held out")
    found = told(reports + [module.refit(world, params, seed).report for seed, world in enumerate(worlds[1:], 1)])
    assert found
    for path, (share, answers) in found.items():
        assert abs(share - 0.5) < 3.5 * 0.5 / np.sqrt(answers), (path, share, answers)


def test_a_leak_would_show(worlds):
    """The accuracy of an embedding of coins on the answers it was fitted to is far beyond what the law allows."""
    from stream_engine.embedding.fit import Setting, with_setting
    from stream_engine.evaluation import judgement_folds
    from stream_engine.evaluation.answer_probabilities import probabilities
    from tests.embedding.test_fit import of_rows

    rows = [judgement_folds.evidence(world, 0).rows for world in worlds]
    right = [
        np.mean(probabilities(with_setting(of_rows(each, N), Setting("ste", 2, 0.3)).points, each, 0.0, 0.0) > 0.5)
        for each in rows
    ]
    assert np.mean(right) > 0.5 + 3.5 * 0.5 / np.sqrt(sum(map(len, rows)))
