"""Agreement of participants with others and with themselves."""

from typing import Any

from stream_engine.report import Section, Table
from stream_engine.report.findings import GAP, RESULT
from stream_engine.report.findings.agreement import says_how_often_again
from stream_engine.report.material import Material
from stream_engine.state.artifact import figure


def section(material: Material) -> Section:
    """Agreement in sentences, and its figures in a table. Warnings stand in the section Data quality, and conflicting
    answers in a section of their own."""
    findings = material.findings
    both = (*findings["agreement"], *findings["participants"])
    says = " ".join(each.text for each in both if each.level == RESULT and each.what != "conflicting_answers")
    gaps = tuple(finding.text for finding in both if finding.level == GAP)
    notes = tuple(
        f"To list the participants: {finding.command}"
        for finding in findings["participants"]
        if finding.command and finding.level == RESULT
    )
    ceiling = material.facts.ceiling
    tables: tuple[Table, ...] = ()
    shares = [figure(ceiling, name) for name in ("others", "themselves", "at_most")]
    if not says_how_often_again(material.facts):
        shares[1] = None
    if any(share is not None for share in shares):
        rows: dict[str, list[Any]] = {
            "with": ["other participants", "themselves", "noise ceiling, at most"],
            "share": shares,
            "comparisons": [_whole(figure(ceiling, name)) for name in ("answers", "own_answers")] + [None],
        }
        known = [place for place, share in enumerate(shares) if share is not None]
        tables = (Table("agreement", {head: [column[place] for place in known] for head, column in rows.items()}),)
    unknown = "Agreement is unknown." if material.summary["comparisons"] else "No data yet."
    return Section("Agreement", says or unknown, (), tables, gaps + (() if material.workers else notes))


def _whole(n: float | None) -> int | None:
    return None if n is None else int(n)
