"""Figures for papers: a drawing as SVG, PDF and PNG by matplotlib, with embedded fonts."""

import io
import textwrap
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from types import MappingProxyType
from typing import Any

import numpy as np

from stream_engine.report.drawings import MAX_NAME_LETTERS, Drawing, Points, extent, without_regions
from stream_engine.report.figure_marks import BY_GROUP, MIN_MAP_RATIO, Markers, draw_marks
from stream_engine.report.figure_names import (
    DPI,
    LINE_OF_PAGE,
    MAX_TIED_NAMES,
    draw_names,
    draw_thumbnails,
)
from stream_engine.report.figure_style import ONE_COLUMN, FigureStyle

FORMATS = ("svg", "pdf", "png")
STYLE: dict[Any, Any] = {
    "pdf.fonttype": 42,
    "pdf.compression": 9,
    "svg.fonttype": "path",
    "svg.hashsalt": "stream-engine",
    "axes.linewidth": 0.6,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
}
UNDATED: dict[str, dict[str, Any]] = {
    "svg": {"Date": None},
    "pdf": {"CreationDate": None},
    "png": {"Software": None},
}  # equal figures, equal bytes
NO_PICTURES: Mapping[str, bytes] = MappingProxyType({})


def encoded(
    drawing: Drawing,
    formats: Iterable[str],
    style: FigureStyle = ONE_COLUMN,
    pictures: Mapping[str, bytes] = NO_PICTURES,
) -> dict[str, bytes]:
    """A figure, drawn once, by format: "svg", "pdf" or "png" -> bytes. `pictures`: JPEGs by the names of objects, shown
    as marks."""
    import matplotlib
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    if not style.regions:
        drawing = without_regions(drawing)
    size = {"font.size": style.size, "axes.labelsize": style.size, "legend.fontsize": style.size}
    size |= {"xtick.labelsize": style.size, "ytick.labelsize": style.size, "legend.title_fontsize": style.size}
    family = {"font.family": [style.font, "DejaVu Sans"]} if style.font else {}
    with matplotlib.rc_context(STYLE | size | family), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing from font")  # a letter that no font here has is a box
        figure = Figure(figsize=_inches(drawing, style, pictures), layout="constrained")
        FigureCanvasAgg(figure)
        axes = figure.subplots()
        draw_marks(drawing, axes, style.size, lowest=_lowest(drawing, style, pictures))
        if drawing.groups:
            longest = max(len(text) for _, text in drawing.groups)
            columns = int(style.width / 25.4 * 72 / (style.size * (0.6 * longest + 2.5)))
            handles, texts = axes.get_legend_handles_labels()
            figure.legend(
                handles,
                texts,
                loc="outside lower center",
                frameon=False,
                ncols=max(min(columns, len(texts)), 1),
                columnspacing=0.8,
                handletextpad=0.1,
                title=textwrap.fill(drawing.about_groups, _letters(figure, style.size)),
            )
        _fit_texts(axes, style.size)
        _add_caveat(drawing, axes, style.size)
        figure.draw_without_rendering()
        figure.set_layout_engine("none")  # what follows stays inside the axes: everything has its place
        draw_names(drawing, axes, style.size, draw_thumbnails(drawing, axes, style.size, pictures), pictures)
        return {format: _file(figure, format) for format in formats}


def _file(figure: Any, format: str) -> bytes:
    buffer = io.BytesIO()
    with _fonts_without_layout() if format == "pdf" else nullcontext():
        figure.savefig(buffer, format=format, metadata=UNDATED[format], dpi=DPI)
    return buffer.getvalue()


@contextmanager
def _fonts_without_layout() -> Iterator[None]:
    """Meanwhile, the fonts of a PDF are without tables of ligatures and kerning, a fifth of the time of a figure:
    matplotlib says where each letter is. Undocumented name of fontTools."""
    from fontTools.subset import Options

    before = Options._drop_tables_default
    Options._drop_tables_default = [*before, "GDEF", "GPOS", "GSUB"]
    try:
        yield
    finally:
        Options._drop_tables_default = before


