"""The four figures at the top of the page: answers, participants, accuracy, clusters."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from stream_engine.clustering.sentence import headline
from stream_engine.data.numbers_in_words import amount
from stream_engine.report.findings import Finding
from stream_engine.report.findings.models import interval
from stream_engine.report.findings.words import count, percent
from stream_engine.report.material import Material
from stream_engine.state.artifact import figure


class Tile(NamedTuple):
    """A figure with what it is, and a line about it."""

    head: str
    value: str
    note: str


def tiles(material: Material) -> Iterator[Tile]:
    """All four; where a figure is not known, the note says why."""
    summary = material.summary
    answers, comparisons, objects = (
        material.facts.answers,
        summary["comparisons"],
        amount(summary["objects"], "object"),
    )
    made_of = "comparisons" if answers in (None, comparisons) else amount(comparisons, "comparison")
    yield Tile("Answers", count(comparisons if answers is None else answers), f"{made_of} of {objects}")
    findings = {finding.what: finding for topic in material.findings.values() for finding in topic}
    yield _participants(material.findings["participants"], all_excluded="excluded" in findings)
    yield _accuracy(findings)
    yield _clusters(material)


def _participants(findings: Sequence[Finding], all_excluded: bool) -> Tile:
    """`all_excluded`: if no participant is counted, this is due to exclusions."""
    counted = next((finding for finding in findings if "participants" in finding.figures), None)
    if counted is None:
        if all_excluded:
            return Tile("Participants", "0", "all named participants are excluded")
        return Tile("Participants", "unknown", "no participant column")
    flagged = counted.figures.get("flagged")
    flagged = None if counted.figures.get("checked") == 0 else flagged
    note = "not assessed" if flagged is None else "none flagged" if not flagged else f"{count(flagged)} flagged"
    return Tile("Participants", count(counted.figures["participants"]), note)


def _accuracy(findings: dict[str, Finding]) -> Tile:
    head, accuracy = "Predicted correctly", findings.get("accuracy") or findings.get("chance_level")
    if accuracy is None:
        return Tile(head, "unknown", "too few answers, or no model was fitted")
    share, error = accuracy.figures["accuracy"], accuracy.figures["standard_error"]
    if accuracy.what == "chance_level":
        return Tile(head, percent(share), f"not significantly better than chance ({interval(share, error)})")
    ceiling = findings.get("noise_ceiling")
    most = f"; noise ceiling at most {percent(ceiling.figures['at_most'])}" if ceiling else ""
    differ = findings.get("differences")
    own_accuracy = figure(differ.figures, "accuracy") if differ else None
    most += f"; {percent(own_accuracy)} with participants' own models" if own_accuracy is not None else ""
    return Tile(head, percent(share), f"{interval(share, error)}; chance 50 %{most}")


def _clusters(material: Material) -> Tile:
    if report := material.facts.cluster_answer:
        return Tile("Clusters", *headline(report))
    return Tile("Clusters", "not assessed", "see the section Clusters")
