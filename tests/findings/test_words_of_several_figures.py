"""Sentences that say which of several figures is meant, and on what a figure rests."""

import numpy as np
import pyarrow as pa
import pytest

import stream_engine
from stream_engine.evaluation.connection import joining_object
from stream_engine.report.findings import agreement, data, models
from stream_engine.report.findings.facts import Facts
from stream_engine.report.material import material
from stream_engine.report.sections import dendrogram, methods


def study(rows, workers=None):
    """A study of triplets by name."""
    columns = dict(zip(("anchor", "near", "far"), map(list, zip(*rows))))
    return stream_engine.read(pa.table(columns | ({"worker": workers} if workers else {})), type="triplet")


def of_sets(*sets, size=80):
    rng = np.random.default_rng(4)
    return [[*map(str, rng.choice(objects, 3, replace=False))] for objects in sets for _ in range(size)]


@pytest.mark.parametrize("joins", ["one", "two", "many"])
def test_an_object_that_alone_joins_two_sets_is_named(joins):
    first, second = [f"a{n}" for n in range(8)], [f"b{n}" for n in range(5)]
    both = {"one": ["x"], "two": ["x", "y"], "many": first[:4]}[joins]
    published = study(of_sets(sorted({*first, *both}), [*second, *both])).published
    told = {each.what: each for each in data.connected(Facts(published))}
    assert ("joined_by_one" in told) == (joins == "one")
    if joins == "one":
        found = joining_object(published.snapshot)
        names = published.snapshot.objects
        assert names[found.object] == "x" and {names[i] for i in found.smaller} == {*second}
        assert "x alone joins 5 objects" in told["joined_by_one"].text


@pytest.mark.parametrize("alone", [True, False])
def test_repetitions_of_one_participant_are_said_to_be_so(alone):
    rng = np.random.default_rng(5)
    rows, workers = [], []
    for number, [anchor, near, far] in enumerate(of_sets([f"o{n}" for n in range(9)], size=160)):
        who = f"p{number % 8}"
        times = 3 if who == "p0" or not alone else 1
        rows += [[anchor, *rng.permutation([near, far]).tolist()] for _ in range(times)]
        workers += [who] * times
    share = agreement.most_of_repeated_answers(Facts(study(rows, workers).published))
    assert (share is not None and share > 0.8) if alone else share is None


def test_the_text_for_a_paper_has_groups_of_participants_and_groups_within_groups():
    differences = {"participants": 40, "p_value": 0.001, "groups": {"count": 2, "p_value": 0.004}}
    text = " ".join(methods._differences({"individual_differences": differences}))
    assert "2 groups of participants were found (p = .004)" in text
    differences["groups"] = {"count": 1, "p_value": 0.4}
    assert "No separate groups of participants" in " ".join(
        methods._differences({"individual_differences": differences})
    )
    answer = {
        "grade": "separated",
        "clearer_than": 0.97,
        "k": 3,
        "subgroups": [{"group": 2, "k": 2, "grade": "separated"}],
    }
    assert "Group 2 split again into 2 groups, separated." in " ".join(methods._groups(answer))


class OfGroups:
    """Facts of groups in so many dimensions."""

    def __init__(self, dimensions):
        self.cluster_answer = {"dimensions": dimensions}


@pytest.mark.parametrize(("of_map", "of_groups", "says"), [(5, 3, True), (3, 3, False), (3, None, False)])
def test_numbers_of_dimensions_that_differ_are_said_to_be_of_what(of_map, of_groups, says):
    told = [*models._which_dimensions(OfGroups(of_groups), of_map)]
    assert bool(told) == says
    assert not says or ("the map has 5" in told[0].text and "sought in 3; the picture has 2." in told[0].text)


def test_the_dendrogram_marks_objects_with_too_few_comparisons():
    rng = np.random.default_rng(6)
    often = [f"o{n}" for n in range(8)]
    places = dict(zip([*often, "rare"], rng.normal(size=(9, 2))))
    rows = [*of_sets(often, size=300), ["rare", "o1", "o2"], ["o3", "rare", "o4"]]
    rows = [
        [anchor, *sorted(pair, key=lambda name: np.linalg.norm(places[name] - places[anchor]))]
        for anchor, *pair in rows
    ]
    made = study(rows).fit("embedding", dimensions=2, kernel="ste", ridge=0.3)
    section = dendrogram.section(material(made.published))
    names = {name for column in ("branch", "joins") for name in section.tables[0].columns[column]}
    assert any(name.startswith("rare *") for name in names) and not any(name.startswith("o1 *") for name in names)
    assert any("Too few comparisons" in note for note in section.notes)
