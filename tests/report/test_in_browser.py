"""The page in a real Chromium: it opens without a complaint or a request, and all that it offers works, by keyboard."""

import csv
import io
from xml.etree import ElementTree

import numpy as np
import pytest
from PIL import Image

from stream_engine.state.store import Store
from tests.report.conftest import barriers
from tests.support.process import engine
from tests.support.reported import AWKWARD, QUICK, answers, names, state

pytestmark = pytest.mark.browser
WIDTHS = (390, 1280)


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    """A report on 30 objects in three dimensions, workers shown."""
    folder = tmp_path_factory.mktemp("browser")
    made = state(folder, answers(30, 2000, d=3), config=QUICK.replace("dimensions = 2", "dimensions = 3"))
    engine("report", "--state", made, "--out", folder / "r.html", "--workers")
    return folder / "r.html"


@pytest.fixture
def opened(report, watched):
    """The page, open."""
    found = watched(viewport={"width": 1280, "height": 900})
    found.page.goto(report.as_uri())
    yield found
    assert found.wrong == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", WIDTHS)
def test_opens_at_every_width_without_complaint_request_or_barrier(report, watched, scheme, width):
    found = watched(viewport={"width": width, "height": 900}, color_scheme=scheme)
    found.page.goto(report.as_uri())
    assert found.wrong == [] and found.asked == [report.as_uri()]
    wide = found.page.evaluate("document.documentElement.scrollWidth")
    assert wide <= width, f"the page is {wide} wide"
    assert barriers(found.page) == []


def test_hover_tells_the_name_and_a_click_more(opened):
    page = opened.page
    use = page.locator("#map-svg use[data-i='7']")
    use.hover(force=True)
    assert page.inner_text("#tip") in names(30)
    use.click(force=True)
    name = page.inner_text("#about-name")
    assert name in names(30) and "comparisons" in page.inner_text("#about dl")
    page.keyboard.press("Escape")
    assert page.locator("#about").is_hidden()


def test_search_finds_dims_and_opens(opened):
    page = opened.page
    page.fill("#search", "object 12")
    assert page.inner_text("#hits") == "1 found"
    assert page.locator("#map-svg use.dim").count() == 29
    assert page.locator("tr[data-i]:visible").count() == 1
    page.press("#search", "Enter")
    assert page.inner_text("#about-name") == "object 12"
    page.fill("#search", AWKWARD[0])
    assert page.inner_text("#hits") == "1 found"
    page.fill("#search", "")
    assert page.locator("#map-svg use.dim").count() == 0


def test_tables_sort_both_ways(opened):
    page = opened.page
    head = page.locator("#table-objects th", has_text="comparisons")
    column = head.evaluate("h => h.cellIndex")
    head.locator("button").press("Enter")
    values = page.locator("#table-objects tbody tr").evaluate_all(
        f"rows => rows.map(r => parseInt(r.cells[{column}].textContent.replace(/,/g, '')))"
    )
    assert head.get_attribute("aria-sort") == "ascending" and values == sorted(values)
    head.locator("button").press("Enter")
    again = page.locator("#table-objects tbody tr").evaluate_all(
        f"rows => rows.map(r => parseInt(r.cells[{column}].textContent.replace(/,/g, '')))"
    )
    assert head.get_attribute("aria-sort") == "descending" and again == sorted(values, reverse=True)


def test_the_map_zooms_and_moves_by_keyboard_and_stays_in_its_frame(opened):
    page = opened.page
    plot = page.locator("#map-plot")
    plot.focus()
    size = page.locator("#map-svg use[data-i='3']").bounding_box()["width"]
    for _ in range(3):
        page.keyboard.press("+")
    assert "scale(2.7" in page.locator("#map-svg .marks").get_attribute("transform")
    assert page.locator("#map-svg use[data-i='3']").bounding_box()["width"] == pytest.approx(size, abs=1.5)
    page.keyboard.press("0")
    assert "scale(1)" in page.locator("#map-svg .marks").get_attribute("transform")
    seen = set()
    for key in ("ArrowRight", "ArrowRight", "ArrowDown", "ArrowLeft", "ArrowUp"):
        page.keyboard.press(key)
        seen.add(page.inner_text("#said"))
    assert len(seen) >= 3 and seen <= set(names(30))
    last = page.inner_text("#said")
    page.keyboard.press("Enter")
    assert page.inner_text("#about-name") == last


