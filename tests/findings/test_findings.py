"""Findings are recomputed from the answers by plain definitions, and claims are made only where checks carry them."""

import re
from contextlib import nullcontext
from itertools import combinations
from types import SimpleNamespace

import networkx
import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest
from scipy.stats import binom

import stream_engine
from stream_engine.data.packed_names import pack_names
from stream_engine.evaluation import participants, response_checks
from stream_engine.evaluation.connection import components
from stream_engine.evaluation.participants import _against_map, check_participants, wilson
from stream_engine.input.settings import Settings
from stream_engine.report.findings import TOPICS, WARNING, agreement, data, findings, models, sentences, warnings
from stream_engine.report.findings.data import excluded
from stream_engine.report.findings.data import read as read_findings
from stream_engine.report.findings.facts import Commands, Facts
from stream_engine.report.material import material
from stream_engine.report.sections import clusters, methods, object_map, objects, quality, workers
from stream_engine.report.tiles import tiles
from stream_engine.service.preview import preview
from stream_engine.state.artifact import Artifact
from stream_engine.state.engine import Engine
from stream_engine.state.exclusion import without
from stream_engine.state.published import Published
from tests.support import reported
from tests.support.facts import states

QUICK = {"dimensions": 2, "kernel": "ste", "ridge": 0.3}
ALIKE = {**QUICK, "participants": "alike"}  # without models of participants, which are most of such a fit


def study(events: list[dict], **more) -> stream_engine.Study:
    """These events as a study."""
    columns = {name: [event.get(name) for event in events] for name in events[0]}
    return stream_engine.read(pa.table(columns), type="triplet", **more)


def responses(
    rng, people: dict[str, int], honest=lambda name: True, n: int = 18, opposite: tuple[str, ...] = ()
) -> list[dict]:
    """So many answers of each participant about points on a plane; who is not honest tosses a coin."""
    points, events = np.random.default_rng(5).normal(size=(n, 2)), []
    for name, size in people.items():
        for _ in range(size):
            a, b, c = rng.choice(n, 3, replace=False)
            near, far = (b, c) if np.hypot(*(points[a] - points[b])) < np.hypot(*(points[a] - points[c])) else (c, b)
            wrong = rng.random() < (0.1 if honest(name) else 0.5)
            if wrong ^ (name in opposite):
                near, far = far, near
            events.append({"anchor": f"o{a}", "near": f"o{near}", "far": f"o{far}", "worker": name})
    return events


def known(made: stream_engine.Study) -> dict:
    return findings(Facts(made.published, Commands("S")))


def what(found: dict) -> set[str]:
    return {each.what for topic in found.values() for each in topic}


@pytest.fixture(scope="module")
def guessers() -> list[dict]:
    rng = np.random.default_rng(1)
    return responses(rng, {f"p{i}": 150 for i in range(12)}, lambda name: name not in ("p3", "p7"), opposite=("p9",))


def test_random_and_opposite_answers_are_flagged_with_their_reason_and_nobody_else(guessers):
    found = check_participants(study(guessers).published, False)
    reasons = dict(zip(found.names, found.reasons))
    assert {name for name, reason in reasons.items() if reason} == {"p3", "p7", "p9"}
    assert "chance" in reasons["p3"]
    assert "the other way round" in reasons["p9"]
    assert found.flagged == 3


def test_who_is_below_chance_answers_the_other_way_round_only_if_reversed_answers_fit():
    """By the share of answers that others predict, of which that of the rest is the right one, and a binomial test."""
    reverse = []
    for slip in (0.0, 0.25):
        rng = np.random.default_rng(3)
        events = responses(rng, {f"p{i}": 200 for i in range(12)}, opposite=("p9",))
        for event in events:
            if event["worker"] == "p9" and rng.random() < slip:
                event["near"], event["far"] = event["far"], event["near"]
        found = check_participants(study(events).published, False)
        share = dict(zip(found.names, found.accuracy.tolist()))
        of_others = np.mean([share[name] for name in found.names if name != "p9"])
        assert binom.cdf(round(200 * share["p9"]), 200, 0.5) < 0.01 / 12, "below chance"
        as_others = binom.cdf(round(200 * (1 - share["p9"])), 200, of_others) > 0.05
        (reason,) = filter(None, found.reasons)
        assert ("the other way round" in reason, "below chance" in reason) == (as_others, not as_others)
        reverse.append(as_others)
    assert reverse == [True, False]


def test_one_who_answers_the_other_way_round_is_not_called_random_too():
    events = responses(np.random.default_rng(3), {f"p{i}": 120 for i in range(10)}, opposite=("p4",))
    topic = known(study(events).fit("embedding", **QUICK))["participants"]
    (found,) = (each for each in topic if each.figures.get("flagged"))
    assert "other way round (1)" in found.text and "random" not in found.text


