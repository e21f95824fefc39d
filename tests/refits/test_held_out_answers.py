"""What refits say of answers that they never had: nothing of these was fitted, and nothing chose by them."""

import numpy as np
import pytest

from stream_engine.evaluation.kept_responses import kept_responses
from stream_engine.evaluation.subset import renumbering
from stream_engine.refits import kernel_learning, kernel_refits, partial_order_embedding
from tests.support.learned import snapshot_of

N = 16


def events(seed: int, screens: int, workers: int = 12, wrong: float = 0.25, shown: int = 6) -> list[dict]:
    """Picks of 3 of 6; a screen in four is answered at random, but by one random ranking: its nine comparisons agree
    with each other and with nothing else."""
    rng = np.random.default_rng(seed)
    points, out = np.random.default_rng(99).normal(size=(N, 2)), []
    for _ in range(screens):
        probe, *images = rng.choice(N, shown + 1, replace=False).tolist()
        places = rng.normal(size=points.shape) if rng.random() < wrong else points
        order = sorted(images, key=lambda i: ((places[i] - places[probe]) ** 2).sum())
        event = {
            "type": "pick",
            "anchor": f"o{probe}",
            "shown": [f"o{i}" for i in sorted(images)],
            "chosen": [f"o{i}" for i in order[:3]],
            "worker": f"w{rng.integers(workers)}",
        }
        out.append(event)
    return out


LEARN = {
    "ste": lambda snapshot, seed=0, **more: kernel_learning.refit(snapshot, kernel_learning.Params(**more), seed),
    "hinge": lambda snapshot, seed=0, **more: kernel_learning.refit(
        snapshot, kernel_learning.Params(loss="hinge", **more), seed
    ),
    "order": lambda snapshot, seed=0, **more: partial_order_embedding.refit(
        snapshot, partial_order_embedding.Params(constraints="raw", **more), seed
    ),
}


@pytest.mark.parametrize("how", LEARN)
def test_what_is_reported_neither_chose_nor_was_fitted(how, monkeypatch):
    """Answers of one fold are turned round: nothing that was chosen moves, only the figures and the last fit."""
    from stream_engine.evaluation import cross_fit, responses

    lines, planned = events(3, 80), cross_fit.plan
    whole = snapshot_of(lines)

    def first_fold(*args) -> cross_fit.Plan:
        group = planned(*args).responses[0]
        return cross_fit.Plan([group._replace(folds=group.folds[:1])], [])

    monkeypatch.setattr(cross_fit, "plan", first_fold)
    one = LEARN[how](whole)
    told = {"tried": one.report["tried"], "error": one.report["error"]}
    reported = np.flatnonzero(first_fold(responses.responses_of(whole, 0)).responses[0].folds[0])
    kept = kept_responses(whole)
    out = np.isin(kept.judgement, reported)
    turned = kept._replace(rows=np.where(out[:, None], kept.rows[:, [2, 3, 0, 1]], kept.rows))
    rows = np.repeat(turned.rows, turned.times[turned.judgement], axis=0)[:, [0, 1, 3]]
    other = counted_again(whole, rows)
    found = responses.responses_of(whole, 0)  # where judgements go does not depend on what was turned round
    answers = found.answers._replace(rows=turned.rows)
    monkeypatch.setattr(kernel_refits, "responses_of", lambda snapshot, seed: found._replace(answers=answers))
    two = LEARN[how](other)
    assert two.report["tried"] == told["tried"] and two.report["error"] == pytest.approx(1 - told["error"], abs=1e-9)
    assert not np.array_equal(two.arrays["K"], one.arrays["K"])


def counted_again(snapshot, triplets: np.ndarray):
    """The snapshot with the counts of other triplets."""
    from stream_engine.data.triplet_columns import columns_from_triplets, state_of_columns

    columns = columns_from_triplets(triplets, len(snapshot.objects))
    arrays = {f"triplet_counts/{key}": array for key, array in state_of_columns(columns).items()}
    return snapshot._replace(arrays={**snapshot.arrays, **arrays})


def test_figures_stand_beside_each_other():
    """By judgement, by worker, and the ceiling, each with how many it rests on."""
    lines = events(5, 150)
    repeated = lines + [line | {"worker": None} for line in lines[:60]]
    report = LEARN["ste"](snapshot_of(repeated)).report
    assert 0 < report["by_worker"]["accuracy"] < 1 and report["by_worker"]["clusters"] == 12
    assert report["by_worker"]["comparisons"] == 9 * 150 and report["held_out_comparisons"] == 9 * 210
    assert report["held_out_clusters"] > 5 and report["standard_error"] > 0
    assert report["error"] == 1 - report["accuracy"] and report["ceiling"]["others"] > 0.8
    assert report["held_out_comparisons"] == 9 * report["held_out_clusters"]
    silent = kernel_learning.refit(snapshot_of(repeated), kernel_learning.Params(), 0, evaluate=False).report
    assert silent["error"] is None
    assert silent["held_out"] == "judgements"
    assert silent["by_worker"] is None


def test_a_given_lambda_is_reported_on_too():
    whole = snapshot_of(events(6, 80))
    for how in ("ste", "hinge"):
        made = LEARN[how](whole, lambda1=5.0)
        assert made.report["tried"] == []
        assert 0 < made.report["error"] < 0.6
        assert made.report["log_loss"] < 1.0
        alone = kernel_learning.refit(whole, kernel_learning.Params(loss=how, lambda1=5.0), 0, evaluate=False)
        assert all(np.array_equal(alone.arrays[name], made.arrays[name]) for name in made.arrays)
    made = LEARN["order"](whole, beta=200.0)
    assert made.report["chosen_by"] == "given" and 0 < made.report["error"] < 0.6


def test_a_subset_reports_on_answers_among_itself():
    whole = snapshot_of(events(7, 300))
    made = LEARN["ste"](whole, objects=10)
    inside = renumbering(made.arrays["ids"], N) >= 0
    kept = kept_responses(whole)
    assert 0 < made.report["error"] < 0.5 and made.report["held_out"] == "judgements"
    assert made.report["held_out_comparisons"] == inside[kept.rows].all(axis=1).sum() < len(kept.rows)
