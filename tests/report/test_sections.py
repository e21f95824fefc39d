"""Every section says something sensible of every kind of state, and its numbers are those of the state."""

import re

import numpy as np
import pytest

from stream_engine import Engine, Triplet
from stream_engine.evaluation.held_out import Figures
from stream_engine.exports.models import table
from stream_engine.refits import hierarchy
from stream_engine.refits.quick_map import with_quick_map
from stream_engine.report import SECTIONS, maker, page
from stream_engine.report.material import MAX_SHOWN_OBJECTS, material
from stream_engine.report.page import tiles
from stream_engine.report.sections import clusters, dendrogram, learning, methods, quality
from stream_engine.report.sections.dendrogram import draw
from stream_engine.state.artifact import Artifact
from stream_engine.state.published import Published
from tests.support.facts import states
from tests.support.reported import QUICK, answers, held, names, published

ALWAYS = set(SECTIONS) - {"workers", "dendrogram", "differences", "dimensions", "alignment"}


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    """24 objects in three groups, 3,000 answers by ten workers, one of whom guesses."""
    return published(tmp_path_factory.mktemp("study"), answers(24, 3000), config=QUICK.replace("alike", "test"))


@pytest.fixture(scope="module")
def of_everybody(study):
    """The sections of its page."""
    return sections(study)


@pytest.fixture(scope="module")
def with_workers(study):
    """The sections of its page with participants."""
    return sections(study, workers=True)


def sections(state, **more):
    return page.sections(material(state, **more))


def test_a_study_has_every_section_and_its_own_numbers(study, of_everybody, with_workers):
    made = with_workers
    of_refits = ("dimensions", "alignment")  # tests/refits has them
    assert list(made) == [name for name in SECTIONS if name not in of_refits]
    assert "3,000 answers" in made["read"].says and "24 objects" in made["read"].says
    best = table(study)[0]
    assert f"{100 * best['accuracy']:.1f} %" in made["models"].says
    assert f"{study.artifacts['embedding'].report['held_out_comparisons']:,} held-out" in made["models"].says
    people = made["workers"].tables[0].columns
    flagged = [name for name, reason in zip(people["participant"], people["flagged because"]) if reason]
    assert flagged == ["w9"]
    assert people["participant"][0] == "w9"
    assert "w9" in made["workers"].says
    assert states(made["quality"].notes[0], "1 … 10 ") and "w9" not in made["quality"].notes[0]
    assert "report --state DIR --participants" in str(of_everybody["quality"]) and not of_everybody["agreement"].notes
    rows = made["objects"].tables[0].columns
    assert sorted(rows["object"]) == sorted(names(24))
    assert rows["comparisons"] == sorted(rows["comparisons"])
    assert sum(rows["comparisons"]) == 3 * 3000
    for section in made.values():
        assert section.says.endswith((".", "?")) and "{" not in section.says
        for each in section.tables:
            assert len({len(values) for values in each.columns.values()}) == 1


def test_the_methods_are_those_that_were_used_and_the_text_for_a_paper_has_the_findings(study):
    made = study.artifacts["sdp_clustering"]
    told = {by: made._replace(report={**made.report, "k_by": by}) for by in ("spur", "given")}
    how = {}
    for by, artifact in told.items():
        section = sections(study._replace(artifacts={**study.artifacts, "sdp_clustering": artifact}))["methods"]
        columns = section.tables[0].columns
        how[by] = columns["method"][columns["refit"].index("sdp_clustering")]
        groups = columns["method"][columns["refit"].index("clusters")]
    assert "semidefinite" not in groups
    assert "Ward" in groups
    assert "continua" in groups
    assert "semidefinite" in how["spur"]
    assert "SPUR" in how["spur"]
    assert "SPUR" not in how["given"]
    found = material(study).findings
    figures = found["accuracy"][0].figures
    low, high = (figures["accuracy"] + sign * 1.96 * figures["standard_error"] for sign in (-1, 1))
    for fact in ("3,000", "24 objects", f"{100 * figures['accuracy']:.1f}%", f"[{100 * low:.1f}, {100 * high:.1f}]"):
        assert fact in section.says