def test_the_power_of_a_check_is_never_certain_and_has_its_range():
    people = {f"p{i}": 15 + 60 * (i % 2) for i in range(10)}
    found = check_participants(study(responses(np.random.default_rng(3), people)).published, False)
    each = participants._power(np.array([*people.values()]), np.full(10, np.nanmean(found.accuracy)))
    assert found.power_range == pytest.approx((each.min(), each.max()), abs=0.1)
    said = agreement._power(found._replace(power=1.0, power_range=(0.3, 1.0)))
    assert states(said, "more than 99 % … 10 … 30 % to more than 99 %") and "100 %" not in said
    assert "less than 1 %" in agreement._power(found._replace(power=0.0, power_range=(0.0, 0.0)))


def test_commands_for_a_page_of_a_state_write_the_page_that_was_written():
    assert Commands("s").report == "stream-engine report --state s"
    assert Commands("s", out="a b.html").report == "stream-engine report --state s --out 'a b.html'"


def copied(name: str = "z 2") -> list[dict]:
    """Answers of ten participants, and those of p3 once more under another name."""
    events = responses(np.random.default_rng(6), {f"p{i}": 60 for i in range(10)})
    return events + [{**event, "worker": name} for event in events if event["worker"] == "p3"]


def test_a_copy_of_a_participant_is_named_with_the_command_that_leaves_it_out():
    made = study(copied()).fit("embedding", **ALIKE)
    found = findings(Facts(made.published, Commands("DIR", "stream-engine report f.csv")))
    (copy,) = found["copies"]
    assert copy.level == "warning" and states(copy.text, "z 2 … p3 (60)")
    assert copy.figures == {"copied": 1, "responses": 60} and copy.command.endswith("--exclude 'participant=z 2'")
    (tile,) = (each for each in tiles(material(made.published)) if each.head == "Participants")
    assert tile.value == str(len({event["worker"] for event in copied()}))
    assert "1 copied participant included" in sentences_of(found["accuracy"])
    assert "1 copied participant included" in sentences_of(found["agreement"])
    paper = methods.paper(Facts(made.published))
    assert states(paper, "1 participant … not excluded") and "z 2" not in paper
    (of_a_state,) = known(made)["copies"]
    assert "z 2" not in of_a_state.text + of_a_state.command and of_a_state.command.endswith("--participants")
    assert "z 2" in next(iter(findings(Facts(made.published, Commands(lists=True)))["copies"])).command
    typed = Commands("DIR", "stream-engine report f.csv --exclude 'participant=z 2'")
    assert not findings(Facts(made.published, typed))["copies"], "a run warns before it excludes"
    alone = study([event for event in copied() if event["worker"] != "z 2"]).fit("embedding", **ALIKE)
    assert not known(alone)["copies"] and "included" not in sentences_of(known(alone)["accuracy"])


def test_figures_that_count_flagged_participants_say_so(guessers):
    found = known(study(guessers).fit("embedding", **ALIKE))
    names = {"accuracy", "noise_ceiling", "inter_rater_agreement"}
    texts = [each.text for topic in ("accuracy", "agreement") for each in found[topic] if each.what in names]
    assert len(texts) > 1 and all("3 flagged participants included" in each for each in texts)


def test_rows_in_doubt_are_a_problem_unless_they_are_excluded():
    published = study(copied()).published
    doubt = "10 of 600 rows count although subject is p1 (a test of the study?); … --where 'subject!=p1'"
    for excluded_names, n in (((), 1), (("p1",), 0)):
        facts = Facts(published._replace(excluded=excluded_names), Commands("DIR", "report f.csv", doubts=(doubt,)))
        found = [each for each in findings(facts)["data"] if each.what == "doubtful_rows"]
        assert len(found) == n and all(doubt in each.text and each.level == "warning" for each in found)


def test_no_number_of_dimensions_is_said_of_several_sets():
    report = {"d": 4, "kernel": "ste", "dimensions_at_least": 3, "dimensions_tested": {"p_values": [0.001, 0.002, 0.4]}}
    published = Published(study(copied()).snapshot, {"embedding": Artifact("embedding", "", 0, {}, 0, {}, report)})
    for several in (False, True):
        facts = Facts(published)
        facts.__dict__["sets"] = np.arange(18) % (1 + several)
        said = " ".join(each.text for each in findings(facts)["map"])
        assert ("3 dimensions" in said and "4 dimensions" in said) is not several
        assert ("at least 3 dimensions" in methods.paper(facts)) is not several
        assert ("no meaning" in methods.paper(facts)) is several


@pytest.mark.parametrize("draws", [0, 64])
def test_the_text_for_a_paper_says_what_predictions_are_averaged_over(draws):
    report = {"d": 2, "kernel": "ste", "draws": draws}
    facts = Facts(Published(study(copied()).snapshot, {"embedding": Artifact("embedding", "", 0, {}, 0, {}, report)}))
    assert ("predicted by the mean over 64 draws" in methods.paper(facts)) is (draws > 0)
    assert ("draws" in methods.paper(facts)) is (draws > 0)


def test_honest_participants_are_flagged_in_no_more_studies_than_the_level():
    """Ten participants in each of 40 studies: at a level of 5 % for all participants together, more than 6 studies
    with a flag have a probability below .01."""
    studies = 0
    for seed in range(40):
        events = responses(np.random.default_rng(100 + seed), {f"p{i}": 40 for i in range(10)})
        studies += bool(check_participants(study(events).published, False).flagged)
    assert studies <= 6


