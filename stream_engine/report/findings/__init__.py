"""What is known of a state: every sentence and its figures, computed once and shown in four places.

    published ──▶ facts ──▶ topics (one file each) ──▶ `inspect` (text, JSON), the report, a run's last line

A `Finding` is one sentence with the figures that it states. Claims are gated by the checks that carry them: while no
model predicts better than chance, nothing is said about the map, the clusters or single participants except that.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from stream_engine.data import registered

RESULT, WARNING, GAP = "result", "warning", "gap"  # what was found; what is wrong with the data; what is missing

# topic, in the order in which a reader needs them -> "module:function" giving findings from facts
TOPICS = {
    "data": "stream_engine.report.findings.data:read",
    "excluded": "stream_engine.report.findings.data:excluded",
    "connection": "stream_engine.report.findings.data:connected",
    "few_comparisons": "stream_engine.report.findings.data:few_comparisons",
    "copies": "stream_engine.report.findings.copies:copied",
    "accuracy": "stream_engine.report.findings.models:accuracy",
    "agreement": "stream_engine.report.findings.agreement:agreement",
    "participants": "stream_engine.report.findings.agreement:participants",
    "map": "stream_engine.report.findings.models:object_map",
    "differences": "stream_engine.report.findings.agreement:differences",
    "clusters": "stream_engine.report.findings.clusters:clusters",
    "order": "stream_engine.report.findings.agreement:order",
    "gaps": "stream_engine.report.findings.data:gaps",
}


class Finding(NamedTuple):
    """One sentence, `text`, and by name the `figures` in it; `command`: what to type about it."""

    what: str
    text: str
    figures: Mapping[str, Any] = MappingProxyType({})
    command: str = ""
    level: str = RESULT


Findings = dict[str, tuple[Finding, ...]]  # by topic


def findings(facts: Any) -> Findings:
    """Every finding about a state, by topic. `facts`: see `findings.facts.Facts`."""
    return {topic: tuple(registered(entry)(facts)) for topic, entry in TOPICS.items()}


def warnings(by_topic: Findings) -> tuple[Finding, ...]:
    """What is wrong with the data, in the order of topics."""
    return tuple(finding for topic in by_topic.values() for finding in topic if finding.level == WARNING)


def sentences(by_topic: Findings, topic: str) -> str:
    """The results and warnings of a topic as one paragraph."""
    return " ".join(finding.text for finding in by_topic[topic] if finding.level != GAP)
