"""How a run would read the first events of files, and what a person should check. Nothing is written."""

import re
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field
from shlex import quote
from statistics import median
from typing import Any

import numpy as np
from msgspec import structs

from connectors import STORES, split_uri
from connectors.files.readers import LineNumbers, place
from stream_engine.data.comparisons import EVENT_TYPES, Provenance
from stream_engine.data.suspicious_names import suspicious_names
from stream_engine.evaluation.connection import joined
from stream_engine.evaluation.response_checks import most_chosen
from stream_engine.formats.answers import column_of, keys_in_order
from stream_engine.formats.cells import LIST_SEPARATOR
from stream_engine.formats.encodings import encoding_in_words
from stream_engine.formats.event_fields import fields_of
from stream_engine.formats.options import EventOptions
from stream_engine.formats.reading import IN_DOUBT, excluding, in_doubt
from stream_engine.formats.repeats import Repeats
from stream_engine.formats.vocabulary import SPATIAL, place_in, words_of
from stream_engine.formats.wide_columns import wide_questions
from stream_engine.input.answers_in_words import answers, in_words
from stream_engine.input.decoding import Block, RecordDecoder
from stream_engine.input.first_records import MAX_ROWS, first_columns, first_records
from stream_engine.input.layout_inference import prepare, working_readings
from stream_engine.input.settings import Settings
from stream_engine.input.sources import event_options, source, text_layout_of
from stream_engine.input.stored_options import PreparedSettings
from stream_engine.input.tried_readings import command_of, examples
from stream_engine.input.where_checks import useless_filters
from stream_engine.service.dead_letters import ENCODING, MIN_EVENTS, MIN_EVENTS_OF_WHOLE

N_FIRST = 5  # events that are shown
LABEL = EVENT_TYPES.index("label")
MAX_MESSAGES = 1000  # different reasons of which the first place is noted


@dataclass
class Preview:
    """The findings as JSON values; `whole`: the end of the input was reached.

    `suspicious` names differ only in capitals, spaces, invisible characters or Unicode form: they are two objects to
    the engine, but usually one to the person who typed them. A question is `repeated` if the same objects were compared
    before, in another response than a copy that was sent twice.
    """

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
    encoding: str = ""  # of these, as `encoding_in_words`
    filtered: int = 0
    objects: int = 0
    sets: list[int] = field(default_factory=list)  # sizes of the sets of objects that were never compared
    names: list[str] = field(default_factory=list)
    suspicious: list[list[str]] = field(default_factory=list)
    workers: int = 0
    questions_per_worker: list[float] = field(default_factory=list)  # least, median, most
    repeated: int = 0
    repeated_alike: int = 0
    sent_twice: str = ""  # who sent how many responses twice
    notices: list[str] = field(default_factory=list)  # about the files
    no_answers: str = ""  # the commonest value of an answer that names no object, and how to leave it out
    max_reject_ratio: float = 0.5  # above which a run stops
    evidence: list[list[str]] = field(default_factory=list)  # decision, what was decided, why
    examined: int = 0  # first rows that the evidence is of, where there may be more
    command: str = ""  # that reads the input so
    report: str = ""  # command that makes a page of it, without a state
    doubt: str = ""  # why there are several readings
    readings: list[list[str]] = field(default_factory=list)  # command, an example in words, and command of a report

    @property
    def rejected_share(self) -> float:
        """Of the events that are not filtered."""
        n_rejected = sum(self.refused.values())
        return n_rejected / max(1, self.events + n_rejected)

    @property
    def is_refused(self) -> bool:
        """Whether a run over the same events would fail."""
        least = MIN_EVENTS_OF_WHOLE if self.whole else MIN_EVENTS
        has_enough = self.events + sum(self.refused.values()) >= least
        return (has_enough and self.rejected_share > self.max_reject_ratio) or (bool(self.refused) and not self.events)