def test_the_share_of_guessers_that_would_be_noticed_is_that_of_simulated_ones():
    """One of twelve who answers as often as the others, and tosses a coin: flagged at the corrected level."""
    rng, of, people = np.random.default_rng(0), 0.78, 12
    for n in (25, 60, 150):
        told = participants._power(np.full(people, n), np.full(people, of)).mean()
        right = rng.binomial(n, 0.5, 20_000)
        p = binom.cdf(right, n, of) * people <= 0.01
        assert told == pytest.approx(np.mean(p & (wilson(right / n, np.full(len(right), n))[0] <= 0.5)), abs=0.015)
    assert not len(participants._power(np.zeros(0, int), np.zeros(0)))


def test_coin_tossers_are_told_by_how_certain_the_map_of_others_is():
    """Sums of log odds of simulated answers: at the level if honest, and with the power that is told if not."""
    rng, flagged, opposed, power = np.random.default_rng(0), [], 0, []
    for _ in range(200):
        odds = np.abs(rng.normal(size=(12, 60))) * 1.5
        right = rng.random(odds.shape) < 1 / (1 + np.exp(-odds))
        right[0] = rng.random(60) < 0.5
        given, expected = np.where(right, odds, -odds), odds * np.tanh(odds / 2)
        columns = (np.ones_like(odds), right, given, expected, odds**2 - expected**2, odds**2)
        sums = np.stack([column.sum(axis=1) for column in columns], axis=1)
        below, opposite, like_coin, noticed = _against_map(sums, np.full(12, 60), np.ones(12, bool))
        flagged.append((response_checks.holm(below) <= response_checks.LEVEL) & like_coin)
        opposed, power = opposed + int((opposite < 0.01)[1:].sum()), [*power, noticed.mean()]
    assert np.mean(flagged, axis=0)[1:].mean() < 0.01 and opposed == 0
    assert np.mean(flagged, axis=0)[0] == pytest.approx(np.mean(power), abs=0.08)


def test_a_fitted_map_notices_who_the_counts_cannot_tell_from_others():
    """Of a state whose embedding is of its newest snapshot; one of an older snapshot says nothing about participants
    of now."""
    rng, names = np.random.default_rng(3), [f"p{i}" for i in range(12)]
    events = responses(rng, dict.fromkeys(names, 60), lambda name: name != "p3", n=20)
    by_counts, fitted = study(events), study(events).fit("embedding", **QUICK)
    weak, strong = (check_participants(each.published, False) for each in (by_counts, fitted))
    assert strong.power > weak.power + 0.2
    reasons = dict(zip(strong.names, strong.reasons))
    assert "p3" in reasons and not any(weak.reasons)
    assert "chance" in reasons.pop("p3") and not any(reasons.values())
    later = study(events[:-60]).published
    assert (
        check_participants(fitted.published._replace(snapshot=later.snapshot), False).power
        == check_participants(later, False).power
    )


def test_who_answers_consistently_by_another_view_is_not_flagged_as_guessing():
    """By counts of their own answers, or by the gain of their own model; a coin among them is found."""
    rng, people = np.random.default_rng(2), {f"p{i}": 150 for i in range(12)}
    events = responses(rng, people, lambda name: name != "p3", n=8)
    other, points = [], np.random.default_rng(70).normal(size=(8, 2))
    for _ in range(120):
        a, b, c = rng.choice(8, 3, replace=False)
        near, far = (b, c) if np.hypot(*(points[a] - points[b])) < np.hypot(*(points[a] - points[c])) else (c, b)
        other.append({"anchor": f"o{a}", "near": f"o{near}", "far": f"o{far}", "worker": "q"})
    made = study([*events, *other])
    found = check_participants(made.published, True)
    flagged = {name for name, reason in zip(found.names, found.reasons) if reason}
    assert flagged == {"p3"} and [n for n, own in zip(found.names, found.consistent) if own] == ["q"]
    assert "consistently" in sentences(known(made), "participants")
    guessing = study([*events, *responses(rng, {"q": 120}, lambda name: False, n=8)])
    for p_value, flags in ((0.5, {"p3", "q"}), (0.001, {"p3"})):  # of the gain by a model of their own
        names = [f"p{i}" for i in range(12)] + ["q"]
        gain = np.array([[0.0, 1.0, 1.0]] * 12 + [[0.1, 0.01, p_value]])
        arrays = {"worker_gain": gain, "worker_lapse": np.array([0.0] * 12 + [0.9]), **pack_names(names)}
        fit = Artifact("embedding", guessing.snapshot.digest, 1, {}, 0, arrays, {})
        found = check_participants(Published(guessing.snapshot, {"embedding": fit}), True)
        assert {name for name, reason in zip(found.names, found.reasons) if reason} == flags


def test_the_number_of_dimensions_is_said_to_have_the_least_log_loss_only_where_it_has():
    """The accuracy of another number, such as of the picture, can be higher: no number is called the best."""
    report = {"dimensions_at_least": 1, "dimensions_interval": [1, 4]}
    (best,), (smaller,) = (list(models._for_prediction(report, d, True)) for d in (4, 2))
    assert "4 dimensions, the number with the least log loss on held-out comparisons; 1 to 4" in best.text
    assert states(
        smaller.text, "2 dimensions, the smallest number whose log loss … close to the least, that of 4; 1 to 4"
    )
    assert "best" not in best.text + smaller.text


