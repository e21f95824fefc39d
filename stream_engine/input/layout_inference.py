"""How the input of a run is read if no options say so: inferred from its first records, shown in words, never
guessed."""

from collections.abc import Iterator, Mapping
from contextlib import suppress
from itertools import islice

from msgspec import structs

from connectors.files.workbooks import FORMULAS
from stream_engine.formats.doubtful_rows import (
    columns_of,
    copies,
    doubts,
    exported_again,
    other_header,
    other_table,
)
from stream_engine.formats.encodings import Decoded, is_utf8_in_part, likely_encodings, shifted_encoding
from stream_engine.formats.event_fields import OPTIONAL, PACE, SCREEN
from stream_engine.formats.field_values import number_of, quoted
from stream_engine.formats.inference import understood
from stream_engine.formats.json_places import is_utf8
from stream_engine.formats.opposite_answers import opposite_answers
from stream_engine.formats.options import UnusableOptions
from stream_engine.formats.reading import FLIPPED, IN_DOUBT, Decision, Obstacle, Reading, flipped, in_doubt
from stream_engine.formats.record_filters import matching
from stream_engine.formats.response_times import seconds_of_no_date, text_of_no_date
from stream_engine.formats.spellings import READ_TABLE
from stream_engine.formats.trial_filters import header_rows
from stream_engine.formats.unreadable import COMMAND, RESHAPE, fact_of, header_again
from stream_engine.formats.versions import doubtful_versions
from stream_engine.input.answers_in_words import answers
from stream_engine.input.beside_tables import lines_around, names_and_sheets
from stream_engine.input.decoding import RecordDecoder
from stream_engine.input.files_apart import files_apart, no_answers, same_numbers
from stream_engine.input.first_records import first_of_files, first_records, not_read, with_later_marks
from stream_engine.input.misfit_headers import log_of_eprime, misfit_header
from stream_engine.input.next_steps import (
    commands_of,
    each_its_files,
    next_step,
    numbered_otherwise,
    parted_at_header,
    repeated_header,
    table_in_pandas,
    without_lower_table,
)
from stream_engine.input.settings import Input, Settings
from stream_engine.input.source_checks import check_runnable
from stream_engine.input.sources import event_options
from stream_engine.input.stored_options import PreparedSettings, as_arguments, asked_options
from stream_engine.input.tried_readings import command_of, reads_half, reads_most, with_reading

ADDED_FIELDS = {*OPTIONAL, "catch", SCREEN}  # whose columns are added to a reading that is found
TOPICS = {  # of evidence
    "participant": {"worker"},
    "response times": {"time", *PACE},
    "time": {"time", *PACE},
    "screens": {SCREEN},
}


def prepare(settings: Settings, command: str = "") -> PreparedSettings:
    """The settings with the options that read their first records, if no options say how to read them.

    If several readings fit, the problem lists a command for each: of a run, or `command` with the reading's options.
    Everything that reads events (a run, `preview`, `predict`, `Study`) calls this, so that all of them read the same.
    Raises what `check_runnable` raises.
    """
    check_runnable(settings)
    prepared = _prepared(settings, command)
    if prepared.problem:
        return prepared
    return prepared._replace(evidence=(*prepared.evidence, *_doubtful_rows(prepared.settings)))


def _prepared(settings: Settings, command: str) -> PreparedSettings:
    """`prepare`, without what is said of rows that are doubtful however they are read."""
    events = settings.input
    if events.type_ is not None or events.answers_by != "name" or events.codes or events.separator:
        problem = numbered_otherwise(settings, command)
        return PreparedSettings(_with_times_of_copies(settings), evidence=_times_of_no_date(settings), problem=problem)
    if not events.columns:
        return _inferred(settings, command)
    more = {*events.columns} <= ADDED_FIELDS
    if more and not {"anchor", "near", "far", "type", "near_i"} & {*first_records(settings).columns}:
        return _inferred(settings, command)
    return PreparedSettings(_with_times_of_copies(settings), evidence=_times_of_no_date(settings))


