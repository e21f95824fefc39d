"""Nothing is said across sets of objects that few or no questions join, nor of positions where answers are random."""

from types import SimpleNamespace

import numpy as np
import pytest

from stream_engine import asking
from stream_engine.asking.across import ACROSS, ENOUGH
from stream_engine.asking.knowledge import knowledge_of, with_objects
from stream_engine.evaluation.answering import answered
from stream_engine.exports.learned import hierarchy as hierarchy_export
from stream_engine.exports.object_table import table
from stream_engine.refits import embedding, hierarchy
from stream_engine.report.findings import WARNING
from stream_engine.report.findings.data import connected
from stream_engine.report.findings.facts import Commands, Facts
from stream_engine.report.sections import dimensions
from stream_engine.state.artifact import Artifact
from stream_engine.state.published import Published
from tests.support import survey_cases
from tests.support.learned import snapshot_of


@pytest.fixture(scope="module", params=[0, 3], ids=["never compared", "joined by three"])
def apart(request):
    """Two sets of ten objects, and how many questions join them."""
    return snapshot_of(survey_cases.weakly_joined(request.param)), request.param


def is_first(names) -> np.ndarray:
    return np.array([int(name[1:]) < 10 for name in names])


def test_the_page_warns_of_the_sets_and_says_how_many_questions_join_them(apart):
    snapshot, across = apart
    (said,) = connected(Facts(Published(snapshot, {}), Commands("DIR")))
    assert said.level == WARNING
    assert said.figures == {"sets": 2, "sizes": [10, 10], "questions_across": across}
    assert ("joined by only 3 questions" in said.text) == (across == 3)
    assert ("never compared" in said.text) == (across == 0)


@pytest.mark.parametrize("method", ["average", "complete"])
@pytest.mark.parametrize("similarity", ["adds3", "k1"])
def test_a_hierarchy_joins_sets_last_and_says_which_merges_do(apart, similarity, method):
    snapshot, _ = apart
    made = hierarchy.refit(snapshot, hierarchy.Params(similarity=similarity, method=method), 0)
    merges = hierarchy_export(Published(snapshot, {"hierarchy": made}))["hierarchy"].tables["hierarchy"]
    assert merges["joins_sets"].tolist() == [False] * 18 + [True]
    assert merges["height"][-1] > merges["height"][-2]


def test_the_export_of_a_hierarchy_of_one_set_has_no_column_about_sets():
    snapshot = snapshot_of(survey_cases.no_structure())
    made = hierarchy.refit(snapshot, hierarchy.Params(), 0)
    assert (
        "joins_sets" not in hierarchy_export(Published(snapshot, {"hierarchy": made}))["hierarchy"].tables["hierarchy"]
    )


@pytest.mark.parametrize("model", ["embedding", "adds3"])
def test_answers_to_questions_that_span_sets_are_unknown(apart, model):
    snapshot, _ = apart
    params = embedding.Params(dimensions=2, kernel="ste", ridge=1.0, lapse="none", participants="alike")
    fits = {"embedding": embedding.refit(snapshot, params, 0, evaluate=False)} if model == "embedding" else {}
    questions = [("o0", "o1", "o0", "o2"), ("o0", "o1", "o0", "o12"), ("o11", "o12", "o11", "o13")]
    predictions = answered(Published(snapshot, fits), [*questions, ("o0", "nobody", "o0", "o1")], model)
    assert np.isnan(predictions.p).tolist() == [False, True, False, True]
    assert predictions.n_across == 1 and "1 without p: their objects are of sets" in predictions.about
    assert "1 without p: an object is unknown" in predictions.about


@pytest.mark.parametrize("strategy", ["coverage", "random", "uncertainty"])
def test_questions_that_span_sets_are_asked_first(apart, strategy):
    snapshot, _ = apart
    knowledge = with_objects(knowledge_of(snapshot), ["new"])
    chosen, ready = asking.take(asking.prepare(knowledge, strategy), 20)
    chosen_later, _ = asking.take(ready, 60)
    assert (chosen.sampler == ACROSS).all() and (chosen_later.sampler == ACROSS).sum() == ENOUGH - 20
    first = is_first([f"{name:>02}" if name != "new" else "o99" for name in knowledge.names])
    assert all(0 < first[row].sum() < 3 for row in chosen.rows)
    everything = np.concatenate([chosen.rows, chosen_later.rows])
    assert len(np.unique(np.concatenate([everything[:, :1], np.sort(everything[:, 1:])], axis=1), axis=0)) == 80
    assert len(asking.questions(knowledge, 5, strategy).rows) == 5


def test_a_study_that_begins_is_asked_by_its_strategy():
    events = [dict(zip(("anchor", "near", "far"), (f"o{at}", f"o{at + 1}", f"o{at + 2}"))) for at in range(0, 30, 3)]
    chosen = asking.questions(knowledge_of(snapshot_of(events)), 50)
    assert {*chosen.sampler.tolist()} == {"coverage"}


@pytest.mark.parametrize("beats_chance", [True, False, None])
@pytest.mark.parametrize("is_connected", [True, False])
def test_interpretable_dimensions_are_those_of_objects_that_can_be_compared(beats_chance, is_connected):
    arrays = {name: np.ones(1) for name in ("reproducibility", "importance", "importance_error")}
    arrays |= {"X": np.ones((3, 1)), "standard_error": np.ones((3, 1))}
    made = Artifact("dimensions", "", 1, {}, 0, arrays, {"dimensions": 1, "reproducible": 1})
    facts = SimpleNamespace(connected=is_connected, beats_chance=beats_chance, apart="were never compared")
    material = SimpleNamespace(artifact=lambda kind: made, facts=facts, names=["a", "b", "c"])
    section = dimensions.section(material)
    shown = is_connected and beats_chance is not False
    assert bool(section.tables) is shown and section.caution is not shown


def test_the_export_of_objects_has_no_places_where_answers_are_random():
    of_chance, good = (
        survey_cases.fitted(events()).published for events in (survey_cases.all_guess, survey_cases.good)
    )
    places = {"x", "y", "nearest_1", "cluster"}
    assert not places & set(table(of_chance)) and "answers" in table(of_chance)
    assert places <= set(table(good))
