"""Drawings: ticks, extents, texts that do not lie on each other; and both ways of drawing them."""

import io
import re
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stream_engine.exports.object_places import ellipses_of
from stream_engine.report.drawings import (
    Axis,
    Bars,
    Curve,
    Drawing,
    Ellipses,
    Points,
    Rules,
    Segments,
    extent,
    ticks,
    with_room,
)
from stream_engine.report.figure_files import FORMATS, encoded
from stream_engine.report.inline_svg import svg


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
        Curve(x[:3], y[:3], "a curve", np.full(3, 0.1)),
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
    assert {"<b>", "a & b", "x axis", "y & z", "people <agree>"} <= set(texts)
    shapes = {e.get("id") for e in made.iter() if e.tag.endswith("path") and e.get("id")}
    assert {use.get("href").removeprefix("#") for use in uses} == shapes


def test_points_lie_where_their_values_say():
    marks = (Points(np.array([0.0, 1.0]), np.array([0.0, 2.0]), np.array([0, 1]), ("a", "b"), np.array([0, 0])),)
    made = ElementTree.fromstring(svg(drawing(marks=marks, x=Axis("", 0.0, 2.0), y=Axis("", 0.0, 4.0))))
    frame = next(e for e in made.iter() if e.get("class") == "frame")
    left, top, wide, high = (float(frame.get(name)) for name in ("x", "y", "width", "height"))
    found = [(float(e.get("x")), float(e.get("y"))) for e in made.iter() if e.tag.endswith("use")]
    assert found[0] == pytest.approx((left, top + high), abs=0.1)
    assert found[1] == pytest.approx((left + wide / 2, top + high / 2), abs=0.1)


def test_one_unit_is_as_long_on_both_axes_where_that_is_wanted():
    marks = (Points(np.array([0.0, 10.0]), np.array([0.0, 1.0]), np.array([0, 1]), ("a", "b"), np.array([0, 0])),)
    box = re.search(r'data-box="\S+ \S+ (\S+) (\S+)"', svg(drawing(marks=marks, equal=True)))
    assert float(box[1]) == pytest.approx(float(box[2]))


def test_texts_do_not_lie_on_each_other():
    rng = np.random.default_rng(1)
    x, y, widths = rng.uniform(0, 300, 200), rng.uniform(0, 300, 200), rng.uniform(20, 80, 200)
    kept = np.flatnonzero(with_room(x, y, widths, 13.0))
    assert 5 < len(kept) < 200
    for k in kept:
        for l in kept[kept > k]:
            same_row = int(y[k] // 13) == int(y[l] // 13)
            apart = x[k] + widths[k] < x[l] or x[l] + widths[l] < x[k]
            assert not same_row or apart


def test_of_many_places_only_texts_that_cover_no_other_are_drawn():
    rng = np.random.default_rng(1)
    x, y = np.append(rng.uniform(0, 100, 400), [500.0]), np.append(rng.uniform(0, 100, 400), [500.0])
    widths = np.full(401, 40.0)
    kept = np.flatnonzero(with_room(x, y, widths, 13.0))
    assert 400 in kept and len(kept) < 40
    for k in kept:
        row, first, last = int(y[k] // 13), int(x[k] // 13), int((x[k] + 40) // 13)
        covered = (y // 13 == row) & (x // 13 > first) & (x // 13 <= last)
        assert not covered.any()


def test_extent_holds_every_mark_and_axes_may_say_otherwise():
    x0, x1, y0, y1 = extent(drawing())
    ellipses, points = every_mark()[:2]
    assert x0 <= (points.x - ellipses.a).min() and x1 >= (points.x + ellipses.a).max()
    assert y0 <= -1.0 and y1 >= 2.0
    assert extent(drawing(x=Axis("", -9.0, 9.0)))[:2] == (-9.0, 9.0)
    assert extent(drawing(marks=())) == pytest.approx((-0.06, 1.06, -0.06, 1.06))


def test_ellipses_are_the_regions_of_95_per_cent():
    rng = np.random.default_rng(2)
    root = rng.normal(size=(2, 2))
    covariance = root @ root.T
    a, b, angle = (each[0] for each in ellipses_of(covariance[None]))
    drawn = rng.multivariate_normal(np.zeros(2), covariance, 40_000)
    turned = drawn @ np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    inside = (turned[:, 0] / a) ** 2 + (turned[:, 1] / b) ** 2 <= 1
    assert inside.mean() == pytest.approx(0.95, abs=0.01)


@pytest.mark.parametrize("format", FORMATS)
def test_files_for_papers_hold_their_fonts_and_are_the_same_twice(format):
    once = encoded(drawing(equal=True), format)
    assert once == encoded(drawing(equal=True), format)
    if format == "pdf":
        assert once.startswith(b"%PDF") and b"/FontFile2" in once
    else:
        made = ElementTree.parse(io.BytesIO(once))
        assert not any(e.tag.endswith("}text") for e in made.iter())  # letters are outlines: no font is needed
