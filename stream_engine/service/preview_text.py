"""A preview as text for people."""

from collections.abc import Mapping
from shlex import quote

from stream_engine.formats.options import NOT_UTF8
from stream_engine.service.preview import Preview


def as_text(shown: Preview, where: str) -> str:
    """The preview as text for people."""
    if shown.readings:
        lines = [where, f"  {shown.doubt}; nothing is read until you choose:"]
        lines += [f"    {line}" for each in shown.readings for line in each]
        lines += [f"  rows that this excludes: --where {quote(excluded)}, {why}" for _, excluded, why in shown.evidence]
        return "\n".join([*lines, "nothing was written"])
    of = "whole input" if shown.whole else "beginning of the input"
    rows: Mapping[str, str] = {
        "read as": shown.read_as.removeprefix("read as "),
        "columns": ", ".join(shown.columns),
        "ignored": ", ".join(shown.ignored),
        "events": f"{shown.events:,} ({of}), {shown.comparisons:,} comparisons"
        + (f", {shown.filtered:,} excluded" if shown.filtered else ""),
        "rejected": ", ".join(f"{n:,} {reason}" for reason, n in shown.refused.items()),
        "encoding": f"{shown.not_utf8:,} rows are not read, because they are {NOT_UTF8}" if shown.not_utf8 else "",
        "objects": f"{shown.objects:,}: " + ", ".join(shown.names) + (", …" if shown.objects > 20 else ""),
        "suspicious": ", ".join(" and ".join(f'"{name}"' for name in group) for group in shown.suspicious),
        "participants": _people(shown),
        "repeated": f"{shown.repeated:,} questions, {shown.repeated_alike:,} of them with the same answer"
        if shown.repeated
        else "",
        "sent twice": shown.sent_twice,
        "a run": f"would stop: {shown.rejected_share:.0%} of the events are rejected" if shown.is_refused else "",
        "no answers": shown.no_answers,
    }
    lines = [where, *(f"  {name:13}{text}" for name, text in rows.items() if text)]
    width = max((len(each[0]) for each in shown.evidence), default=0)
    lines += ["  evidence:"] if shown.evidence else []
    lines += [f"    {decision:{width}}  {excluded}: {why}" for decision, excluded, why in shown.evidence]
    lines += ["  first events:", *(f"    {each}" for each in shown.first)] if shown.first else []
    lines += ["  first rejected:", *(f"    {each}" for each in shown.first_refused)] if shown.first_refused else []
    return "\n".join([*lines, f"  command      {shown.command}", "nothing was written"])


def _people(shown: Preview) -> str:
    if not shown.workers:
        return ""
    minimum, middle, maximum = shown.questions_per_worker
    if minimum == maximum:
        return f"{shown.workers:,}, {maximum:,} questions each"
    return f"{shown.workers:,}, {minimum:,} to {maximum:,} questions each (median {middle:,g})"
