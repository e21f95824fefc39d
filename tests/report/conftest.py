"""A real Chromium for tests with the marker `browser`: one on PATH, or Debian's package, installed where this may be
done. Pages are watched: what they say on the console, what they ask for, what goes wrong in them."""

import os
import shutil
from pathlib import Path

import pytest

from tests.conftest import leave_out_without
from tests.support.fetched_programs import program

NAMES = ("chromium", "chromium-browser", "google-chrome")


def chromium() -> str:
    """Path of the browser. Raises `Missing`."""
    found = next(filter(None, map(shutil.which, NAMES)), None)
    return found or program("chromium", "chromium", "fonts-dejavu-core")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config, items):
    chosen = [item for item in items if item.get_closest_marker("browser")]
    leave_out_without(config, items, chosen, chromium, "tests in a real Chromium")


@pytest.fixture(scope="module")
def browser():
    """One browser for the tests of a file. Its player is a running event loop of this thread, and there cannot be two:
    it ends with the file, for tests that need the loop."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as player:
        # a container without user namespaces, run by root, has no sandbox to offer; the pages are ours
        launched = player.chromium.launch(executable_path=chromium(), args=["--no-sandbox"] if not os.geteuid() else [])
        yield launched
        launched.close()


def barriers(page) -> list[str]:
    """Serious findings of axe-core; it is put into the page by the debugger, past its policy."""
    from axe_playwright_python.sync_playwright import Axe

    return [
        f"{each['id']}: {each['nodes'][0]['html'][:200]}"
        for each in Axe().run(page).response["violations"]
        if each["impact"] in ("serious", "critical")
    ]


class Watched:
    """A page, and what happened on it that should not: `wrong` lists it, `asked` what it asked for over the network."""

    def __init__(self, browser, allowed: str = "", **options):
        self.context = browser.new_context(**options)
        self.page = self.context.new_page()
        self.wrong: list[str] = []
        self.asked: list[str] = []
        self.page.on("console", lambda said: said.type in ("error", "warning") and self.wrong.append(said.text))
        self.page.on("pageerror", lambda error: self.wrong.append(str(error)))
        self.page.on("request", lambda request: self._asked(request.url, allowed))

    def _asked(self, url: str, allowed: str) -> None:
        self.asked.append(url)
        if not url.startswith(("file:", "data:", "blob:")) and not (allowed and url.startswith(allowed)):
            self.wrong.append(f"asked for {url}")


@pytest.fixture
def watched(browser, request, tmp_path):
    """`watched(**options)`: a page that is watched. A failed test leaves a picture of each beside its other files."""
    made: list[Watched] = []

    def make(**options) -> Watched:
        made.append(Watched(browser, **options))
        return made[-1]

    yield make
    failed = getattr(request.node, "failed", False)
    for number, each in enumerate(made):
        if failed:
            kept = Path(os.environ.get("STREAM_ENGINE_SCREENSHOTS", ".cache/screenshots"))
            kept.mkdir(parents=True, exist_ok=True)
            each.page.screenshot(path=kept / f"{request.node.name}-{number}.png", full_page=True)
        each.context.close()


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    outcome = yield
    if call.when == "call":
        item.failed = outcome.get_result().failed
