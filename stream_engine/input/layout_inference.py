"""How the input of a run is read if no options say so: inferred from its first records, shown in words, never
guessed."""

from collections.abc import Iterator, Mapping
from contextlib import suppress
from itertools import islice
from pathlib import Path
from shlex import quote
from string import ascii_uppercase

from msgspec import structs

from connectors.files.workbooks import FORMULAS
from stream_engine.formats.doubtful_rows import (
    below_in_words,
    columns_of,
    copies,
    doubts,
    exported_again,
    other_header,
    other_header_in_words,
    other_table,
)
from stream_engine.formats.encodings import Decoded, is_utf8_in_part, likely_encodings, shifted_encoding
from stream_engine.formats.event_fields import OPTIONAL, PACE, SCREEN
from stream_engine.formats.example_reading import example_reading
from stream_engine.formats.field_values import number_of, quoted
from stream_engine.formats.inference import understood
from stream_engine.formats.json_places import is_utf8
from stream_engine.formats.opposite_answers import opposite_answers
from stream_engine.formats.options import FIRST_OF, UnusableOptions
from stream_engine.formats.reading import FLIPPED, IN_DOUBT, Decision, Obstacle, Reading, flipped, in_doubt
from stream_engine.formats.record_columns import Records
from stream_engine.formats.record_filters import matching
from stream_engine.formats.response_times import seconds_of_no_date, text_of_no_date
from stream_engine.formats.spellings import READ_TABLE
from stream_engine.formats.trial_filters import header_rows
from stream_engine.formats.unreadable import COMMAND, RESHAPE, fact_of, header_again
from stream_engine.formats.versions import doubtful_versions
from stream_engine.input.answers_in_words import answers, in_words
from stream_engine.input.beside_tables import lines_around, names_and_sheets
from stream_engine.input.decoding import RecordDecoder
from stream_engine.input.files_apart import FilesApart, files_apart, no_answers, same_numbers
from stream_engine.input.first_records import MAX_FILES, first_of_files, first_records, not_read, with_later_marks
from stream_engine.input.misfit_headers import log_of_eprime, misfit_header
from stream_engine.input.settings import Input, Settings
from stream_engine.input.source_checks import check_runnable
from stream_engine.input.sources import event_options
from stream_engine.input.stored_options import PreparedSettings, as_arguments, asked_options

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
        problem = _numbered_otherwise(settings, command)
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
            again_problem = _other_header(layout_settings, matching(records, events.where), again)
            return PreparedSettings(settings, problem=f"{settings.source[0]}: {again_problem}")
        if (begin := other_table(matching(records, events.where))) is not None:
            return PreparedSettings(settings, problem=f"{settings.source[0]}: {_below(settings, records, begin)}")
        if header_rows_again := header_again(matching(records, events.where)):
            rows = records.select(row for row in range(records.size) if row not in {*header_rows_again})
            readings = understood(rows, events.where, events.answer_is).readings
            header_problem = _repeated_header(layout_settings, rows, header_rows_again, readings, command)
            return PreparedSettings(settings, problem=f"{settings.source[0]}: {header_problem}")
        understanding = understood(records, events.where, events.answer_is)
        candidates = [_with_reading(layout_settings, reading) for reading in understanding.readings]
        is_doubtful = bool(encodings) and layout.encoding == encoding
        in_encoding = (Decision(IN_DOUBT, "read", _in_words(encodings)),) if is_doubtful else ()
        is_read = layout.encoding == encoding or (candidates and _reads_half(candidates[0]))
        if len(candidates) == 1 and not understanding.readings[0].doubt and is_read:
            reading = _with_times_of_copies(candidates[0])
            options = asked_options(reading)
            line = "" if options == asked_options(settings) else f"read as {as_arguments(options)}"
            evidence = _without(understanding.readings[0].evidence, events.columns)
            other = command_of(_with_reading(layout_settings, flipped(understanding.readings[0])), command)
            evidence = tuple(decision._replace(why=decision.why.replace(FLIPPED, other)) for decision in evidence)
            return PreparedSettings(reading, True, (*evidence, *in_encoding), line)
        if candidates and (layout.encoding == encoding or _reads_most(candidates[0])):
            first = understanding.readings[0]
            first = first._replace(evidence=(*first.evidence, *in_encoding))
            return _with_rivals(settings, first, candidates, command)
        if understanding.obstacle and (apart := files_apart(layout_settings)) is not None:
            return PreparedSettings(settings, problem=_each_its_files(layout_settings, apart))
        if not problem and understanding.obstacle:
            problem = understanding.obstacle.fact + _next_step(understanding.obstacle, layout_settings, command)
    records = first_records(layout_settings)  # of the last layout, in its encoding
    readable = bool(events.where) and bool(understood(records).readings)
    if not problem and (fact := fact_of(records, events.where, matching(records, events.where).size, readable)):
        problem = fact + _next_step(Obstacle(fact), layout_settings, command)
    problem = problem or (misfit_header(settings) if not records.size else "")
    is_own = {"type", "anchor", "near_i"} & {*records.columns}
    if (problem or not is_own) and (unread := not_read(settings)):
        problem = unread if unread == FORMULAS else f"{problem or 'no answers are recognised'}; {unread}"
    if problem and encodings:
        problem = f"{problem}; {_in_words(encodings)}"
    problem = problem.replace(COMMAND, command_of(structs.replace(settings, input=Input()), command))
    if READ_TABLE in problem:
        problem = problem.replace(READ_TABLE, _table_in_pandas(settings))
    return PreparedSettings(settings, problem=f"{settings.source[0]}: {problem}" if problem else "")


