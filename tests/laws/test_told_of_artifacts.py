"""Figures in the reports of artifacts and the sentences and pages made of them, by definitions of their own, in cases
in which what could be mistaken for them is another number."""

import asyncio
import csv
import io
import json
import re
from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.manifold import trustworthiness
from sklearn.metrics import adjusted_rand_score

from stream_engine.boosting import nested
from stream_engine.boosting.nested import Model
from stream_engine.collect.owner import Owner
from stream_engine.commands import forget, inspect, predict
from stream_engine.data.packed_names import pack_names
from stream_engine.embedding import picture
from stream_engine.embedding.differences import Differences, ParticipantModel
from stream_engine.embedding.questions import of_rows
from stream_engine.evaluation import count_models
from stream_engine.evaluation.held_out import Figures, HeldOut
from stream_engine.evaluation.noise_ceiling import Ceiling
from stream_engine.evaluation.participants import check_participants
from stream_engine.evaluation.worker_reliability import Records, Reliability
from stream_engine.formats.options import EventOptions
from stream_engine.refits import CannotRefit, classify, embedding, hierarchy, kernel_learning, reliability, spectral
from stream_engine.refits.embedding_report import differences_report
from stream_engine.report.findings import findings
from stream_engine.report.findings.data import connected
from stream_engine.report.findings.facts import Commands, Facts
from stream_engine.report.sections import alignment, learning
from stream_engine.state.artifact import Artifact
from stream_engine.state.exclusion import with_exclusions
from stream_engine.state.forgetting import forget_object
from stream_engine.state.published import Published
from tests.support.facts import states
from tests.support.generators import planted_triplets
from tests.support.learned import snapshot_of
from tests.support.told import TOLD


def answers(size: int = 240, n: int = 7, people: int = 3) -> list[dict]:
    rng = np.random.default_rng(3)
    rows = planted_triplets(rng, rng.normal(size=(n, 2)) * [3.0, 1.0], size, 0.2).tolist()
    who = [f"w{int(people * (at / size) ** 2)}" for at in range(size)]  # more of the first
    return [dict(zip(("anchor", "near", "far"), map("o{}".format, row))) | {"worker": w} for row, w in zip(rows, who)]


def test_no_fit_that_predicts_a_labelled_object_had_its_label():
    ids, labels, trained = np.arange(0, 60, 2), np.arange(30) % 3, []

    def score(setting, train, asked):
        trained.append(({*ids[train].tolist()}, {*asked.tolist()}))
        return np.eye(3)[asked % 3], np.zeros(len(asked), bool)

    model = Model("one", (1.0,), score)
    found = nested.choose([model], labels, 3, ids, np.arange(30), 100, 1000, lambda *_, **__: None)
    trained.clear()
    nested.score_all(found, labels, 3, ids, 60)
    assert all(not train & asked for train, asked in trained)
    assert sorted(each for _, asked in trained for each in asked) == list(range(60))
    (rest,) = [train for train, asked in trained if not asked & {*ids.tolist()}]
    assert rest == {*ids.tolist()}


def test_the_usual_class_is_that_of_the_other_folds():
    """Ten objects of one class and eleven of another: where that one is held out, both are as usual elsewhere."""
    labels = np.array([0, 1] * 10 + [1])
    flat = Model("flat", (1.0,), lambda _, train, asked: (np.zeros((len(asked), 2)), np.zeros(len(asked), bool)))
    found = nested.choose([flat], labels, 2, np.arange(21), np.arange(21), 100, 1000, lambda *_, **__: None)
    right = 0
    for fold in range(5):
        train, test = labels[found.fold != fold], labels[found.fold == fold]
        right += (test == np.bincount(train).argmax()).sum()
    assert found.majority == pytest.approx(right / 21)


def test_shares_of_variance_are_of_squares():
    made = embedding.refit(snapshot_of(answers()), embedding.Params(dimensions=2, kernel="ste", ridge=1.0), 0)
    x = made.arrays["X"]
    variance = ((x - x.mean(axis=0)) ** 2).mean(axis=0)
    assert made.report["explained"] == pytest.approx((variance / variance.sum()).tolist(), rel=1e-3)
    assert abs(np.sqrt(variance)[0] / np.sqrt(variance).sum() - made.report["explained"][0]) > 0.01


