"""The answer about clusters is the same sentence wherever it is shown, whatever the seed; poor inputs have one each;
and what an earlier version found is described as that."""

import re
from contextlib import nullcontext

import msgspec
import numpy as np
import pytest

from stream_engine import read
from stream_engine.clustering.sentence import GRADES, headline, sentence
from stream_engine.commands.inspect import inspect
from stream_engine.exports import contents
from stream_engine.refits import clusters, embedding
from stream_engine.report import maker, page
from stream_engine.report.findings import findings
from stream_engine.report.findings.clusters import explained
from stream_engine.report.findings.facts import Commands, Facts
from stream_engine.report.material import material
from stream_engine.report.sections import methods
from stream_engine.report.tiles import tiles
from stream_engine.state.artifact import Artifact
from stream_engine.state.published import Published
from tests.support import survey_cases

QUICK = embedding.Params(dimensions=2, kernel="ste", ridge=0.3, participants="alike")
MADE = {"grade": "separated", "reason": "", "k": 3, "objects": 40, "answers": 900, "clearer_than": 0.972}
MADE |= {"replication": {"ari": 0.93, "low": 0.81, "high": 1.0}, "gain": 0.0123, "gain_se": 0.0031, "dimensions": 2}
MADE |= {"detection_limit": 6.04, "subgroups": [{"group": 1, "k": 3, "grade": "separated"}]}


def numbers(text: str) -> list[str]:
    return re.findall(r"-?\d*\.?\d+", text)


def test_the_sentence_has_the_figures_of_the_report_and_only_what_is_known():
    assert numbers(sentence(MADE)) == ["97.2", ".93", "95", ".81", "1.00", ".012", ".003", "1", "3"]
    assert numbers(sentence({"grade": "clearly separated", "k": 13, "clearer_than": 1.0})) == ["13", "99.9"]
    certain = MADE | {
        "replication": {"ari": 1.0, "low": 1.0, "high": 1.0}
    }  # in all of a hundred simulated replications
    assert numbers(sentence(certain)) == ["97.2", ".99", ".012", ".003", "1", "3"]
    assert numbers(" ".join(methods._groups(certain)).partition("Hubert")[2]) == ["1985", ".99", "1", "3"]
    none = sentence(MADE | {"grade": "not separable", "clearer_than": 0.5, "subgroups": []})
    assert numbers(none)[:3] == ["3", "50", "6.0"] and "group 1" not in none
    few = sentence(MADE | {"grade": "cannot tell", "reason": "few answers"})
    assert numbers(few) == ["900", "40", "6.0"]
    assert "900 comparisons of 40 objects" in few  # an answer can give several
    assert "6.0 within-group standard deviations apart can be missed" in few  # some are detected: it is no lower bound
    assert sentence({}) == "" == sentence({"grade": "excellent", "k": 3})
    assert explained({}) == "" and "1 dimension," in explained(MADE | {"dimensions": 1})


def test_a_group_of_one_object_is_no_group():
    one = MADE | {"sizes": [25, 14, 1], "alone": ["sound_29"]}
    assert sentence(one).startswith("Two groups and one object by itself (sound_29), separated (")
    assert headline(one).answer == "2 groups" and "and 1 object by itself (sound_29); separated" in headline(one).note
    assert "2 groups and 1 object by itself (sound_29) were found" in " ".join(methods._groups(one))
    two = MADE | {"k": 4, "sizes": [25, 13, 1, 1], "alone": ["a", "b"]}
    assert sentence(two).startswith("Two groups and two objects by themselves (a, b), separated (")


@pytest.mark.parametrize("errors, detected", [(1.9, False), (2.0, True)])
def test_positions_within_groups_carry_information_where_it_is_significant(errors, detected):
    said = sentence(MADE | {"gain": errors * MADE["gain_se"]})
    assert ("still carry information" in said, "no information is detected" in said) == (detected, not detected)


