"""Data quality: what is wrong with the data and what helps, which checks passed, and what is missing."""

from collections.abc import Iterator

from stream_engine.data.numbers_in_words import amount
from stream_engine.evaluation.participants import MIN_PARTICIPANTS
from stream_engine.evaluation.weak_joins import MAX_OBJECTS
from stream_engine.report import Section
from stream_engine.report.findings import GAP, Finding, warnings
from stream_engine.report.findings.facts import Facts
from stream_engine.report.findings.words import listing
from stream_engine.report.material import Material

MIN_POWER = 0.5  # share of those who only guess that would be noticed, from which a check that finds none is passed


def section(material: Material) -> Section:
    """Every warning in a line with the command that helps; then the checks that passed, and what is missing."""
    if not material.summary["comparisons"]:
        return Section("Data quality", "There is nothing to check yet.")
    problems, passed = warnings(material.findings), list(_passed(material.facts))
    says = f"{amount(len(problems), 'problem')} found." if problems else "No problem was found."
    notes = [_with_command(finding) for finding in problems]
    notes += [_with_command(finding) for finding in material.findings["excluded"] if finding.level != GAP]
    if passed:
        notes.append(f"Passed: {listing(passed)}.")
    missing = [finding for topic in material.findings.values() for finding in topic if finding.level == GAP]
    notes += [_with_command(finding) for finding in missing]
    return Section("Data quality", says, notes=tuple(notes))


def _with_command(finding: Finding) -> str:
    return f"{finding.text} Next: {finding.command}" if finding.command else finding.text


def _passed(facts: Facts) -> Iterator[str]:
    """The checks that found nothing wrong."""
    if facts.beats_chance:
        yield "a model predicts held-out comparisons better than chance"
    if facts.sets is not None and facts.connected:
        looked = len(facts.sets) <= MAX_OBJECTS
        yield "all objects are connected by comparisons" + ("" if looked else " (by how many was not examined)")
    people = facts.participants
    if not facts.beats_chance or people is None or len(people.names) < MIN_PARTICIPANTS:
        return
    if not people.flagged and (people.power or 0.0) >= MIN_POWER:
        yield "no participant is flagged"
