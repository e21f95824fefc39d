"""What was read, and what was rejected and why; whether all objects were compared with each other, directly or through
others, by more than a few questions (`evaluation.connection`); what is missing for further results, with the
command that provides it.

Who is excluded from everything else that is said, and what that changed (`state.exclusion`).
"""

import shlex
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from stream_engine.clustering.sentence import are_separated
from stream_engine.data.numbers_in_words import amount
from stream_engine.evaluation.few_comparisons import MIN_COMPARISONS
from stream_engine.evaluation.responses import are_held_out_by_screen
from stream_engine.formats.event_fields import NO_COLUMN
from stream_engine.formats.record_filters import filters_as_text
from stream_engine.report.findings import GAP, RESULT, WARNING, Finding
from stream_engine.report.findings.facts import Commands, Facts
from stream_engine.report.findings.times import times
from stream_engine.report.findings.words import count, listing, percent
from stream_engine.state.artifact import figure
from stream_engine.state.exclusion import FIELD, excluded_of
from stream_engine.state.merging import are_of_screens, are_of_three

MAX_FILTERED = 60  # objects that a filter names one by one
MANY_UNANSWERED = 0.1  # share of rows without an answer, from which it is a problem
MAX_NAMED = 20  # participants that a command names one by one


def gaps(facts: Facts) -> Iterator[Finding]:
    """Refits that were not made, or of an earlier snapshot; models that are not in the table."""
    summary, artifacts = facts.summary, facts.published.artifacts
    if not summary["comparisons"]:
        yield Finding("no_comparisons", "No comparison has been counted yet.", level=GAP)
        return
    for kind, what in (("embedding", "There is no map"), ("clusters", "Groups were not looked for")):
        if kind not in artifacts:
            text = f"{what} yet. {facts.commands.awaited}" if facts.commands.in_use else f"{what}."
            yield Finding(f"no_{kind}", text, command=facts.commands.refit(kind), level=GAP)
    if old := [kind for kind, artifact in artifacts.items() if artifact.sequence < summary["snapshot"]]:
        text = f"Fitted to an earlier snapshot, without the newest answers: {', '.join(old)}."
        yield Finding("earlier_snapshot", text, {"refits": len(old)}, level=GAP)
    if without := facts.models_left_out:
        yield Finding("models_left_out", f"Not in the table of models: {without}.", level=GAP)


def connected(facts: Facts) -> Iterator[Finding]:
    """A warning where the objects fall into sets that were never compared with each other, or by few questions."""
    if not facts.summary["comparisons"]:
        return
    set_of = facts.sets
    if set_of is None:
        return
    sizes = np.bincount(set_of[set_of >= 0])
    if len(sizes) > 1:
        names = facts.published.snapshot.objects
        named = len(sizes) - 1 if sizes[-1] < sizes[-2] else 0  # the command reads the answers about the first one
        small = [names[i] for i in np.flatnonzero(set_of == named).tolist()]
        each_size = listing([count(n) for n in sizes.tolist()])
        which = "the smallest" if sizes[-1] < sizes[-2] else "one of them"
        text = (
            f"The objects fall into {len(sizes)} sets, of {each_size} objects, that {facts.apart}; {which}: "
            f"{listing(small, 3)}. Distances between sets are unknown, and nothing is said about them. "
            "Ask questions that span them (those under What to ask next do), or analyze one set at a time."
        )
        figures = {"sets": len(sizes), "sizes": sizes.tolist(), "questions_across": facts.questions_across}
        yield Finding("disconnected", text, figures, _largest_set_alone(facts, set_of), WARNING)
    elif (joining := facts.joined_by_one_object) and not facts.too_few[joining.smaller].any():
        name, others = facts.published.snapshot.objects[joining.object], joining.smaller
        text = f"{name} alone joins {amount(len(others), 'object')} ("
        text += f"{listing([facts.published.snapshot.objects[i] for i in others], 3)}) with the others: without it, no "
        text += (
            "question is about objects of both. How the two sets lie to each other rests on it alone. Ask questions "
        )
        yield Finding("joined_by_one", f"{text}that span them.", {"objects": len(others)}, level=WARNING)
    if never := int((set_of < 0).sum()):
        yield Finding(
            "never_compared",
            f"{amount(never, 'object has', 'objects have')} no comparison.",
            {"objects": never},
            level=WARNING,
        )