def test_the_first_screen_states_the_findings(study, of_everybody):
    """The four tiles and the checks beside the map have the figures of the findings."""
    of = material(study)
    shown = {tile.head: tile for tile in tiles(of)}
    known = {each.what: each.figures for topic in of.findings.values() for each in topic}
    assert shown["Answers"].value == "3,000" and shown["Participants"].value == "10"
    accuracy = known["accuracy"]["accuracy"]
    assert (
        shown["Predicted correctly"].value == f"{100 * accuracy:.1f} %" and "50 %" in shown["Predicted correctly"].note
    )
    clusters = shown["Clusters"]
    answer = of.facts.cluster_answer
    assert clusters.value
    assert len(clusters.value) < 40
    assert clusters.note
    for place in (
        of.findings["clusters"][0].text,
        of_everybody["clusters"].says,
    ):
        assert answer["note"] in place
    quality = of_everybody["quality"]
    assert any("chance" in note for note in quality.notes if note.startswith("Passed"))
    with_map = page.html(of, of_everybody)
    assert with_map.index('id="tiles"') < with_map.index('id="map"') < with_map.index('id="quality"')
    assert with_map.index('id="quality"') < with_map.index('id="models"')


def test_who_sees_it_differently_is_told_without_names_unless_they_are_asked_for(study):
    held = study.artifacts["embedding"]
    d, rng = held.arrays["X"].shape[1], np.random.default_rng(0)
    weights = np.exp(rng.normal(size=(10, d)))
    arrays = held.arrays | {"worker_weights": weights, "worker_group": np.array([0] * 5 + [1] * 4 + [-1])}
    found = {"participants": 9, "shrinkage": 3.0, "p_value": 1e-7, "scale": 1.0}
    found["who"] = [
        {"participant": "w3", "gain": 0.1, "standard_error": 0.02, "p_value": 0.001, "objects": ["o1", "o2"]}
    ]
    found |= {"one_map": {"accuracy": 0.7}, "own": {"accuracy": 0.75}, "groups": {"count": 2, "p_value": 0.01}}
    report = held.report | {"individual_differences": found}
    differing = study._replace(artifacts=study.artifacts | {"embedding": held._replace(arrays=arrays, report=report)})
    made = sections(differing)["differences"]
    assert all(figure in made.says for figure in ("75.0 %", "70.0 %", "9 participants", "2 groups", ".01"))
    assert any("75.0 %" in tile.note for tile in tiles(material(differing)))
    axes, groups = made.tables
    assert len(axes.columns["axis"]) == d and sum(axes.columns["share, group"]) == pytest.approx(1.0)
    assert groups.columns["participants"] == [5, 4]
    shares = [groups.columns[f"share of axis {axis + 1}"][0] for axis in range(d)]
    assert sum(shares) == pytest.approx(1.0)
    assert not re.search(r"\bw\d\b", str(made))
    named = sections(differing, workers=True)["differences"].tables
    people, who = named[-1].columns, named[0].columns
    assert who["participant"] == ["w3"]
    assert who["from"][0] == pytest.approx(0.0608)
    assert "o2" in who["objects"][0]
    assert people["participant"] == [f"w{each}" for each in range(9)] and people["group"] == [1] * 5 + [2] * 4
    np.testing.assert_allclose(people["slope"], weights[:9].mean(axis=1))


def test_every_figure_has_a_table_beside_it(with_workers):
    made = with_workers
    of = {
        drawing.name: {each.name for each in section.tables}
        for section in made.values()
        for drawing in section.drawings
    }
    assert of.keys() >= {"map", "dendrogram", "workers", "learning_curve", "calibration"}
    assert all(name in tables for name, tables in of.items() if name not in ("map", "workers"))
    assert "workers" in of["workers"] and made["objects"].tables[0].columns.keys() >= {"axis 1", "axis 2"}
    merges = made["dendrogram"].tables[0].columns
    assert len(merges["at"]) == 23 and merges["at"] == sorted(merges["at"])
    assert f" {merges['branch'][0]} and {merges['joins'][0]} " in made["dendrogram"].says


