"""What the first screen says of studies that are made for it: facts, not sentences."""

import re

import numpy as np
import pytest

from stream_engine.refits import embedding
from stream_engine.report import Section, page
from stream_engine.report.drawings import Ellipses
from stream_engine.report.findings import WARNING
from stream_engine.report.material import material
from stream_engine.report.page import tiles
from tests.support import survey_cases

ALIKE = {"participants": "alike"}  # without models of participants, and with dimensions: most of a fit chooses these


def screen(events, **params):
    """The material of a study, its findings by name, its first figures, and its sections."""
    of = survey_cases.of(survey_cases.fitted(events, **params))
    found = {each.what: each for topic in of.findings.values() for each in topic}
    return of, found, {tile.head: tile for tile in tiles(of)}, page.sections(of)


def wrong(found) -> set[str]:
    return {what for what, each in found.items() if each.level == WARNING}


def test_where_all_guess_nothing_else_is_claimed():
    of, found, figures, made = screen(survey_cases.all_guess())
    assert wrong(found) == {"chance_level"} and of.facts.beats_chance is False
    assert {"map_gated", "participants_gated", "clusters_gated"} <= set(found)
    assert not {"map", "dimensions", "clusters", "participants_flagged", "picture"} & set(found)
    assert not re.search(r"\d", figures["Clusters"].value) and made["map"].caution
    assert found["chance_level"].figures["held_out"] == 1800
    assert "dendrogram" not in made and made["clusters"] == Section("Clusters", found["clusters_gated"].text)
    assert not {"nearest three", "axis 1", "axis 2"} & set(made["objects"].tables[0].columns)
    assert "not interpretable" in made["map"].drawings[0].about and "%" not in made["map"].drawings[0].x.label
    assert "occurred" not in made["learning"].says
    assert made["map"].drawings[0].caveat == found["map_gated"].text, "the figure alone says so, too"


def test_sets_that_were_never_compared_have_frames_of_their_own():
    with pytest.warns(UserWarning, match="2 sets"):
        of, found, _, made = screen(survey_cases.two_sets(), dimensions=5, **ALIKE)
    assert wrong(found) == {"disconnected"} and found["disconnected"].figures["sizes"] == [30, 20]
    assert "clusters" not in found and found["clusters_gated"]
    assert (of.cluster == -1).all() and not any("continuum" in note for note in made["map"].notes)
    assert of.facts.cluster_answer["reason"] == "unconnected" and made["clusters"].says == found["clusters_gated"].text
    drawn = [{mark.names for mark in drawing.marks if hasattr(mark, "names")} for drawing in made["map"].drawings]
    names = [set(*each) for each in drawn]
    assert [len(each) for each in names] == [30, 20] and not names[0] & names[1]
    assert {name for name in names[0] if int(name[1:]) >= 30} == set()
    assert len({drawing.name for drawing in made["map"].drawings}) == 2
    units = [[(axis.low, axis.high) for axis in (drawing.x, drawing.y)] for drawing in made["map"].drawings]
    widths = np.diff(units, axis=2)
    assert widths[0] == pytest.approx(widths[1]), "one scale"
    for drawing in made["map"].drawings:
        points = drawing.marks[-1]
        assert (points.x.mean(), points.y.mean()) == pytest.approx((0, 0), abs=1e-5), "without an arbitrary offset"
        assert drawing.x.low < points.x.min() <= points.x.max() < drawing.x.high
    for drawing, table, others in zip(made["dendrogram"].drawings, made["dendrogram"].tables, names[::-1], strict=True):
        branches = {each.split(" (+")[0] for head in ("branch", "joins") for each in table.columns[head]}
        assert len(table.columns["at"]) == len(names[0] | names[1]) - len(others) - 1 and drawing.name == table.name
        assert not branches & others, "a tree has the objects of one set"
    rows = made["objects"].tables[0].columns
    for name, near, number in zip(rows["object"], rows["nearest three"], rows["set"], strict=True):
        assert {name, *near.split(", ")} <= names[number - 1]
    assert not {"axis 1", "axis 2", "cluster"} & set(rows)
    assert "2 sets" in made["methods"].says and "%" not in made["map"].drawings[0].x.label
    picture = of.published.artifacts["embedding"].arrays["picture"]
    first = np.array([int(name[1:]) < 30 for name in of.names])
    assert picture[first, 0].max() < picture[~first, 0].min(), "who draws all in one frame does not mix them"
    # each set by itself is drawn as well as it can be: triplets within it are those of its own objects
    assert found["picture"].figures["accuracy"] > 0.75