def test_participants_agree_with_others_where_others_decide():
    said = answers()
    made = reliability.refit(snapshot_of(said), reliability.Params(), 0)
    agreed = disagreed = 0
    for event in said:
        others = [e for e in said if e["worker"] != event["worker"] and e["anchor"] == event["anchor"]]
        same = sum((e["near"], e["far"]) == (event["near"], event["far"]) for e in others)
        opposite = sum((e["far"], e["near"]) == (event["near"], event["far"]) for e in others)
        agreed, disagreed = agreed + (same > opposite), disagreed + (same < opposite)
    assert made.report["agreement_with_others"] == pytest.approx(agreed / (agreed + disagreed))
    assert agreed + disagreed < len(said)
    accuracy = made.arrays["accuracy"]
    assert made.report["accuracy_10_50_90"] == pytest.approx(np.percentile(accuracy, [10, 50, 90]), abs=6e-5)


def test_the_share_of_the_bound_is_that_of_the_best_tree(monkeypatch):
    monkeypatch.setattr(hierarchy, "METHODS", hierarchy.METHODS[::-1])  # average linkage, mostly the best, is not first
    made = hierarchy.refit(snapshot_of(answers()), hierarchy.Params(), 0)
    revenue = made.report["revenue"]
    assert next(iter(revenue.values())) < max(revenue.values())
    assert made.report["share_of_bound"] == pytest.approx(max(revenue.values()) / float(made.arrays["revenue_bound"]))
    assert made.report["method"] == max(revenue, key=revenue.get)


def test_partitions_without_somebody_are_compared_with_those_before():
    now, then = np.array([0, 0, 0, 1, 1, 1]), np.array([0, 0, 1, 1, 1, 0])
    one, other = (Artifact("clusters", "", 1, {}, 0, {"labels": labels}, {"k": 2}) for labels in (now, then))
    made = with_exclusions(one, ("w1",), other).report["excluded"]["before"]
    assert made["ari"] == pytest.approx(adjusted_rand_score(now, then)) != 1.0


def test_the_names_of_the_smallest_set_are_those_that_are_listed():
    large = [
        dict(zip(("anchor", "near", "far"), f"a{at % 5} a{(at + 1) % 5} a{(at + 2) % 5}".split())) for at in range(9)
    ]
    small = [dict(zip(("anchor", "near", "far"), ("b1", "b2", "b3")))]
    found = findings(Facts(Published(snapshot_of(large + small), {}), Commands("DIR"), None))
    (said,) = [each for topic in found.values() for each in topic if each.what == "disconnected"]
    assert said.figures == {"sets": 2, "sizes": [5, 3], "questions_across": 0}
    assert all(name in said.text for name in ("b1", "b2", "b3"))
    assert not any(f"a{at}" in said.text for at in range(5))


FILTERS = {
    ("pick", "anchor=ref,chosen=c", 5): "--where 'ref!=b1|b2|b3'",
    ("triplet", "", 3): "--where 'anchor=a0|a1|a2'",
    ("odd_one_out", "objects=p|q|r", 5): "--where 'p!=b1|b2|b3'",
    ("odd_one_out", "", 5): "",
    ("pick", "anchor=ref1|ref2", 5): "",
}


@pytest.mark.parametrize("how, wanted", FILTERS.items())
def test_the_command_that_reads_the_largest_set_alone_filters_one_column(how, wanted):
    kind, columns, size = how
    sets = [[f"a{at}" for at in range(size)], ["b1", "b2", "b3"]]
    events = [
        dict(zip(("anchor", "near", "far"), (names[at], names[(at + 1) % len(names)], names[(at + 2) % len(names)])))
        for names in sets
        for at in range(len(names))
    ]
    snapshot = snapshot_of(events)
    options = {"type": kind, "columns": dict(each.split("=") for each in columns.split(",") if each)}
    counters = {**snapshot.counters, "input": {"options": options}}
    snapshot = snapshot._replace(counters=counters, positions={"/data/b c.csv": SimpleNamespace(offset=1)})
    (said,) = connected(Facts(Published(snapshot, {}), Commands("DIR")))
    assert said.command == (f"stream-engine report '/data/b c.csv' {wanted}" if wanted else "")