def test_a_second_dimension_that_is_not_confirmed_is_not_denied():
    report = {"dimensions_at_least": 1, "dimensions_tested": {"p_values": [0.26]}}
    (found,) = models._supported(report, 2, True)
    assert states(found.text, "not confirmed … (p = .26) … does not show that there is none")


@pytest.mark.parametrize("least, low", [(1, 1), (1, 2), (2, 2), (2, 4)])
def test_two_criteria_for_dimensions_that_disagree_are_reconciled(least, low):
    report = {"dimensions_at_least": least, "dimensions_interval": [low, 5]}
    (found,) = models._for_prediction(report, 5, True)
    assert ("do not confirm that more than" in found.text) is (low > least)
    assert "no estimate of how many dimensions" in found.text


def test_a_file_with_every_row_twice_is_told():
    events = responses(np.random.default_rng(4), {f"p{i}": 40 for i in range(6)}, n=8)
    asked = {(e["worker"], e["anchor"], frozenset((e["near"], e["far"]))): e for e in events}
    events = [*asked.values()]  # nobody is asked again
    once = known(study(events).fit("embedding", **ALIKE))
    with pytest.warns(UserWarning, match="are the first ones again"):
        twice = known(study(events * 2).fit("embedding", **ALIKE))
    assert "test_retest_agreement" not in what(twice)
    assert "only_same_answers" not in what(once)
    (copies,) = (each for each in twice["agreement"] if each.what == "only_same_answers")
    (others,) = (each for each in twice["agreement"] if each.what == "inter_rater_agreement")
    assert copies.figures["answers"] == 2 * len(events) > others.figures["answers"]
    assert states(copies.text, f"{2 * len(events)} answers")


ALONE = {  # of the facts of one model
    "n_questions": 900,
    "better_baseline": None,
    "preferred_position": None,
    "report": lambda kind: {},
}


@pytest.mark.parametrize(
    "accuracy, error, agreement, advice",
    [
        (0.5, 0.01, 0.51, "Before you collect more"),
        (
            0.5,
            0.04,
            0.51,
            "Before you collect more",
        ),  # the same, however wide the interval is, which depends on the seed
        (0.54, 0.01, 0.51, "Collect more answers"),
        (0.5, 0.01, 0.7, "Before you collect more"),
        (0.5, 0.01, None, "Before you collect more"),  # of agreement, which is unknown
        (0.41, 0.04, 0.31, "would not help"),  # they contradict each other
        (0.41, 0.04, 0.48, "Before you collect more"),  # as coins do
        (0.41, 0.03, None, "would not help"),  # significantly less than one half
    ],
)
def test_answers_are_compared_before_more_are_collected_unless_these_promise_something(
    accuracy, error, agreement, advice
):
    best = {"model": "embedding", "accuracy": accuracy, "standard_error": error, "ceiling_at_most": None}
    facts = SimpleNamespace(
        best=best, held_out=900, beats_chance=False, above_chance=None, at_chance="no model predicts", **ALONE
    )
    facts.ceiling, facts.preview = {"others": agreement, "answers": 300.0}, "preview FILE"
    (found,) = models.accuracy(facts)
    advices = ("Before you collect more", "Collect more answers", "would not help")
    assert [each for each in advices if each in found.text] == [advice]
    contradict = (agreement is not None and agreement < 0.4) or error == 0.03
    assert ("contradict each other" in found.text) == contradict
    assert ("Less than one half is chance" in found.text) == (accuracy < 0.5 and not contradict)


def test_answers_that_counts_predict_are_not_called_random_where_the_embedding_does_not(guessers):
    """As with 1,000 answers about 200 objects."""
    tested = {"held_out": "judgements", "held_out_comparisons": 1000, "log_loss": 0.69}
    report = {"d": 2, **tested, "accuracy": 0.498, "standard_error": 0.023}
    artifacts = {"embedding": Artifact("embedding", "", 1, {}, 0, {}, report)}
    noted = {"snapshot": 1, "seed": 0, "models": {"adds3": {**tested, "accuracy": 0.534, "standard_error": 0.006}}}
    facts = Facts(Published(study(guessers).published.snapshot, artifacts), Commands("S"), noted)
    (found,) = models.accuracy(facts)
    assert states(found.text, "49.8 % … 53.4 %") and "Collect more answers" in found.text
    for text in (found.text, models.not_interpretable(facts), sentences_of(agreement.participants(facts))):
        assert "no model" not in text.lower()


@pytest.mark.parametrize("reversed_answers", [False, True])
def test_answers_that_name_the_less_similar_object_are_a_warning(reversed_answers):
    events = responses(np.random.default_rng(8), {f"p{i}": 150 for i in range(10)})
    near, far = ("far", "near") if reversed_answers else ("near", "far")
    events = [{**event, "near": event[near], "far": event[far]} for event in events]
    found = known(study(events).fit("embedding", **QUICK))
    warned = {each.what for each in warnings(found)}
    assert ("map_worse_than_counts" in warned) == ("reversed" in warned) == reversed_answers