def test_regions_can_be_shown_in_the_frame_of_each_set():
    """Where there are ellipses, each frame has a button for them."""
    with pytest.warns(UserWarning, match="2 sets"):
        published = survey_cases.fitted(survey_cases.two_sets(), dimensions=5, **ALIKE).published
    params = embedding.Params(dimensions=2, kernel="ste", ridge=1.0, lapse="none", participants="alike")
    artifact = embedding.refit(published.snapshot, params, 0, evaluate=False)
    without = artifact._replace(arrays={name: a for name, a in artifact.arrays.items() if name != "covariance"})
    for each, shown in ((artifact, True), (without, False)):
        of = material(published._replace(artifacts={**published.artifacts, "embedding": each}))
        made = page.sections(of)
        frames, text = made["map"].drawings, page.body(of, made, {})
        assert [any(isinstance(mark, Ellipses) for mark in frame.marks) for frame in frames] == [shown] * 2
        assert [f'data-regions="{frame.name}-svg"' in text for frame in frames] == [shown] * 2


def test_a_continuum_is_told_from_clusters():
    _, found, figures, _ = screen(survey_cases.no_structure(), dimensions=2, **ALIKE)
    assert not wrong(found) and found["clusters"].figures["grade"] in ("not separable", "cannot tell")
    assert not re.search(r"\d", figures["Clusters"].value)
    _, found, figures, made = screen(survey_cases.good())
    assert not wrong(found) and found["clusters"].figures["k"] == 3
    assert found["clusters"].figures["grade"].endswith("separated")
    assert figures["Clusters"].value.startswith("3 ") and figures["Participants"].value == "30"
    assert made["clusters"].tables[0].columns["group"] == [1, 2, 3]
    sizes = made["clusters"].tables[0].columns["objects"]
    assert sizes == sorted(sizes, reverse=True)


def test_equal_digits_are_neighbours_in_the_picture():
    events, target = survey_cases.digits()
    made = survey_cases.read(events, frames="arrow").fit("embedding")
    assert survey_cases.same_among_nearest(made, target) >= 0.75


def coins(seed: int) -> list[dict]:
    """30 answers of each of 20 participants about 12 objects, all by chance."""
    rng = np.random.default_rng(10_000 + seed)
    rows = [(f"S{who:02}", *rng.choice(12, 3, replace=False).tolist()) for who in range(20) for _ in range(30)]
    return [{"worker": who, "anchor": f"o{a}", "near": f"o{b}", "far": f"o{c}"} for who, a, b, c in rows]


def test_luck_does_not_choose_the_model_that_is_reported():
    """A model that is better than the map by no more than chance explains is not reported; a better one is."""
    quick = {"dimensions": 2, "kernel": "ste", "ridge": 0.3, "participants": "alike"}
    facts = survey_cases.of(survey_cases.read(coins(0), frames="arrow").fit("embedding", **quick)).facts
    rows = [{"model": "k1", "accuracy": 0.54, "standard_error": 0.01, "log_loss": 0.60, "comparisons": 1800}]
    rows += [{**rows[0], "model": "embedding", "accuracy": 0.52, "log_loss": 0.65}]
    facts.models = rows
    assert facts.best["model"] == "embedding"
    rows[0]["accuracy"] = 0.555  # better by 2.5 standard errors: significant if it alone had been compared with the map
    assert facts.best["model"] == "embedding"
    rows[0]["accuracy"] = 0.62
    assert facts.best["model"] == "k1"