def test_each_reason_has_a_sentence_of_its_own():
    reasons = ("few objects", "chance", "unconnected", "no positions", "few answers")
    told = [sentence(MADE | {"grade": "cannot tell", "reason": reason}) for reason in reasons]
    assert len(set(told)) == len(reasons) and all(each.count(".") <= 2 for each in told)
    assert sentence(MADE | {"reason": "one dimension"}).startswith(sentence(MADE))
    assert sentence(MADE | {"reason": "one dimension"}) != sentence(MADE)


@pytest.mark.parametrize("grade", GRADES)
def test_only_separated_groups_are_counted_in_the_headline(grade):
    assert bool(re.match(r"3 ", headline(MADE | {"grade": grade}).answer)) == grade.endswith("separated")


@pytest.mark.parametrize(
    "spoiled", [{"k": "x"}, {"replication": 3}, {"subgroups": [1, {"grade": "separated"}]}, {"gain": []}]
)
def test_a_report_that_somebody_changed_does_no_harm(spoiled):
    for grade in GRADES:
        assert sentence(MADE | {"grade": grade} | spoiled)


def study(events, seed: int = 0):
    made = read(events, frames="arrow")
    made.seed = seed
    return made.fit("embedding", **msgspec.to_builtins(QUICK)).fit("clusters")


@pytest.fixture(scope="module")
def good():
    return study(survey_cases.good()[:2000])


def test_the_same_sentence_everywhere(good):
    published = good.published
    said, of = good.details("clusters")["note"], material(published)
    assert said and sentence(good.details("clusters")) == said
    sections = page.sections(of)
    for text in (
        sections["clusters"].says,
        findings(Facts(published))["clusters"][0].text,
    ):
        assert said in text
    assert contents("clusters", published)["clusters"].tables["cluster_answer"]["sentence"] == [said]
    assert contents("summary", published)["summary"].value["clusters"]["sentence"] == said
    answer = next(tile for tile in tiles(of) if tile.head == "Clusters")
    assert answer.value.split()[0] == str(good.details("clusters")["k"]) and answer.note


@pytest.mark.parametrize("reason", ["chance", "unconnected"])
def test_every_surface_has_the_same_grade_where_clusters_are_not_assessed(good, reason, tmp_path):
    published = good.published
    assert material(published).facts.positions_comparable
    if reason == "unconnected":  # of answers that came after the fit
        apart = [{"anchor": f"x{i}", "near": f"x{i + 1}", "far": f"x{i + 2}"} for i in range(9)]
        published = published._replace(snapshot=read(survey_cases.good()[:2000] + apart).snapshot)
    else:
        fitted = published.artifacts["embedding"]
        at_chance = fitted._replace(report={**fitted.report, "accuracy": 0.5, "standard_error": 0.5})
        published = published._replace(artifacts={**published.artifacts, "embedding": at_chance})
    of, tables = material(published), contents("clusters", published)["clusters"].tables
    summary = contents("summary", published)["summary"].value["clusters"]
    assert (summary["grade"], summary["reason"]) == ("cannot tell", reason)
    assert summary["sentence"] == of.findings["clusters"][0].text == tables["cluster_answer"]["sentence"][0]
    grades = {of.facts.cluster_answer["grade"], *tables["cluster_answer"]["grade"], *tables["clusters"]["grade"]}
    study = type(good)(published, frames="arrow")
    grades |= {*study.clusters()["grade"].to_pylist(), study.details("clusters")["grade"]}
    assert study.details("clusters")["note"] == summary["sentence"]
    state = study.save(tmp_path / "state")
    assert inspect(str(state))["artifacts"]["clusters"]["report"]["grade"] == "cannot tell"
    assert grades == {"cannot tell"}
    sections = page.sections(of)
    assert "cluster" not in sections["objects"].tables[0].columns
    assert explained(of.facts.cluster_answer) not in sections["clusters"].notes


