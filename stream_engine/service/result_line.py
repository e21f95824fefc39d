"""The last line of a run, for people: events read and rejected, reasons and locations, results of refits, next step."""

import os
from collections import Counter
from collections.abc import Mapping
from typing import Any, NamedTuple

from connectors import split_uri
from stream_engine.data.numbers_in_words import amount
from stream_engine.data.suspicious_names import suspicious_names
from stream_engine.exports.models import COUNTS_TOLD, MIN_HELD_OUT
from stream_engine.formats.record_filters import filters_as_text
from stream_engine.input.settings import Settings
from stream_engine.input.stored_options import as_arguments
from stream_engine.report.findings import Findings, findings, warnings
from stream_engine.report.findings.facts import Commands, Facts
from stream_engine.report.findings.words import three_decimals
from stream_engine.service.dead_letters import folder_of
from stream_engine.service.open_run import OpenRun
from stream_engine.state.artifact import figure
from stream_engine.state.store import Store

ANSWERS = {"answer", "answered", "choice", "chosen", "picked", "response", "said", "selected"}  # columns, any case


class CountersBefore(NamedTuple):
    """The counters of the state when the run began."""

    records: int
    events: int
    comparisons: int
    rejected: Mapping[str, int]
    filtered: int
    repeated: int


def counters_of(run: OpenRun) -> CountersBefore:
    """The counters of the state now."""
    counters = run.learning.engine.counters
    return CountersBefore(
        counters["records"],
        counters["events"],
        counters["comparisons"],
        dict(counters["rejected"]),
        counters["filtered"],
        counters.get("repeated", 0),
    )


def result_line(
    run: OpenRun, counters_before: CountersBefore, failed: Mapping[str, str], findings_now: Findings
) -> str:
    """The outcome of a run; `failed` has the reason of each failed refit, by kind; of the findings `findings_now`,
    exclusions and the answer about clusters are included."""
    counters_now = counters_of(run)
    sources = _sources(run)
    if (
        counters_now.records == counters_before.records
        and not run.context.requests.stop
        and run.learning.engine.positions
    ):
        return (
            f"nothing new{_of(sources, 'in')}{_read_before(run)}: the state has read "
            f"{amount(counters_now.events, 'event')} in total (snapshot {run.learning.engine.sequence}); "
            "to read everything again: --start-over"
        )
    rejected_now = Counter(counters_now.rejected)
    rejected_now.subtract(counters_before.rejected)
    parts = [
        f"{_not_read(run)}{amount(counters_now.events - counters_before.events, 'event')}{_of(sources)} read: "
        f"{amount(counters_now.comparisons - counters_before.comparisons, 'comparison')}{_remaining(run)}",
        f"{sum(rejected_now.values()):,} rejected{_why(run, +rejected_now)}",
    ]
    if counters_now.filtered > counters_before.filtered:
        copies = counters_now.repeated - counters_before.repeated if run.settings.input.drop_duplicates else 0
        n_rows = counters_now.filtered - counters_before.filtered
        others = [f"{n_rows - copies:,} {_filters(run.settings)}"] if n_rows > copies else []
        reasons = (
            [f"{amount(copies, 'copy of an answer', 'copies of answers')}", *others]
            if copies
            else [_filters(run.settings)]
        )
        parts.append(f"{n_rows:,} excluded ({', '.join(reasons)})")
    models = f"{_fitted_models(run, failed)}{_unused_answer_column(run)}"
    outcomes = [
        finding
        for topic in ("excluded", "clusters")
        for finding in findings_now.get(topic, ())
        if finding.what == topic
    ]
    also = "".join(f"; {finding.text.rstrip('.')}" for finding in outcomes)
    parts.append(f"{amount(len(run.learning.engine.objects), 'object')}; {models}{also}; next: {_next(run)}")
    return ", ".join(parts)


def cautions(run: OpenRun) -> list[str]:
    """What a person should check about the answers that were read: names that may be one object, responses that were
    sent twice, files that may be participants."""
    groups = suspicious_names(run.learning.engine.objects.names)
    examples = ", ".join(" and ".join(map(repr, group)) for group in groups[:3])
    texts = [
        f"objects differ only in capitals, spaces, invisible characters or Unicode form: {examples}" if groups else ""
    ]
    texts.append(run.reading.ingest.repeats.in_words())
    texts.append(run.reading.ingest.files_in_words())
    return [text for text in texts if text]


def warned(findings_now: Findings) -> list[str]:
    """What is wrong with the data, a line each with what to type about it; rejected events and copies are told where
    they are counted."""
    wrong = [finding for finding in warnings(findings_now) if finding.what not in ("rejected", "sent_twice")]
    return [f"{finding.text} Next: {finding.command}" if finding.command else finding.text for finding in wrong]


def _filters(settings: Settings) -> str:
    """Why rows that are no copies were excluded: filters, or because they are catch trials."""
    reasons = [filters_as_text(settings.input.where)] if settings.input.where else []
    return " or ".join([*reasons, *(["catch trials"] if "catch" in settings.input.columns or not reasons else [])])


