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
from stream_engine.data.suspicious_names import suspicious_names
from stream_engine.formats.options import NOT_UTF8
from stream_engine.formats.reading import excluding
from stream_engine.service.dead_letters import ENCODING, ENOUGH
from stream_engine.service.inferred import (
    PreparedSettings,
    answers,
    command_of,
    examples,
    first_columns,
    first_records,
    in_words,
    prepared,
)
from stream_engine.service.ingest import Block, Ingest
from stream_engine.service.settings import Settings
from stream_engine.service.sources import event_options, source, text_layout_of

FIRST = 5  # events that are shown
MOST_MESSAGES = 1000  # different reasons of which the first place is noted


@dataclass
class Preview:
    """The findings as JSON values; `whole`: the end of the input was reached."""

    read_as: str
    columns: list[str]
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
    read = prepared(settings)
    if read.rivals:
        return _undecided(settings, read)
    settings = read.decided().settings
    settings = structs.replace(settings, follow=False)
    ingest = Ingest(event_options(settings)._replace(provenance=True), settings.input.format)
    found = Preview(read.said, first_columns(settings))
    found.evidence, found.command = [list(each) for each in read.evidence], command_of(settings)
    lines = LineNumbers(settings.input.format, text_layout_of(settings))
    names: dict[str, None] = {}
    workers: Counter[str] = Counter()
    firsts: dict[str, str] = {}
    messages: Counter[str] = Counter()
    asked: dict[Any, frozenset[Any]] = {}  # question -> its last answer
    for block in _blocks(settings, ingest, found, most):
        decoded = block.decoded
        found.events += sum(decoded.events.values())
        found.filtered += decoded.filtered
        found.ignored = sorted({*found.ignored, *decoded.unknown_fields})
        for letter in block.dead_letters:
            found.refused[letter.reason] += 1
            found.not_utf8 += ENCODING in letter.message
            messages[letter.message] += 1
            if messages[letter.message] == 1 and len(messages) <= MOST_MESSAGES:
                firsts[letter.message] = f"{place(letter.partition, letter.offset, lines)}: {letter.message}"
        for piece in (decoded, *decoded.rest):
            found.comparisons += len(piece.triplets) + len(piece.quadruplets)
            names |= dict.fromkeys(piece.names)
            if piece.provenance is not None and not piece.provenance.continues:
                known = piece.provenance.workers
                workers.update(known[number] for number in piece.provenance.worker.tolist() if number >= 0)
            for who, answer in answers(piece):
                if len(found.first) < FIRST:
                    found.first.append(in_words(who, answer))
                question, said = _asked(answer), frozenset((frozenset(of[:2]), frozenset(of[2:])) for of in answer)
                found.repeated += question in asked
                found.repeated_alike += asked.get(question) == said
                asked[question] = said
    lines.close()
    commonest = [message for message, _ in messages.most_common(FIRST)]
    found.first_refused = [firsts[message] for message in commonest if message in firsts]
    found.no_answers = _no_answers(settings) if found.refused else ""
    found.sent_twice = ingest.repeats.in_words()
    found.max_reject_ratio = settings.input.max_reject_ratio
    found.refused = Counter(dict(found.refused.most_common()))
    found.objects, found.names, found.suspicious = len(names), list(names)[:20], suspicious_names(names)
    numbers = sorted(workers.values())
    found.workers = len(numbers)
    found.questions_per_worker = [numbers[0], median(numbers), numbers[-1]] if numbers else []
    return found


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
    known = {*events.codes.get(answer, ()), *records.columns} | objects
    given = Counter(records.columns[events.columns[answer]].texts)
    unknown = [(n, text) for text, n in given.items() if text and text not in known and not text.isdecimal()]
    n, most = max(unknown, default=(0, ""))
    return f"{n:,} are {most!r}: leave them out with --where '{events.columns[answer]}!={most}'" if n > 1 else ""


def _undecided(settings: Settings, read: PreparedSettings) -> Preview:
    """The readings that fit equally well, each with its command."""
    found = Preview("", first_columns(settings), doubt=read.doubt)
    found.evidence = [list(each) for each in excluding(read.evidence)]
    found.readings = [[command_of(each), *examples(each, 1)] for each in read.rivals]
    return found


def _blocks(settings: Settings, ingest: Ingest, found: Preview, most: int) -> Iterator[Block]:
    """Blocks of the files until `most` events were read."""
    for uri in settings.source:
        if split_uri(uri)[0] not in ("file", *STORES):
            continue
        with closing(source(settings, uri, {})) as opened:
            while not opened.finished():
                yield from ingest.blocks(opened.poll(1.0))
                if found.events >= most:
                    found.whole = opened.finished()
                    break
        if not found.whole:
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


def as_text(found: Preview, where: str) -> str:
    """The preview as text for people."""
    if found.readings:
        lines = [where, f"  {found.doubt}; nothing is read until you choose:"]
        lines += [f"    {line}" for each in found.readings for line in each]
        lines += [f"  rows that this excludes: --where {quote(taken)}, {why}" for _, taken, why in found.evidence]
        return "\n".join([*lines, "nothing was written"])
    of = "whole input" if found.whole else "beginning of the input"
    rows: Mapping[str, str] = {
        "read as": found.read_as.removeprefix("read as "),
        "columns": ", ".join(found.columns),
        "ignored": ", ".join(found.ignored),
        "events": f"{found.events:,} ({of}), {found.comparisons:,} comparisons"
        + (f", {found.filtered:,} excluded" if found.filtered else ""),
        "rejected": ", ".join(f"{n:,} {reason}" for reason, n in found.refused.items()),
        "encoding": f"{found.not_utf8:,} rows are not read, because they are {NOT_UTF8}" if found.not_utf8 else "",
        "objects": f"{found.objects:,}: " + ", ".join(found.names) + (", …" if found.objects > 20 else ""),
        "suspicious": ", ".join(" and ".join(f'"{name}"' for name in group) for group in found.suspicious),
        "participants": _people(found),
        "repeated": f"{found.repeated:,} questions, {found.repeated_alike:,} of them with the same answer"
        if found.repeated
        else "",
        "sent twice": found.sent_twice,
        "a run": f"would stop: {found.rejected_share:.0%} of the events are rejected" if found.is_refused else "",
        "no answers": found.no_answers,
    }
    lines = [where, *(f"  {name:13}{text}" for name, text in rows.items() if text)]
    width = max((len(each[0]) for each in found.evidence), default=0)
    lines += ["  evidence:"] if found.evidence else []
    lines += [f"    {decision:{width}}  {taken}: {why}" for decision, taken, why in found.evidence]
    lines += ["  first events:", *(f"    {each}" for each in found.first)] if found.first else []
    lines += ["  first rejected:", *(f"    {each}" for each in found.first_refused)] if found.first_refused else []
    return "\n".join([*lines, f"  command      {found.command}", "nothing was written"])


def _people(found: Preview) -> str:
    if not found.workers:
        return ""
    least, middle, most = found.questions_per_worker
    if least == most:
        return f"{found.workers:,}, {most:,} questions each"
    return f"{found.workers:,}, {least:,} to {most:,} questions each (median {middle:,g})"
