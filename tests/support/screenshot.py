"""The README's picture of the report: `python -m tests.support.screenshot` makes a study, its report, and a screenshot.

100 handwritten digits that ship with scikit-learn, 30,000 simulated answers of 30 participants, one in ten of them
wrong; two participants guess. The same answers each time; the picture changes when the report does.
"""

import io
import json
import os
import tempfile
from pathlib import Path

import numpy as np
from PIL import Image

from stream_engine.commands.demo import FLIPPED, digits, judged, pictures
from tests.support.process import engine

PICTURE = Path(__file__).parents[2] / "stream_engine" / "docs" / "gallery" / "report.png"
OBJECTS, ANSWERS, PARTICIPANTS, GUESSING = 100, 30_000, 30, (7, 19)
SCREEN = {"width": 1280, "height": 800}
COLOURS = 96  # of the PNG


def answers(seed: int = 0) -> list[dict]:
    """What the participants said."""
    rng = np.random.default_rng(seed)
    rows = judged(digits(seed)[0][:OBJECTS], ANSWERS, FLIPPED, rng)
    worker = rng.integers(PARTICIPANTS, size=len(rows))
    swapped = np.isin(worker, GUESSING) & (rng.random(len(rows)) < 0.5)
    rows[swapped, 1:] = rows[swapped, :0:-1]
    return [
        {"anchor": f"digit-{a}", "near": f"digit-{b}", "far": f"digit-{c}", "worker": f"P{w:02d}"}
        for (a, b, c), w in zip(rows.tolist(), worker.tolist())
    ]


def report(folder: Path) -> Path:
    """The page about them."""
    survey = folder / "digits.jsonl"
    survey.write_text("".join(json.dumps(each) + "\n" for each in answers()))
    engine("run", survey.name, "--state", "digits", cwd=folder)
    objects = pictures(0, folder / "pictures")
    out = folder / "report.html"
    engine("report", "--state", "digits", "--objects", objects, "--out", out, cwd=folder)
    return out


def screenshot(page: Path) -> bytes:
    """Its first screen as a small PNG."""
    from playwright.sync_api import sync_playwright

    from tests.report.conftest import chromium

    with sync_playwright() as player:
        browser = player.chromium.launch(executable_path=chromium(), args=["--no-sandbox"] if not os.geteuid() else [])
        tab = browser.new_page(viewport=SCREEN)
        tab.goto(page.as_uri())
        tab.wait_for_timeout(500)  # names and pictures are laid out
        shown = Image.open(io.BytesIO(tab.screenshot()))
        browser.close()
    made = io.BytesIO()
    shown.convert("RGB").quantize(COLOURS, dither=Image.Dither.NONE).save(made, "PNG", optimize=True)
    return made.getvalue()


def main() -> None:
    """Renew the picture."""
    with tempfile.TemporaryDirectory() as folder:
        PICTURE.write_bytes(screenshot(report(Path(folder))))
    print(PICTURE, PICTURE.stat().st_size)


if __name__ == "__main__":
    main()