@pytest.mark.parametrize(
    "gain, accuracy, n_questions, warned",
    [(0.1, 0.9, 300, True), (0.05, 0.9, 300, False), (0.1, 0.7, 300, False), (0.1, 0.9, 3, False)],
)
def test_a_better_map_of_reversed_answers_is_a_warning(guessers, gain, accuracy, n_questions, warned):
    """Where log loss and accuracy are better, and not of a few questions, which a map may give either way."""
    of_reversed = {"gain": gain, "standard_error": 0.02, "accuracy": accuracy, "as_is": {"accuracy": 0.8}}
    facts = facts_of(guessers, figures_of(0.8, 0.02) | {"reversed": of_reversed})
    facts.__dict__["n_questions"] = n_questions
    told = {each.what: each for each in models.accuracy(facts)}
    assert ("reversed" in told) == warned
    assert not warned or states(told["reversed"].text, "90.0 % … 80.0 % … 0.100 nats, SE 0.020 … --answer-is farther")


def figures_of(accuracy, error, n=400):
    held_out = {"held_out": "judgements", "held_out_comparisons": n, "log_loss": 0.6 - accuracy / 10}
    return {**held_out, "accuracy": accuracy, "standard_error": error}


def facts_of(guessers, embedding, **counts):
    """Facts of an embedding with these figures, and of models that are counts."""
    artifacts = {"embedding": Artifact("embedding", "", 1, {}, 0, {}, {"d": 2, "kernel": "ste", **embedding})}
    noted = {"snapshot": 1, "seed": 0, "models": counts}
    return Facts(Published(study(guessers).published.snapshot, artifacts), Commands("S"), noted)


@pytest.mark.parametrize(
    "of_map, of_majority, warned",
    [((0.7, 0.03), (0.89, 0.02), True), ((0.55, 0.03), (0.89, 0.02), True), ((0.7, 0.03), (0.74, 0.03), False)],
)
def test_a_baseline_that_predicts_better_than_every_model_is_a_warning(guessers, of_map, of_majority, warned):
    """Whether or not a model beats chance: the answers are not random."""
    facts = facts_of(guessers, figures_of(*of_map), majority=figures_of(*of_majority), adds3=figures_of(0.6, 0.03))
    told = [each for each in models.accuracy(facts) if each.level == WARNING]
    assert any("89.0 %" in each.text for each in told) == warned
    assert not warned or facts.at_chance == "the embedding does not predict"


def test_the_text_for_a_paper_has_the_accuracy_of_the_first_screen(guessers):
    facts = facts_of(guessers, figures_of(0.6, 0.02), adds3=figures_of(0.75, 0.02))
    assert next(models.accuracy(facts)).figures["accuracy"] == 0.75
    assert states(methods.paper(facts), "60.0% … AddS-3 similarity … 75.0%, 95% CI [71.1, 78.9]")


@pytest.mark.parametrize("figures", [("others", "answers"), ("themselves", "own_answers")])
@pytest.mark.parametrize("share", [0.3, 0.8])
def test_answers_that_are_opposite_more_often_than_by_chance_are_a_warning(guessers, figures, share):
    of_map = figures_of(0.7, 0.02) | {"ceiling": dict(zip(figures, (share, 200)))}
    told = {each.what for each in agreement.agreement(facts_of(guessers, of_map)) if each.level == WARNING}
    assert any(what.startswith("opposite") for what in told) == (share < 0.5)


@pytest.mark.parametrize("biased", [False, True])
def test_answers_that_a_position_predicts_are_named_where_no_model_predicts(biased):
    rng = np.random.default_rng(6)
    shown = [rng.choice([f"o{i}" for i in range(9)], 3, replace=False).tolist() for _ in range(150)]
    chosen = [each[1 + (0 if biased else int(rng.integers(2)))] for each in shown]
    columns = {name: [each[at] for each in shown] for at, name in enumerate(("anchor", "left", "right"))}
    table = pa.table({**columns, "chosen": chosen, "worker": [f"p{i % 5}" for i in range(150)]})
    made = stream_engine.read(table, type="pick", columns={"shown": ["left", "right"]}).fit("embedding", **ALIKE)
    told = {each.what: each for each in models.accuracy(Facts(made.published))}
    assert "chance_level" in told and ("one_position" in told) == biased
    assert not biased or states(told["one_position"].text, "100.0 % of 150 answers … position 1 of 2")


