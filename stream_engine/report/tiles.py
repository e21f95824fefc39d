"""The four figures at the top of the page: answers, participants, accuracy, clusters."""

import re
from collections.abc import Iterator
from typing import NamedTuple

from stream_engine.findings import Finding
from stream_engine.findings.models import interval
from stream_engine.findings.words import count, p_value, percent, some
from stream_engine.report.material import Material
from stream_engine.state.artifact_figures import figure


class Tile(NamedTuple):
    """A figure with what it is, and a line about it."""

    head: str
    value: str
    note: str


def tiles(material: Material) -> Iterator[Tile]:
    """All four; where a figure is not known, the note says why."""
    summary = material.summary
    yield Tile("Answers", count(summary["comparisons"]), f"comparisons of {some(summary['objects'], 'object')}")
    found = {each.what: each for topic in material.findings.values() for each in topic}
    yield _participants(found)
    yield _accuracy(found)
    yield _clusters(found)


def _participants(found: dict[str, Finding]) -> Tile:
    known = next((each for name, each in found.items() if "participants" in each.figures), None)
    if known is None:
        return Tile("Participants", "unknown", "no participant column")
    flagged = known.figures.get("flagged")
    note = "not assessed" if flagged is None else "none flagged" if not flagged else f"{count(flagged)} flagged"
    return Tile("Participants", count(known.figures["participants"]), note)


def _accuracy(found: dict[str, Finding]) -> Tile:
    head, known = "Predicted correctly", found.get("accuracy") or found.get("chance_level")
    if known is None:
        return Tile(head, "unknown", "too few answers, or no model was fitted")
    share, error = known.figures["accuracy"], known.figures["standard_error"]
    if known.what == "chance_level":
        return Tile(head, percent(share), f"not better than chance ({interval(share, error)})")
    ceiling = found.get("noise_ceiling")
    most = f"; noise ceiling {percent(ceiling.figures['at_most'])}" if ceiling else ""
    return Tile(head, percent(share), f"{interval(share, error)}; chance 50 %{most}")


def _clusters(found: dict[str, Finding]) -> Tile:
    known = found.get("clusters")
    if known is None:
        return Tile("Clusters", "not assessed", "see the section Clusters")
    verdict = re.split(r" \(|:|;", known.text.removesuffix("."))[0]
    p = figure(known.figures, "p_continuum")
    return Tile("Clusters", verdict, "" if p is None else f"test against a continuous structure: p = {p_value(p)}")
