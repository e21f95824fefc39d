"""The pictures of the manual: `python -m tests.support.figures [PAGE...]` runs the pages that show one, and puts what
they draw beside them. Small files, the same from the same versions."""

import argparse
import os
import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from tests.support.pages import run_page

DOCS = Path(__file__).parents[2] / "stream_engine" / "docs"
MOST_BYTES = 80_000
STYLE = {
    "svg.hashsalt": "manual",
    "svg.fonttype": "none",
    "figure.figsize": (5.0, 3.4),
    "font.size": 9.0,
    "savefig.bbox": "tight",
    "path.simplify_threshold": 1.0,
}
_DRAWN = re.compile(r' d="([^"]*)"| (?:x|y)="([^"]*)"')
_SHOWN = re.compile(r"!\[[^\]]*\]\((\w+\.svg)\)")


def shown(page: Path) -> list[str]:
    """The pictures that a page draws and shows."""
    return _SHOWN.findall(page.read_text(encoding="utf-8"))


def pages() -> list[Path]:
    """The pages that show a picture."""
    return [page for page in sorted(DOCS.rglob("*.md")) if shown(page)]


@contextmanager
def style() -> Iterator[None]:
    """Pictures come out small and alike."""
    import matplotlib

    matplotlib.use("Agg")
    before = os.environ.get("SOURCE_DATE_EPOCH")
    os.environ["SOURCE_DATE_EPOCH"] = "0"
    try:
        with matplotlib.rc_context(STYLE):
            yield
    finally:
        from matplotlib import pyplot

        pyplot.close("all")
        os.environ.pop("SOURCE_DATE_EPOCH")
        if before is not None:
            os.environ["SOURCE_DATE_EPOCH"] = before


def unlike(drawn: str, stored: str, places: bool = True) -> str:
    """What differs between two pictures beyond the last digits of places; nothing, where they are alike. Without
    `places`, only what is written in them is compared."""
    one, other = _words(drawn), _words(stored)
    if one != other:
        return f"words {sorted(set(one) ^ set(other))}"
    if not places:
        return ""
    one, other = _places(drawn), _places(stored)
    if len(one) != len(other):
        return f"{len(one)} numbers, not {len(other)}"
    apart = float(np.quantile(np.abs(np.subtract(one, other)), 0.9)) if one else 0.0
    return f"places differ by {apart:.1f} points" if apart > 3 else ""


def _words(svg: str) -> list[str]:
    return sorted(re.findall(r">([^<>\n]+)</text>", svg))


def _places(svg: str) -> list[float]:
    drawn = " ".join(path or place for path, place in _DRAWN.findall(svg))
    return [float(number) for number in re.findall(r"-?\d+\.?\d*", drawn)]


def main() -> None:
    """Draw the pictures of all pages, or of those named."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pages", nargs="*", metavar="PAGE", help="below stream_engine/docs")
    for page in [DOCS / name for name in parser.parse_args().pages] or pages():
        with tempfile.TemporaryDirectory() as folder, style():
            run_page(page, Path(folder))
            for name in shown(page):
                lines = (Path(folder) / name).read_text().splitlines()
                (page.parent / name).write_text("\n".join(line.rstrip() for line in lines) + "\n")
                print(page.parent / name, (page.parent / name).stat().st_size)


if __name__ == "__main__":
    main()