def few_comparisons(facts: Facts) -> Iterator[Finding]:
    """A warning about objects with too few comparisons to be placed."""
    if not facts.summary["comparisons"]:
        return
    few = np.flatnonzero(facts.too_few)
    if len(few):
        names = [facts.published.snapshot.objects[i] for i in few.tolist()]
        text = (
            f"{amount(len(few), 'object has', 'objects have')} fewer than {MIN_COMPARISONS} comparisons, too few to be "
        )
        text += f"placed: {listing(names)}. "
        text += (
            "Its place on the map, its neighbours and its group are uncertain. Ask about it first."
            if len(few) == 1
            else "Their places on the map, their neighbours and their groups are uncertain. Ask about these first."
        )
        ask = facts.on_a_state(f"stream-engine ask --state {facts.commands.state} --n 100")
        yield Finding("few_comparisons", text, {"objects": len(few)}, ask, WARNING)


def _largest_set_alone(facts: Facts, set_of: np.ndarray) -> str:
    """The command that reads only the answers about the largest set; "" where no filter on one column says that."""
    names, source = facts.published.snapshot.objects, facts.sources
    largest, others = (np.flatnonzero(which).tolist() for which in (set_of == 0, set_of > 0))
    comparison, listed = ("=", largest) if len(largest) <= len(others) else ("!=", others)
    column, texts = _object_column(facts), [names[i] for i in listed]
    if not column or not source or len(texts) > MAX_FILTERED or any("|" in text for text in texts):
        return ""
    filter_text = shlex.quote(f"{column}{comparison}{'|'.join(texts)}")
    return f"{facts.commands.typed or f'stream-engine report {source}'} --where {filter_text}"


def _object_column(facts: Facts) -> str:
    """A column that names one object of every answer, by the options that the state remembers; "" where it knows
    none."""
    options = facts.published.snapshot.counters.get("input", {}).get("options") or {}
    columns, kind = (options.get(key) if isinstance(options, dict) else None for key in ("columns", "type"))
    columns = columns if isinstance(columns, dict) else {}
    kinds = {kind} if kind else set(facts.summary["kinds"])  # without a type: those of the events themselves
    if "anchor" in columns or (kinds and kinds <= set(ANCHORED)):
        anchor = str(columns.get("anchor", "anchor"))
        return "" if "|" in anchor else anchor  # of several questions in a row
    first, *others = str(columns.get("objects", "")).split("|")
    return first if others else ""


ANCHORED = ("triplet", "pick", "pick_farthest", "ranking")  # types of events with a field `anchor`
KINDS = {"odd_one_out": "odd-one-out", "most_central": "most-central"}


