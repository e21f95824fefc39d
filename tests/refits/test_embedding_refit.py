"""The refit `embedding`: which answers it takes, who is held out, what it says, and what it hands on."""

import msgspec
import numpy as np
import pytest

from stream_engine import exports
from stream_engine.data.packed_names import unpack_names
from stream_engine.embedding import choice
from stream_engine.embedding.questions import of_rows
from stream_engine.evaluation import cross_fit
from stream_engine.evaluation.answer_probabilities import margins, probability
from stream_engine.evaluation.answers import answers_of
from stream_engine.evaluation.learned import of_embedding
from stream_engine.evaluation.participant_model import of_participant
from stream_engine.evaluation.responses import CHOOSE, FIT, HELD
from stream_engine.exports.object_places import has_regions
from stream_engine.refits import embedding, embedding_models
from stream_engine.refits.embedding_report import reason_for_no_regions
from stream_engine.state.published import Published
from tests.support import learned
from tests.support.facts import states
from tests.support.generators import planted_triplets
from tests.support.individual_worlds import world
from tests.support.kernel_reference import snapshot_of

N = 14
QUICK = embedding.Params(dimensions=2, kernel="ste", ridge=0.3)
ALIKE = msgspec.structs.replace(QUICK, participants="alike")  # without models of participants, most of such a fit
QUICK_ALL = embedding.Params(dimensions=2, kernel="ste", ridge=0.3, lapse="all")


def events(seed=0, m=900, workers=12, guessers=4):
    """Lines of triplets and quadruplets by named workers, some of whom guess, and the points."""
    rng = np.random.default_rng(seed)
    points = rng.normal(size=(N, 2))
    lines = []
    for number in range(m):
        worker = number % workers
        if rng.random() < 0.2:
            i, j, k, l = rng.choice(N, 4, replace=False)
            near = np.linalg.norm(points[i] - points[j]) < np.linalg.norm(points[k] - points[l])
            pairs = [[f"o{i}", f"o{j}"], [f"o{k}", f"o{l}"]]
            near = bool(rng.random() < 0.5 if worker < guessers else near)
            lines.append({"type": "quadruplet", "near": pairs[not near], "far": pairs[near], "worker": f"w{worker}"})
        else:
            a, b, c = planted_triplets(rng, points, 1, 0.5 if worker < guessers else 0.0)[0]
            lines.append(
                {"type": "triplet", "anchor": f"o{a}", "near": f"o{b}", "far": f"o{c}", "worker": f"w{worker}"}
            )
    return lines, points


def snapshot(accumulators, **more):
    lines, points = events(**more)
    return learned.snapshot_of(lines, accumulators, guard=False), points


ALL = ("triplet_counts", "quadruplet_counts")


@pytest.mark.parametrize("accumulators", [ALL, (*ALL, "worker_votes"), (*ALL, "judgements")])
def test_every_answer_is_of_one_part(accumulators):
    made, _ = snapshot(accumulators)
    responses, answers = answers_of(made, 3)
    group = cross_fit.plan(responses).responses[0]
    assert answers.times.sum() == made.counters["comparisons"] == 900
    parts = [answers.without(group.part != FIT), *(answers.of_responses(group.part == part) for part in (CHOOSE, HELD))]
    assert sum(part.times.sum() for part in parts) == 900 and parts[FIT].times.sum() > parts[CHOOSE].times.sum() > 0
    units = [set(part.response.tolist()) for part in parts]
    assert sum(len(each) for each in units) == len(set().union(*units))
    held = responses.answers.of_responses(group.part == HELD)
    assert held.times.sum() == parts[HELD].times.sum() > 0
    assert answers.without(group.part == HELD).times.sum() == 900 - held.times.sum()
    assert responses.by == ("judgements" if "judgements" in accumulators else "comparisons")
    assert (len(answers.participants) > 0) == (len(accumulators) > 2)


