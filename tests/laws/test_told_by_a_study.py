"""What a `Study` returns is told once more by the definitions of exports, of a state that has a figure wherever there
can be one; nothing is fitted but where it is said."""

import re

import numpy as np
import pytest

from stream_engine.api.feeding import RejectedRow
from stream_engine.api.study import Study
from tests.support import told
from tests.support.told import ABOUT, World, same, told_of
from tests.support.told_documents import probability

REFUSED = [RejectedRow("a.csv line 3", "not_distinct", "why"), RejectedRow("b.csv line 7", "missing_field", "because")]


@pytest.fixture(scope="module")
def made():
    return Study(told.studied(), REFUSED, "read as triplets", frames="arrow")


def check(table, export: str, world: World, **more) -> dict:
    """Each cell by its definition; returns the columns."""
    columns = table.to_pydict()
    heads = [head for head in ABOUT if head in columns]
    rows = [*zip(*(columns[head] for head in heads))] or [(at,) for at in range(len(table))]
    assert rows
    for head in columns.keys() - {*heads}:
        definition, numbered = (more[head], False) if head in more else told_of(head, f"{export} table", export)
        number = (int(head.rpartition("_")[2]),) if numbered else ()
        for about, found in zip(rows, columns[head]):
            assert same(found, wanted := definition(world, *about, *number)), (head, about, found, wanted)
    return columns


def lapse(w: World, who: str) -> float | None:
    return w.fits["embedding"].worker_lapse[w.people.index(who)] if who else None


def test_objects_are_those_of_the_export(made, study):
    assert check(made.objects(), "objects", study)["object"] == study.names


def test_questions_have_their_answers(made, study):
    columns = check(made.questions(), "questions", study)
    asked = {(a, frozenset((b, c))) for a, b, c in zip(*(columns[head] for head in ("anchor", "near", "far")))}
    assert asked == {(a, frozenset((b, c))) for a, b, c in study.questions()}


def test_clusters_have_their_members(made, study):
    columns = check(made.clusters(), "clusters", study)
    assert columns.keys() == {"object", "cluster", "stability", "second", "between", "subgroup", "grade"}
    assert columns["object"] == study.names
    assert all(None in columns[head] and -1 not in columns[head] for head in ("cluster", "second", "subgroup"))


def test_workers_have_their_figures_and_lapse_rates(made, study):
    columns = check(made.workers(), "workers", study, lapse=lapse)
    assert columns["worker"] == study.workers


def test_models_have_the_figures_of_their_reports(made, study):
    rows = made.models().to_pylist()
    assert [row["log_loss"] for row in rows] == sorted(row["log_loss"] for row in rows)
    kinds = {row["model"]: row for row in rows}
    for kind, seconds in (("embedding", 12.5), ("alignment", 3.25)):
        row, report = kinds[kind], study.fits[kind].report
        for name in ("accuracy", "standard_error", "log_loss", "calibration_error"):
            assert row[name] == report[name], (kind, name)
        assert (row["comparisons"], row["seconds"]) == (report["held_out_comparisons"], seconds)
        assert (row["ceiling"], row["ceiling_at_most"]) == tuple(report["ceiling"][n] for n in ("others", "at_most"))


def test_the_map_has_the_coordinates_of_the_fit(made, study):
    fit = study.fits["embedding"]
    for shown in (made.map(), made.map(None)):
        assert (shown.d, shown.names) == (2, study.names)
        assert shown.points.tolist() == fit.X.tolist()
        assert shown.covariance.tolist() == fit.covariance.tolist()
    columns = made.map().to_frame().to_pydict()
    assert columns["object"] == study.names
    for at in range(2):
        assert columns["xy"[at]] == fit.X[:, at].tolist()
        deviations = [study.variance(name)[at] ** 0.5 for name in study.names]
        assert columns[f"sd_{'xy'[at]}"] == pytest.approx(deviations)


def test_a_map_of_fewer_dimensions_is_fitted(made):
    assert made.map(1).points.shape == (8, 1)
    assert made.map().points.shape == (8, 2)


def test_the_hierarchy_has_its_merges(made, study):
    tree, fit = made.hierarchy(), study.fits["hierarchy"]
    assert tree.linkage.tolist() == fit.linkage.tolist()
    assert tree.names == [study.names[i] for i in fit.leaves]
    assert tree.method == fit.report["method"]
    check(tree.to_frame(), "hierarchy", study)


def test_predictions_are_the_probabilities_of_the_model(made, study):
    asked = [("d", "a", "c"), ("b", "e", "f"), ("é", "a", "nobody")]
    columns = made.predict([dict(zip(("anchor", "left", "right"), each)) for each in asked]).to_pydict()
    p = [probability(study, a, left, a, right) for a, left, right in asked[:2]]
    assert columns["p"] == [*map(pytest.approx, p), None]
    assert columns["model"] == ["embedding"] * 3
    assert [columns[head] for head in ("anchor", "left", "right")] == [[*each] for each in zip(*asked)]


def test_rejected_events_stand_with_their_reasons(made):
    assert made.refused().to_pylist() == [each._asdict() for each in REFUSED]


def test_a_study_says_what_it_holds(made, study):
    rows = dict(re.findall(r"<tr><th>([\w ]+)</th><td>([^<]*)</td>", made._repr_html_()))
    counted = (len(study.events), len(study.said), 19, len(study.names))
    assert [rows[head] for head in ("events", "comparisons", "refused", "objects")] == [*map(str, counted)]
    assert rows["read as"] == "triplets" and {*rows["fitted"].split(", ")} == {*study.fits}
    for part in (f"{counted[0]} events", f"{counted[3]} objects", "19 rejected"):
        assert part in repr(made)
    assert len(made) == counted[0]
    assert np.isfinite(made.details("embedding")["accuracy"])