def test_ten_seeds_give_one_answer(good):
    snapshot = good.snapshot
    made = []
    for seed in range(10):
        needed = embedding.refit(snapshot, QUICK, seed, evaluate=False)
        made.append(clusters.refit(snapshot, clusters.Params(), seed, needed=needed))
    assert len({each.report["note"] for each in made}) == 1
    assert all(np.array_equal(each.arrays["labels"], made[0].arrays["labels"]) for each in made)


def test_the_setting_of_the_embedding_does_not_depend_on_the_seed():
    snapshot = read(survey_cases.good()[:600], frames="arrow").snapshot
    given = embedding.Params(kernel="ste", ridge=0.3, participants="alike")
    one, two = (embedding.refit(snapshot, given, seed, evaluate=False) for seed in (0, 5))
    assert one.report["d"] == two.report["d"] and one.report["tried"] == two.report["tried"]
    assert np.array_equal(one.arrays["X"], two.arrays["X"])


def points_on_a_line():
    return survey_cases.study(np.linspace(0, 6, 30)[:, None] * [1.0, 0.0], 4000)


def alike():
    events = survey_cases.study(np.random.default_rng(3).normal(size=(10, 2)), 400)
    return events + [event | {"near": event["far"], "far": event["near"]} for event in events]


@pytest.mark.parametrize(
    "events, reason",
    [
        (lambda: survey_cases.study(np.random.default_rng(3).normal(size=(6, 2)), 400), "few objects"),
        (survey_cases.all_guess, "chance"),
        (lambda: survey_cases.two_sets()[:1500], "unconnected"),
        (points_on_a_line, "one dimension"),
        (alike, "no positions"),
    ],
    ids=["few objects", "guesses", "two sets", "a line", "all alike"],
)
def test_poor_inputs_say_what_is_wrong_with_them(events, reason):
    with pytest.warns(UserWarning, match="2 sets") if reason == "unconnected" else nullcontext():
        made = study(events())
    assert re.fullmatch(reason, made.details("clusters")["reason"])
    of = material(made.published)
    assert maker("clusters")(of).says and sentence(of.facts.cluster_answer)
    if reason != "one dimension":
        assert made.details("clusters")["grade"] == "cannot tell" and made.details("clusters")["k"] is None
        assert (np.asarray(made.published.artifacts["clusters"].arrays["labels"]) == -1).all()


def test_the_verdict_of_an_earlier_version_is_read_and_described_as_that(good):
    """An artifact as version 0.1 wrote it after its test."""
    n = len(good.snapshot.objects)
    arrays = {"labels": np.arange(n) % 4, "k": np.array(4), "p_coins": np.array(0.01), "p_continuum": np.array(0.02)}
    arrays |= {"stability": np.ones(n), "second": np.full(n, -1), "together": np.ones((n, n), np.float32)}
    report = {"verdict": "4 clusters", "note": "4 clusters (p = .02 against a continuum)", "k": 4, "k_by": "test"}
    old = Artifact("sdp_clustering", good.snapshot.digest, 1, {"test": 99, "k_by": "test"}, 0, arrays, report)
    published = Published(good.snapshot, {"embedding": good.published.artifacts["embedding"], "sdp_clustering": old})
    (found,) = findings(Facts(published, Commands("S")))["clusters"]
    assert found.what == "clusters_of_earlier_version" and report["note"] in found.text
    assert found.command == "stream-engine refit --state S clusters"
    shown = maker("map")(material(published))
    assert report["note"] in maker("clusters")(material(published)).says and shown.notes[-1]
    assert {text.split()[0] for _, text in shown.drawings[0].groups} == {"part"}
    assert "not established" in shown.drawings[0].about_groups
    of = material(published)
    assert re.search(r"no established groups\W+</span>\s*<button class=.key", page.html(of, page.sections(of)))
    with_groups = material(good.published)
    assert "no established groups" not in page.html(with_groups, page.sections(with_groups))
    made = contents("clusters", published)["clusters"]
    assert made.arrays["k"] == 4
    assert "p_continuum" not in made.arrays
    assert set(made.tables) == {"clusters"}