@pytest.mark.parametrize(("habit", "first"), [(0.0, False), (0.4, True)])
def test_a_position_that_participants_prefer_is_named_where_models_predict(tmp_path, habit, first):
    rng = np.random.default_rng(7)
    places = np.arange(9.0)
    shown = [rng.choice(9, 3, replace=False).tolist() for _ in range(600)]
    chosen = [
        b if rng.random() < habit or abs(places[a] - places[b]) < abs(places[a] - places[c]) else c for a, b, c in shown
    ]
    table = pa.table(
        {name: [f"o{each[at]}" for each in shown] for at, name in enumerate(("anchor", "left", "right"))}
        | {"chosen": [f"o{each}" for each in chosen], "worker": [f"p{i % 6}" for i in range(600)]}
    )
    made = stream_engine.read(table, type="pick", columns={"shown": ["left", "right"]}).fit("embedding", **ALIKE)
    told = {each.what: each for each in models.accuracy(Facts(made.published))}
    assert "accuracy" in told and ("preferred_position" in told) == first
    path = tmp_path / "answers.csv"
    pyarrow.csv.write_csv(table, path)
    notices = " ".join(preview(Settings(source=(str(path),)), 10_000).notices)
    assert ("position 1 of 2" in notices) == first
    share = sum(b == each for each, (_, b, _) in zip(chosen, shown)) / 600
    assert not first or states(told["preferred_position"].text, f"{100 * share:.1f} % of 600 answers … position 1 of 2")


@pytest.mark.parametrize(("n_of_first", "named"), [(50, False), (250, True)])
def test_a_participant_who_gave_most_answers_is_a_warning(n_of_first, named):
    names = ["p0"] * n_of_first + [f"p{1 + i % 9}" for i in range(450)]
    rng = np.random.default_rng(8)
    rows = [rng.choice([f"o{i}" for i in range(9)], 3, replace=False).tolist() for _ in names]
    table = pa.table(
        {"anchor": [r[0] for r in rows], "near": [r[1] for r in rows], "far": [r[2] for r in rows], "worker": names}
    )
    told = {each.what: each for each in agreement.participants(Facts(stream_engine.read(table).published))}
    assert ("one_participant" in told) == named
    assert not named or states(told["one_participant"].text, f"One of 10 … {100 * n_of_first / len(names):.1f} %")


def test_answers_to_one_question_have_no_accuracy():
    """It would be that of the answers before, for whatever model."""
    events = [{"anchor": "a", "near": "b", "far": "c", "worker": f"p{number % 4}"} for number in range(80)]
    made = study(events).fit("embedding", **ALIKE)
    facts = Facts(made.published)
    (found,) = models.accuracy(facts)
    assert found.level == WARNING and "80 answers are to one question" in found.text
    assert facts.beats_chance is None and "accuracy is unknown" in methods.paper(facts)


def test_what_can_be_gained_is_the_difference_of_the_printed_numbers():
    best = {"model": "embedding", "accuracy": 0.8896, "standard_error": 0.01, "ceiling_at_most": 0.9294}
    facts = SimpleNamespace(best=best, held_out=900, beats_chance=True, who_counts_too="", **ALONE)
    _, ceiling = models.accuracy(facts)
    assert states(ceiling.text, "92.9 % … 3.9 points")  # 92.9 - 89.0


def test_one_participant_who_answers_again_agrees_with_nobody_but_themselves():
    events = responses(np.random.default_rng(4), {"p0": 40}, n=6) * 4
    made = study(events).fit("embedding", **ALIKE)
    found = {each.what: each.text for topic in known(made).values() for each in topic}
    assert "0 answers are to a question that somebody else answered" in found["agreement_unknown"]
    assert {"test_retest_agreement", "only_same_answers"} & found.keys()
    assert not any("no participant is flagged" in each for each in quality.section(material(made.published)).notes)
    few = study(responses(np.random.default_rng(4), {f"p{i}": 15 for i in range(5)}, n=3)).fit("embedding", **ALIKE)
    assert "75 answers are to a question" in sentences_of(known(few)["agreement"])


def test_of_two_equal_sets_the_one_is_named_that_the_command_reads(tmp_path):
    of = np.random.default_rng(2)
    events = [
        {"anchor": a, "near": b, "far": c}
        for sets in ("abcd", "wxyz")
        for a, b, c in (of.permutation([*sets])[:3] for _ in range(30))
    ]
    (told,) = [
        each for each in data.connected(Facts(reported.published(tmp_path, events, "--no-refits"))) if each.command
    ]
    named = re.search("one of them: (.*?)[.]", told.text)[1]
    in_command = {*re.search("anchor=([^' ]*)", told.command)[1].split("|")}
    assert {*named.replace(" and 1 more", "").split(", ")} < in_command


def test_what_is_not_counted_is_not_said_to_be_absent(tmp_path):
    """Triplets in sums, votes and responses alone: neither a crash nor objects that nobody compared."""
    events = responses(np.random.default_rng(4), {f"p{i}": 30 for i in range(6)}, n=8)
    config = 'accumulators = ["adds3", "worker_votes", "judgements"]'
    published = reported.published(tmp_path, events, "--no-refits", config=config)
    found = findings(Facts(published))
    assert not {"conflicting_answers", "disconnected", "never_compared"} & what(found)
    assert "0 of 6" in sentences_of(found["participants"])
    assert not material(published).by_object


def test_who_is_asked_about_three_objects_too_rarely_is_not_checked_by_counts():
    few = responses(np.random.default_rng(4), {f"p{i}": 2 for i in range(6)}, n=8)
    four = [
        {"type": "quadruplet", "near": ["o0", "o1"], "far": ["o2", f"o{3 + i % 5}"], "worker": f"p{i % 6}"}
        for i in range(120)
    ]
    found = known(stream_engine.read([{"type": "triplet", **event} for event in few] + four))
    assert "0 of 6 gave enough answers" in sentences_of(found["participants"])
    assert "four objects are not among these" in sentences_of(found["agreement"])