def test_nothing_about_single_workers_unless_asked_for(study, of_everybody, with_workers):
    assert "workers" not in of_everybody
    assert not re.search(r"\bw9\b", page.html(material(study), of_everybody))
    assert "w9" in page.html(material(study, workers=True), with_workers)


def test_the_learning_curve_ends_at_the_figures_of_the_report(study, of_everybody):
    """The last point is a fit to all that the refit's own figures were made from: the same judgements held out."""
    columns = of_everybody["learning"].tables[0].columns
    report = study.artifacts["embedding"].report
    assert columns["accuracy"][-1] == pytest.approx(report["accuracy"], abs=0.01)
    assert columns["comparisons fitted"] == sorted(columns["comparisons fitted"])
    assert columns["accuracy"][-1] > columns["accuracy"][0] - 0.05


def test_the_learning_curve_does_not_depend_on_the_seed_of_the_refit(study, of_everybody):
    reseeded = {**study.artifacts, "embedding": study.artifacts["embedding"]._replace(seed=7)}
    assert maker("learning")(material(study._replace(artifacts=reseeded))).says == of_everybody["learning"].says


@pytest.mark.parametrize("accuracies, helps", [((0.7, 0.75, 0.8, 0.9), True), ((0.86, 0.86, 0.74, 0.9), False)])
def test_more_answers_help_only_where_no_fewer_did_as_well(study, monkeypatch, accuracies, helps):
    """The second curve is of 120 answers about three objects."""
    steps = [learning.Step(100 * 2**at, Figures(share, 0.03, 0.5, 0.1, 500, 50)) for at, share in enumerate(accuracies)]
    monkeypatch.setattr(learning, "curve", lambda *_: (steps, np.full(9, 0.9), np.ones(9)))
    assert ("does not tell" not in maker("learning")(material(study)).says) == helps


def test_no_text_for_a_paper_describes_a_preliminary_map(study):
    early = with_quick_map(study._replace(artifacts={}))
    for state, described in ((study, True), (early, False)):
        assert ("cross-validation" in maker("methods")(material(state)).says) == described


def test_response_times_without_values_are_no_columns(study):
    made = material(study, workers=True)
    seconds = made.facts.participants.responding.seconds
    (table,) = maker("workers")(made).tables
    assert ("median seconds" in table.columns) == bool(np.isfinite(seconds).any())
    none = made.facts.participants.responding._replace(seconds=np.full(len(seconds), np.nan))
    made.facts.participants = made.facts.participants._replace(responding=none)
    (table,) = maker("workers")(made).tables
    assert not {"median seconds", "under 300 ms"} & table.columns.keys()


@pytest.mark.parametrize("power, passed", [(None, False), (0.01, False), (0.9, True)])
def test_a_check_without_power_is_not_passed(study, power, passed):
    facts = material(study).facts
    facts.participants = facts.participants._replace(reasons=("",), power=power)
    assert ("no participant is flagged" in list(quality._passed(facts))) == passed


FEW = {
    "nothing yet": [],
    "one answer": [{"anchor": "a", "near": "b", "far": "c"}],
    "three objects": answers(3, 40),
    "quadruplets only": [
        {"type": "quadruplet", "near": [f"o{a}", f"o{b}"], "far": [f"o{c}", f"o{d}"]}
        for a, b, c, d in (np.random.default_rng(k).permutation(6)[:4].tolist() for k in range(200))
    ],
    "contradictions only": [
        {"anchor": "a", "near": near, "far": far} for near, far in [("b", "c"), ("c", "b")] for _ in range(30)
    ],
    "one dimension": answers(12, 1500, d=1),
}


