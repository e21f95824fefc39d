"""Drawings: ticks, extents, texts that do not lie on each other; and both ways of drawing them."""

import io
import itertools
import re
from unittest import mock
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.backends import _backend_pdf_ps
from PIL import Image

from stream_engine.report.drawings import (
    Axis,
    Bars,
    Curve,
    Drawing,
    Ellipses,
    Points,
    Rules,
    Segments,
    ticks,
)
from stream_engine.report.figure_files import FORMATS, draw, encoded
from stream_engine.report.figure_marks import Markers
from stream_engine.report.inline_svg import svg
from stream_engine.report.labels import label_positions
from stream_engine.report.sections.learning import wilson
from tests.support import small_fonts


@given(st.floats(-1e6, 1e6), st.floats(1e-6, 1e6))
def test_ticks_are_few_round_and_inside(low, span):
    places = ticks(low, low + span)
    assert len(places) <= 7
    assert all(low - 1e-6 * span - 1e-9 <= place <= low + span * (1 + 1e-6) + 1e-9 for place in places)
    if len(places) > 1:
        assert np.allclose(np.diff(places), places[1] - places[0], rtol=1e-3, atol=1e-9)


def every_mark() -> tuple:
    rng = np.random.default_rng(0)
    x, y, ids = rng.normal(size=9), rng.normal(size=9), np.arange(9)
    group = np.array([-1, 0, 1, 2, 3, 4, 5, 6, 7])
    called = ("<b>", "a & b", *"cdefghi")
    return (
        Ellipses(x, y, np.full(9, 0.3), np.full(9, 0.1), np.zeros(9), ids, group),
        Points(x, y, ids, called, group),
        Curve(x[:3], y[:3], "a curve", np.full((2, 3), 0.1), hollow=np.arange(3) == 1),
        Curve(x[:2], y[:2], "another", dashed=True, marked=False),
        Bars(np.arange(3.0), np.array([1.0, -1.0, 2.0]), np.array([False, True, False])),
        Segments(rng.normal(size=(4, 4)), np.array([0, 0, 1, -1])),
        Rules((0.5,), ("people <agree>",)),
    )


def drawing(**more) -> Drawing:
    given = {"x": Axis("x axis"), "y": Axis("y & z"), "marks": every_mark(), "groups": ((0, "cluster 0"),), **more}
    return Drawing("figure", "A <title>", "What it shows.", **given)


@pytest.mark.parametrize("equal", [False, True])
def test_all_marks_lie_in_the_frame_and_names_are_escaped(equal):
    made = ElementTree.fromstring(svg(drawing(equal=equal)))
    frame = next(e for e in made.iter() if e.get("class") == "frame")
    left, top, wide, high = (float(frame.get(name)) for name in ("x", "y", "width", "height"))
    uses = [e for e in made.iter() if e.tag.endswith("use")]
    assert len(uses) == 9
    for use in uses:
        assert left <= float(use.get("x")) <= left + wide
        assert top <= float(use.get("y")) <= top + high
    texts = ["".join(e.itertext()) for e in made.iter() if e.tag.endswith("text")]
    assert {"<b>", "a & b", "x axis", "y & z", "people", "<agree>"} <= set(texts)
    (beside,) = (e for e in made.iter() if e.tag.endswith("text") and e.text == "<agree>")
    assert float(beside.get("x")) > left + wide, "a rule's text is where no mark is"
    shapes = {e.get("id") for e in made.iter() if e.tag.endswith("path") and e.get("id")}
    assert {use.get("href").removeprefix("#") for use in uses} == shapes


def test_one_unit_is_as_long_on_both_axes_where_that_is_wanted():
    marks = (Points(np.array([0.0, 10.0]), np.array([0.0, 1.0]), np.array([0, 1]), ("a", "b"), np.array([0, 0])),)
    box = re.search(r'data-box="\S+ \S+ (\S+) (\S+)"', svg(drawing(marks=marks, equal=True)))
    assert float(box[1]) == pytest.approx(float(box[2]))


@pytest.mark.parametrize("k, wide", [(60, 700.0), (200, 300.0), (400, 400.0)])
def test_names_lie_on_no_other_name_and_on_no_point(k, wide):
    rng = np.random.default_rng(k)
    x, y, widths = rng.uniform(0, wide, k), rng.uniform(0, wide, k), rng.uniform(20, 80, k)
    found = label_positions(x, y, widths, 12.0, (0.0, wide, 0.0, wide))
    assert len(found) >= (55 if k == 60 else 5) and len({each.side for each in found}) > 1
    near = np.hypot([each.x - x[each.number] for each in found], [each.y - y[each.number] for each in found])
    assert (near < 16).all() and not any(each.far for each in found)
    together = label_positions(x, y, widths, 12.0, (0.0, wide, 0.0, wide), lines=True)
    assert len(together) == 60 if k == 60 else len(together) >= len(found)
    for each in (found, together):
        they_lie_apart(each, x, y, widths, wide)