@pytest.mark.parametrize("accumulators", [(*ALL, "worker_votes"), (*ALL, "judgements")])
def test_those_who_guess_are_named(accumulators, monkeypatch):
    made, _ = snapshot(accumulators, m=1800)
    arrays = embedding.refit(made, ALIKE, 0, evaluate=False).arrays
    lapse = dict(zip(unpack_names(arrays["utf8"], arrays["offsets"]), arrays["worker_lapse"]))
    assert len(lapse) == 12
    assert min(lapse[f"w{w}"] for w in range(4)) > max(lapse[f"w{w}"] for w in range(4, 12))
    for how in ("all", "none"):
        one = embedding.refit(made, msgspec.structs.replace(ALIKE, lapse=how), 0, evaluate=False).arrays
        assert len(one["worker_lapse"]) == 0 and (float(one["lapse"]) > 0) == (how == "all")
    monkeypatch.setattr(embedding_models, "MIN_PARTICIPANT_ANSWERS", 1000)
    few = embedding.refit(made, ALIKE, 0, evaluate=False).arrays
    assert np.ptp(few["worker_lapse"]) < 1e-12


def test_the_figures_are_those_of_what_predict_says_and_knowing_the_worker_is_told_beside_them():
    """Four of twelve guess: who knows them loses less; the log loss of the model is that of its answers to anybody."""
    made, _ = snapshot((*ALL, "worker_votes", "judgements"), m=6000)
    report = embedding.refit(made, QUICK, 0).report
    knowing = report["knowing_worker"]
    assert knowing["log_loss"] < report["log_loss"] - 0.02 and knowing["comparisons"] == report["held_out_comparisons"]
    assert report["calibration_error"] < 0.06 and knowing["accuracy"] > report["accuracy"] - 0.005
    told = -np.log(1.0 - report["lapse"] / 2.0)  # nobody is more likely than this to answer so
    assert report["log_loss"] > told and embedding.refit(snapshot(ALL)[0], QUICK, 0).report["knowing_worker"] is None


def test_a_sample_of_the_answers_is_the_same_for_every_seed():
    made, _ = snapshot(ALL, m=900, guessers=0)
    whole, *samples = (
        embedding.refit(made, QUICK_ALL, seed, evaluate=False, max_answers=most).arrays["X"]
        for seed, most in ((0, None), (0, 400), (1, 400))
    )
    np.testing.assert_array_equal(*samples)
    assert np.abs(whole - samples[0]).max() > 1e-3


def test_few_answers_are_predicted_by_the_average_over_draws():
    """By `predict` and by the figures; not where the model was given."""
    made, points = snapshot((*ALL, "judgements"), m=150, guessers=0)
    artifact = embedding.refit(made, embedding.Params(), 1)
    draws, lapse = artifact.arrays["draws"], artifact.arrays["draw_lapse"]
    rows = np.array([[0, 1, 0, 2], [3, 4, 5, 6]])
    expected = np.mean([probability(margins(each, rows), rate) for each, rate in zip(draws, lapse)], axis=0)
    np.testing.assert_allclose(of_embedding(artifact)(rows), expected)
    np.testing.assert_allclose(of_participant(artifact, "nobody")[0](rows), expected)
    assert artifact.report["draws"] == len(draws) > 0 and artifact.report["log_loss"] < 0.6
    assert "draws" not in embedding.refit(made, QUICK, 1, evaluate=False).arrays
    whole, _ = snapshot((*ALL, "judgements"), m=900, guessers=0)
    assert "draws" not in embedding.refit(whole, embedding.Params(), 1, evaluate=False).arrays


def test_regions_are_only_offered_where_they_cover():
    """Not of few answers where the number of dimensions was chosen; given the model they are."""
    few, _ = snapshot((*ALL, "judgements"), m=900, guessers=0)
    made = embedding.refit(few, embedding.Params(participants="alike"), 1, evaluate=False)
    assert states(made.report["no_regions"], "fewer than 75 times") and "covariance" in made.arrays
    assert not has_regions(made) and embedding.refit(few, ALIKE, 1, evaluate=False).report["no_regions"] is None
    table = exports.contents("embedding", Published(few, {"embedding": made}))["embedding"].tables["embedding"]
    assert not any(name.startswith("sd_") for name in table)
    many, _ = snapshot((*ALL, "judgements"), m=1800, guessers=0)
    many = embedding.refit(many, embedding.Params(participants="alike"), 1, evaluate=False)
    low, high = many.report["dimensions_interval"]
    assert many.report["d"] == low < high, "of numbers that predict alike, the smallest"
    assert many.report["no_regions"] is None and has_regions(many)