def test_points_lie_where_the_axes_say_on_every_map(opened):
    """On the screen: one unit is as long to the right as upwards, larger values lie further right and up, and regions
    turn as their covariances do."""
    page = opened.page
    maps = page.evaluate("JSON.parse(document.getElementById('data').textContent).maps")
    options = page.locator("#map-of option").all_inner_texts()
    assert [each["name"] for each in maps[:2]] == ["picture", "embedding"] and len(options) == len(maps)
    assert "AddS-3 (kernel PCA)" in options
    frame = page.locator("#map-svg .frame").bounding_box()
    seen = set()
    for number, first, second in [
        (0, 0, 1),
        (1, 0, 1),
        (1, 2, 0),
        (1, 1, 2),
        *((n, 0, 1) for n in range(2, len(maps))),
    ]:
        page.select_option("#map-of", label=options[number])
        page.select_option("#map-x", label=str(first + 1))
        page.select_option("#map-y", label=str(second + 1))
        assert f"axis {second + 1}" in page.text_content("#map-svg .ly")
        assert maps[number]["name"] in page.text_content("#map-svg .lx")
        boxes = page.locator("#map-svg use:not(.away)").evaluate_all(
            "all => all.map(e => [+e.dataset.i, e.getBoundingClientRect()]).map(([i, r]) => "
            "[i, r.x + r.width / 2, r.y + r.height / 2])"
        )
        at, x, y = (np.array(column) for column in zip(*boxes))
        told = np.array([maps[number]["axes"][axis] for axis in (first, second)], float)[:, at.astype(int)]
        across, upwards = (np.polyfit(told[0], x, 1), np.polyfit(told[1], -y, 1))
        assert across[0] > 0 and upwards[0] == pytest.approx(across[0], rel=0.02)
        assert np.abs(np.polyval(across, told[0]) - x).max() < 3 and np.abs(np.polyval(upwards, told[1]) + y).max() < 3
        assert (x > frame["x"] - 8).all()
        assert (x < frame["x"] + frame["width"] + 8).all()
        assert len(at) == 30
        seen.add(tuple(np.round(x)))
    assert len(seen) == len(maps) + 2
    page.select_option("#map-of", label="embedding")
    turned = page.locator("#map-svg ellipse").evaluate_all(
        "all => all.map(e => [+e.dataset.i, +e.getAttribute('transform').match(/rotate\\((.*)\\)/)[1]])"
    )
    for i, angle in turned:
        (p, q, r) = (maps[1]["covariance"][int(i)][at] for at in (0, 1, 3))
        turn = -np.degrees(np.arctan2(2 * q, p - r)) / 2  # of the longer axis; of what is nearly round, none
        if np.hypot(2 * q, p - r) > 0.1 * (p + r):
            assert abs((angle - turn + 90) % 180 - 90) < 8, (i, angle, turn)