def _table_in_pandas(settings: Settings) -> str:
    """How pandas reads the first file, with every cell as text."""
    path = settings.source[0]
    if path.casefold().endswith(".xlsx"):
        return f"table = pandas.read_excel({path!r}, dtype=str, keep_default_na=False)"
    if path.casefold().endswith((".jsonl", ".json", ".ndjson")):
        return f"table = pandas.read_json({path!r}, lines=True, dtype=False)"
    return f"table = pandas.read_csv({path!r}, dtype=str, keep_default_na=False, sep=None, engine='python')"


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


def _below(settings: Settings, records: Records, begin: int) -> str:
    """What to say of another table below the answers, and how to leave it out."""
    fact = below_in_words(records, begin)
    if not _is_one_table_of_text(settings):
        return f"{fact}; next: save the answers as a file of their own"
    answers = f"answers{Path(settings.source[0]).suffix}"
    of_answers = command_of(structs.replace(settings, source=(answers,)))
    n_lines = begin + settings.input.skip_rows + settings.input.header
    return f"{fact}; next: head -n {n_lines} {quote(settings.source[0])} > {answers}, then {of_answers}"


def _other_header(settings: Settings, records: Records, row: int) -> str:
    """What to say of a second header that differs from the first one, and how to part the rows below it."""
    line = row + 1 + settings.input.skip_rows + settings.input.header
    place = f"line {line:,}" if _is_one_table_of_text(settings) else "a row"
    fact = other_header_in_words(records, row, place)
    if not _is_one_table_of_text(settings) or settings.input.skip_rows:
        return f"{fact}; next: save the rows from there on as a file of their own"
    source, suffix = quote(settings.source[0]), Path(settings.source[0]).suffix
    parts = (f"part_1{suffix}", f"part_2{suffix}")
    cut = f"head -n {line - 1} {source} > {parts[0]}, tail -n +{line} {source} > {parts[1]}"
    return f"{fact}; next: {cut}, then {command_of(structs.replace(settings, source=parts))}"


def _is_one_table_of_text(settings: Settings) -> bool:
    """Whether the rows are lines of one file, from its first one on."""
    is_csv = len(settings.source) == 1 and settings.source[0].casefold().endswith((".csv", ".tsv", ".txt"))
    return is_csv and not settings.input.where


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


MIN_ROWS_OF_NUMBER = 10  # for each object, after which its number has occurred