def read(facts: Facts) -> Iterator[Finding]:
    """Events, objects and comparisons; rejected events; columns that were not used."""
    summary = facts.summary
    rejected, events = sum(summary["rejected"].values()), summary["events"]
    if not events and not rejected:
        yield Finding("read", "No data yet: this page fills as answers arrive.", {"events": 0})
        return
    named = {KINDS.get(kind, kind): n for kind, n in summary["kinds"].items() if kind != "label"}
    kinds = [f"{count(n)} {kind}" for kind, n in named.items()] if len(named) > 1 else list(named)
    answers = events - summary["kinds"].get("label", 0)
    what = amount(answers, "answer") + (f" ({listing(kinds)})" if kinds else "")
    comparisons, objects = amount(summary["comparisons"], "comparison"), amount(summary["objects"], "object")
    text = f"{what} about {objects} gave {comparisons}"
    if summary.get("forgotten"):
        text = f"{what} were read and some deleted since; {comparisons} of {objects} remain"
    elif facts.published.excluded:
        text = f"{what} were read; without those who are excluded, {comparisons} of {objects} remain"
    if summary["objects"]:
        ends = 3 * summary["triplets"] + 4 * summary["quadruplets"]
        text += f"; each object appears in {amount(round(ends / summary['objects']), 'comparison')} on average"
    figures = {name: summary[name] for name in ("events", "objects", "comparisons")}
    yield Finding("read", f"{text}." if rejected else f"{text}. None was rejected.", figures)
    for doubt in facts.commands.doubts:
        if not any(f"!={name}" in doubt for name in facts.published.excluded):  # the filter that would leave them out
            yield Finding("doubtful_rows", f"Rows in doubt: {doubt}.", level=WARNING)
    if rejected:
        reasons = [f"{count(n)} {_reason(reason)}" for reason, n in summary["rejected"].items()]
        share = percent(rejected / (events + rejected))
        text = f"{amount(rejected, 'event was', 'events were')} rejected ({share}): {listing(reasons)}."
        command = "" if facts.commands.typed else f"stream-engine dead-letters show --state {facts.commands.state}"
        yield Finding("rejected", text, {"events": rejected, **summary["rejected"]}, command, WARNING)
    if repeated := summary.get("repeated"):
        text = (
            f"{amount(repeated, 'response was', 'responses were')} sent twice: the same participant, times and answer"
        )
        dropped = facts.copies_dropped > 0
        typed = "" if dropped else facts.commands.typed
        again = (
            "A report with --drop-duplicates" if facts.commands.typed else "A run with --drop-duplicates --start-over"
        )
        text += "; the copies were dropped." if dropped else f". {again} counts each once."
        text += " The other commands on this page do so, too." if typed else ""
        yield Finding("sent_twice", text, {"responses": repeated}, typed, RESULT if dropped else WARNING)
    if summary["filtered"]:
        n_rows = summary["filtered"] + events + rejected
        without_copies = summary["filtered"] - facts.copies_dropped
        share, unanswered = without_copies / n_rows, without_copies and _only_unanswered(facts)
        text = excluded_rows(facts)
        if unanswered:
            text = f"{count(without_copies)} of {amount(n_rows, 'row')} ({percent(share)}) have no answer "
            text += f"({unanswered} is empty) and were excluded."
            text += f" {excluded_rows(facts)}" if facts.copies_dropped else ""
        many = unanswered and share >= MANY_UNANSWERED
        text += " Check that the file holds all answers." if many else ""
        yield Finding("filtered", text, {"rows": summary["filtered"]}, level=WARNING if many else RESULT)
    if summary["unknown_fields"]:
        text = f"Unused columns: {listing(sorted(summary['unknown_fields']))}."
        yield Finding("unused_columns", text, {"columns": len(summary["unknown_fields"])})
    if are_of_screens(facts.published.snapshot.counters):
        text = "Rows were read as comparisons of screens, which depend on each other: "
        if are_held_out_by_screen(facts.published.snapshot):
            about = "the same three objects" if are_of_three(facts.published.snapshot.counters) else "an anchor"
            text += f"all answers of a participant about {about} are held out together. If each row was answered by "
            yield Finding("screens", f"{text}itself, add screen=- to --columns.")
        else:
            text += "no participant is named, so they count as independent, standard errors are too small, and the "
            text += "accuracy is too high. Read one row for each screen (--type pick or ranking), or name participants."
            yield Finding("screens", text, level=WARNING)
    columns = facts.read_as.get("columns")
    if isinstance(columns, dict) and columns.get("time") == NO_COLUMN and "time" in summary["unknown_fields"]:
        text = (
            "Column time was not used, because its values are not RFC 3339 (2024-05-01T12:00:00Z) or epoch seconds, or "
        )
        yield Finding("unused_time", f"{text}because --columns says time=-: answers have no time.")
    yield from times(facts)


def excluded_rows(facts: Facts) -> str:
    """How many rows were excluded, and why; copies of answers that were dropped are counted by themselves. Copies of
    catch trials are catch trials."""
    n, copies = facts.summary["filtered"], facts.copies_dropped
    if not copies or n < copies:
        return f"{amount(n, 'row was', 'rows were')} excluded{_why_filtered(facts)}."
    of_answers = amount(copies, "copy of an answer", "copies of answers")
    if n == copies:
        return f"{amount(n, 'row was', 'rows were')} excluded ({of_answers})."
    others = f"{amount(n - copies, 'other')}{_why_filtered(facts)}"
    return f"{count(n)} rows were excluded: {of_answers} and {others}."