def test_ellipses_follow_the_axes(opened):
    """The regions that the script draws on any two axes, against the covariances that the page holds."""
    page = opened.page
    held = page.evaluate("JSON.parse(document.getElementById('data').textContent).maps[1].covariance")
    d = len(page.evaluate("JSON.parse(document.getElementById('data').textContent).maps[1].axes"))
    page.select_option("#map-of", label="embedding")
    for axes in ([0, 1], [0, 2], [1, 2]):
        page.select_option("#map-x", label=str(axes[0] + 1))
        page.select_option("#map-y", label=str(axes[1] + 1))
        drawn = page.locator("#map-svg ellipse").evaluate_all(
            "all => all.map(e => [+e.getAttribute('rx'), +e.getAttribute('ry')].sort((a, b) => b - a))"
        )
        wanted = []
        for upper in filter(None, held):
            whole = np.zeros((d, d))
            whole[np.triu_indices(d)] = upper
            whole = whole + whole.T - np.diag(np.diag(whole))
            wanted.append(np.sqrt(5.991 * np.linalg.eigvalsh(whole[np.ix_(axes, axes)])[::-1]))
        scale = np.array(drawn) / np.array(wanted)
        np.testing.assert_allclose(scale, np.median(scale), rtol=0.05)


def test_a_cluster_is_picked(opened):
    page = opened.page
    button = page.locator("[data-group]").first
    button.press("Enter")
    group = int(button.get_attribute("data-group"))
    dim = page.locator("#map-svg use.dim").evaluate_all("all => all.map(e => +e.dataset.i)")
    clusters = page.evaluate("JSON.parse(document.getElementById('data').textContent).cluster")
    assert button.get_attribute("aria-pressed") == "true"
    assert sorted(dim) == [i for i, k in enumerate(clusters) if k != group]
    button.press("Enter")
    assert page.locator("#map-svg use.dim").count() == 0


def test_figures_and_tables_can_be_taken_along(opened, report, tmp_path):
    page = opened.page
    with page.expect_download() as taken:
        page.locator("[data-name='map.svg']").click()
    taken.value.save_as(tmp_path / "map.svg")
    svg = ElementTree.parse(tmp_path / "map.svg").getroot()
    assert svg.tag == "{http://www.w3.org/2000/svg}svg"
    colours = {e.get("fill") for e in svg.iter() if e.tag.endswith("use")}
    assert all(colour.startswith("rgb") for colour in colours)
    with page.expect_download() as taken:
        page.locator("[data-name='objects.csv']").click()
    taken.value.save_as(tmp_path / "objects.csv")
    rows = list(csv.DictReader(io.StringIO((tmp_path / "objects.csv").read_text())))
    assert sorted(row["object"] for row in rows) == sorted(names(30))
    published = Store(report.parent / "s").published()
    fitted = dict(zip(published.snapshot.objects, published.artifacts["embedding"].arrays["X"][:, 0].tolist()))
    exact = {row["object"]: float(row["axis 1"]) for row in rows}  # not those shown, of fewer digits
    assert exact == pytest.approx(fitted, rel=1e-5)
    with page.expect_download() as taken:
        page.locator("a[download='map.pdf']").click()
    taken.value.save_as(tmp_path / "map.pdf")
    assert (tmp_path / "map.pdf").read_bytes().startswith(b"%PDF")


def test_prints_without_tools_with_whole_tables_on_white(report, watched):
    page = (found := watched(viewport={"width": 720, "height": 900}, color_scheme="dark")).page
    page.goto(report.as_uri())
    page.emulate_media(media="print")
    assert page.locator(".tools:not(.keys):visible, nav:visible, .take:visible").count() == 0
    assert page.locator("#map-svg").is_visible() and page.locator(".keys").first.is_visible()
    for table in page.locator(".table").all():
        style = "e => [getComputedStyle(e).contentVisibility, e.scrollHeight - e.clientHeight, e.scrollWidth <= 720]"
        visible, hidden, fits = table.evaluate(style)
        assert (visible, fits) == ("visible", True) and hidden <= 1
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert found.wrong == []


def boxes_of(page, query: str) -> np.ndarray:
    """(k, 4) left, top, width, height on the screen, without the outline."""
    script = """all => all.map(e => { const b = e.getBBox(), m = e.getScreenCTM();
        return [b.x * m.a + m.e, b.y * m.d + m.f, b.width * m.a, b.height * m.d]; })"""
    return np.array(page.locator(query).evaluate_all(script))