def _numbered_otherwise(settings: Settings, command: str) -> str:
    """What to say of answers that are to be read as positions, and count from 0, or as indices, and count from 1; ""
    where they are not."""
    events = settings.input
    field = next((field for field in ("chosen", "odd", "central") if field in events.columns), "")
    if events.answers_by not in ("position", "index") or not field or settings.follow:
        return ""
    records, columns = matching(first_records(settings), events.where), event_options(settings).columns
    names, shown = columns[field], columns.get("shown", columns.get("objects", ()))
    if len(names) != 1 or not {*names, *shown} <= {*records.columns} or not shown:
        return ""
    answers = records.columns[names[0]].items - {*events.codes.get(field, ())}
    size = len(shown) if len(shown) > 1 else max(map(len, filter(None, records.columns[shown[0]].values)), default=0)
    if not answers or not all(text.isdecimal() and int(text) <= size for text in answers):
        return ""
    numbers, by_position = {*map(int, answers)}, events.answers_by == "position"
    beyond, last = (0, size) if by_position else (size, 0)
    many = len(numbers) == size or records.size >= MIN_ROWS_OF_NUMBER * size
    if beyond not in numbers or last in numbers or not many:
        return ""
    other = "index" if by_position else "position"
    right = structs.replace(settings, input=structs.replace(events, answers_by=other))
    fact = f"{names[0]} holds {', '.join(map(str, sorted(numbers)))} beside {size} objects: these count from "
    fact += f"{FIRST_OF[other]}, and --answers-by {events.answers_by} counts from {FIRST_OF[events.answers_by]}"
    return f"{settings.source[0]}: {fact}; next: {command_of(right, command)}"


def _next_step(obstacle: Obstacle, settings: Settings, command: str) -> str:
    """What to do about an obstacle: the command of the reading without the column that could bear on the answer."""
    if obstacle.rival is not None and obstacle.reading is not None:
        name, reading = obstacle.rival.column.name, obstacle.reading
        step = (
            f"; next: if {name} says nothing about the answer, {command_of(_with_reading(settings, reading), command)}"
        )
        if obstacle.rival.is_answer and "chosen" in reading.columns:
            trial = _with_reading(settings, reading._replace(columns={**reading.columns, "chosen": (name,)}))
            step += f"; if it is the answer, {command_of(trial, command)}" if _reads_most(trial) else ""
        if "at the place that an answer means" in obstacle.rival.why:
            step += f"; if it does, {name} and the answer name the chosen object together: write its name as the answer"
        arranged = [_with_reading(settings, offer) for offer in obstacle.offers]
        if arranged and all(map(_reads_most, arranged)):
            step += "; if it says which object stood at each place that is an answer, "
            step += _each_its_rows(arranged) if obstacle.by_rows else _offered(arranged, command)
            step += f"; {obstacle.note}" if obstacle.note else ""
        return step
    candidates = [_with_reading(settings, offer) for offer in obstacle.offers]
    if obstacle.by_rows and all(map(_reads_most, candidates)):
        return f"; next: {_each_its_rows(candidates)}"
    if offered := _offered([] if obstacle.by_rows else candidates, command):
        return f"; next: {offered}"
    return "" if "next:" in obstacle.fact else f"; next: {_example(settings, command)}"


def _each_its_files(settings: Settings, apart: FilesApart) -> str:
    """What to say of files of which some may ask for the farther object, and how to read both and add them."""
    parts = []
    for paths, answer_is in ((apart.nearer, "nearer"), (apart.farther, "farther")):
        part = structs.replace(settings, source=paths)
        readings = understood(first_records(part), settings.input.where, answer_is).readings
        parts += [_with_reading(part, readings[0])] if len(readings) == 1 and not readings[0].doubt else []
    if len(parts) == 2 and all(map(_reads_most, parts)):
        return f"{apart.fact}; next: if so, {_added(parts)}"
    each = (f"stream-engine preview {' '.join(map(quote, paths))}" for paths in (apart.nearer, apart.farther))
    return f"{apart.fact}; next: read each part by itself: {', and '.join(each)}"