def test_no_regions_where_a_smaller_number_of_dimensions_may_be_right():
    chosen = choice.Choice(choice.Setting("ste", 2, 1.0), "held-out log loss", [], (), interval=(1, 2))
    smaller = choice.Trial(choice.Setting("ste", 1, 1.0), 0.0, np.zeros(1), None, None, None)
    questions = of_rows(np.array([[0, 1, 0, 2]] * 300, np.int32), 3)
    for smallest, says in ((smaller, "uncertain"), (smaller._replace(setting=chosen.setting), None)):
        why = reason_for_no_regions(questions, chosen._replace(smallest=smallest), False, 2)
        assert why is None if says is None else says in why


def test_ids_do_not_matter():
    rng = np.random.default_rng(0)
    triplets = planted_triplets(rng, rng.normal(size=(N, 2)), 1500, 0.05)
    order = rng.permutation(N)
    rank = np.argsort(order)
    renamed = snapshot_of(rank[triplets], N, names=[f"o{i}" for i in order])
    one = embedding.refit(snapshot_of(triplets, N), QUICK, 0, evaluate=False).arrays["X"]
    other = embedding.refit(renamed, QUICK, 0, evaluate=False).arrays["X"][rank]
    distances = [np.linalg.norm(x[:, None] - x, axis=2) for x in (one, other)]
    np.testing.assert_allclose(*distances, atol=0.02 * distances[0].max())


def test_a_previous_artifact_is_a_start():
    """Also of fewer objects and other dimensions; the optimum is as good as without it."""
    rng = np.random.default_rng(1)
    triplets = planted_triplets(rng, rng.normal(size=(N, 2)), 2000, 0.1)
    cold = embedding.refit(snapshot_of(triplets, N), QUICK, 0, evaluate=False)
    early = triplets[(triplets < 11).all(axis=1)]
    for d in (1, 2, 4):
        params = msgspec.structs.replace(QUICK, dimensions=d)
        before = embedding.refit(snapshot_of(early, 11), params, 0, evaluate=False)
        warm = embedding.refit(snapshot_of(triplets, N), QUICK, 0, previous=before, evaluate=False)
        assert warm.arrays["X"].shape == (N, 2)
        assert warm.report["objective"] <= cold.report["objective"] * 1.001


def test_objects_never_compared_are_said_and_lie_at_the_middle():
    rng = np.random.default_rng(2)
    triplets = planted_triplets(rng, rng.normal(size=(10, 2)), 800)
    made = embedding.refit(snapshot_of(triplets, 12), QUICK, 0, evaluate=False)
    assert made.report["never_asked_about"] == 2 and made.arrays["asked"].tolist() == [True] * 10 + [False] * 2
    assert (made.arrays["X"][10:] == 0).all() and np.abs(made.arrays["X"][:10]).max() > 0.1


def people_who_differ(spread):
    """A snapshot of twelve participants with 250 responses each about 14 objects."""
    made = world(1, people=12, each=250, n=N, spread=spread)
    lines = [
        {"type": "triplet", "anchor": f"o{i}", "near": f"o{j}", "far": f"o{l}", "worker": f"w{who:02}"}
        for (i, j, _, l), who in zip(made.answers.rows.tolist(), made.answers.participant.tolist(), strict=True)
    ]
    return learned.snapshot_of(lines, ("triplet_counts", "judgements"), guard=False), made


def test_people_who_differ_get_weights_and_better_figures():
    made, planted = people_who_differ(1.0)
    artifact = embedding.refit(made, QUICK, 0)
    report = artifact.report["individual_differences"]
    assert report["verdict"] == "participants differ" and report["participants"] >= 11
    assert report["own"] == artifact.report["knowing_worker"]
    assert report["own"]["log_loss"] < report["one_map"]["log_loss"]
    assert report["who"] and {each["participant"] for each in report["who"]} <= {f"w{who:02}" for who in range(12)}
    weights = artifact.arrays["worker_weights"]
    relative = np.log(weights[:, 0] / weights[:, 1])
    expected = np.log(planted.weights[1:, 0] / planted.weights[1:, 1])
    assert abs(np.corrcoef(relative, expected)[0, 1]) > 0.9
    assert (artifact.arrays["worker_group"] >= 0).all() and report["groups"]["count"] >= 1


