"""The map and what to ask next, of states that are made by hand."""

import numpy as np
import pytest

from stream_engine.data.comparisons import Triplet
from stream_engine.report.drawings import Ellipses, Points, Segments
from stream_engine.report.material import material
from stream_engine.report.sections import next_questions, object_map
from stream_engine.state.artifact import Artifact
from stream_engine.state.engine import Engine
from stream_engine.state.published import Published
from tests.support import learned
from tests.support.facts import states


def state(n: int, times: int = 1, arrays: dict | None = None, **more) -> Published:
    """n objects, each compared with its neighbours so many times."""
    engine = Engine(("triplet_counts",), False)
    around = [Triplet(*(f"o{(i + step) % n}" for step in range(3))) for i in range(n)]
    engine.learn_many(around * times)
    report = {"kernel": "ste", "explained": [0.7, 0.2], "d": arrays["X"].shape[1] if arrays else None, **more}
    artifact = Artifact("embedding", "", 1, {}, 0, arrays or {}, report)
    return Published(engine.snapshot(), {"embedding": artifact} if arrays else {})


def mapped(n: int, d: int, covariance: bool = True, asked: int | None = None, **more):
    rng = np.random.default_rng(n)
    arrays = {"X": rng.normal(size=(n, d)), "asked": np.arange(n) < (n if asked is None else asked)}
    arrays |= {"covariance": np.tile(np.diag([0.25, 0.04, 1.0][:d]), (n, 1, 1))} if covariance else {}
    return arrays["X"], object_map.section(material(state(n, arrays=arrays, **more)))


def test_a_map_has_a_point_and_an_ellipse_an_object():
    at, section = mapped(5, 3, asked=4)
    (drawing,) = section.drawings
    ellipses, points = drawing.marks
    assert isinstance(ellipses, Ellipses) and isinstance(points, Points)
    assert np.array_equal(np.stack([points.x, points.y], axis=1), at[:4, :2]) and points.names == (
        "o0",
        "o1",
        "o2",
        "o3",
    )
    assert np.array_equal(ellipses.x, points.x) and np.array_equal(ellipses.y, points.y)
    assert ellipses.a == pytest.approx(0.5 * 5.991**0.5) and ellipses.b == pytest.approx(0.2 * 5.991**0.5)
    assert drawing.x.label.startswith("axis 1 (70 %") and drawing.y.label.startswith("axis 2 (20 %")
    assert "4 objects" in drawing.about and drawing.equal
    assert len(section.notes) == 2
    assert section.notes[0].startswith("1 object ")
    assert "95 %" in section.notes[1]


def test_a_scale_has_a_line_an_object_the_lowest_first():
    at, section = mapped(5, 1)
    (drawing,) = section.drawings
    lines, points = drawing.marks
    order = np.argsort(at[:, 0])
    assert isinstance(lines, Segments) and points.names == tuple(f"o{i}" for i in order)
    low, y, high, same = lines.ends.T
    assert low == pytest.approx(at[order, 0] - 0.98) and high == pytest.approx(at[order, 0] + 0.98)
    assert np.array_equal(y, same)
    assert np.array_equal(y, points.y)
    assert np.array_equal(points.y, np.arange(5))
    assert len(section.notes) == 1 and "95 %" in section.notes[0]


@pytest.mark.parametrize("n", [400, 401])
def test_ellipses_are_drawn_where_they_can_be_told_apart(n):
    _, section = mapped(n, 2)
    (said,) = section.notes
    assert [type(mark) for mark in section.drawings[0].marks] == [Ellipses, Points][n > 400 :]
    assert ("400" in said) is (n > 400)


def test_without_places_there_is_no_map():
    section = object_map.section(material(state(5)))
    assert not section.drawings and "refit --state DIR embedding" in section.notes[0]
    _, section = mapped(5, 2, asked=0)
    assert section.says and not section.drawings


def test_questions_that_were_not_answered_are_asked_next():
    section = next_questions.section(material(state(5, times=3)))  # three answers about each object each time
    assert states(section.says, "5 objects … 10 comparisons") and section.notes == (
        "For more questions: stream-engine ask --state DIR --n 100",
    )
    columns = section.tables[0].columns
    asked = set(zip(columns["anchor"], map(frozenset, zip(columns["left"], columns["right"]))))
    assert len(asked) == 10 and set(columns["chosen by"]) == {"coverage"}
    assert not asked & {(f"o{i}", frozenset((f"o{(i + 1) % 5}", f"o{(i + 2) % 5}"))) for i in range(5)}


def test_nothing_is_asked_where_nothing_is_left_and_of_one_object():
    engine = Engine(("triplet_counts",), False)
    engine.learn_many([Triplet("a", "b", "c"), Triplet("b", "c", "a")])
    section = next_questions.section(material(Published(engine.snapshot(), {})))
    assert len(section.tables[0].columns["anchor"]) == 1  # of the three that there are
    engine.learn_many([Triplet("c", "a", "b")])
    section = next_questions.section(material(Published(engine.snapshot(), {})))
    assert section.says
    assert not section.tables
    assert not section.notes
    section = next_questions.section(material(Published(Engine(("triplet_counts",), False).snapshot(), {})))
    assert section.says
    assert not section.tables
    assert not section.notes


def asked_next(events: list[dict]):
    """The section of a state of these events."""
    return next_questions.section(material(Published(learned.snapshot_of(events, ("triplet_counts",)), {})))


def test_questions_are_of_the_kind_of_the_study_where_these_can_be_chosen():
    sets = [[f"o{(i + step) % 7}" for step in (0, 1, 3)] for i in range(7)]
    section = asked_next([{"type": "odd_one_out", "objects": each, "odd": each[2]} for each in sets])
    columns = section.tables[0].columns
    asked = [frozenset(each) for each in zip(columns["first"], columns["second"], columns["third"])]
    assert len(asked) == len({*asked}) == next_questions.MAX_SUGGESTED and "--type odd_one_out" in section.notes[0]
    near = [{"anchor": a, "near": b, "far": c} for a, b, c in sets]
    assert "although" not in asked_next([{"type": "triplet", **each} for each in near]).tables[0].about
    picks = [{"type": "pick", "anchor": "o0", "shown": ["o1", "o2", "o3", "o4"], "chosen": ["o1", "o2"]}]
    section = asked_next(picks)
    assert "anchor" in section.tables[0].columns and states(section.tables[0].about, "although … pick answers")


def test_all_sets_of_few_objects_are_asked_about():
    """Three questions of one set, of which one answer leaves one: no more sets are asked for than there are."""
    events = [{"type": "odd_one_out", "objects": ["a", "b", "c"], "odd": "c"}]
    assert len(asked_next(events).tables[0].columns["first"]) == 1