def _why_filtered(facts: Facts) -> str:
    """The filters of the options that the state remembers, and catch trials; "" where it knows none."""
    options = facts.published.snapshot.counters.get("input", {}).get("options") or {}
    where, columns = (options.get(key) if isinstance(options, dict) else None for key in ("where", "columns"))
    reasons = [filters_as_text(where)] if isinstance(where, dict) and where else []
    catch = "catch trials, with any copies of them" if facts.copies_dropped else "catch trials"
    reasons += [catch] if isinstance(columns, dict) and "catch" in columns else []
    return f" ({' or '.join(reasons)})" if reasons else ""


def _reason(code: str) -> str:
    """Why events were rejected, and what that means where the code alone does not say it."""
    meaning = {"not_shown": " (the answer is none of the objects shown)"}
    return f"{code.replace('_', ' ')}{meaning.get(code, '')}"


def _only_unanswered(facts: Facts) -> str:
    """The column of answers, where rows in which it is empty are all that filters exclude; "" otherwise."""
    options = facts.published.snapshot.counters.get("input", {}).get("options") or {}
    where, columns = (options.get(key) if isinstance(options, dict) else None for key in ("where", "columns"))
    if not isinstance(columns, dict) or "catch" in columns:
        return ""
    chosen = str(columns.get("chosen", "chosen"))
    return chosen if where in ({f"{chosen}!": ""}, {f"{chosen}!=": ""}) else ""


def excluded(facts: Facts) -> Iterator[Finding]:
    """The participants who are excluded, and accuracy, map and clusters with and without them."""
    names, artifacts = facts.published.excluded, facts.published.artifacts
    if names:
        are = "is" if len(names) == 1 else "are"
        text = f"{amount(len(names), 'participant')} {are} excluded: {listing(list(names))}."
        changes = [*_changes(facts.report("embedding")), *_changes(facts.cluster_answer)]
        text += f" Compared with the fit {_former_participants(facts)}: {'; '.join(changes)}." if changes else ""
        yield Finding("excluded", *included_again(text, names, facts.commands, {"names": list(names)}))
    old = [kind for kind, artifact in artifacts.items() if excluded_of(artifact) != names]
    if old:
        text = f"Fitted with other participants than are included now: {', '.join(old)}."
        yield Finding("fitted_with_others", text, {"refits": len(old)}, facts.commands.refit(old[0]), GAP)


def included_again(
    text: str, names: Sequence[str], commands: Commands, figures: dict[str, Any]
) -> tuple[str, dict[str, Any], str]:
    """The text with how long an exclusion lasts, the figures, and the command that ends it."""
    if commands.typed:
        return f"{text} The same command without --exclude includes everybody.", figures, ""
    every = [f"--include {shlex.quote(f'participant={name}')}" for name in names]
    if len(names) > MAX_NAMED:
        text, every = f"{text} FILE: their names, one per line.", ["--include participant=@FILE"]
    lasting = "A state keeps this: later commands on it exclude them, too, until they are included again"
    return f"{text} {lasting}.", figures, f"{commands.report} {' '.join(every)}"


def _former_participants(facts: Facts) -> str:
    """Whom the fit before was of."""
    change = facts.report("embedding").get(FIELD) or facts.report("clusters").get(FIELD)
    before = change.get("before") if isinstance(change, Mapping) else None
    names = before.get("participants") if isinstance(before, Mapping) else None
    return f"without {listing(list(map(str, names)))}" if names else "to everybody"


def _changes(report: Mapping[str, Any]) -> Iterator[str]:
    change = report.get(FIELD)
    before = change.get("before") if isinstance(change, Mapping) else None
    if not isinstance(before, Mapping):
        return
    now, then = figure(report, "accuracy"), figure(before, "accuracy")
    if now is not None and then is not None:
        yield f"the embedding predicts {percent(now)} of held-out comparisons correctly, {percent(then)} before"
    if (r := figure(before, "distance_correlation")) is not None:
        yield f"distances on the two maps correlate by {r:.2f}"
    if "grade" in before:
        same = figure(before, "ari")
        agree = "" if same is None else f" (adjusted Rand index of the two partitions {same:.2f})"
        yield f"groups: {_grade(report)}, before: {_grade(before)}{agree}"


def _grade(figures: Mapping[str, Any]) -> str:
    """The grade of groups, with their number where they are separated."""
    return (
        f"{figure(figures, 'k') or 0:.0f}, {figures['grade']}" if are_separated(figures) else str(figures.get("grade"))
    )
