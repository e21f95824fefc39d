"""A page that shows what a state knows: one self-contained HTML file, and its figures as SVG and PDF for papers.

    published ──▶ findings, material ──▶ sections (one file each) ──▶ page (HTML, inline SVG)
                                                    │
                                                    └──▶ drawings ──▶ figure_files (matplotlib)

A section states its result in one sentence and shows its numbers in a table beside each figure. Only aggregates are
shown, never events, and participants only on request.
"""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from stream_engine.data import registered
from stream_engine.report.drawings import Drawing

# name of the section, which is its anchor on the page -> "module:function" giving `Section | None` from a Material
SECTIONS = {
    "map": "stream_engine.report.sections.object_map:section",
    "quality": "stream_engine.report.sections.quality:section",
    "models": "stream_engine.report.sections.models:section",
    "agreement": "stream_engine.report.sections.agreement:section",
    "differences": "stream_engine.report.sections.differences:section",
    "alignment": "stream_engine.report.sections.alignment:section",
    "dimensions": "stream_engine.report.sections.dimensions:section",
    "clusters": "stream_engine.report.sections.clusters:section",
    "dendrogram": "stream_engine.report.sections.dendrogram:section",
    "objects": "stream_engine.report.sections.objects:section",
    "workers": "stream_engine.report.sections.workers:section",
    "contradictions": "stream_engine.report.sections.conflicts:section",
    "read": "stream_engine.report.sections.data:section",
    "learning": "stream_engine.report.sections.learning:section",
    "next": "stream_engine.report.sections.next_questions:section",
    "methods": "stream_engine.report.sections.methods:section",
}


class CannotWrite(OSError):
    """The page or its figures cannot be written where they should be; the message is one line."""


class Table(NamedTuple):
    """Columns of equal length, each with its head; `name` is its file name when somebody takes it along as CSV."""

    name: str
    columns: Mapping[str, Any]  # head -> values: texts, whole numbers, floats, None where there is nothing to say
    ids: np.ndarray | None = None  # (rows,) which object a row is about
    about: str = ""
    folded: bool = False  # shown when asked for: what a figure beside it shows, or details


class Section(NamedTuple):
    """A part of the page. `says` and `notes` are plain text, a sentence or two each."""

    title: str
    says: str
    drawings: tuple[Drawing, ...] = ()
    tables: tuple[Table, ...] = ()
    notes: tuple[str, ...] = ()
    caution: bool = False  # what it says is a reason not to trust its figures, and stands before them


def maker(name: str) -> Callable[..., Section | None]:
    """The function registered under `name`."""
    return registered(SECTIONS[name])
