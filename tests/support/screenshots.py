"""The pictures of real pages in the manual's gallery: `python -m tests.support.screenshots` takes them anew, with
Chromium, from a study that really runs."""

import tempfile
from functools import partial
from pathlib import Path

import httpx
import numpy as np
from PIL import Image
from playwright.sync_api import Page, sync_playwright
from sklearn.datasets import load_digits

from tests.report.conftest import chromium
from tests.support.collecting import Collecting, Participant
from tests.support.process import engine

PICTURES = Path(__file__).parents[2] / "deploy" / "manual" / "pictures"
SIZE = {"width": 900, "height": 760}
STUDY = "[quota]\nperson = 120\n[access]\nrequests_a_second = 10000.0\n"
COLORS = 64  # of a stored picture: a third of the bytes, and no difference that one sees


def study(folder: Path) -> Collecting:
    """A study about 40 digits with the answers of 24 simulated participants, of whom two guess."""
    digits, rng = load_digits(), np.random.default_rng(0)
    chosen = rng.choice(len(digits.data), 40, replace=False)
    (folder / "pictures").mkdir()
    for place, each in enumerate(chosen):
        pixels = Image.fromarray((255 - digits.images[each] * 15.9).astype(np.uint8))
        pixels.resize((160, 160)).save(folder / "pictures" / f"digit_{place:02}.png")
    asked = Collecting(folder, folder / "pictures", study=STUDY)
    with httpx.Client(timeout=120) as http:
        for number in range(24):
            person = Participant(asked.base, f"p{number:02}", partial(answer, digits.data[chosen], rng, number < 2))
            while questions := person.ask(http, 20):
                for each in questions:
                    person.answer(http, each)
    return asked


def answer(values: np.ndarray, rng: np.random.Generator, guesses: bool, question: dict) -> str:
    """What a participant selects: the nearer digit, but for 8 % of the answers, and all of those who guess."""
    anchor, left, right = (values[int(name[-2:])] for name in (question["anchor"], *question["shown"]))
    farther = int(np.linalg.norm(left - anchor) > np.linalg.norm(right - anchor))
    return question["shown"][farther ^ (rng.random() < (0.5 if guesses else 0.08))]


def keep(page: Page, name: str) -> None:
    """A picture of what a page shows now, once it has come to rest."""
    page.wait_for_timeout(1500)
    PICTURES.mkdir(exist_ok=True)
    page.screenshot(path=PICTURES / name)
    Image.open(PICTURES / name).convert("RGB").quantize(COLORS).save(PICTURES / name, optimize=True)


def main() -> None:
    """Start the study, wait for its models, and take the three pictures."""
    with tempfile.TemporaryDirectory() as place, sync_playwright() as player:
        asked = study(Path(place))
        launched = player.chromium.launch(executable_path=chromium(), args=["--no-sandbox"])
        try:
            asked.engines("/models", "embedding")
            page = launched.new_page(viewport=SIZE)
            page.goto(f"{asked.base}/ask?worker=ann")
            page.click("#begin")
            page.wait_for_selector("#choices img")
            keep(page, "ask.png")
            page.goto(f"{asked.base}/owner?token={asked.token}")
            page.wait_for_selector("h2:text-is('Map')", timeout=240_000)
            keep(page, "live.png")
            engine(
                "report", "--state", asked.state, "--objects", Path(place) / "pictures", "--out", f"{place}/report.html"
            )
            page.goto(f"file://{place}/report.html")
            keep(page, "report.png")
        finally:
            launched.close()
            asked.kill()


if __name__ == "__main__":
    main()
