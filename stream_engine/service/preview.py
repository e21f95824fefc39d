"""How a run would read the first events of files, and what a person should check. Nothing is written.

Suspicious names differ only in capitals, spaces or Unicode normalization: they are two objects to the engine, but
usually one to the person who typed them. A question is repeated if the same objects were compared before. O(number of
events).
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from shlex import quote
from statistics import median
from typing import Any

from msgspec import structs

from connectors import STORES, split_uri
from connectors.files.readers import LineNumbers, place
from stream_engine.data.comparisons import EVENT_TYPES
from stream_engine.data.suspicious_names import suspicious_names
from stream_engine.formats.event_fields import fields_of
from stream_engine.formats.options import NOT_UTF8, EventOptions
from stream_engine.formats.reading import excluding
from stream_engine.formats.wide_columns import wide_questions
from stream_engine.input.answers_in_words import answers, in_words
from stream_engine.input.decoding import Block, RecordDecoder
from stream_engine.input.first_records import first_columns, first_records
from stream_engine.input.layout_inference import PreparedSettings, command_of, examples, prepared
from stream_engine.input.settings import Settings
from stream_engine.input.sources import event_options, source, text_layout_of
from stream_engine.service.dead_letters import ENCODING, ENOUGH

FIRST = 5  # events that are shown
MAX_NAMED = 6  # columns of one field that are named
LABEL = EVENT_TYPES.index("label")
MOST_MESSAGES = 1000  # different reasons of which the first place is noted


@dataclass
class Preview:
    """The findings as JSON values; `whole`: the end of the input was reached."""

    read_as: str
    columns: list[str]
    used_as: dict[str, str] = field(default_factory=dict)  # column -> what is read from it
    ignored: list[str] = field(default_factory=list)
    first: list[str] = field(default_factory=list)
    events: int = 0
    comparisons: int = 0
    whole: bool = True
    refused: Counter[str] = field(default_factory=Counter)
    first_refused: list[str] = field(default_factory=list)
    not_utf8: int = 0  # rows
    filtered: int = 0
    objects: int = 0
    names: list[str] = field(default_factory=list)
    suspicious: list[list[str]] = field(default_factory=list)
    workers: int = 0
    questions_per_worker: list[float] = field(default_factory=list)  # least, median, most
    repeated: int = 0
    repeated_alike: int = 0
    sent_twice: str = ""  # who sent how many responses twice
    no_answers: str = ""  # the commonest value of an answer that names no object, and how to leave it out
    max_reject_ratio: float = 0.5  # above which a run stops
    evidence: list[list[str]] = field(default_factory=list)  # decision, what was decided, why
    command: str = ""  # that reads the input so
    doubt: str = ""  # why there are several readings
    readings: list[list[str]] = field(default_factory=list)  # command, and an example in words

    @property
    def rejected_share(self) -> float:
        """Of the events that are not filtered."""
        rejected = sum(self.refused.values())
        return rejected / max(1, self.events + rejected)

    @property
    def is_refused(self) -> bool:
        """Whether a run over the same events would fail."""
        enough = self.events + sum(self.refused.values()) >= ENOUGH
        return (enough and self.rejected_share > self.max_reject_ratio) or (bool(self.refused) and not self.events)


def preview(settings: Settings, most: int) -> Preview:
    """The first `most` events of the sources. Raises what a run with these settings would raise before it reads, and
    `connectors.SourceFailed`."""
    prepared_settings = prepared(settings)
    if prepared_settings.rivals:
        return _undecided(settings, prepared_settings)
    settings = prepared_settings.decided().settings
    settings = structs.replace(settings, follow=False)
    ingest = RecordDecoder(event_options(settings)._replace(provenance=True), settings.input.format)
    shown = Preview(prepared_settings.said, first_columns(settings))
    shown.used_as = _used_as(event_options(settings), shown.columns)
    shown.evidence, shown.command = [list(each) for each in prepared_settings.evidence], command_of(settings)
    lines = LineNumbers(settings.input.format, text_layout_of(settings))
    names: dict[str, None] = {}
    workers: Counter[str] = Counter()
    firsts: dict[str, str] = {}
    messages: Counter[str] = Counter()
    last_answer: dict[Any, frozenset[Any]] = {}  # question -> its last answer
    for block in _blocks(settings, ingest, shown, most):
        decoded = block.decoded
        shown.events += sum(decoded.events.values())
        shown.filtered += decoded.filtered
        shown.ignored = sorted({*shown.ignored, *decoded.unknown_fields})
        for letter in block.dead_letters:
            shown.refused[letter.reason] += 1
            shown.not_utf8 += ENCODING in letter.message
            messages[letter.message] += 1
            if messages[letter.message] == 1 and len(messages) <= MOST_MESSAGES:
                firsts[letter.message] = f"{place(letter.partition, letter.offset, lines)}: {letter.message}"
        for piece in (decoded, *decoded.rest):
            shown.comparisons += len(piece.triplets) + len(piece.quadruplets)
            names |= dict.fromkeys(piece.names)
            if piece.provenance is not None and not piece.provenance.continues:
                asked, names_of = piece.provenance.kind != LABEL, piece.provenance.workers
                workers.update(names_of[number] for number in piece.provenance.worker[asked].tolist() if number >= 0)
            for worker, answer in answers(piece):
                if len(shown.first) < FIRST:
                    shown.first.append(in_words(worker, answer))
                question, sides = _asked(answer), frozenset((frozenset(of[:2]), frozenset(of[2:])) for of in answer)
                shown.repeated += question in last_answer
                shown.repeated_alike += last_answer.get(question) == sides
                last_answer[question] = sides
    lines.close()
    commonest = [message for message, _ in messages.most_common(FIRST)]
    shown.first_refused = [firsts[message] for message in commonest if message in firsts]
    shown.no_answers = _no_answers(settings) if shown.refused else ""
    shown.sent_twice = ingest.repeats.in_words()
    shown.max_reject_ratio = settings.input.max_reject_ratio
    shown.refused = Counter(dict(shown.refused.most_common()))
    shown.objects, shown.names, shown.suspicious = len(names), list(names)[:20], suspicious_names(names)
    numbers = sorted(workers.values())
    shown.workers = len(numbers)
    shown.questions_per_worker = [numbers[0], median(numbers), numbers[-1]] if numbers else []
    return shown


def _no_answers(settings: Settings) -> str:
    """The commonest value of the answers that is neither a code nor an object, and how to leave it out."""
    events, records = settings.input, first_records(settings)
    answer = next((field for field in ("chosen", "odd", "central") if field in events.columns), "")
    if "|" in events.columns.get(answer, "|") or events.columns[answer] not in records.columns:
        return ""
    objects = {
        text
        for name in "|".join(events.columns.values()).split("|")
        if name in records.columns and name != events.columns[answer]
        for text in records.columns[name].items
    }
    names = {*events.codes.get(answer, ()), *records.columns} | objects
    texts = Counter(records.columns[events.columns[answer]].texts)
    unknown = [(n, text) for text, n in texts.items() if text and text not in names and not text.isdecimal()]
    n, value = max(unknown, default=(0, ""))
    return f"{n:,} are {value!r}: leave them out with --where '{events.columns[answer]}!={value}'" if n > 1 else ""


def _undecided(settings: Settings, prepared_settings: PreparedSettings) -> Preview:
    """The readings that fit equally well, each with its command."""
    shown = Preview("", first_columns(settings), doubt=prepared_settings.doubt)
    shown.evidence = [list(each) for each in excluding(prepared_settings.evidence)]
    shown.readings = [[command_of(each), *examples(each, 1)] for each in prepared_settings.rivals]
    return shown


def _blocks(settings: Settings, ingest: RecordDecoder, shown: Preview, most: int) -> Iterator[Block]:
    """Blocks of the files until `most` events were read."""
    for uri in settings.source:
        if split_uri(uri)[0] not in ("file", *STORES):
            continue
        with closing(source(settings, uri, {})) as opened:
            while not opened.finished():
                yield from ingest.blocks(opened.poll(1.0))
                if shown.events >= most:
                    shown.whole = opened.finished()
                    break
        if not shown.whole:
            return


def _asked(answer: list[tuple[str, ...]]) -> Any:
    """The question that an event of these comparisons answers, regardless of the answer.

    >>> odd_is_c, odd_is_a = [("a", "b", "c"), ("b", "a", "c")], [("b", "c", "a"), ("c", "b", "a")]
    >>> _asked(odd_is_c) == _asked(odd_is_a), _asked([("a", "b", "c")]) == _asked([("a", "c", "b")])
    (True, True)
    >>> _asked([("a", "b", "c")]) == _asked([("b", "a", "c")])
    False
    """
    if len(answer[0]) == 4:
        return frozenset([frozenset(answer[0][:2]), frozenset(answer[0][2:])])
    anchors = {comparison[0] for comparison in answer}
    return anchors.pop() if len(anchors) == 1 else "", frozenset(name for comparison in answer for name in comparison)


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
        "columns": _columns(shown),
        "not used": ", ".join(name for name in shown.columns if name not in shown.used_as),
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


ROLES = {  # fields of events whose names do not say what they are
    "worker": "participant",
    "time": "time of the answer",
    "seconds": "response time in seconds",
    "milliseconds": "response time in milliseconds",
}


def _used_as(options: EventOptions, names: list[str]) -> dict[str, str]:
    """What is read from each column that is used: a field of an event, or a filter."""
    roles: dict[str, dict[str, None]] = {name: {} for name in names}
    for question in wide_questions(options, names):
        event_fields = fields_of(question.options)
        filters = {each.source: "filter" for each in event_fields.where}
        mapped = {name: role for role, inputs in question.options.columns.items() for name in inputs}
        own = {name: name for name in event_fields.inputs - filters.keys()}
        for name, role in (*{**own, **mapped}.items(), *filters.items()):
            if name in roles and not (role == "filter" and roles[name]):  # also what it answers is filled
                roles[name][ROLES.get(role, role)] = None
    return {name: " and ".join(each) for name, each in roles.items() if each}


def _columns(shown: Preview) -> str:
    """What is read, each with its columns."""
    names: dict[str, list[str]] = {}
    for name, role in shown.used_as.items():
        names.setdefault(role, []).append(name)
    more = {role: f" and {len(each) - MAX_NAMED:,} more" * (len(each) > MAX_NAMED) for role, each in names.items()}
    return "; ".join(f"{role}: {', '.join(each[:MAX_NAMED])}{more[role]}" for role, each in names.items())


def _people(shown: Preview) -> str:
    if not shown.workers:
        return ""
    minimum, middle, maximum = shown.questions_per_worker
    if minimum == maximum:
        return f"{shown.workers:,}, {maximum:,} questions each"
    return f"{shown.workers:,}, {minimum:,} to {maximum:,} questions each (median {middle:,g})"
