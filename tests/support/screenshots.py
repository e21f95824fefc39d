"""The pictures of real pages in the README and the manual's gallery: `python -m tests.support.screenshots` takes them
anew, with Chromium, from a study that really runs."""

import argparse
import tempfile
from functools import partial
from pathlib import Path

import httpx
import numpy as np
from PIL import Image
from playwright.sync_api import Browser, Page, sync_playwright
from sklearn.datasets import load_digits

from tests.report.conftest import chromium
from tests.support.collecting import Collecting, Participant
from tests.support.process import engine

PICTURES = Path(__file__).parents[2] / "deploy" / "manual" / "pictures"
SIZE, DESKTOP = {"width": 900, "height": 760}, {"width": 1280, "height": 800}
STUDY = "[texts]\ntitle = 'Digits'\n[quota]\nperson = 120\n[access]\nrequests_a_second = 10000.0\n"
COLORS = 256  # of a stored picture: half of the bytes, and no difference that one sees


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
    few = Image.open(PICTURES / name).convert("RGB").quantize(COLORS, dither=Image.Dither.NONE)
    few.save(PICTURES / name, optimize=True)


def map_of_survey(launched: Browser, folder: Path) -> None:
    """The first screen of the report on the demonstration's survey, which the README begins with."""
    engine("demo", "--state", "demo", cwd=folder)
    page = launched.new_page(viewport=DESKTOP)
    page.goto(f"file://{folder}/demo/report.html")
    keep(page, "report.png")


def pages_of_study(launched: Browser, folder: Path) -> None:
    """The participants' page, and the owner's once there are models."""
    asked = study(folder)
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
    finally:
        asked.kill()


TAKEN = {"report": map_of_survey, "study": pages_of_study}


def main() -> None:
    """Take the pictures that are named, or all."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", nargs="*", metavar="|".join(TAKEN))
    with sync_playwright() as player:
        launched = player.chromium.launch(executable_path=chromium(), args=["--no-sandbox"])
        for what in parser.parse_args().what or TAKEN:
            with tempfile.TemporaryDirectory() as folder:
                TAKEN[what](launched, Path(folder))
        launched.close()


if __name__ == "__main__":
    main()
