"""What was read, and what was rejected and why."""

from collections.abc import Iterator

from stream_engine.findings import WARNING, Finding
from stream_engine.findings.facts import Facts
from stream_engine.findings.words import count, listed, percent, some

KINDS = {"odd_one_out": "odd-one-out", "most_central": "most-central"}


def read(facts: Facts) -> Iterator[Finding]:
    """Events, objects and comparisons; rejected events; columns that were not used."""
    summary = facts.summary
    rejected, events = sum(summary["rejected"].values()), summary["events"]
    if not events and not rejected:
        yield Finding("read", "No data yet: this page fills as answers arrive.", {"events": 0})
        return
    named = {KINDS.get(kind, kind): n for kind, n in summary["kinds"].items()}
    kinds = [some(n, kind) for kind, n in named.items()] if len(named) > 1 else [f"{kind}s" for kind in named]
    text = (
        f"{some(events, 'event')} ({listed(kinds)}) about {some(summary['objects'], 'object')} gave "
        f"{some(summary['comparisons'], 'comparison')}"
    )
    if summary["objects"]:
        ends = 3 * summary["triplets"] + 4 * summary["quadruplets"]
        text += f"; each object appears in {count(ends / summary['objects'])} comparisons on average"
    figures = {name: summary[name] for name in ("events", "objects", "comparisons")}
    yield Finding("read", f"{text}.", figures)
    if rejected:
        reasons = [f"{count(n)} {reason.replace('_', ' ')}" for reason, n in summary["rejected"].items()]
        share = percent(rejected / (events + rejected))
        text = f"{some(rejected, 'event was', 'events were')} rejected ({share}): {listed(reasons)}."
        command = f"stream-engine dead-letters show --state {facts.directory}"
        yield Finding("rejected", text, {"events": rejected, **summary["rejected"]}, command, WARNING)
    if summary["unknown_fields"]:
        text = f"Unused columns: {listed(sorted(summary['unknown_fields']))}."
        yield Finding("unused_columns", text, {"columns": len(summary["unknown_fields"])})