def sentences_of(topic) -> str:
    return " ".join(each.text for each in topic)


def test_groups_that_chance_explains_are_not_graded_beside_an_exclusion():
    before = {"participants": [], "grade": "cannot tell"}
    report = {"grade": "separated", "k": 3, "excluded": {"participants": ["w"], "before": before}}
    snapshot = Engine().snapshot()
    facts = Facts(Published(snapshot, {"clusters": Artifact("clusters", "", 0, {}, 0, {}, report)}, excluded=("w",)))
    facts.__dict__["sets"] = np.array([0, 0, 1])  # not all were compared
    assert "groups: cannot tell, before: cannot tell" in next(excluded(facts)).text


def test_where_all_participants_are_excluded_the_page_says_how_to_include_them():
    events = [{"anchor": f"o{i}", "near": f"o{i + 1}", "far": f"o{i + 2}", "worker": f"w{i % 2}"} for i in range(8)]
    names = ("w0", "w1")
    published = Published(without(study(events).snapshot, names), {}, excluded=names)
    of = material(published, workers=True, commands=Commands("S"))
    unknown = next(each for each in of.findings["participants"] if each.what == "participants_unknown")
    section = workers.section(of)
    assert section is not None
    assert all(f"--include participant={name}" in text for text in (unknown.command, section.says) for name in names)
    (tile,) = (each for each in tiles(of) if each.head == "Participants")
    assert tile.value == "0"
    assert not any("no participant column" in text for text in (unknown.text, section.says, tile.note))


def test_a_kernel_of_a_subset_is_not_reported_in_place_of_the_map():
    few = Artifact("kernel_learning", "", 0, {}, 0, {"ids": np.arange(4)}, {})
    facts = Facts(Published(Engine().snapshot(), {"kernel_learning": few}))
    row = {"model": "embedding", "accuracy": 0.7, "standard_error": 0.01, "comparisons": 900}
    facts.__dict__["models"] = [{**row, "model": "kernel_learning", "accuracy": 0.95}, row]
    assert facts.best == row
    facts.__dict__["models"].pop()
    assert facts.best["model"] == "kernel_learning"


def test_failed_catch_trials_flag():
    events = responses(np.random.default_rng(2), {f"p{i}": 60 for i in range(6)})
    wrong = [{"anchor": "o0", "near": "o1", "far": "o2", "worker": "p1", "ok": False}] * 2
    right = [{"anchor": "o0", "near": "o1", "far": "o2", "worker": "p2", "ok": True}] * 2
    slip = [{"anchor": "o0", "near": "o1", "far": "o2", "worker": "p3", "ok": ok} for ok in (True, False)]
    plain = [{**event, "ok": None} for event in events]
    found = check_participants(study([*plain, *wrong, *right, *slip], columns={"catch": "ok"}).published, False)
    row = dict(zip(found.names, zip(found.passed.tolist(), found.failed.tolist(), found.reasons)))
    assert row["p1"][:2] == (0, 2) and states(row["p1"][2], "2 … 2")
    assert row["p2"][:2] == (2, 0) and row["p2"][2] == ""
    assert row["p3"][:2] == (1, 1) and row["p3"][2] == "", "one slip"


def test_a_good_study_has_its_figures_and_no_warning():
    made = study(responses(np.random.default_rng(4), {f"p{i}": 150 for i in range(10)})).fit("embedding", **QUICK)
    found = known(made)
    assert not warnings(found) and {"accuracy", "map", "participants"} <= what(found)
    report = made.details("embedding")
    figures = {each.what: each for each in found["accuracy"]}["accuracy"].figures
    best = min((row for row in Facts(made.published).models), key=lambda row: row["log_loss"])
    assert figures["accuracy"] == best["accuracy"] and figures["held_out"] == report["held_out_comparisons"]
    assert f"{100 * best['accuracy']:.1f} %" in sentences(found, "accuracy")


def test_sets_that_were_never_compared_are_those_of_the_graph_of_comparisons():
    rng = np.random.default_rng(6)
    for split in (False, True):
        sets = [range(5), range(5, 9), range(9, 12)] if split else [range(12)]
        events = []
        for some in sets:
            events += [
                dict(zip(("anchor", "near", "far"), (f"o{each}" for each in rng.permutation(some)[:3])))
                for _ in range(40)
            ]
        with pytest.warns(UserWarning, match="3 sets") if split else nullcontext():
            made = study([{**event, "worker": "w"} for event in events])
        graph = networkx.Graph()
        for event in events:
            graph.add_edges_from(combinations(event.values(), 2))
        parts = sorted((sorted(part) for part in networkx.connected_components(graph)), key=len, reverse=True)
        names = made.snapshot.objects
        found = components(made.snapshot)
        mine = [sorted(names[i] for i in np.flatnonzero(found == k)) for k in range(found.max() + 1)]
        assert sorted(mine) == sorted(parts) and [len(part) for part in mine] == [len(part) for part in parts]
        disconnected = [each for each in known(made)["connection"] if each.what == "disconnected"]
        assert bool(disconnected) is split
        if split:
            assert disconnected[0].figures == {"sets": 3, "sizes": [5, 4, 3], "questions_across": 0}