def test_a_picture_of_several_sets_is_as_good_as_its_worst_part():
    rng = np.random.default_rng(1)
    points = np.concatenate([rng.normal(size=(30, 2)), 3 * rng.normal(size=(33, 6))[:, :2]])
    points = np.hstack([points, np.concatenate([np.zeros((30, 4)), 3 * rng.normal(size=(33, 4))])])
    rows = [start + planted_triplets(rng, points[start : start + m], 1500) for start, m in ((0, 30), (30, 33))]
    made = picture.picture(points, of_rows(np.concatenate(rows)[:, [0, 1, 0, 2]], 63), 0.1)
    each = [
        trustworthiness(points[part], made.points[part], n_neighbors=min(10, (len(points[part]) - 1) // 2))
        for part in (slice(30), slice(30, 63))
    ]
    assert made.trustworthiness == pytest.approx(min(each))
    assert each[0] != pytest.approx(each[1])


STEPS = {  # accuracies at more and more answers, their standard error -> what is said: whether more of them would help
    ((0.60, 0.80, 0.801), 0.001): False,
    ((0.60, 0.80, 0.804), 0.001): False,  # significant and small
    ((0.60, 0.80, 0.83), 0.02): False,  # large and not significant
    ((0.80, 0.70, 0.78), 0.001): False,  # fewer predicted better
    ((0.75, 0.70, 0.78), 0.001): True,
    ((0.60, 0.601, 0.70), 0.001): True,
}


@pytest.mark.parametrize("of_steps, helps", STEPS.items())
def test_whether_more_answers_help_is_read_off_the_last_two_steps(of_steps, helps, monkeypatch):
    accuracies, error = of_steps
    steps = [learning.Step(100 * 2**at, figures(share, error)) for at, share in enumerate(accuracies)]
    monkeypatch.setattr(learning, "curve", lambda *_: (steps, np.full(60, 0.7), np.ones(60, bool)))
    held = snapshot_of(answers())
    made = Artifact("embedding", "", 1, {}, 0, {}, {})
    published = Published(held, {"embedding": made})
    of = SimpleNamespace(
        artifact=lambda kind: made,
        summary={"comparisons": 400},
        published=published,
        progressive={},
        facts=SimpleNamespace(beats_chance=True),
    )
    says = learning.section(of).says
    assert says.endswith(": more answers would help.") is helps
    assert [f"{100 * share:.1f} %" in says for share in accuracies] == [False, True, True]
    assert [f"{number} comparisons" in says for number in (100, 200, 400)] == [False, True, True]


def figures(share: float, error: float) -> Figures:
    known = dict.fromkeys(Figures._fields)
    return Figures(**known | {"accuracy": share, "standard_error": error, "log_loss": 0.5})


def test_a_table_of_models_has_each_figure_below_its_head():
    row = {"model": "embedding", "accuracy": 0.71, "standard_error": 0.02, "log_loss": 0.533, "seconds": 4.2}
    lines = inspect._models([row | {"accuracy_by_worker": 0.64}])
    _, heads, cells, *_ = lines
    ends = [heads.index(head) + len(head) for head in ("± 95 % CI", "log loss", "CPU s", "new participants")]
    assert [cells[: ends[0]].split()[-2], *(cells[a:b].split()[0] for a, b in pairwise(ends))] == [
        "3.9",
        "0.533",
        "4.2",
        "64.0",
    ]
    assert "71.0" in cells


def test_progressive_figures_stand_below_their_heads():
    window = {"tested": 1200, "accuracy": 0.71, "log_loss": 0.61, "calibration_error": 0.05}
    recent = {"tested": 300, "accuracy": 0.82, "log_loss": 0.42, "calibration_error": 0.09}
    held = {"snapshot": 3, "sampled": 5, "seen": 9, "drift": {"accuracy": {"alarms": 2}}}
    lines = inspect.predictions(held | {"predictors": {"adds3": {"all": {"total": window, "rolling": recent}}}})
    assert lines[2].split() == ["adds3", "all", "1,200", "0.710", "0.820", "0.420", "0.090"]
    assert lines[1].split()[:4] == ["predictor", "type", "tested", "accuracy"]


def test_a_predicted_file_has_the_columns_of_every_row():
    rows = [{"anchor": "a", "p": 0.5}, {"anchor": "b", "note": "x", "p": 0.25}]
    found = list(csv.DictReader(io.StringIO(predict.as_file(rows, ".csv", True).decode())))
    assert found == [{"anchor": "a", "note": "", "p": "0.5"}, {"anchor": "b", "note": "x", "p": "0.25"}]


def test_the_middle_80_per_cent_are_from_the_10th_to_the_90th():
    """Of accuracies of which no other two percentiles are as far apart."""
    share = np.linspace(0, 1, 101) ** 2
    low, high = (f"{100 * value:.0f} %" for value in np.percentile(share, [10, 90]))
    report = {"sets": [], "chosen_by_model": 0, "predicts": {"sets": [{"set": "pixels"}]}}
    made = SimpleNamespace(report=report, arrays={"participant_accuracy": share[:, None], "participant_answers": share})
    (said,) = [text for text in alignment._notes(made) if "80 %" in text]
    assert f"{low} to {high}" in said
    assert "101" in said


def test_those_who_answered_last_stand_first():
    head = ("worker", "answers", "first", "latest")
    rows = [("a", 3, 5.0, 20.0), ("b", 9, 1.0, 40.0), ("c", 1, 9.0, 30.0)]
    answer = asyncio.run(Owner._latest(SimpleNamespace(_people_table=lambda: (head, rows)), None))
    shown = json.loads(answer.body)
    assert [row["worker"] for row in shown["shown"]] == ["b", "c", "a"]
    assert shown["participants"] == 3


def test_what_a_report_adds_up_is_that_of_its_participants():
    """Five catch trials passed and two failed; contradictions with oneself are fewer than repeated questions."""
    caught = [{"anchor": "o1", "near": "o2", "far": "o3", "worker": "w1", "catch": at < 5} for at in range(7)]
    options = EventOptions(provenance=True, columns={"catch": ("catch",)})
    said = answers()
    report = reliability.refit(snapshot_of(said + caught, options=options), reliability.Params(), 0).report
    assert (report["catch_trials"], report["catch_trials_failed"]) == (7, 2)
    asked: dict[tuple, list[int]] = {}
    for event in said:
        low, high = sorted((event["near"], event["far"]))
        asked.setdefault((event["worker"], event["anchor"], low, high), [0, 0])[event["near"] == low] += 1
    repeats = sum(sum(votes) - 1 for votes in asked.values())
    against = sum(min(votes) for votes in asked.values())
    assert report["repeats"] == repeats
    assert report["contradictions_with_self"] == against != repeats


def test_what_a_predictor_of_answers_tells_stands_by_its_name():
    found = Reliability(np.array([0.9, 0.5]), np.empty(0), 2.5, 0.61, 4, 17)
    unheard = Figures(0.58, 0.03, 0.66, 0.04, 90, 7)
    tallies = {"passed": np.array([2]), "failed": np.array([1])}
    made = reliability._report(found, unheard, Records(*np.arange(1, 11).reshape(5, 2)), tallies)
    assert (made["predictor_rank"], made["slope"], made["iterations"]) == (4, 2.5, 17)
    assert (made["predictor_agreement"], made["predictor_agreement_error"]) == (0.58, 0.03)
    assert (made["predictor_tested_on"], made["predictor_agreement_that_chose"]) == (7, 0.61)


def test_what_was_held_out_stands_by_its_name():
    of_answers, of_people = Figures(0.71, 0.02, 0.53, 0.04, 390, 290), Figures(0.68, 0.03, 0.57, 0.05, 210, 17)
    made = HeldOut("judgements", of_answers, of_people, Ceiling(0.81, 120, 0.86, 60, 0.84), 1.9).report()
    assert made == {
        "held_out": "judgements", "accuracy": 0.71, "error": pytest.approx(0.29), "standard_error": 0.02,
        "log_loss": 0.53, "calibration_error": 0.04, "held_out_comparisons": 390, "held_out_clusters": 290,
        "by_worker": {"accuracy": 0.68, "standard_error": 0.03, "log_loss": 0.57, "calibration_error": 0.05,
                      "comparisons": 210, "clusters": 17},
        "ceiling": {"others": 0.81, "answers": 120, "themselves": 0.86, "own_answers": 60, "at_most": 0.84},
        "probability_slope": 1.9,
    }  # fmt: skip
    nothing = HeldOut("judgements", None, None, None).report()
    assert (nothing["accuracy"], nothing["error"], nothing["by_worker"], nothing["ceiling"]) == (None,) * 4


def test_the_model_of_classes_is_the_one_with_the_least_loss():
    """Three models: the second one says the right class with the largest margin, the third one is sure of it too."""
    labels = np.arange(30) % 2

    def saying(size):
        return lambda setting, _, asked: (size * setting * np.eye(2)[labels[asked]], np.zeros(len(asked), bool))

    models = [Model(name, (1.0, 4.0), saying(size)) for name, size in (("weak", 0.0), ("good", 3.0), ("wrong", -1.0))]
    found = nested.choose(models, labels, 2, np.arange(30), np.arange(30), 100, 1000, lambda *_, **__: None)
    made = classify._report(found, ["a", "b"], np.arange(40), np.arange(30), {"k1": "why"})
    assert made["model"] == "good" and made["setting"] == found.setting_by_model["good"]
    assert made["chosen_by"].startswith("log loss") and made["without"] == {"k1": "why"}
    assert (made["labelled"], made["predicted"], made["classes"]) == (30, 40, ["a", "b"])
    held = made["held_out"]
    assert (held["objects"], held["accuracy"], held["abstained"], held["majority_class_accuracy"]) == (30, 1, 0, 0.5)
    assert {row["model"]: row["accuracy"] for row in made["models"]} == {"weak": 0.5, "good": 1.0, "wrong": 0.0}
    assert [row["model"] for row in made["models"] if row["best"]] == ["good"]


def test_what_the_tests_of_individual_differences_tell_stands_by_its_name():
    weights = SimpleNamespace(shrinkage=3.0, scale=0.7)
    tested = Differences(
        "participants differ", 9, 0.004, weights, 0.02, 0.03, map_setting=np.array([0, -1, 2]),
        gain=np.array([0.01, 0.3, 0.02]), standard_error=np.array([0.5, 0.06, 0.7]),
        p_values=np.array([0.8, 0.001, 0.9]), objects=([2, 0],),
    )  # fmt: skip
    made = differences_report(ParticipantModel(None, None, None, tested), ("u", "v", "w"), ("a", "b", "c"))
    named = ("verdict", "participants", "p_value", "shrinkage", "scale", "gain_of_weights", "p_of_weights", "own_maps")
    assert [made[name] for name in named] == ["participants differ", 9, 0.004, 3.0, 0.7, 0.02, 0.03, 2]
    (who,) = made["who"]
    assert who == {"participant": "v", "gain": 0.3, "standard_error": 0.06, "p_value": 0.001, "objects": ["c", "a"]}


def test_what_a_fit_tells_stands_by_its_name(monkeypatch):
    """A lapse rate that was calibrated is another one than that of the fit."""
    fits, fitted = [], embedding.with_setting
    monkeypatch.setattr(embedding, "with_setting", lambda *a, **k: fits.append(fitted(*a, **k)) or fits[-1])
    given = embedding.Params(dimensions=2, kernel="t-ste", ridge=1.0)
    said = answers(people=2)
    made = embedding.refit(snapshot_of(said), given, 0, evaluate=False)
    fit, report = fits[-1], made.report
    for name in ("objective", "iterations", "evaluations", "converged", "slope", "guessers", "alpha"):
        assert report[name] == getattr(fit, name), name
    assert report["fitted_log_loss"] == pytest.approx(-fit.log_likelihood / len(said))
    rate = np.average(fit.lapse[1:], weights=[sum(e["worker"] == w for e in said) for w in ("w0", "w1")])
    assert report["lapse_fitted"] == pytest.approx(rate, abs=0.02) and report["scale"] == 1.0


@pytest.mark.parametrize("failed, of, flagged", [(3, 6, True), (2, 6, False), (3, 9, False)])
def test_who_fails_half_of_the_catch_trials_is_named_with_how_many(failed, of, flagged):
    trials = [{"anchor": "o1", "near": "o2", "far": "o3", "worker": "w1", "catch": at >= failed} for at in range(of)]
    options = EventOptions(provenance=True, columns={"catch": ("catch",)})
    found = check_participants(Published(snapshot_of(answers() + trials, options=options), {}), False)
    (why,) = (each for name, each in zip(found.names, found.reasons) if name == "w1")
    assert ("catch" in str(why)) == flagged
    assert not flagged or re.findall(r"(\d+) of (\d+) catch", str(why)) == [(str(failed), str(of))]


def test_who_gave_catch_trials_alone_does_not_hide_what_the_map_says_of_others():
    trial = {"anchor": "o1", "near": "o2", "far": "o3", "worker": "w9", "catch": True}
    options = EventOptions(provenance=True, columns={"catch": ("catch",)})
    snapshot = snapshot_of([*answers(), trial], options=options)._replace(digest="of this snapshot")
    by_map = np.tile([80.0, 60.0, 40.0, 42.0, 50.0, 90.0], (3, 1))
    arrays = pack_names(["w0", "w1", "w2"]) | {"worker_predicted": by_map}
    fit = Artifact("embedding", snapshot.digest, 1, {}, 0, arrays, {}, snapshot.digest)
    found = check_participants(Published(snapshot, {"embedding": fit}), False)
    assert dict(zip(found.names, found.accuracy.tolist())) == pytest.approx(
        {"w0": 0.75, "w1": 0.75, "w2": 0.75, "w9": np.nan}, nan_ok=True
    )
    assert dict(zip(found.names, found.reasons))["w9"] == ""


def test_what_the_order_loses_with_an_object_is_counted():
    snapshot = snapshot_of([event for event in answers(60) if event["anchor"] != "o6"])
    kept = snapshot.section("partial_order")["kept"]
    gone = forget_object(snapshot, "o6")
    leaving = int((kept == list(snapshot.objects).index("o6")).any(axis=1).sum())
    assert gone.order_lost == leaving
    assert 0 < leaving != len(kept) - leaving
    assert states(forget._report(gone.snapshot, 0, snapshot, gone, (), True), f"order lost {leaving} comparisons")
    assert gone.comparisons != leaving


def test_chance_is_a_coin_on_answers_of_new_participants_too():
    """Its accuracy is no estimate; how many answers, and of how many people, stays."""
    held = HeldOut("judgements", Figures(0.7, 0.02, 0.5, 0.1, 40, 9), Figures(0.8, 0.03, 0.4, 0.2, 30, 6), None)
    made = count_models._chance(held)
    assert made.judgement == Figures(0.5, None, pytest.approx(np.log(2)), 0.0, 40, 9)
    assert made.worker == Figures(0.5, None, pytest.approx(np.log(2)), 0.0, 30, 6)


def test_the_bound_of_trees_is_of_counts_whatever_the_similarity():
    snapshot = snapshot_of(answers())
    by = [hierarchy.refit(snapshot, hierarchy.Params(similarity=each), 0) for each in ("adds3", "k1")]
    assert by[0].arrays["revenue_bound"] == by[1].arrays["revenue_bound"]
    assert by[0].arrays["revenue"] != by[1].arrays["revenue"]


def test_objects_that_nobody_compared_are_not_clustered():
    report = spectral.refit(snapshot_of(answers(), objects=("lonely", "alone")), spectral.Params(k=2), 0).report
    assert (report["objects"], report["clustered"], report["k"], report["k_by"]) == (9, 7, 2, "given")


def test_of_questions_that_are_all_tied_the_answers_are_counted():
    tied = [{"anchor": "a", "near": x, "far": y} for x, y in (("b", "c"), ("c", "b"), ("b", "d"), ("d", "b"))]
    with pytest.raises(CannotRefit) as raised:
        kernel_learning.refit(snapshot_of(tied), kernel_learning.Params(), 0)
    assert re.findall(r"all (\d+)", str(raised.value)) == ["2"]


def test_squares_are_of_the_weight_of_each_comparison(study):
    weight, answers = (TOLD["workers"][name] for name in ("weight", "comparisons"))
    squares = sum(weight(study, who) ** 2 * answers(study, who) for who in study.workers)
    assert study.fits["reliability"].squares == pytest.approx(squares)
    assert squares != pytest.approx(sum(weight(study, who) * answers(study, who) for who in study.workers))
