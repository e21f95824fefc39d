"""The live page in a real Chromium beside a real engine: figures move while answers come, for two viewers at once, and
a page that was left open finds the engine again after it was started anew."""

import json
import re
from functools import partial

import pytest
from PIL import Image

from stream_engine.state.store import Store
from tests.report.conftest import barriers
from tests.support.facts import states
from tests.support.process import until
from tests.support.reported import QUICK, answers, names, state
from tests.support.running_engine import Engine
from tests.support.served import predicted, served

pytestmark = pytest.mark.browser
CONFIG = f'[snapshot]\ninterval = 2.0\n[refits]\nkinds = ["embedding"]\n{QUICK}'


@pytest.fixture
def stream(tmp_path):
    """A file that grows: `stream(n)` appends n more answers."""
    path, events = tmp_path / "events.jsonl", iter(answers(12, 6000))
    path.touch()

    def more(n: int):
        with path.open("a") as file:
            file.writelines(json.dumps(next(events)) + "\n" for _ in range(n))

    more.path = path
    return more


def figure(page, name: str) -> str:
    return page.text_content(f"#live-{name}") if page.locator(f"#live-{name}").count() else ""


def test_figures_move_for_two_viewers_and_the_engine_is_found_again(tmp_path, stream, watched):
    stream(500)
    engine = Engine(tmp_path, str(stream.path), "--follow", config=CONFIG, refits=True)
    address = engine.address
    try:
        first, second = (watched(allowed=f"http://{address}/") for _ in range(2))
        for each in (first, second):
            each.page.goto(f"http://{address}/")
            each.page.wait_for_selector("#live-events", timeout=600_000)
        until(lambda: figure(first.page, "events") == "500", what="the events of the start")
        stream(700)
        for each in (first, second):
            until(lambda each=each: figure(each.page, "events") == "1,200", what="the events to move")
            each.page.wait_for_selector("#map-svg use", timeout=600_000)
            until(lambda each=each: stream.path.name in each.page.title(), what="the page to be filled")
        assert first.page.locator("#links a").count() >= 8
        first.page.fill("#search", names(12)[7])
        first.page.press("#search", "Enter")
        shown = first.page.inner_text("#about-name")
        before = first.page.text_content("#read .says")
        assert re.match(r"\D*\d+: (500|1,200) ", first.page.inner_text("#report-of"))
        stream(900)
        until(lambda: first.page.text_content("#read .says") != before, what="the page to be filled anew", seconds=600)
        assert first.page.inner_text("#about-name") == shown == names(12)[7]
    finally:
        engine.stop()
    until(lambda: first.page.get_attribute("#live-said", "data-state") == "lost", what="the end to be said")
    assert first.page.inner_text("#live-wrong")
    again = Engine(tmp_path, str(stream.path), "--follow", "--listen", address, config=CONFIG, refits=True)
    try:
        activity = partial(first.page.get_attribute, "#live-said", "data-state")
        until(lambda: activity() == "current", what="the engine to be found again")
        assert first.page.inner_text("#live-wrong") == ""
        stream(300)
        until(lambda: figure(first.page, "events") == "2,400", what="events after the restart")
    finally:
        again.stop()
    complaints = [each for each in first.wrong + second.wrong if "ERR_" not in each]  # of the time without an engine
    assert complaints == []


def test_what_is_wrong_is_said_and_series_move(tmp_path, watched):
    with served(tmp_path) as run:
        page = watched(allowed=f"http://{run.address}/")
        page.page.goto(f"http://{run.address}/")
        metrics, said = run.metrics, page.page
        metrics.lag.set("a", 0)
        until(lambda: said.get_attribute("#live-said", "data-state") == "current")
        assert said.inner_text("#live-wrong") == "" and "%" not in said.inner_text("#live-accuracy-says")
        assert said.inner_text("#main").strip() and said.locator("#main section").count() == 0
        metrics.lag.set("a", 90_000)
        metrics.events.labels("triplet").inc(300)
        metrics.rejected.labels("not_distinct").inc(100)
        metrics.rejected_share.set(0.25)
        metrics.event_rate.add(300)
        run.progressive = predicted(online=(0.75, 80))
        run.failed, run.why = {"classify": "no object has a label"}, "source not reachable: kafka"
        for wanted in (
            "kafka",
            "90,000",
            "%",  # of the events were rejected
            "classify",
        ):
            until(lambda wanted=wanted: wanted in said.inner_text("#live-wrong"), what=wanted)
        metrics.lag.set("a", 0)  # as the broker told last
        until(lambda: said.inner_text("#live-unread") == "unknown")
        assert said.get_attribute("#live-said", "data-state") == "blocked"
        metrics.lag.set("a", 90_000)
        run.progressive = predicted(online=(0.65, 90))
        metrics.drifts.labels("loss").inc()
        until(lambda: states(said.inner_text("#live-accuracy-says"), "65.0 % … 90 … 65.0 % … 75.0 %"))
        until(lambda: said.locator("#live-accuracy-svg .alarm").count() == 1)
        assert "1 alarm" in said.inner_text("#live-accuracy-says")
        assert "90,000" in said.inner_text("#live-lag-says")
        before = said.get_attribute("#live-rate-svg .curve", "d")
        until(lambda: said.get_attribute("#live-rate-svg .curve", "d") != before)
        said.locator("#live-table summary").press("Enter")
        rows = said.locator("#table-live tbody tr")
        until(lambda: rows.count() >= 3)
        assert rows.first.inner_text().split("\t")[1:] == ["300", "100", "90000", "0.6500", "1"]
        run.failed, run.why = {}, ""
        until(lambda: "refit" not in said.inner_text("#live-wrong"))
        assert barriers(said) == []
    assert page.wrong == [] or all("ERR_" in each for each in page.wrong)


def test_an_object_is_seen_with_its_picture_and_text(tmp_path, watched):
    shown = tmp_path / "shown"
    shown.mkdir()
    Image.new("RGB", (300, 200), "teal").save(shown / "1.png")
    lines = ["object,image,text", *(f'"{name}",1.png,text of {i}' for i, name in enumerate(["object 7", "a & b"]))]
    (shown / "objects.csv").write_text("\n".join(lines))
    made = state(tmp_path / "study", answers(12, 600), "--no-refits")
    with served(made, objects=str(shown / "objects.csv")) as run:
        run.published = Store(made).published()
        page, held = watched(allowed=f"http://{run.address}/"), []
        page.page.route("**/object", lambda route: held.append(route))  # the list comes late
        page.page.goto(f"http://{run.address}/")
        page.page.wait_for_selector("#table-objects", timeout=600_000)
        until(lambda: held, what="the list of pictures to be asked for")
        page.page.wait_for_timeout(2500)  # two messages of the engine
        assert page.page.locator("#tiles .tile").count() == 4 and barriers(page.page) == []
        held[0].continue_()
        for name, text, picture in (
            ("object 7", "text of 0", True),
            ("a & b", "text of 1", True),
            ("object 9", "", False),
        ):
            page.page.fill("#search", name)
            page.page.press("#search", "Enter")
            until(lambda text=text: page.page.inner_text("#about-text") == text)
            until(lambda yes=picture: page.page.locator("#about-picture").is_visible() == yes)
            if picture:
                until(lambda: page.page.evaluate("document.querySelector('#about-picture').naturalWidth") == 160)
        assert page.wrong == []