def they_lie_apart(found, x, y, widths, wide):
    left = np.array([each.x - {1: 0.0, -1: 1.0, 0: 0.5}[each.side] * widths[each.number] for each in found])
    right = left + widths[[each.number for each in found]]
    middle = np.array([each.y for each in found])
    assert (left >= 0).all()
    assert (right <= wide).all()
    assert (middle >= 6).all()
    assert (middle <= wide - 6).all()
    on = (left[:, None] < right) & (left < right[:, None]) & (np.abs(middle[:, None] - middle) < 12.0)
    assert on.sum() == len(found), "each lies on itself alone"
    over = (left[:, None] < x + 4) & (x - 4 < right[:, None]) & (np.abs(middle[:, None] - y) < 10.0)
    assert not over.any()


def test_lines_cross_no_name_where_there_is_room():
    """Three names at one place, and one above it that a line straight up would cross."""
    x, y, widths = np.array([100.0, 101.0, 102.0, 101.0]), np.array([50.0, 50.0, 50.0, 70.0]), np.full(4, 60.0)
    found = {each.number: each for each in label_positions(x, y, widths, 12.0, (0.0, 200.0, 0.0, 120.0), lines=True)}
    assert len(found) == 4
    left = {i: each.x - {1: 0.0, -1: 60.0, 0: 30.0}[each.side] for i, each in found.items()}
    for i, each in found.items():
        along = np.linspace([x[i], y[i]], [each.x, each.y], 50)[:-2]
        for k in found.keys() - {i}:
            inside = (left[k] < along[:, 0]) & (along[:, 0] < left[k] + 60) & (abs(along[:, 1] - found[k].y) < 6)
            assert not inside.any()


def test_a_name_takes_the_first_side_that_is_free():
    """Right, left, above, below; one that is shut in on all sides is left out."""
    x, y = np.array([50.0, 62.0, 150.0]), np.array([50.0, 50.0, 50.0])
    sides = [each.side for each in label_positions(x, y, np.full(3, 30.0), 10.0, (0.0, 190.0, 0.0, 100.0))]
    assert sides == [-1, 1, 1]
    assert label_positions(x[:1], y[:1], np.array([80.0]), 10.0, (0.0, 100.0, 0.0, 100.0))[0].side == 0
    assert label_positions(x[:1], y[:1], np.array([120.0]), 10.0, (0.0, 100.0, 0.0, 100.0)) == []


@pytest.mark.parametrize("share, n, low, high", [(0.5, 10, 0.237, 0.763), (1.0, 10, 0.722, 1.0), (0.0, 5, 0.0, 0.434)])
def test_intervals_of_shares_stay_shares(share, n, low, high):
    """Wilson's intervals, as tables have them."""
    assert np.allclose(wilson(np.array(share), np.array(n)), (low, high), atol=5e-4)


@pytest.mark.parametrize("format", FORMATS)
def test_files_for_papers_hold_their_fonts_and_are_the_same_twice(format):
    """The second time, a PDF has the letters of small copies of the fonts, as in all other tests."""
    with mock.patch.object(_backend_pdf_ps, "get_glyphs_subset", small_fonts.cut):
        once = encoded(drawing(equal=True), [format])[format]
    assert once == encoded(drawing(equal=True), FORMATS)[format]
    if format == "png":
        assert Image.open(io.BytesIO(once)).width == pytest.approx(85 / 25.4 * 300, abs=2)
    elif format == "pdf":
        assert once.startswith(b"%PDF") and b"/FontFile2" in once
    else:
        made = ElementTree.parse(io.BytesIO(once))
        assert not any(e.tag.endswith("}text") for e in made.iter())  # letters are outlines: no font is needed


def numbers(text: str) -> list[float]:
    return [float(each) for each in re.findall(r"-?[0-9.]+", text)]


