"""The page: one HTML file that needs nothing else and makes no request, except that of a running engine for news.

The page of a running engine is there before its sections (`shell`): it says nothing of the data, so it is the same for
everybody. The owner of a study (`collect`) gets it with a part about the study.
"""

import base64
import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import cache
from importlib.resources import files
from pathlib import PurePath
from types import MappingProxyType
from typing import Any

import jinja2
import numpy as np

from stream_engine.data import installed_version
from stream_engine.exports.object_places import PICTURE
from stream_engine.report import SECTIONS, Section, Table, maker
from stream_engine.report.drawings import Ellipses
from stream_engine.report.findings.words import cell
from stream_engine.report.glossary import Glossary
from stream_engine.report.inline_svg import PATHS, colour_class, shape_of, svg
from stream_engine.report.material import Material, ObjectCoordinates
from stream_engine.report.tiles import Tile, tiles

MAX_REGIONS = 400  # objects, above which regions of 95 % are not drawn
FIRST_SECTIONS = ("map", "quality")  # sections of the first screen, side by side
MAX_NARROW_COLUMNS, MAX_SHORT_CELL = 5, 60  # columns, and letters of a cell, of a table that has room beside a text
MAX_LETTERS_ON_A_LINE = 24  # of a column of texts that is as wide as its longest word
MAX_CAPTION = 100  # letters about a table that stand above it; more are shown when asked for
MAP_TITLES = {PICTURE: "two-dimensional picture"}  # to choose from; others are called by their names
COMMAND = "stream-engine "  # with which what can be typed begins


def sections(material: Material) -> dict[str, Section]:
    """The sections that have something to say, by name, in the order of the page."""
    all_sections = {name: maker(name)(material) for name in SECTIONS}
    return {name: section for name, section in all_sections.items() if section is not None}


def html(
    material: Material,
    sections: Mapping[str, Section],
    pictures: Mapping[str, bytes] | None = None,
    texts: Mapping[str, str] | None = None,
    pdf_links: Mapping[str, str] | None = None,
    running: Sequence[str] = (),
) -> str:
    """The whole page. `pictures` (JPEGs) and `texts` of objects, by name; `pdf_links`: where the PDF of a figure is,
    by the figure's name; `running`: refits after which it is written again."""
    script_data = data(material, pictures or {}, texts or {})
    top = tuple(tiles(material))
    maps, heading = _maps(material), title(material)
    return render(sections, script_data, heading, pdf_links or {}, maps, top, subtitle=subtitle(), running=running)


def body(material: Material, sections: Mapping[str, Section], pdf_links: Mapping[str, str]) -> str:
    """What changes when there is a newer snapshot: all sections, and the figures that the script works on."""
    filled = _filled(sections, data(material, {}, {}), pdf_links, _maps(material), tuple(tiles(material)))
    return _templates().get_template("sections.html").render(**filled)


def _maps(material: Material) -> tuple[ObjectCoordinates, ...]:
    """The maps to choose from; none where sets of objects have a frame each, or no map is interpretable."""
    return tuple(material.maps) if material.facts.positions_comparable else ()


def title(material: Material) -> str:
    """Where the answers come from."""
    sources = sorted({_source(name) for name in material.summary["positions"] if not name.startswith("labels:")})
    more = f" and {len(sources) - 1:,} more" if len(sources) > 1 else ""
    return f"{sources[0]}{more}" if sources else "Comparisons"


def _source(partition: str) -> str:
    """The name of a file, or of the topic that it is a partition of.

    >>> _source("votes/3"), _source("/data/a.csv"), _source("s3://bucket/b.csv")
    ('votes', 'a.csv', 'b.csv')
    """
    topic = partition.rpartition("/")[0]  # no topic has a slash in its name
    return topic if topic and "/" not in topic and ":" not in topic else PurePath(partition).name or partition


def subtitle() -> str:
    """Of which day the page is."""
    return f"Report of {datetime.now(UTC):%Y-%m-%d}."


def render(
    sections: Mapping[str, Section],
    script_data: str,
    heading: str,
    pdf_links: Mapping[str, str] = MappingProxyType({}),
    maps: tuple[ObjectCoordinates, ...] = (),
    top: tuple[Tile, ...] = (),
    live: bool = False,
    subtitle: str = "",
    study: bool = False,
    running: Sequence[str] = (),
) -> str:
    """The page around some sections and the data of its script; `live`: it follows a running engine, and `study`: one
    that collects answers; `running`: refits after which it is written again."""
    style, *scripts = _style_and_scripts(live, study)
    return (
        _templates()
        .get_template("page.html")
        .render(
            **_filled(sections, script_data, pdf_links, maps, top),
            subtitle=subtitle,
            running=running,
            policy=policy(live, study),
            style=style,
            scripts=scripts,
            live=live,
            study=study,
            title=heading,
            version=installed_version(),
        )
    )


def policy(live: bool = False, study: bool = False) -> str:
    """The content security policy: nothing but its own scripts and style, and if `live` what it fetches."""
    style, *scripts = _style_and_scripts(live, study)
    directives = {
        "default-src": "'none'",
        "style-src": _hash(style),
        "script-src": " ".join(map(_hash, scripts)),
        "img-src": "'self' data:" if live else "data:",
        **({"connect-src": "'self'"} if live else {}),
        "base-uri": "'none'",
        "form-action": "'none'",
    }
    return "; ".join(f"{what} {where}" for what, where in directives.items())


def _style_and_scripts(live: bool, study: bool) -> list[str]:
    return [_text("page.css"), _text("page.js"), *(_text(f"{name}.js") for name in ["live"] * live + ["study"] * study)]


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