@pytest.mark.parametrize("what", FEW)
def test_states_with_little_in_them(tmp_path, what):
    events = FEW[what] or [{"type": "label", "object": "a", "label": "fruit"}]
    config = QUICK.replace("dimensions = 2", "dimensions = 1") if what == "one dimension" else ""
    state = published(tmp_path, events, config=config)
    made = sections(state, workers=True)
    assert set(made) >= ALWAYS
    html = page.html(material(state, workers=True), made)
    assert len(held(html)["names"]) == len(state.snapshot.objects)
    assert not re.search(r"\b(nan|None(?! was rejected\.)|inf)\b", page.body(material(state, workers=True), made, {}))


def test_of_many_objects_a_sample_is_shown_and_said(tmp_path):
    rng = np.random.default_rng(0)
    many = MAX_SHOWN_OBJECTS + 500
    events = [
        {"anchor": f"o{i}", "near": f"o{(i + 1) % many}", "far": f"o{int(rng.integers(many))}"} for i in range(many)
    ]
    events = [event for event in events if len(set(event.values())) == 3]
    read = material(published(tmp_path, events, "--no-refits"))
    assert len(read.shown) == MAX_SHOWN_OBJECTS
    made = page.sections(read)
    assert any(states(note, f"{MAX_SHOWN_OBJECTS:,} … {len(read.names):,}") for note in made["objects"].notes)
    assert len(made["objects"].tables[0].columns["object"]) == MAX_SHOWN_OBJECTS


def test_a_hierarchy_that_was_fitted_is_drawn():
    """Of three objects too; beyond so few a tree tells nothing."""
    engine = Engine()
    for triplet in ("abc", "bac", "cba"):
        engine.learn_one(Triplet(*triplet))
    snapshot = engine.snapshot()
    fitted = hierarchy.refit(snapshot, hierarchy.Params(), 0)
    made = dendrogram.section(material(Published(snapshot, {"hierarchy": fitted})))
    assert "linkage of AddS" in made.says and made.tables[0].columns["at"] == fitted.arrays["linkage"][:, 2].tolist()


def test_a_hierarchy_and_its_methods_are_called_after_the_similarity():
    engine = Engine()
    for event in answers(6, 60):
        engine.learn_one(Triplet(event["anchor"], event["near"], event["far"]))
    snapshot = engine.snapshot()
    fitted = hierarchy.refit(snapshot, hierarchy.Params("k1"), 0)
    read = material(Published(snapshot, {"hierarchy": fitted}))
    says = dendrogram.section(read).says
    assert "linkage of k1)" in says and "from an object to itself" in says and "AddS" not in says
    (method,) = methods.section(read).tables[0].columns["method"]
    assert "linkage on k1," in method and "AddS" not in method


def test_numbers_of_clusters_are_in_their_order():
    report = {"k": 10, "k_by": "spur", "criterion": {str(k): k / 20 for k in (10, 2, 3)}}
    arrays = {"labels": np.array([0, 1], np.int32)}
    program = Artifact("sdp_clustering", "", 0, {}, 0, arrays, report)
    (table,) = clusters._program(program, program)[1]
    assert table.columns["clusters"] == [2, 3, 10] and table.columns["SPUR"] == [0.1, 0.15, 0.5]


def test_a_dendrogram_has_every_leaf_and_every_merge():
    from scipy.cluster.hierarchy import linkage

    merges = linkage(np.random.default_rng(5).normal(size=(9, 2)), "average")
    drawing = draw(merges, [f"n{i}" for i in range(9)])
    assert sorted(text for _, text in drawing.y.ticks) == sorted(f"n{i}" for i in range(9))
    (segments,) = drawing.marks
    along = segments.ends[segments.ends[:, 0] == segments.ends[:, 2]]
    assert sorted(along[:, 0]) == pytest.approx(sorted(merges[:, 2]))
