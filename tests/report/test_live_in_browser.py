"""The live page in a real Chromium beside a real engine: figures move while answers come, for two viewers at once, and
a page that was left open finds the engine again after it was started anew."""

import json

import pytest

from tests.support.process import until
from tests.support.reported import answers, names
from tests.support.running_engine import Engine

pytestmark = [pytest.mark.browser, pytest.mark.timeout(600)]
CONFIG = '[snapshot]\ninterval = 2.0\n[refits]\nkinds = ["embedding"]\n'


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
            each.page.wait_for_selector("#live-events", timeout=60_000)
        until(lambda: figure(first.page, "events") == "500", what="the events of the start")
        stream(700)
        for each in (first, second):
            until(lambda each=each: figure(each.page, "events") == "1,200", what="the events to move")
            each.page.wait_for_selector("#map-svg use", timeout=120_000)
            until(lambda each=each: "12 objects" in each.page.title(), what="the page to be filled")
        assert first.page.locator("#links a").count() >= 8
        first.page.fill("#search", names(12)[7])
        first.page.press("#search", "Enter")
        shown = first.page.inner_text("#about-name")
        before = first.page.text_content("#read .says")
        stream(900)
        until(lambda: first.page.text_content("#read .says") != before, 180, "the page to be filled anew")
        assert first.page.inner_text("#about-name") == shown == names(12)[7]
    finally:
        engine.stop()
    until(lambda: "stopped or cannot be reached" in first.page.inner_text("#live-said"), 60, "the end to be said")
    again = Engine(tmp_path, str(stream.path), "--follow", "--listen", address, config=CONFIG, refits=True)
    try:
        until(lambda: first.page.inner_text("#live-said") == "reading", 60, "the engine to be found again")
        stream(300)
        until(lambda: figure(first.page, "events") == "2,400", what="events after the restart")
    finally:
        again.stop()
    complaints = [each for each in first.wrong + second.wrong if "ERR_" not in each]  # of the time without an engine
    assert complaints == []