@pytest.mark.parametrize("now, then", [(0.8, 0.7), (0.8, None), (None, 0.7)])
def test_excluding_is_said_to_change_what_both_fits_tell(now, then):
    snapshot = Engine().snapshot()
    change = {"participants": ["w"], "before": {"participants": [], "accuracy": then, "distance_correlation": 0.5}}
    report = {"accuracy": now, "excluded": change}
    made = Artifact("embedding", snapshot.digest, 0, {}, 0, {}, report)
    (found,) = excluded(Facts(Published(snapshot, {"embedding": made}, excluded=("w",)), Commands("S")))
    assert "correlate by 0.50" in found.text
    assert ("80.0 % of held-out comparisons correctly, 70.0 % before" in found.text) == (None not in (now, then))
    assert found.text.count("held-out") == (None not in (now, then))


def test_the_command_that_ends_an_exclusion_names_everybody():
    state = Commands("S")

    def found(names, commands=state):
        return next(excluded(Facts(Published(Engine().snapshot(), {}, excluded=names), commands)))

    both = found(("ann", "bob b"))
    assert both.command.endswith("--include participant=ann --include 'participant=bob b'") and "later" in both.text
    assert found(tuple(f"p{i}" for i in range(99))).command.endswith("--include participant=@FILE")
    read = found(("ann",), Commands("DIR", "stream-engine report a.csv --exclude participant=ann"))
    assert read.command == "" and "later" not in read.text  # no state stays


def test_every_topic_says_something_true_of_a_state_without_answers():
    found = findings(Facts(Published(Engine(("adds3", "triplet_counts"), None).snapshot(), {})))
    assert set(found) == set(TOPICS) and what(found) == {"read", "no_comparisons"}


def test_no_state_is_named_where_a_report_read_the_files_itself():
    snapshot = study([{"anchor": "a", "near": "b", "far": "c"}]).snapshot
    assert "None was rejected" in next(read_findings(Facts(Published(snapshot, {})))).text
    snapshot.counters["rejected"]["not_distinct"] = 3
    assert "None was rejected" not in next(read_findings(Facts(Published(snapshot, {})))).text
    for typed, command in (("", "stream-engine dead-letters show --state DIR"), ("stream-engine report f.csv", "")):
        facts = Facts(Published(snapshot, {}), Commands("DIR", typed))
        assert next(each for each in read_findings(facts) if each.what == "rejected").command == command


@pytest.mark.parametrize("least, p, named", [(2, [0.001, 0.4, 1.0], "at least 2"), (1, [0.4], "A second"), (4, [], "")])
def test_the_map_is_said_in_the_dimensions_that_are_supported(least, p, named):
    """The number that predicts best comes later, and by that name."""
    report = {"d": 4, "kernel": "ste", "dimensions_at_least": least, "dimensions_tested": {"p_values": p}}
    made = Artifact("embedding", "", 1, {}, 0, {}, report)
    facts = SimpleNamespace(
        cluster_answer={},
        report=lambda kind: report,
        beats_chance=True,
        connected=True,
        published=Published(Engine().snapshot(), {"embedding": made}),
    )
    said = {each.what: each.text for each in models.object_map(facts)}
    assert ("4" in said["map"]) is (least == 4)
    assert ("dimensions_for_prediction" in said) is (least < 4)
    assert [*said][1:2] == ["dimensions"] and named in said["dimensions"]


def test_objects_with_too_few_comparisons_are_a_warning_and_in_no_group_and_nobodys_nearest():
    rng = np.random.default_rng(2)
    events = responses(rng, {f"p{i}": 100 for i in range(8)})
    for i in range(3):
        name = f"rare{i}"
        events += [
            {"anchor": name, "near": "o1", "far": "o2", "worker": "p1"},
            {"anchor": "o3", "near": name, "far": "o4", "worker": "p2"},
        ]
    made = study(events)
    made.fit("embedding", **ALIKE)
    made.fit("clusters")
    whole = material(made.published, commands=Commands("S"))
    warning = next(each for each in warnings(whole.findings) if each.what == "few_comparisons")
    assert warning.figures == {"objects": 3} and "rare0, rare1 and rare2" in warning.text and "ask" in warning.command
    assert quality.section(whole).says == "1 problem found."
    rare = np.array([name.startswith("rare") for name in whole.names])
    assert (
        (whole.facts.too_few == rare).all() and (whole.cluster[rare] == -1).all() and (whole.cluster[~rare] >= 0).all()
    )
    assert "rare0, rare1 and rare2" in " ".join(object_map.section(whole).notes)
    grouped = next(table for table in clusters.section(whole).tables if table.name == "clusters")
    assert sum(grouped.columns["objects"]) == 18
    near = dict(zip(*(objects.section(whole).tables[0].columns[head] for head in ("object", "nearest three"))))
    assert [near[f"rare{i}"] for i in range(3)] == [""] * 3 and "rare" not in "".join(near.values())