@cache
def _text(name: str) -> str:
    return files("stream_engine.report").joinpath(name).read_text(encoding="utf-8")


@cache
def _templates() -> jinja2.Environment:
    loader = jinja2.FunctionLoader(_text)
    environment = jinja2.Environment(loader=loader, autoescape=True, undefined=jinja2.StrictUndefined)
    environment.globals.update(
        svg=svg,
        rows=_rows,
        heads=_heads,
        note_parts=note_parts,
        is_long=lambda table: not table.folded and len(table.about) > MAX_CAPTION,
        by_width=_by_width,
        colour_class=colour_class,
        shape=lambda group: PATHS[shape_of(group)],
        has_regions=lambda drawing: any(isinstance(mark, Ellipses) for mark in drawing.marks),
    )
    return environment


def _filled(
    sections: Mapping[str, Section],
    script_data: str,
    pdf_links: Mapping[str, str],
    maps: tuple[ObjectCoordinates, ...],
    top: tuple[Tile, ...],
) -> dict[str, Any]:
    """What the templates are filled with."""
    return {
        "sections": sections,
        "tiles": top,
        "first": [name for name in FIRST_SECTIONS if name in sections] if top else [],
        "pdf_links": pdf_links,
        "maps": [MAP_TITLES.get(coordinates.name, coordinates.name) for coordinates in maps],
        "regions": any(
            coordinates.covariance is not None and len(coordinates.points) <= MAX_REGIONS for coordinates in maps
        ),
        "axes": max((coordinates.points.shape[1] for coordinates in maps), default=0),
        "data": script_data,
        "explain": Glossary(),
    }


def _by_width(tables: tuple[Table, ...]) -> tuple[list[Table], list[Table]]:
    """Tables that have room beside a text, and those that need the width of the page."""

    def is_narrow(table: Table) -> bool:
        texts = (value for column in table.columns.values() for value in column if isinstance(value, str))
        return len(table.columns) <= MAX_NARROW_COLUMNS and max(map(len, texts), default=0) <= MAX_SHORT_CELL

    return [table for table in tables if is_narrow(table)], [table for table in tables if not is_narrow(table)]


def note_parts(note: str) -> tuple[str, str]:
    """A note in two parts: words, and what can be typed."""
    before, command, after = note.partition(COMMAND)
    return before, command + after


def _rows(table: Table) -> Iterator[tuple[int | None, list[tuple[str, str, str]]]]:
    """Rows of a table: the object that one is about, and for each cell its text, the value in six digits where the text
    is another, and its class."""
    columns = list(table.columns.values())
    kinds = [kind for _, kind in _heads(table)]
    for number, values in enumerate(zip(*columns)):
        cells = []
        for value, kind in zip(values, kinds):
            text = cell(value)
            exact = "" if value is None or value != value else f"{value:.6g}" if type(value) is float else str(value)
            cells.append((text, exact if exact != text else "", kind))
        yield (None if table.ids is None else int(table.ids[number])), cells


def _heads(table: Table) -> list[tuple[str, str]]:
    """The head of each column, and the class of its cells."""
    return [(head, _kind(column)) for head, column in table.columns.items()]


def _kind(column: Sequence[Any]) -> str:
    """ "n" of numbers, which stand at the right; "w" of texts that need a wide column or break anywhere; else ""."""
    if any(isinstance(value, (int, float)) for value in column):
        return "n"
    return "w" if any(isinstance(value, str) and len(value) > MAX_LETTERS_ON_A_LINE for value in column) else ""


def data(material: Material, pictures: Mapping[str, bytes], texts: Mapping[str, str]) -> str:
    """What the script needs, as JSON that may stand in HTML: names, clusters, and every axis of every map."""
    ids = material.shown
    content: dict[str, Any] = {
        "title": title(material),
        "snapshot": material.facts.published.snapshot.sequence,
        "events": material.summary["events"],
        "names": [material.names[i] for i in ids.tolist()],
        "cluster": material.cluster[ids].tolist(),
        "maps": [_map(coordinates, ids) for coordinates in material.maps],
        "pictures": {
            name: f"data:image/jpeg;base64,{base64.b64encode(jpeg).decode()}" for name, jpeg in pictures.items()
        },
        "texts": dict(texts),
    }
    return json.dumps(content, separators=(",", ":"), ensure_ascii=False).replace("<", "\\u003c")


def _map(places: ObjectCoordinates, ids: np.ndarray) -> dict[str, Any]:
    points = places.points[ids]
    content: dict[str, Any] = {"name": places.name, "axes": [_rounded(axis) for axis in points.T]}
    if places.covariance is not None and len(ids) <= MAX_REGIONS:
        upper = np.triu_indices(points.shape[1])
        content["covariance"] = [
            None if np.isnan(covariance).any() else _rounded(covariance[upper], 3)
            for covariance in places.covariance[ids]
        ]
    return content


def _rounded(values: np.ndarray, digits: int = 4) -> list[float | None]:
    return [None if value != value else float(f"{value:.{digits}g}") for value in values.tolist()]


TITLE = "stream-engine"
EMPTY = '{"title":"","snapshot":0,"events":0,"names":[],"cluster":[],"maps":[],"pictures":{},"texts":{}}'


@cache
def shell(study: bool = False) -> str:
    """The page without sections."""
    return render({}, EMPTY, TITLE, live=True, study=study)


@cache
def shell_policy(study: bool = False) -> str:
    """The content security policy of this page, as a header."""
    return policy(live=True, study=study)
