"""What is missing for further results, each with the command that provides it."""

from collections.abc import Iterator

from stream_engine.findings import GAP, Finding
from stream_engine.findings.facts import Facts


def gaps(facts: Facts) -> Iterator[Finding]:
    """Refits that were not made, or of an earlier snapshot; models that are not in the table."""
    summary, artifacts = facts.summary, facts.published.artifacts
    if not summary["comparisons"]:
        yield Finding("no_comparisons", "No comparison has been counted yet.", level=GAP)
        return
    for kind, what in (("embedding", "There is no map"), ("sdp_clustering", "There is no clustering")):
        if kind not in artifacts:
            command = f"stream-engine refit --state {facts.directory} {kind}"
            yield Finding(f"no_{kind}", f"{what}.", command=command, level=GAP)
    if old := [kind for kind, artifact in artifacts.items() if artifact.sequence < summary["snapshot"]]:
        text = f"Fitted to an earlier snapshot, without the newest answers: {', '.join(old)}."
        yield Finding("earlier_snapshot", text, {"refits": len(old)}, level=GAP)
    if without := facts.models_left_out:
        yield Finding("models_left_out", f"Not in the table of models: {without}.", level=GAP)