def _added(parts: list[Settings]) -> str:
    """Commands that read parts of the answers, and add the states."""
    named = [structs.replace(part, state=state) for part, state in zip(parts, ascii_uppercase)]
    steps = [f"{command_of(part)} ({'; '.join(examples(part, 1))})" for part in named]
    states = " ".join(ascii_uppercase[: len(parts)])
    return ", then ".join([*steps, f"stream-engine merge {states} --out DIR"])


def _each_its_rows(candidates: list[Settings]) -> str:
    """Commands that read some rows in one way and others in another, each but the first of a copy of the file: of
    states that have read the same file there is no sum."""
    path, steps = Path(candidates[0].source[0]), []
    for number, candidate in enumerate(candidates):
        copy = path.with_name(f"copy_{number}_of_{path.name}" if number > 1 else f"copy_of_{path.name}")
        if number:
            steps.append(f"copy the file, as a sum counts each file once: cp {quote(str(path))} {quote(str(copy))}")
        source = (str(copy),) if number else candidate.source
        part = structs.replace(candidate, state=ascii_uppercase[number], source=source)
        steps.append(f"{command_of(part)} ({'; '.join(examples(candidate, 1))})")
    states = " ".join(ascii_uppercase[: len(candidates)])
    return ", then ".join([*steps, f"stream-engine merge {states} --out DIR"])


def _example(settings: Settings, command: str) -> str:
    """One whole command that reads the input, with its first answer to check; or if none is found, its form."""
    reading = example_reading(first_records(settings))
    trial = _with_reading(settings, reading) if reading is not None else settings
    if reading is not None and _reads_most(trial):
        answer = f"({'; '.join(examples(trial, 1))}), if that is what was answered"
        who = (
            ""
            if "worker" in reading.columns
            else ", and no participants are read: add participant=COLUMN if one says who answered"
        )
        return f"{command_of(trial, command)} {answer}; columns that are not named are left out{who}"
    fields = {"anchor": "COLUMN", "shown": "COLUMN|COLUMN", "chosen": "COLUMN"}
    form = structs.replace(settings, input=structs.replace(settings.input, type_="pick", columns=fields))
    return (
        f"{command_of(form, command)}, with the columns of the object that others were compared with, of those that "
        "were shown, and of the answer; columns that are not named are left out"
    )


def _repeated_header(
    settings: Settings, rows: Records, header_rows_again: list[int], readings: list[Reading], command: str
) -> str:
    """The problem of a table whose header is repeated, as in concatenated files; `rows`: the other ones."""
    roles = columns_of(rows, readings[0].columns if readings else {})
    name = next((roles[field][0] for field in ("chosen", *roles) if field in roles), next(iter(rows.columns)))
    lines = ", ".join(f"{row + 2 + settings.input.skip_rows:,}" for row in header_rows_again[:3])
    further = f" and {len(header_rows_again) - 3:,} more" if len(header_rows_again) > 3 else ""
    fact = f"the header is repeated at lines {lines}{further}"
    n_copies, _, is_time = copies(rows, sum(roles.values(), ()))
    if n_copies:
        fact += f", and {n_copies:,} of the {rows.size:,} rows are copies of others (a file pasted twice?)"
    if n_copies and not (is_time and "worker" in roles) and _is_one_table_of_text(settings):
        once = f"unique{Path(settings.source[0]).suffix}"
        of_unique = command_of(structs.replace(settings, source=(once,)))
        return f"{fact}; next: awk '!seen[$0]++' {quote(settings.source[0])} > {once}, then {of_unique}"
    where = {**settings.input.where, f"{name}!=": name}
    events = structs.replace(
        settings.input, where=where, drop_duplicates=settings.input.drop_duplicates or n_copies > 0
    )
    leave = command_of(structs.replace(settings, input=events), command)
    return f"{fact}: leave these rows out with {leave}"


