"""Data quality: what is wrong with the answers, worst first, each with the command that helps."""

from stream_engine.findings import warnings
from stream_engine.findings.words import some
from stream_engine.report import Section
from stream_engine.report.material import Material


def section(material: Material) -> Section:
    """Every warning in a line."""
    found = warnings(material.findings)
    nothing = "No problem was found." if material.summary["comparisons"] else "There is nothing to check yet."
    says = f"{some(len(found), 'problem')} found." if found else nothing
    notes = tuple(f"{each.text} {each.command}".strip() for each in found)
    return Section("Data quality", says, notes=notes)