def test_every_mark_of_a_page_lies_where_its_values_say():
    """On axes from 0 to 2 and from 0 to 4; an ellipse has its half axes, turned as it is on paper (y grows upwards)."""
    one, two = np.array([1.0]), np.array([0.5, 1.5])
    marks = (
        Ellipses(one, one * 2, np.array([0.5]), np.array([0.25]), np.array([np.pi / 6]), np.array([7]), np.array([1])),
        Curve(two, two * 2, "a curve", np.array([[0.5, 0.5], [1.0, 1.0]]), hollow=np.array([False, True])),
        Bars(two, np.array([2.0, -1.0]), np.array([True, False])),
        Segments(np.array([[0.0, 1.0, 2.0, 3.0]]), np.array([-1])),
        Rules((3.0,), ("a rule",)),
    )
    made = ElementTree.fromstring(svg(drawing(marks=marks, x=Axis("across", 0.0, 2.0), y=Axis("up", 0.0, 4.0))))
    by_class: dict = {}
    for each in made.iter():
        by_class.setdefault(each.get("class"), []).append(each)
    (frame,) = by_class["frame"]
    left, top, wide, high = (float(frame.get(name)) for name in ("x", "y", "width", "height"))
    x, y = (lambda value: left + wide * value / 2), (lambda value: top + high - high * value / 4)
    near = lambda *wanted: pytest.approx(wanted, abs=0.51)  # noqa: E731
    (ellipse,) = (each for each in by_class["c1"] if each.tag.endswith("ellipse"))
    assert (float(ellipse.get("rx")), float(ellipse.get("ry"))) == near(wide / 4, high / 16)
    assert numbers(ellipse.get("transform")) == near(x(1), y(2), -30) and ellipse.get("data-i") == "7"
    assert numbers(by_class["curve"][0].get("d")) == near(x(0.5), y(1), x(1.5), y(3))
    assert numbers(by_class["error"][1].get("d")) == near(x(1.5), y(2.5), y(4))
    circles = [each for each in made.iter() if each.tag.endswith("circle")]
    assert [each.get("class") for each in circles] == ["c0", "c0 hollow"]
    assert (float(circles[1].get("cx")), float(circles[1].get("cy"))) == near(x(1.5), y(3))
    bars = [each for each in made.iter() if each.tag.endswith("rect") and each.get("class") in ("c0", "c1")]
    assert [each.get("class") for each in bars] == ["c1", "c0"]
    place = [[float(bar.get(name)) for name in ("x", "y", "width", "height")] for bar in bars]
    assert place[0] == near(x(0.1), y(2), 0.4 * wide, high / 2)  # 4 / 5 of what is between two
    assert place[1] == near(x(1.1), y(0), 0.4 * wide, high / 4)
    assert numbers(by_class["branch cn"][0].get("d")) == near(x(0), y(1), x(2), y(3))
    assert numbers(by_class["curve dashed"][0].get("d")) == near(left, y(3), left + wide)
    assert numbers(by_class["label ly"][0].get("transform")) == near(14, top + high / 2, -90)
    across = by_class["label lx"][0]
    assert float(across.get("x")) == pytest.approx(left + wide / 2, abs=0.51) and float(across.get("y")) > top + high
    assert [numbers(each.get("d"))[0] for each in by_class["tick"]] == near(*(x(0.5 * step) for step in range(5)))
    assert [numbers(each.get("d"))[1] for each in by_class["grid"]] == near(*(y(step) for step in range(5)))


def test_pictures_stand_on_their_points_and_on_no_other_picture():
    """In a file for papers: pictures of two objects at one place stand beside it, tied by lines; none lies on another
    or on a name."""
    from matplotlib.collections import LineCollection
    from matplotlib.figure import Figure
    from matplotlib.offsetbox import AnnotationBbox

    x = np.array([0.0, 0.01, 3.0, 6.0])
    points = Points(x, np.zeros(4), np.arange(4), ("a", "b", "c", "no picture"), np.array([0, 0, 1, 1]))
    made = drawing(marks=(points,), groups=())
    buffer = io.BytesIO()
    Image.new("RGB", (40, 20), "red").save(buffer, "JPEG")
    axes = draw(made, Figure(layout="constrained").subplots(), dict.fromkeys("abc", buffer.getvalue()))
    shown = [each for each in axes.get_children() if isinstance(each, AnnotationBbox)]
    assert sorted(each.xy[0] for each in shown) == [0.0, 0.01, 3.0]
    ties = [each.get_offsets()[:, 0].tolist() for each in axes.collections if isinstance(each, LineCollection)]
    assert ties == [[0.0, 0.01]]
    assert [each.get_text() for each in axes.texts] == ["no picture"]
    axes.figure.draw_without_rendering()
    boxes = [*(each.patch.get_window_extent() for each in shown), axes.texts[0].get_window_extent()]
    assert not any(one.overlaps(other) for one, other in itertools.combinations(boxes, 2))


def test_points_are_coloured_and_sized_by_their_ids():
    """Values for all objects; the marks may hold some of them, in another order."""
    points = Points(np.arange(2.0), np.zeros(2), np.array([3, 1]), ("d", "b"), np.zeros(2, int))
    markers = Markers(np.arange(4.0), np.array([10.0, 20.0, 30.0, 40.0]), {"alpha": 0.5})
    from matplotlib.figure import Figure

    made = draw(drawing(marks=(points,)), Figure().subplots(), labels=["A", "B", "C", "D"], markers=markers)
    (drawn,) = made.collections
    assert drawn.get_array().tolist() == [3.0, 1.0] and drawn.get_sizes().tolist() == [40.0, 20.0]
    assert drawn.get_alpha() == 0.5 and sorted(each.get_text() for each in made.texts) == ["B", "D"]