def preview(settings: Settings, max_events: int) -> Preview:
    """The first `max_events` events of the sources. Raises what a run with these settings would raise before it reads,
    and `connectors.SourceFailed`."""
    prepared = prepare(settings)
    if prepared.rivals:
        return _with_rivals(settings, prepared)
    given, settings = settings, prepared.raise_if_undecided().settings
    useless = useless_filters(settings, given)
    settings = structs.replace(settings, follow=False)
    ingest = RecordDecoder(event_options(settings)._replace(provenance=True), settings.input.format)
    result = Preview(prepared.line, first_columns(settings))
    result.used_as = _used_as(event_options(settings), result.columns)
    result.evidence = [list(decision) for decision in prepared.evidence if decision.topic != IN_DOUBT]
    result.command, result.report = command_of(settings), _report_of(settings)
    result.notices += [*useless, *in_doubt(prepared.evidence)]
    lines = LineNumbers(settings.input.format, text_layout_of(settings))
    names: dict[str, None] = {}
    workers: Counter[str] = Counter()
    first_places: dict[str, str] = {}
    messages: Counter[str] = Counter()
    number: dict[str, int] = {}  # of each object
    compared: list[np.ndarray] = [np.empty((0, 2), np.int64)]  # pairs of objects of the same comparison
    positions: Counter[tuple[str, int, int]] = Counter()  # participant, objects shown, and position of the chosen one
    of_all, of_unique, unique = _Repetitions(), _Repetitions(), Repeats(drop=True)
    for block in _blocks(settings, ingest, result, max_events):
        events = block.decoded
        result.events += sum(events.events.values())
        result.filtered += events.filtered
        result.ignored = sorted({*result.ignored, *events.unknown_fields})
        for letter in block.dead_letters:
            result.refused[letter.reason] += 1
            if ENCODING in letter.message:
                result.not_utf8 += 1
                result.encoding = result.encoding or encoding_in_words(bytes(block.records[0].value))
            messages[letter.message] += 1
            if messages[letter.message] == 1 and len(messages) <= MAX_MESSAGES:
                first_places[letter.message] = f"{place(letter.partition, letter.offset, lines)}: {letter.message}"
        for part in (events, *events.rest):
            result.comparisons += len(part.triplets) + len(part.quadruplets)
            names |= dict.fromkeys(part.names)
            ids = np.array([number.setdefault(name, len(number)) for name in part.names], np.int64)
            for rows in (part.triplets, part.quadruplets):
                pairs = np.stack([ids[rows[:, :-1].ravel()], ids[rows[:, 1:].ravel()]], axis=1)
                compared.append(np.unique(pairs, axis=0))
            if part.provenance is not None and not part.provenance.continues:
                is_answer, participants = part.provenance.kind != LABEL, part.provenance.workers
                positions.update(_positions(part.provenance))
                workers.update(
                    participants[number] for number in part.provenance.worker[is_answer].tolist() if number >= 0
                )
            for worker, answer in answers(part):
                if len(result.first) < N_FIRST:
                    result.first.append(in_words(worker, answer))
                of_all.count(answer)
            for _, answer in answers(unique.without(part)):
                of_unique.count(answer)
    lines.close()
    n_read = first_records(settings).size  # of the first rows, those that cannot be parsed are not among them
    if result.evidence and n_read + sum(result.refused.values()) >= MAX_ROWS:
        result.examined = n_read
    commonest = [message for message, _ in messages.most_common(N_FIRST)]
    result.first_refused = [first_places[message] for message in commonest if message in first_places]
    result.no_answers = _no_answers(settings) if result.refused else ""
    result.sent_twice = ingest.repeats.in_words()
    result.notices += filter(None, [ingest.files_in_words()])
    without_copies = unique.of_participant.total() == unique.counted  # else equal times mean nothing for somebody
    repetitions = of_unique if without_copies else of_all
    result.repeated, result.repeated_alike = repetitions.n, repetitions.alike
    result.max_reject_ratio = settings.input.max_reject_ratio
    if result.is_refused:
        working = working_readings(settings)
        result.command = ", or ".join(map(command_of, working))
        result.report = ", or ".join(filter(None, map(_report_of, working)))
        result.no_answers = "" if result.command else result.no_answers
    result.refused = Counter(dict(result.refused.most_common()))
    result.objects, result.names, result.suspicious = len(names), list(names)[:20], suspicious_names(names)
    first, second = np.concatenate(compared).T
    set_of = joined(first, second, len(number))
    result.sets = np.bincount(set_of[set_of >= 0]).tolist()
    result.notices += _preferred_position(positions)
    numbers = sorted(workers.values())
    result.workers = len(numbers)
    result.questions_per_worker = [numbers[0], median(numbers), numbers[-1]] if numbers else []
    return result