def test_people_who_are_alike_have_the_same_embedding_as_without_the_test():
    made, _ = people_who_differ(0.0)
    tested = embedding.refit(made, QUICK, 0, evaluate=False)
    untested = embedding.refit(made, msgspec.structs.replace(QUICK, participants="alike"), 0, evaluate=False)
    assert tested.report["individual_differences"]["verdict"] == "no individual differences found"
    assert set(tested.arrays) == set(untested.arrays) and "worker_weights" not in tested.arrays
    for name, array in untested.arrays.items():
        np.testing.assert_array_equal(tested.arrays[name], array)
    asked = embedding.refit(made, msgspec.structs.replace(QUICK, participants="weights"), 0, evaluate=False)
    assert asked.arrays["worker_weights"].shape == (12, 2)
    assert asked.report["individual_differences"]["verdict"] == "no individual differences found"


def test_why_individual_differences_were_not_looked_for():
    """With one lapse rate for everybody there are plenty of participants with enough answers, too."""
    made, _ = snapshot((*ALL, "worker_votes"))
    for params, why in ((QUICK_ALL, "'all'"), (msgspec.structs.replace(QUICK, participants="alike"), "")):
        verdict = embedding.refit(made, params, 0).report["individual_differences"]["verdict"]
        assert verdict.startswith("not requested") and why in verdict


def reversed_line(line: dict) -> dict:
    return {**line, "near": line["far"], "far": line["near"]}


@pytest.mark.parametrize("reverses", [False, True])
def test_what_a_map_of_reversed_answers_gains_is_told(reverses):
    """A map of reversed answers predicts worse than a map of answers that a map can give, and better otherwise; the
    figures of both together are those of the same fits."""
    lines, _ = events(3, 240, guessers=0)
    lines = [reversed_line(line) for line in lines] if reverses else lines
    made = learned.snapshot_of(lines, (*ALL, "judgements"), guard=False)
    told = embedding.refit(made, ALIKE, 0).report["reversed"]
    assert (told["gain"] > 3 * told["standard_error"]) == reverses
    assert (told["gain"] < -3 * told["standard_error"]) != reverses
    assert (told["accuracy"] > 0.8) == reverses == (told["accuracy"] > told["as_is"]["accuracy"])
    assert told["held_out_comparisons"] == told["as_is"]["held_out_comparisons"] == 240
    assert embedding.refit(made, ALIKE, 0, evaluate=False).report["reversed"] is None


def test_unknown_participants_are_predicted_by_one_map_and_the_weights_of_the_group():
    """As the figures of accuracy predict them, and as the formula says."""
    answers = world(4, people=6, each=120, n=12, d=2, spread=1.5).answers
    names = [f"o{number:02}" for number in range(answers.n_objects)]
    lines = [
        {"anchor": names[a], "near": names[b], "far": names[c], "worker": f"p{who}"}
        for (a, b, _, c), who in zip(answers.rows.tolist(), answers.participant.tolist())
    ]
    snapshot = learned.snapshot_of(lines, ("worker_votes", "judgements"), guard=False)
    artifact = embedding.refit(snapshot, msgspec.structs.replace(QUICK, participants="weights"), 0, evaluate=False)
    group_map, report = artifact.report["individual_differences"]["group_map"], artifact.report
    rows = answers.rows[:40]
    shown, alike = (
        lapse / 2 + (1 - lapse) / (1 + np.exp(-scale * margins(points, rows, alpha)))
        for points, lapse, scale, alpha in (
            (artifact.arrays["X"], report["lapse"], report["scale"], report["alpha"]),
            (artifact.arrays["group_X"], group_map["lapse"], group_map["scale"], group_map["alpha"]),
        )
    )
    share = group_map["share"]
    assert share in (0.5, 1.0)
    expected = (1 - share) * shown + share * alike
    np.testing.assert_allclose(of_embedding(artifact)(rows), expected, rtol=1e-9)
    np.testing.assert_allclose(of_participant(artifact, "nobody")[0](rows), expected, rtol=1e-9)
    known, model = of_participant(artifact, "p0")
    assert model.weighted and np.abs(known(rows) - expected).max() > 0.01
    assert "group_X" not in embedding.refit(snapshot, ALIKE, 0, evaluate=False).arrays
