"""The answer about clusters in its sentence (`clustering.sentence`), provided that a model predicts better than chance
and that all objects were compared."""

from collections.abc import Iterator, Mapping
from typing import Any

from stream_engine.clustering.sentence import CANNOT_TELL, CHANCE, UNCONNECTED, sentence
from stream_engine.data.numbers_in_words import amount
from stream_engine.report.findings import GAP, Finding
from stream_engine.report.findings.facts import Facts
from stream_engine.state.artifact import figure

FIGURES = ("k", "clearer_than", "detection_limit", "gain", "gain_se")


def clusters(facts: Facts) -> Iterator[Finding]:
    """One sentence; for a state of an earlier version what that version said, and how to bring it up to date."""
    if "clusters" in facts.published.artifacts:
        report = facts.cluster_answer
        gated = report.get("grade") == CANNOT_TELL and report.get("reason") in (CHANCE, UNCONNECTED)
        if statement := sentence(report):
            what, level = ("clusters_gated", GAP) if gated else ("clusters", "result")
            yield Finding(what, statement, {} if gated else _figures(report), level=level)
            few = int(facts.too_few.sum())
            if few and report.get("grade") != CANNOT_TELL:
                text = f"{amount(few, 'object has', 'objects have')} too few comparisons to be placed in a group."
                yield Finding("not_in_groups", text, {"objects": few})
        return
    report = facts.report("sdp_clustering")
    if "verdict" in report:
        note = str(report.get("note") or report["verdict"]).strip().removesuffix(".")[:500]
        text = f"An earlier version of this program reported: {note}. Its test is not made any more. "
        text += facts.commands.awaited or "To renew the answer:"
        command = facts.commands.refit("clusters")
        yield Finding("clusters_of_earlier_version", text, {"k": figure(report, "k")}, command)


def _figures(report: Mapping[str, Any]) -> dict[str, Any]:
    figures = {name: figure(report, name) for name in FIGURES}
    figures |= {f"ari{end}": figure(report, "replication", name) for end, name in _ENDS.items()}
    return {name: value for name, value in figures.items() if value is not None} | {"grade": str(report["grade"])}


_ENDS = {"": "ari", "_low": "low", "_high": "high"}


def explained(report: Mapping[str, Any]) -> str:
    """What stands behind the grade, in one line; "" where no grade was computed.

    >>> explained({"clearer_than": 0.97, "dimensions": 2, "objects": 40})  # doctest: +ELLIPSIS
    'p = .03: the share of simulated continua of 40 objects in 2 dimensions, with positions of the same ...'
    """
    share = figure(report, "clearer_than")
    if share is None:
        return ""
    p = f"< {RESOLUTION:g}".replace("0.", ".") if share > 1 - RESOLUTION else f"= {1 - share:.2g}".replace("0.", ".")
    d, n = (int(figure(report, name) or 0) for name in ("dimensions", "objects"))
    tied = figure(report, "dimension_tied")
    both = "" if tied is None else " (clearer in more dimensions, which predict no better)"
    what = "1 dimension" if d == 1 else f"{d} dimensions"
    return (
        f"p {p}: the share of simulated continua of {n:,} objects in {what}, with positions of the same precision, "
        f"whose groups are at least as clear{both}. Clearly separated: clearer than 99 % of continua; "
        "separated: than 95 %."
    )


RESOLUTION = 0.0005  # of the kept table of continua, as far as it is told