def _with_rivals(settings: Settings, first: Reading, candidates: list[Settings], command: str) -> PreparedSettings:
    """The settings with the rival readings that read nearly all rows of the file, of which a person chooses."""
    nothing_fits = "" if any(map(_reads_half, candidates)) else f"; {RESHAPE}"
    candidates = [candidate for candidate in candidates if _reads_most(candidate)]
    commands = _offered(candidates, command)
    encoding = candidates[0].input.encoding if candidates else settings.input.encoding
    doubt = (
        first.doubt
        if encoding == settings.input.encoding
        else f"{first.doubt}; the text is not UTF-8 (--encoding {encoding})"
    )
    step = f"; next: {commands}" if commands else nothing_fits or _next_step(Obstacle(doubt), settings, command)
    problem = "; ".join([f"{settings.source[0]}: {doubt}; nothing was read{step}", *in_doubt(first.evidence)])
    return PreparedSettings(settings, True, first.evidence, "", doubt, tuple(candidates), problem)


def _offered(candidates: list[Settings], command: str) -> str:
    """The commands of those that read nearly all rows, each with its first answer in words."""
    candidates = [candidate for candidate in candidates if _reads_most(candidate)]
    return ", or ".join(
        f"{command_of(candidate, command)} ({'; '.join(examples(candidate, 1))})" for candidate in candidates
    )


MAX_REJECTED_SHARE = 0.1  # of the rows, by a reading that is offered


def _reads_half(settings: Settings) -> bool:
    """Whether these settings read half of the first rows that they do not filter: others are in another encoding."""
    return _reads_most(settings, 0.5)


def _reads_most(settings: Settings, max_rejected: float = MAX_REJECTED_SHARE) -> bool:
    """Whether these settings read nearly all of the first rows that they do not filter."""
    ingest = RecordDecoder(event_options(settings)._replace(provenance=True), settings.input.format)
    n_read = n_rejected = 0
    try:
        for record in islice(first_of_files(settings), MAX_FILES):
            for block in ingest.blocks([record]):
                n_read += sum(block.decoded.events.values())
                n_rejected += len(block.dead_letters)
    except (UnusableOptions, ValueError):
        return False
    return n_read > 0 and n_rejected <= max_rejected * (n_read + n_rejected)


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


def _with_reading(settings: Settings, reading: Reading) -> Settings:
    events = settings.input
    where = {**events.where, **reading.where}
    columns = {field: "|".join(names) for field, names in reading.columns.items()}
    if {"time", *PACE} & events.columns.keys():
        columns = {field: names for field, names in columns.items() if field not in ("time", *PACE)}
    columns |= events.columns
    codes = {field: dict(field_codes) for field, field_codes in reading.codes.items()}
    events = structs.replace(
        events, type_=reading.type or None, columns=columns, where=where, answers_by=reading.answers_by, codes=codes
    )
    events = structs.replace(events, answer_is=reading.answer_is, separator=reading.separator)
    return structs.replace(settings, input=events)


def command_of(settings: Settings, command: str = "") -> str:
    """The whole command line that reads this input with these settings: a run, or `command` with the options."""
    sources = " ".join(quote(uri) for uri in settings.source)
    begin = command or f"stream-engine run {sources} --state {settings.state or 'DIR'}"
    return f"{begin} {as_arguments(asked_options(settings))}".removesuffix(" no input options")


N_EXAMPLES = 3


def examples(settings: Settings, limit: int = N_EXAMPLES) -> list[str]:
    """The first answers in words, as these settings read them: what a person can check."""
    ingest = RecordDecoder(event_options(settings)._replace(provenance=True), settings.input.format)
    lines: list[str] = []
    try:
        for record in first_of_files(settings):
            for block in ingest.blocks([record]):
                lines += [
                    in_words(participant, answer)
                    for participant, answer in islice(answers(block.decoded), limit - len(lines))
                ]
                if len(lines) >= limit:
                    return lines
    except (UnusableOptions, ValueError):
        pass  # the run itself reports the problem
    return lines
