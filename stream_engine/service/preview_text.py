"""A preview as text for people."""

from collections.abc import Mapping
from shlex import quote

from stream_engine.data.numbers_in_words import amount
from stream_engine.service.preview import Preview


def as_text(result: Preview, source: str) -> str:
    """The preview as text for people."""
    if result.readings:
        lines = [source, f"  {result.doubt}; nothing is read until you choose:"]
        for keeps_state, example, report in result.readings:
            lines += [f"    {example}:", f"      {report or keeps_state}"]
            lines += [f"      or, to keep a state: {keeps_state}"] if report else []
        lines += [
            f"  rows that this excludes: --where {quote(excluded)}, {why}" for _, excluded, why in result.evidence
        ]
        lines += [f"  warning: {notice}" for notice in result.notices]
        return "\n".join([*lines, "nothing was written"])
    extent = "whole input" if result.whole else "beginning of the input"
    rows: Mapping[str, str] = {
        "read as": result.read_as.removeprefix("read as "),
        "columns": _columns(result),
        "not used": ", ".join(name for name in result.columns if name and name not in result.used_as),
        "events": f"{result.events:,} ({extent}), {amount(result.comparisons, 'comparison')}"
        + (f"; {amount(result.filtered, 'further one')} excluded" if result.filtered else ""),
        "rejected": ", ".join(f"{n:,} {reason}" for reason, n in result.refused.items()),
        "encoding": f"{amount(result.not_utf8, 'row is', 'rows are')} not UTF-8, and not read; specify "
        f"{result.encoding}"
        if result.not_utf8
        else "",
        "objects": f"{result.objects:,}: " + ", ".join(result.names) + (", …" if result.objects > 20 else ""),
        "sets": _sets(result),
        "suspicious": ", ".join(" and ".join(f'"{name}"' for name in group) for group in result.suspicious),
        "participants": _participants(result),
        "repeated": f"{amount(result.repeated, 'repetition')} of questions, {result.repeated_alike:,} answered as "
        "before"
        if result.repeated
        else "",
        "warning": "; ".join(result.notices),
        "sent twice": result.sent_twice,
        "a run": f"would stop: {result.rejected_share:.0%} of the events are rejected" if result.is_refused else "",
        "no answers": result.no_answers,
    }
    lines = [source, *(f"  {name:13}{text}" for name, text in rows.items() if text)]
    width = max((len(entry[0]) for entry in result.evidence), default=0)
    extent = f" (from the first {result.examined:,} rows only)" if result.examined else ""
    lines += [f"  evidence{extent}:"] if result.evidence else []
    lines += [f"    {decision:{width}}  {excluded}: {why}" for decision, excluded, why in result.evidence]
    lines += ["  first events:", *(f"    {entry}" for entry in result.first)] if result.first else []
    lines += ["  first rejected:", *(f"    {entry}" for entry in result.first_refused)] if result.first_refused else []
    return "\n".join([*lines, *_command(result), "nothing was written"])


def _command(result: Preview) -> list[str]:
    """The commands that read the input so, or those that the file suggests, where these options read little of it: of a
    report first, which needs no state."""
    if not result.command:
        return []
    head = "try instead" if result.is_refused else "command"
    if not result.report:
        return [f"  {head:13}{result.command}"]
    return [f"  {head:13}{result.report}", f"  {'':13}or, to keep a state: {result.command}"]


def _sets(result: Preview) -> str:
    """That objects fall into sets, if they do."""
    if len(result.sets) < 2:
        return ""
    sizes = " and ".join(f"{size:,}" for size in result.sets)
    if len(result.sets) > 2:
        more = ", …" if len(result.sets) > MAX_NAMED else ""
        sizes = ", ".join(f"{size:,}" for size in result.sets[:MAX_NAMED]) + more
    so_far = "" if result.whole else " so far"
    return (
        f"the objects fall into {len(result.sets):,} sets, of {sizes} objects, that were never compared with each "
        f"other{so_far}: distances between sets will be unknown"
    )


MAX_NAMED = 6  # columns of one field that are named


def _columns(result: Preview) -> str:
    """What is read, each with its columns."""
    names: dict[str, list[str]] = {}
    for name, role in result.used_as.items():
        names.setdefault(role, []).append(name)
    more = {
        role: f" and {len(columns) - MAX_NAMED:,} more" * (len(columns) > MAX_NAMED) for role, columns in names.items()
    }
    return "; ".join(f"{role}: {', '.join(columns[:MAX_NAMED])}{more[role]}" for role, columns in names.items())


def _participants(result: Preview) -> str:
    if not result.workers:
        return ""
    minimum, middle, maximum = result.questions_per_worker
    if minimum == maximum:
        return f"{result.workers:,}, {amount(maximum, 'question')} each"
    return f"{result.workers:,}, {minimum:,} to {maximum:,} questions each (median {middle:,g})"