def draw(
    drawing: Drawing,
    axes: Any,
    pictures: Mapping[str, bytes] = NO_PICTURES,
    labels: bool | Sequence[str] = True,
    markers: Markers = BY_GROUP,
) -> Any:
    """Draw on matplotlib's Axes, with matplotlib's present settings; returns them. `labels`: whether names stand beside
    points, or the texts that do, by the ids of the points."""
    import matplotlib

    size = float(matplotlib.rcParams["font.size"]) * 0.8
    draw_marks(drawing, axes, size, markers)
    if drawing.groups and markers.c is None:
        title = textwrap.fill(drawing.about_groups, _letters(axes.figure, size) // 2)
        axes.legend(fontsize=size, frameon=False, loc="best", title=title, title_fontsize=size)
    _add_caveat(drawing, axes, size)
    shown = draw_thumbnails(drawing, axes, size, pictures)
    if labels is not False:
        draw_names(drawing, axes, size, shown, pictures, None if labels is True else labels)
    return axes


MAX_MAP_RATIO = 1.2  # height of a map, in terms of its width
NAME_ROOM = 3.0  # times what all names of a map take that it has at least, so that few lines cross


def _lowest(drawing: Drawing, style: FigureStyle, pictures: Mapping[str, bytes]) -> float:
    """The least height of a map, in terms of its width: where all names are to be shown, they need room."""
    names = [name for mark in drawing.marks if isinstance(mark, Points) for name in mark.names]
    if len(names) > MAX_TIED_NAMES:
        return MIN_MAP_RATIO
    letters = sum(9 if name in pictures else min(len(name), MAX_NAME_LETTERS) + 1 for name in names)
    area = letters * 0.6 * 1.15 * style.size**2
    return float(np.clip(NAME_ROOM * area / (style.width / 25.4 * 72) ** 2, MIN_MAP_RATIO, MAX_MAP_RATIO))


MIN_LIST_HEIGHT = 500  # pixels of a drawing, above which it has a line for each object
PAGE_HEIGHT = 9.4 * 72  # points that a figure may fill


def _inches(drawing: Drawing, style: FigureStyle, pictures: Mapping[str, bytes]) -> tuple[float, float]:
    """Width and height: that of a map follows its extent and its names, that of a list its lines, up to a page."""
    width = style.width / 25.4
    if drawing.height > MIN_LIST_HEIGHT:
        return width, min(drawing.height * style.size / LINE_OF_PAGE, PAGE_HEIGHT) / 72
    ratio = drawing.height / drawing.width
    if drawing.equal:
        x0, x1, y0, y1 = extent(drawing)
        least = max(0.55, _lowest(drawing, style, pictures))
        ratio = float(np.clip((y1 - y0) / (x1 - x0), least, MAX_MAP_RATIO))
    room = 2.2 * style.size * len(drawing.groups) / 72 / 3  # of the legend
    room += 2.6 * style.size / 72 * (bool(drawing.about_groups) + bool(drawing.caveat))  # of two lines each
    return width, min(max(width * ratio, 12 * style.size / 72) + room, PAGE_HEIGHT / 72)


def _letters(figure: Any, size: float) -> int:
    """How many letters a line below the axes has."""
    return max(int((figure.get_figure(root=True).get_figwidth() * 72 - 5 * size) / (0.55 * size)), 12)


def _add_caveat(drawing: Drawing, axes: Any, size: float) -> None:
    """A caveat stays with its figure: below the axes."""
    if drawing.caveat:
        axes.set_xlabel(f"{axes.get_xlabel()}\n{textwrap.fill(drawing.caveat, _letters(axes.figure, size))}")


def _fit_texts(axes: Any, size: float) -> None:
    """Labels are not longer than their axes, nor texts of a list of lines taller than a line."""
    wide, high = (inches * 72 - 5 * size for inches in axes.figure.get_size_inches())
    for room, text, set_label in (
        (wide, axes.get_xlabel(), axes.set_xlabel),
        (high, axes.get_ylabel(), axes.set_ylabel),
    ):
        set_label(textwrap.fill(text, max(int(room / (0.55 * size)), 12)))
    if len(texts := axes.get_yticklabels()) > 12:
        axes.tick_params(axis="y", labelsize=min(size, 0.95 * high / len(texts)), length=0)