def _sources(run: OpenRun) -> list[str]:
    """What was read, by name: the sources, and the file of labels."""
    uris = [*run.settings.source, *filter(None, [run.settings.input.labels])]
    return [os.path.basename(address) or uri for uri in uris for _, address in [split_uri(uri)]]


def _of(sources: list[str], word: str = "of") -> str:
    if not sources:
        return ""
    return f" {word} {', '.join(sources[:3])}" + (f" and {len(sources) - 3} more" if len(sources) > 3 else "")


def _read_before(run: OpenRun) -> str:
    """The options that the state was created with, if known; a sum of states with different options has none."""
    newest = run.publishing.published.newest
    options = newest.snapshot.counters.get("input", {}).get("options") if newest else None
    return f", read with {as_arguments(options)}" if isinstance(options, dict) else ""


def _remaining(run: OpenRun) -> str:
    """How many comparisons of the state models are fitted to, where participants are excluded."""
    newest = run.publishing.published.newest
    if newest is None or not newest.excluded:
        return ""
    return f" ({newest.snapshot.counters['comparisons']:,} in total without the excluded participants)"


def _why(run: OpenRun, by_reason: Mapping[str, int]) -> str:
    if not by_reason:
        return ""
    sorted_reasons = sorted(by_reason.items(), key=lambda item: (-item[1], item[0]))
    reasons = ", ".join(f"{n:,} {reason}" for reason, n in sorted_reasons)
    first = f"; first: {run.learning.dead_letters.first}" if run.learning.dead_letters.first else ""
    counters, folder = run.learning.engine.counters, folder_of(run.settings, run.directory)
    n_missing = sum(counters["dead_letters"].get(name, 0) for name in ("removed", "lost"))
    n_stored = sum(counters["rejected"].values()) - n_missing
    where = f"the last {n_stored:,} in {folder}, {n_missing:,} are removed" if n_missing else f"all in {folder}"
    return f" ({reasons}{first}; {where})"


def _not_read(run: OpenRun) -> str:
    """Comes first: rows in another encoding were not read, even if the run read most of the file."""
    rows = run.learning.dead_letters.not_utf8
    if not rows:
        return ""
    fact = f"{amount(rows, 'row')} {'was' if rows == 1 else 'were'} not read, because the encoding is not UTF-8; "
    how = f"run again with --start-over {run.learning.dead_letters.encoding}"
    return f"{fact}objects that occur only there are missing: {how}; "


def _unused_answer_column(run: OpenRun) -> str:
    """A hint if an unused column seems to hold the answers: `near` and `far` may then be what was shown."""
    counters = run.learning.engine.counters
    names = [name for name in counters["unknown_fields"] if name.casefold() in ANSWERS]
    if not names or set(counters["kinds"]) - {"triplet"}:
        return ""
    return (
        f"; column {names[0]} was not read: if it holds the answer, use --type pick --columns "
        f"anchor=...,shown=...|...,chosen={names[0]}"
    )


def _fitted_models(run: OpenRun, failed: Mapping[str, str]) -> str:
    newest = run.publishing.published.newest
    if newest is None or not run.settings.refits.all_kinds:
        return "nothing fitted"
    artifacts = {
        kind: artifact for kind, artifact in newest.artifacts.items() if artifact.snapshot == newest.snapshot.digest
    }
    texts = [f"{kind}{_accuracy(artifact.report)}" for kind, artifact in artifacts.items()]
    texts += [f"{kind} failed ({why})" for kind, why in failed.items() if kind not in artifacts]
    return f"fitted: {', '.join(texts)}" if texts else "nothing fitted"


def _accuracy(report: Mapping[str, Any]) -> str:
    accuracy = (
        figure(report, "accuracy") if (figure(report, "held_out_comparisons") or MIN_HELD_OUT) >= MIN_HELD_OUT else None
    )
    return "" if accuracy is None else f" (accuracy {three_decimals(accuracy)})"


def findings_of(run: OpenRun, typed: str = "") -> Findings:
    """The findings about the newest snapshot, once models were fitted to it; empty before. `typed`: a report command
    that has read the sources."""
    newest = run.publishing.published.newest
    if newest is None or not run.settings.refits.all_kinds or not newest.artifacts:
        return {}
    options = newest.snapshot.counters.get("input", {}).get("options")
    read_by = as_arguments(options) if isinstance(options, dict) and options else ""
    commands = Commands("DIR" if typed else str(run.settings.state), typed, read_by=read_by)  # typed: a passing state
    return findings(Facts(newest, commands, Store(run.directory).noted(COUNTS_TOLD)))


def _next(run: OpenRun) -> str:
    if not run.learning.engine.objects:
        return "check the sources and --where, as no answer was read"
    return f"stream-engine report --state {run.settings.state} --out report.html"