def _inferred(settings: Settings, command: str) -> PreparedSettings:
    """The reading that the records decide, with the columns that the settings add to it."""
    events = settings.input
    if fact := no_answers(settings) or log_of_eprime(settings):
        return PreparedSettings(settings, problem=fact)
    problem, text, around = "", _not_utf8(settings), names_and_sheets(settings)
    encodings = likely_encodings(text) if text else []
    encoding = encodings[0].encoding if encodings else events.encoding
    decoded_settings = (
        settings
        if is_utf8_in_part(text)
        else structs.replace(settings, input=structs.replace(events, encoding=encoding))
    )
    for layout in (*_layouts(decoded_settings), structs.replace(events, encoding=encoding)):
        layout_settings = structs.replace(settings, input=layout)
        records = with_later_marks(layout_settings, first_records(layout_settings))
        records = records._replace(beside=(*around, *lines_around(layout_settings)))
        if (again := other_header(matching(records, events.where))) is not None:
            again_problem = parted_at_header(layout_settings, matching(records, events.where), again)
            return PreparedSettings(settings, problem=f"{settings.source[0]}: {again_problem}")
        if (begin := other_table(matching(records, events.where))) is not None:
            return PreparedSettings(
                settings, problem=f"{settings.source[0]}: {without_lower_table(settings, records, begin)}"
            )
        if header_rows_again := header_again(matching(records, events.where)):
            rows = records.select(row for row in range(records.size) if row not in {*header_rows_again})
            readings = understood(rows, events.where, events.answer_is).readings
            header_problem = repeated_header(layout_settings, rows, header_rows_again, readings, command)
            return PreparedSettings(settings, problem=f"{settings.source[0]}: {header_problem}")
        understanding = understood(records, events.where, events.answer_is)
        candidates = [with_reading(layout_settings, reading) for reading in understanding.readings]
        is_doubtful = bool(encodings) and layout.encoding == encoding
        in_encoding = (Decision(IN_DOUBT, "read", _in_words(encodings)),) if is_doubtful else ()
        is_read = layout.encoding == encoding or (candidates and reads_half(candidates[0]))
        if len(candidates) == 1 and not understanding.readings[0].doubt and is_read:
            reading = _with_times_of_copies(candidates[0])
            options = asked_options(reading)
            line = "" if options == asked_options(settings) else f"read as {as_arguments(options)}"
            evidence = _without(understanding.readings[0].evidence, events.columns)
            other = command_of(with_reading(layout_settings, flipped(understanding.readings[0])), command)
            evidence = tuple(decision._replace(why=decision.why.replace(FLIPPED, other)) for decision in evidence)
            return PreparedSettings(reading, True, (*evidence, *in_encoding), line)
        if candidates and (layout.encoding == encoding or reads_most(candidates[0])):
            first = understanding.readings[0]
            first = first._replace(evidence=(*first.evidence, *in_encoding))
            return _with_rivals(settings, first, candidates, command)
        if understanding.obstacle and (apart := files_apart(layout_settings)) is not None:
            return PreparedSettings(settings, problem=each_its_files(layout_settings, apart))
        if not problem and understanding.obstacle:
            problem = understanding.obstacle.fact + next_step(understanding.obstacle, layout_settings, command)
    records = first_records(layout_settings)  # of the last layout, in its encoding
    readable = bool(events.where) and bool(understood(records).readings)
    if not problem and (fact := fact_of(records, events.where, matching(records, events.where).size, readable)):
        problem = fact + next_step(Obstacle(fact), layout_settings, command)
    problem = problem or (misfit_header(settings) if not records.size else "")
    is_own = {"type", "anchor", "near_i"} & {*records.columns}
    if (problem or not is_own) and (unread := not_read(settings)):
        problem = unread if unread == FORMULAS else f"{problem or 'no answers are recognised'}; {unread}"
    if problem and encodings:
        problem = f"{problem}; {_in_words(encodings)}"
    problem = problem.replace(COMMAND, command_of(structs.replace(settings, input=Input()), command))
    if READ_TABLE in problem:
        problem = problem.replace(READ_TABLE, table_in_pandas(settings))
    return PreparedSettings(settings, problem=f"{settings.source[0]}: {problem}" if problem else "")


def _without(evidence: tuple[Decision, ...], columns: Mapping[str, str]) -> tuple[Decision, ...]:
    """The evidence without what it says of fields whose columns were given."""
    topics = {topic for topic, fields in TOPICS.items() if fields & columns.keys()}
    evidence = tuple(decision for decision in evidence if decision.topic not in topics)
    if "worker" in columns:
        evidence = tuple(decision for decision in evidence if (decision.topic, decision.choice) != (IN_DOUBT, "none"))
    if SCREEN in columns:
        evidence = tuple(decision for decision in evidence if (decision.topic, decision.choice) != (IN_DOUBT, SCREEN))
    return evidence


def _doubtful_rows(settings: Settings) -> list[Decision]:
    """What to say of rows that count, and perhaps should not. Events as the contract has them are decoded by the
    run alone, which puts one aside that kills it."""
    if settings.follow:
        return []
    first = islice(first_of_files(settings), 1)
    of_table = bool(settings.input.columns) or any(record.format != "json" for record in first)
    records, options = matching(first_records(settings), settings.input.where), event_options(settings)
    says = doubtful_versions(records, columns_of(records, options.columns), options.answers_by, options.codes)
    says += opposite_answers(_answers(settings), SCREEN in options.columns) if of_table else []
    says += [text for text in [same_numbers(settings, "".join(options.columns.get("worker", ())))] if text]
    doubtful = [Decision(IN_DOUBT, "counted", text) for text in says]
    return [*doubts(records, options.columns, settings.input.drop_duplicates), *doubtful]