def axes_of(*marks, **more):
    from matplotlib.figure import Figure

    return draw(drawing(**{"marks": marks, "groups": (), **more}), Figure().subplots())


def test_every_mark_of_a_figure_lies_where_its_values_say():
    ellipses, points, curve, dashed, bars, segments, rules = every_mark()
    at = np.stack([points.x, points.y], axis=1)
    drawn = axes_of(ellipses._replace(angle=np.full(9, np.pi / 6))).patches
    assert [(each.width, each.height, each.get_fill()) for each in drawn] == [(0.6, 0.2, False)] * 9
    assert [each.angle for each in drawn] == pytest.approx([30.0] * 9)
    assert np.array([each.center for each in drawn]) == pytest.approx(at)
    drawn = axes_of(points, groups=((0, "cluster 0"),))
    assert np.concatenate([each.get_offsets().data for each in drawn.collections]) == pytest.approx(at)
    assert [each.get_label() for each in drawn.collections][1] == "cluster 0" and drawn.get_legend() is not None
    assert {each.get_text() for each in drawn.texts} == set(points.names)
    three = Points(np.array([0.0, 1.0, 10.0]), np.zeros(3), np.arange(3), ("a name",) * 3, np.zeros(3, int))
    beside = [(np.sign(each.xyann[0]), each.get_ha()) for each in axes_of(three).texts]
    assert beside == [(0, "center"), (1, "left"), (-1, "right")]
    (one,) = axes_of(Bars(np.array([3.0]), np.array([1.0]), np.array([False]))).patches
    assert (one.get_x(), one.get_width()) == pytest.approx((2.6, 0.8))
    drawn = axes_of(bars)
    place = np.array([(each.get_x(), each.get_width(), each.get_height()) for each in drawn.patches])
    assert place[np.argsort(place[:, 0])] == pytest.approx(
        np.array([[-0.4, 0.8, 1.0], [0.6, 0.8, -1.0], [1.6, 0.8, 2.0]])
    )
    assert [each.get_hatch() for each in drawn.patches] == [None, None, "//"] and drawn.get_legend() is None
    (lines,) = axes_of(segments).collections
    assert np.array(lines.get_segments()) == pytest.approx(segments.ends.reshape(4, 2, 2))
    whole, hollow = [each for each in axes_of(curve).lines if each.get_marker() == "o"]
    assert whole.get_xydata() == pytest.approx(np.stack([curve.x, curve.y], axis=1))
    assert hollow.get_xydata() == pytest.approx(np.array([[curve.x[1], curve.y[1]]]))
    assert hollow.get_markerfacecolor() == "white" != whole.get_markerfacecolor()
    (line,) = axes_of(dashed).lines
    assert (line.get_linestyle(), line.get_marker()) == ("--", "None")
    drawn = axes_of(curve, rules)
    assert [each.get_text().split() for each in drawn.texts] == [["people", "<agree>"]]
    (rule,) = (each for each in drawn.lines if each.get_linestyle() == "--")
    assert list(rule.get_ydata()) == [0.5, 0.5]
    texts = axes_of(curve, Rules((0.80, 0.81), ("below", "above"))).texts
    assert [(each.get_text(), each.get_va()) for each in texts] == [("below", "top"), ("above", "bottom")]
    assert all(each.xy[0] == 1 and each.xyann[0] > 0 for each in texts), "to the right of the axes"


def test_axes_of_a_figure_are_those_of_the_drawing():
    bars = Bars(np.arange(3.0), np.ones(3), np.zeros(3, bool))
    axes = axes_of(bars, x=Axis("across", -3, 3), y=Axis("up", -4, 4, ticks=((1.0, "one"),)), equal=True)
    assert axes.get_xlim() == (-3, 3) and axes.get_ylim() == (-4, 4)
    assert (axes.get_xlabel(), axes.get_ylabel(), axes.get_aspect()) == ("across", "up", 1.0)
    assert [each.get_text() for each in axes.get_yticklabels()] == ["one"]
    assert axes_of(bars).get_aspect() == "auto"


def test_caveats_are_in_the_figure_itself():
    from matplotlib.figure import Figure

    more = {"caveat": "Not interpretable: chance.", "about_groups": "Parts: they are no groups."}
    points = every_mark()[1]
    axes = draw(drawing(marks=(points,), **more), Figure().subplots())
    assert axes.get_xlabel() == f"x axis\n{more['caveat']}"
    assert axes.get_legend().get_title().get_text().replace("\n", " ") == more["about_groups"]
    picture = encoded(drawing(marks=(points,), **more), ["svg"])["svg"].decode()  # a comment beside each text's path
    plain = encoded(drawing(marks=(points,)), ["svg"])["svg"].decode()
    for text in more.values():
        assert text in picture and text not in plain