def _positions(provenance: Provenance) -> Iterator[tuple[str, int, int]]:
    """Of each answer that tells a position: the participant, "" for nobody, how many objects were shown, and which one
    was chosen."""
    if len(provenance.shown) == len(provenance.worker):
        names = [*provenance.workers, ""]
        for number, shown, position in zip(provenance.worker, provenance.shown, provenance.position):
            if shown > 1:
                yield names[number], int(shown), int(position)


def _preferred_position(positions: Counter[tuple[str, int, int]]) -> list[str]:
    """What to say of a position that was chosen more often than by chance."""
    numbers = {name: number for number, name in enumerate(sorted({who for who, _, _ in positions if who}))}
    rows = [(numbers.get(who, -1), shown, at, n) for (who, shown, at), n in positions.items()]
    preferred = most_chosen(*np.array(rows, np.int64).reshape(-1, 4).T)
    if preferred is None or preferred.by_design():
        return []
    return [f"{preferred.in_words()}: if they were shown in random order, participants prefer this position"]


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
    spellings, shown = {_plain(name) for name in names}, tuple(events.columns.get("shown", "").split("|"))
    texts = Counter(records.columns[events.columns[answer]].texts)
    unknown = [(n, text) for text, n in texts.items() if text and not text.isdecimal()]
    unknown = [
        (n, text)
        for n, text in unknown
        if text not in names
        and _plain(text) not in spellings
        and not re.search(r"[/\\\\|;]|\.[a-z]{3,4}$", text)  # a path, or a name or list with a separator
        and column_of(text, shown) < 0
        and all(place_in(words_of(text), order) < 0 for order in SPATIAL)
    ]
    n, value = max(unknown, default=(0, ""))
    objects_at = shown if shown != ("",) else tuple(events.columns.get("objects", "").split("|"))
    if 1 < len(unknown) <= len(objects_at) and 10 * sum(n for n, _ in unknown) >= 9 * texts.total():
        keys = keys_in_order(Counter({text: n for n, text in unknown})) if len(objects_at) == 2 else []
        codes = dict(zip(keys, objects_at)) or {text: "COLUMN" for _, text in sorted(unknown)}
        means = quote(f"{answer}:" + ",".join(f"{text}={name}" for text, name in codes.items()))
        given = "are keys" if keys else "name no object"
        return f"they {given} ({', '.join(codes)}): say what each means with --codes {means}"
    shown_texts = {text for name in shown if name in records.columns for text in records.columns[name].distinct}
    listed = [(n, text) for text, n in texts.items() if text in shown_texts and LIST_SEPARATOR in (text or "")]
    if listed and not value:
        n, value = max(listed)
        return f"{n:,} are {value!r}, read as a list: --separator with a sign that no name has, if it is one name"
    return f"{n:,} are {value!r}: leave them out with --where '{events.columns[answer]}!={value}'" if n > 1 else ""


def _plain(name: str) -> str:
    """A name without differences of spelling."""
    return "".join(words_of(name)) or name