def _answers(settings: Settings) -> Iterator[tuple[str, list[tuple[str, ...]]]]:
    """The participant and the comparisons of each of the first answers that these settings read."""
    ingest = RecordDecoder(event_options(settings)._replace(provenance=True), settings.input.format)
    with suppress(UnusableOptions, ValueError):
        for record in first_of_files(settings):
            for block in ingest.blocks([record]):
                yield from answers(block.decoded)


def _with_times_of_copies(settings: Settings) -> Settings:
    """The settings with the column of times that tells copies from answers that are alike, if copies are dropped."""
    events = settings.input
    if not events.drop_duplicates or {"time", *PACE} & events.columns.keys():
        return settings
    records = matching(first_records(settings), events.where)
    columns = columns_of(records, event_options(settings).columns)
    _, key, is_time = copies(records, sum(columns.values(), ()))
    if not is_time:  # copies may differ in the file that they come from
        key = exported_again(records, sum(columns.values(), ()))[2]
    if not key or "worker" not in columns or "time" in columns:
        return settings
    return structs.replace(settings, input=structs.replace(events, columns={**events.columns, "time": key}))


def working_readings(settings: Settings) -> tuple[Settings, ...]:
    """What the records themselves suggest, without the options that say how they are read: readings that were tried."""
    events, default = settings.input, Input()
    events = structs.replace(
        events,
        **{
            name: getattr(default, name)
            for name in ("type_", "columns", "answers_by", "codes", "answer_is", "separator")
        },
    )
    prepared = prepare(structs.replace(settings, input=events))
    return prepared.rivals or ((prepared.settings,) if prepared.line else ())


def _times_of_no_date(settings: Settings) -> tuple[Decision, ...]:
    """What to say of a column `time` that is read although its numbers are no dates."""
    columns = settings.input.columns
    if not columns or "time" in columns:
        return ()
    records = first_records(settings)
    largest = seconds_of_no_date(records)
    if largest is None:
        text = text_of_no_date(records)
        why = f"time ({quoted(text)}) is neither RFC 3339 (2024-05-01T12:00:00Z) nor epoch seconds, and rows are "
        why += "rejected for it: add time=- to --columns to leave it out"
        return () if text is None else (Decision(IN_DOUBT, "read", why),)
    why = f"time, up to {largest:g}, is read as seconds since 1970: add time=- to --columns if it is no date, or "
    return (Decision(IN_DOUBT, "read", f"{why}time=-,seconds=time (or milliseconds) if it is a response time"),)


def _with_rivals(settings: Settings, first: Reading, candidates: list[Settings], command: str) -> PreparedSettings:
    """The settings with the rival readings that read nearly all rows of the file, of which a person chooses."""
    nothing_fits = "" if any(map(reads_half, candidates)) else f"; {RESHAPE}"
    candidates = [candidate for candidate in candidates if reads_most(candidate)]
    commands = commands_of(candidates, command)
    encoding = candidates[0].input.encoding if candidates else settings.input.encoding
    doubt = (
        first.doubt
        if encoding == settings.input.encoding
        else f"{first.doubt}; the text is not UTF-8 (--encoding {encoding})"
    )
    step = f"; next: {commands}" if commands else nothing_fits or next_step(Obstacle(doubt), settings, command)
    problem = "; ".join([f"{settings.source[0]}: {doubt}; nothing was read{step}", *in_doubt(first.evidence)])
    return PreparedSettings(settings, True, first.evidence, "", doubt, tuple(candidates), problem)


def _not_utf8(settings: Settings) -> bytes:
    """The first text that is not UTF-8, if no encoding is set."""
    texts = (
        record.header + b"\n" + bytes(record.value) for record in first_of_files(settings) if record.format == "csv"
    )
    others = (text for text in texts if not is_utf8(text) or shifted_encoding(text))
    return next(others, b"") if settings.input.encoding is None else b""


def _in_words(encodings: list[Decoded]) -> str:
    """What to say of text that is read in the first of several encodings."""
    (first, word), *others = encodings
    rivals = ", or ".join(f"{encoding} reads {other!r}" for encoding, other in others)
    fact = f"the text is not UTF-8: --encoding {first} reads {word!r}"
    return f"{fact}; if that is wrong, {rivals or 'name the right one'}"


MAX_SKIPPED_LINES = 3  # before the header


def _layouts(settings: Settings) -> Iterator[Input]:
    """The layouts of text to try: as set; with lines before the header, if the first line is no header; without a
    header, if the first line holds numbers."""
    events = settings.input
    yield events
    first = next(first_of_files(settings), None)
    if first is None or first.format != "csv" or not events.header or events.skip_rows:
        return
    records = first_records(settings)
    names = list(records.columns)
    if len(names) < 2 or "" in names or header_rows(records) is not None:
        for n_lines in range(1, MAX_SKIPPED_LINES + 1):
            yield structs.replace(events, skip_rows=n_lines)
    if names and all(number_of(name, text=True) is not None for word in names for name in word.split()):
        spaces = len(names) == 1 and events.delimiter is None
        yield structs.replace(events, header=False, delimiter="space" if spaces else events.delimiter)
