"""Who is excluded from everything else that is said, and what that changed (`state.exclusion`)."""

from collections.abc import Iterator, Mapping
from typing import Any

from stream_engine.report.findings import GAP, Finding
from stream_engine.report.findings.facts import Facts
from stream_engine.report.findings.words import listed, percent, some
from stream_engine.state.artifact import figure
from stream_engine.state.exclusion import FIELD, excluded_of


def excluded(facts: Facts) -> Iterator[Finding]:
    """The participants who are excluded, and accuracy, map and clusters with and without them."""
    names, artifacts = facts.published.excluded, facts.published.artifacts
    if names:
        are = "is" if len(names) == 1 else "are"
        text = f"{some(len(names), 'participant')} {are} excluded: {listed(list(names))}."
        changes = [change for kind in ("embedding", "sdp_clustering") for change in _changes(facts.report(kind))]
        text += f" Compared with the fit {_before(facts)}: {'; '.join(changes)}." if changes else ""
        command = f"stream-engine report --state {facts.directory} --include participant={names[0]}"
        yield Finding("excluded", text, {"names": list(names)}, command)
    old = [kind for kind, artifact in artifacts.items() if excluded_of(artifact) != names]
    if old:
        text = f"Fitted with other participants than are included now: {', '.join(old)}."
        command = f"stream-engine refit --state {facts.directory} {old[0]}"
        yield Finding("fitted_with_others", text, {"refits": len(old)}, command, GAP)


def _before(facts: Facts) -> str:
    """Whom the fit before was of."""
    said = facts.report("embedding").get(FIELD) or facts.report("sdp_clustering").get(FIELD)
    before = said.get("before") if isinstance(said, Mapping) else None
    names = before.get("participants") if isinstance(before, Mapping) else None
    return f"without {listed(list(map(str, names)))}" if names else "to everybody"


def _changes(report: Mapping[str, Any]) -> Iterator[str]:
    said = report.get(FIELD)
    before = said.get("before") if isinstance(said, Mapping) else None
    if not isinstance(before, Mapping):
        return
    now, then = figure(report, "accuracy"), figure(before, "accuracy")
    if now is not None and then is not None:
        yield f"the embedding predicts {percent(now)} of held-out answers correctly, {percent(then)} before"
    if (r := figure(before, "distance_correlation")) is not None:
        yield f"distances on the two maps correlate by {r:.2f}"
    if "verdict" in before:
        same = figure(before, "ari")
        agree = "" if same is None else f" (adjusted Rand index of the two partitions {same:.2f})"
        yield f"{report.get('verdict')}, before: {before['verdict']}{agree}"
