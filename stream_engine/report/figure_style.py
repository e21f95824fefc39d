"""Width and font of figures for papers: what `--figure-width`, `--font` and `--font-size` say."""

import re
from typing import NamedTuple

MIN_WIDTH, MAX_WIDTH = 30.0, 600.0  # millimetres
MIN_FONT_SIZE, MAX_FONT_SIZE = 4.0, 36.0  # points
MILLIMETRES = {"mm": 1.0, "cm": 10.0, "in": 25.4, "pt": 25.4 / 72}


class BadStyle(ValueError):
    """A figure cannot be made like that; the message is one line: option, what was got and expected."""


class FigureStyle(NamedTuple):
    """Width in millimetres, family of the font ("": matplotlib's own), its size in points, and whether regions of 95 %
    are drawn. By default a figure fits one column, and its text is not smaller than 8 points."""

    width: float = 85.0
    font: str = ""
    size: float = 8.0
    regions: bool = False


ONE_COLUMN = FigureStyle()


def style_of(width: str, font: str | None, size: str, regions: bool = False) -> FigureStyle:
    """The style that a person has asked for. Raises `BadStyle`.

    >>> style_of("17.4cm", None, "9pt")
    FigureStyle(width=174.0, font='', size=9.0, regions=False)
    >>> style_of("252pt", None, "8").width
    88.9
    """
    number, unit = _number(width, "|".join(MILLIMETRES))
    millimetres = round(number * MILLIMETRES.get(unit, float("nan")), 9)
    if not MIN_WIDTH <= millimetres <= MAX_WIDTH:
        expected = "expected 30mm to 600mm, such as 85mm, 17.4cm, 3.3in or 240pt"
        raise BadStyle(f"--figure-width: got {width[:40]!r}, {expected}")
    points, _ = _number(size, "(?:pt)?")
    if not MIN_FONT_SIZE <= points <= MAX_FONT_SIZE:
        raise BadStyle(f"--font-size: got {size[:40]!r}, expected 4pt to 36pt")
    return FigureStyle(millimetres, _installed(font) if font else "", points, regions)


def _number(text: str, units: str) -> tuple[float, str]:
    match = re.fullmatch(rf"\s*(\d{{1,6}}(?:\.\d{{1,6}})?)\s*({units})\s*", text)
    return (float(match[1]), match[2]) if match else (float("nan"), "")


def _installed(font: str) -> str:
    """A family that matplotlib finds here. Raises `BadStyle`."""
    from matplotlib import font_manager

    generic = {"serif", "sans-serif", "monospace"}
    families = {font.name for font in font_manager.fontManager.ttflist} | generic
    by_lower_case = {family.lower(): family for family in families}
    if font.lower() not in by_lower_case:
        usual = [family for family in sorted(families) if not family.startswith(("cm", "STIX", "Last Resort"))]
        more = f" and {len(usual) - 12} more" if len(usual) > 12 else ""
        raise BadStyle(
            f"--font: got {font[:40]!r}, which is not installed; expected one of {', '.join(usual[:12])}{more}"
        )
    return by_lower_case[font.lower()]