def overlaps(boxes: np.ndarray) -> int:
    """How many pairs of boxes lie on each other by more than a pixel."""
    left, top, right, low = *boxes[:, :2].T, *(boxes[:, :2] + boxes[:, 2:]).T
    across = np.minimum(right[:, None], right) - np.maximum(left[:, None], left) > 1
    down = np.minimum(low[:, None], low) - np.maximum(top[:, None], top) > 1
    return int(((across & down).sum() - len(boxes)) / 2)


@pytest.mark.parametrize("width", [390, 1280])
def test_names_are_legible_and_lie_on_no_other_at_every_width_and_zoom(report, watched, width):
    page = watched(viewport={"width": width, "height": 900}).page
    page.goto(report.as_uri())
    shown = []
    for _ in range(2):
        page.wait_for_timeout(200)  # they are laid out with the next frame
        boxes = boxes_of(page, "#map-svg .names text")
        shown.append(len(boxes))
        assert overlaps(boxes) == 0
        assert (boxes[:, 3] >= 10).all()
        assert (boxes[:, 3] <= 15).all()
        page.locator("#map-plot").focus()
        page.keyboard.press("+")
    assert shown[0] >= 5


def test_pictures_stand_for_points_and_lie_on_no_other(report, watched, tmp_path):
    folder = tmp_path / "pictures"
    folder.mkdir()
    for i in range(5, 30):
        Image.new("RGB", (90, 60), (8 * i, 90, 200 - 5 * i)).save(folder / f"object {i}.png")
    engine("report", "--state", report.parent / "s", "--out", tmp_path / "p.html", "--objects", folder)
    page = (found := watched(viewport={"width": 1280, "height": 900})).page
    page.goto((tmp_path / "p.html").as_uri())
    page.wait_for_timeout(200)
    pictures = page.locator("#map-svg .pictures image")
    assert 5 <= pictures.count() <= 25
    assert overlaps(boxes_of(page, "#map-svg .pictures rect")) == 0
    held = page.evaluate("JSON.parse(document.getElementById('data').textContent)")
    middle = "e => { const b = e.getBoundingClientRect(); return [b.x + b.width / 2, b.y + b.height / 2]; }"
    for each in pictures.all()[:5]:
        i = each.get_attribute("data-i")
        assert each.get_attribute("href") == held["pictures"][held["names"][int(i)]]
        at = page.locator(f"#map-svg use[data-i='{i}']").evaluate(middle)
        assert each.evaluate(middle) == pytest.approx(at, abs=2)
    pictures.first.click()
    assert page.locator("#about-picture").is_visible() and barriers(page) == []
    assert found.wrong == [] and found.asked == [(tmp_path / "p.html").as_uri()]


def test_targets_on_a_phone_are_large(report, watched):
    page = watched(viewport={"width": 390, "height": 844}).page
    page.goto(report.as_uri())
    high = page.locator("button:visible, select, input").evaluate_all(
        "all => all.map(e => [e.offsetHeight, e.outerHTML])"
    )
    assert all(size >= 44 for size, _ in high), [text for size, text in high if size < 44]


def test_regions_are_shown_on_demand(opened):
    page = opened.page
    regions, button = page.locator("#map-svg .ellipses"), page.locator("[data-regions]")
    page.select_option("#map-of", label="embedding")
    assert regions.is_hidden() and button.is_enabled()
    button.press("Enter")
    assert regions.is_visible() and button.get_attribute("aria-pressed") == "true"
    page.select_option("#map-of", label="two-dimensional picture")
    assert button.is_disabled()


def test_a_page_of_nothing_works(tmp_path, watched):
    made = state(tmp_path, [{"type": "label", "object": "a", "label": "fruit"}])
    engine("report", "--state", made, "--out", tmp_path / "r.html")
    found = watched()
    found.page.goto((tmp_path / "r.html").as_uri())
    found.page.fill("#search", "a")
    assert found.page.inner_text("#hits") == "0 found"
    assert found.wrong == []