def _report_of(settings: Settings) -> str:
    """The command that makes a page of files that are read so; "" for other sources."""
    if any("://" in uri for uri in settings.source):
        return ""
    return command_of(settings, f"stream-engine report {' '.join(map(quote, settings.source))}")


def _with_rivals(settings: Settings, prepared_settings: PreparedSettings) -> Preview:
    """The readings that fit equally well, each with its command."""
    result = Preview("", first_columns(settings), doubt=prepared_settings.doubt)
    result.evidence = [list(rival) for rival in excluding(prepared_settings.evidence)]
    result.notices = in_doubt(prepared_settings.evidence)
    result.readings = [
        [command_of(rival), "; ".join(examples(rival, 1)), _report_of(rival)] for rival in prepared_settings.rivals
    ]
    return result


def _blocks(settings: Settings, ingest: RecordDecoder, result: Preview, max_events: int) -> Iterator[Block]:
    """Blocks of the files until `max_events` events were read."""
    for uri in settings.source:
        if split_uri(uri)[0] not in ("file", *STORES):
            continue
        with closing(source(settings, uri, {})) as opened_source:
            while not opened_source.finished():
                records = opened_source.poll(1.0)
                result.notices += opened_source.notices()
                yield from ingest.blocks(records)
                if result.events >= max_events:
                    result.whole = opened_source.finished()
                    break
        if not result.whole:
            return


@dataclass
class _Repetitions:
    """How many questions were asked before, and how many of these had the same answer as the last time."""

    n: int = 0
    alike: int = 0
    last_answer: dict[Any, frozenset[Any]] = field(default_factory=dict)  # of each question

    def count(self, answer: list[tuple[str, ...]]) -> None:
        question, sides = _question_of(answer), frozenset((frozenset(of[:2]), frozenset(of[2:])) for of in answer)
        self.n += question in self.last_answer
        self.alike += self.last_answer.get(question) == sides
        self.last_answer[question] = sides


def _question_of(answer: list[tuple[str, ...]]) -> Any:
    """The question that an event of these comparisons answers, regardless of the answer.

    >>> odd_is_c, odd_is_a = [("a", "b", "c"), ("b", "a", "c")], [("b", "c", "a"), ("c", "b", "a")]
    >>> _question_of(odd_is_c) == _question_of(odd_is_a)
    True
    >>> _question_of([("a", "b", "c")]) == _question_of([("a", "c", "b")])
    True
    >>> _question_of([("a", "b", "c")]) == _question_of([("b", "a", "c")])
    False
    """
    if len(answer[0]) == 4:
        return frozenset([frozenset(answer[0][:2]), frozenset(answer[0][2:])])
    anchors = {comparison[0] for comparison in answer}
    return anchors.pop() if len(anchors) == 1 else "", frozenset(name for comparison in answer for name in comparison)


ROLES = {  # fields of events whose names do not say what they are
    "worker": "participant",
    "catch": "catch trials",
    "time": "time of the answer",
    "seconds": "response time in seconds",
    "milliseconds": "response time in milliseconds",
}


def _used_as(options: EventOptions, names: list[str]) -> dict[str, str]:
    """What is read from each column that is used: a field of an event, or a filter."""
    roles: dict[str, dict[str, None]] = {name: {} for name in names}
    for question in wide_questions(options, names):
        event_fields = fields_of(question.options)
        filters = {row_filter.source: "filter" for row_filter in event_fields.where}
        mapped = [(name, role) for role, inputs in question.options.columns.items() for name in inputs]
        unmapped = [(name, name) for name in event_fields.inputs - filters.keys() - dict(mapped).keys()]
        for name, role in (*unmapped, *mapped, *filters.items()):
            if name in roles and not (role == "filter" and roles[name]):  # also what it answers is filled
                roles[name][ROLES.get(role, role)] = None
    return {name: " and ".join(names_of_role) for name, names_of_role in roles.items() if names_of_role}
