"""How the input of a run is read without options: inferred from its first records, shown in words, never guessed.

Everything that reads events (a run, `preview`, `predict`, `Study`) goes through `prepared`, so that all of them read
the same. O(first records).

Files of questions, read like files of events: the same formats, text layouts and column names.

A file of answers is also a file of questions (see `stream_engine.evaluation.answering`). Files are read as a whole,
with about 2 kB of memory per question.

`in_words` tells what events say, so that a person sees whether a file was read as it was meant.
"""

from collections.abc import Iterator
from contextlib import closing
from itertools import islice
from shlex import quote
from typing import Any

from msgspec import structs

from connectors import STORES, Position, Record, SourceFailed, UnusableSource, split_uri
from connectors.files import expand
from connectors.files.readers import LineNumbers, Sizes, kind_of, open_reader, place
from stream_engine.data.comparisons import DecodedEvents
from stream_engine.data.csv_grammar import delimiter_of
from stream_engine.evaluation.questions import BadQuestion, QuestionReader, Questions
from stream_engine.formats.field_values import number_of
from stream_engine.formats.inference import readings, understood
from stream_engine.formats.json_places import is_utf8
from stream_engine.formats.options import UnreadableHeader, UnusableOptions
from stream_engine.formats.reading import Obstacle, Reading
from stream_engine.formats.record_columns import Records, header_rows, records_of
from stream_engine.formats.record_filters import matching
from stream_engine.formats.unreadable import fact_of, header_again
from stream_engine.service.ingest import Ingest
from stream_engine.service.record_units import rows_of_record
from stream_engine.service.resumed import PreparedSettings, as_arguments, asked_options
from stream_engine.service.settings import Input, Settings
from stream_engine.service.sources import check_runnable, event_options, source, text_layout_of

MOST = 2  # comparisons of one answer that are told


def answers(piece: DecodedEvents) -> Iterator[tuple[str, list[tuple[str, ...]]]]:
    """Who answered ("" where nobody is named) and the comparisons, by name, of each event of a block."""
    if piece.kinds is None:
        return
    of_event: dict[int, list[tuple[str, ...]]] = {}
    parts = ((piece.kinds.of_triplet, piece.triplets), (piece.kinds.of_quadruplet, piece.quadruplets))
    names, provenance = list(piece.names), piece.provenance
    for events, rows in parts:
        for event, row in zip(events.tolist(), rows.tolist(), strict=True):
            of_event.setdefault(event, []).append(tuple(names[i] for i in row))
    for event in sorted(of_event):
        number = -1 if provenance is None else int(provenance.worker[event])
        yield ("" if provenance is None or number < 0 else provenance.workers[number]), of_event[event]


def in_words(who: str, answer: list[tuple[str, ...]]) -> str:
    """An answer in words.

    >>> in_words("S07", [("lemon", "lime", "bread")]), in_words("", [("a", "b", "c", "d")])
    ('S07 said lemon is more like lime than like bread', 'a and b are more alike than c and d')
    """
    further = f"; and {len(answer) - MOST:,} more" if len(answer) > MOST else ""
    return (f"{who} said " if who else "") + "; ".join(map(_told, answer[:MOST])) + further


def _told(comparison: tuple[str, ...]) -> str:
    if len(comparison) == 3:
        anchor, near, far = comparison
        return f"{anchor} is more like {near} than like {far}"
    i, j, k, l = comparison
    return f"{i} and {j} are more alike than {k} and {l}"


ROWS = 2000  # that are looked at
FILES = 50  # whose rows these are
EXAMPLES = 3
MOST_SKIPPED = 3  # lines before the header
MOST_REJECTED = 0.1  # share of the rows, of a reading that is offered
_SAMPLE = Sizes(1 << 20)


def prepared(settings: Settings, typed: str = "") -> PreparedSettings:
    """The settings with the reading of their first records, where no options say how to read them. If several fit, the
    problem lists the commands of a run, or what was `typed` with the options of each. Raises what `check_runnable`
    raises."""
    check_runnable(settings)
    events = settings.input
    if events.type_ is not None or events.columns or events.answers_by != "name" or events.codes or events.separator:
        return PreparedSettings(settings)
    problem, encoding = "", _encoding(settings)
    for layout in (*_layouts(settings), structs.replace(events, encoding=encoding)):
        trial = structs.replace(settings, input=layout)
        records = first_records(trial)
        if again := header_again(matching(records, events.where)):
            rows = records.select(row for row in range(records.size) if row not in {*again})
            problem_of_header = _repeated(trial, records, again, understood(rows, events.where).readings, typed)
            return PreparedSettings(settings, problem=f"{settings.source[0]}: {problem_of_header}")
        understanding = understood(records, events.where)
        trials = [_with(trial, each) for each in understanding.readings]
        if len(trials) == 1 and not understanding.readings[0].doubt:
            options = asked_options(trials[0])
            line = "" if options == asked_options(settings) else f"read as {as_arguments(options)}"
            return PreparedSettings(trials[0], True, understanding.readings[0].evidence, line)
        if trials and (layout.encoding == encoding or _reads_most(trials[0])):
            return _rivals(settings, understanding.readings[0], trials, typed)
        if not problem and understanding.obstacle:
            problem = understanding.obstacle.fact + _next_step(understanding.obstacle, trial, typed)
    n_rows = matching(first_records(settings), events.where).size
    readable = bool(events.where) and bool(readings(first_records(settings)))
    if not problem and (fact := fact_of(first_records(settings), events.where, n_rows, readable)):
        problem = fact + _next_step(Obstacle(fact), settings, typed)
    return PreparedSettings(settings, problem=f"{settings.source[0]}: {problem}" if problem else "")


def _next_step(obstacle: Obstacle, settings: Settings, typed: str) -> str:
    """What to do about an obstacle: the command of the reading without the column that could bear on the answer."""
    if obstacle.rival is not None and obstacle.reading is not None:
        name, reading = obstacle.rival.column.name, obstacle.reading
        answered = reading.columns.get("chosen")
        other = f"; if it is the answer, with chosen={name}" if obstacle.rival.is_answer and answered else ""
        return f"; next: if {name} says nothing about the answer, {command_of(_with(settings, reading), typed)}{other}"
    if "next:" in obstacle.fact or "--" in obstacle.fact:
        return ""
    return (
        "; next: say how to read it with --type and --columns, or leave out columns that say nothing about the answer"
    )


def _repeated(settings: Settings, records: Records, again: list[int], rest: list[Reading], typed: str) -> str:
    """What to say of a table whose header is repeated, as in files that were written one after the other."""
    name = (
        rest[0].columns.get("chosen", next(iter(rest[0].columns.values())))[0] if rest else next(iter(records.columns))
    )
    lines = ", ".join(f"{row + 2 + settings.input.skip_rows:,}" for row in again[:3])
    further = f" and {len(again) - 3:,} more" if len(again) > 3 else ""
    fact = f"the header is repeated at lines {lines}{further}"
    where = {**settings.input.where, f"{name}!=": name}
    trial = structs.replace(settings, input=structs.replace(settings.input, where=where))
    return f"{fact}: leave these rows out with {command_of(trial, typed)}"


def _rivals(settings: Settings, first: Reading, trials: list[Settings], typed: str) -> PreparedSettings:
    """Several readings, of which a person chooses: those that read nearly all rows of the file."""
    trials = [each for each in trials if _reads_most(each)]
    commands = ", or ".join(f"{command_of(each, typed)} ({'; '.join(examples(each, 1))})" for each in trials)
    encoding = trials[0].input.encoding if trials else settings.input.encoding
    doubt = (
        first.doubt
        if encoding == settings.input.encoding
        else f"{first.doubt}; the text is not UTF-8 (--encoding {encoding})"
    )
    step = f"; next: {commands}" if commands else _next_step(Obstacle(doubt), settings, typed)
    problem = f"{settings.source[0]}: {doubt}; nothing was read{step}"
    return PreparedSettings(settings, True, first.evidence, "", doubt, tuple(trials), problem)


def _reads_most(settings: Settings) -> bool:
    """Whether these settings read nearly all of the first rows that they do not filter."""
    ingest = Ingest(event_options(settings)._replace(provenance=True), settings.input.format)
    n_read = rejected = 0
    try:
        for record in islice(_first_of_files(settings), FILES):
            for block in ingest.blocks([record]):
                n_read += sum(block.decoded.events.values())
                rejected += len(block.dead_letters)
    except (UnusableOptions, ValueError):
        return False
    return n_read > 0 and rejected <= MOST_REJECTED * (n_read + rejected)


def _encoding(settings: Settings) -> str | None:
    """The encoding of the text, as it was said, or else None if it is UTF-8."""
    values = (bytes(each.value) for each in _first_of_files(settings) if each.format == "csv")
    if settings.input.encoding is not None or all(map(is_utf8, values)):
        return settings.input.encoding
    return "cp1252"


def _layouts(settings: Settings) -> Iterator[Input]:
    """The layouts of text that are tried: as it is said; below lines before the header, where the first line is none;
    without a header, where the first line holds numbers."""
    events = settings.input
    yield events
    first = next(_first_of_files(settings), None)
    if first is None or first.format != "csv" or not events.header or events.skip_rows:
        return
    records = first_records(settings)
    names = list(records.columns)
    if len(names) < 2 or "" in names or header_rows(records) is not None:
        for skipped in range(1, MOST_SKIPPED + 1):
            yield structs.replace(events, skip_rows=skipped)
    if names and all(number_of(name, text=True) is not None for each in names for name in each.split()):
        spaces = len(names) == 1 and events.delimiter is None
        yield structs.replace(events, header=False, delimiter="space" if spaces else events.delimiter)


def _with(settings: Settings, reading: Reading) -> Settings:
    events = settings.input
    where = {**events.where, **reading.where}
    columns = {field: "|".join(names) for field, names in reading.columns.items()}
    codes = {field: dict(each) for field, each in reading.codes.items()}
    events = structs.replace(
        events, type_=reading.type or None, columns=columns, where=where, answers_by=reading.answers_by, codes=codes
    )
    events = structs.replace(events, answer_is=reading.answer_is, separator=reading.separator)
    return structs.replace(settings, input=events)


def command_of(settings: Settings, typed: str = "") -> str:
    """The whole command that reads this input so, as a person would type it: a run, or what was `typed` with these
    options."""
    sources = " ".join(quote(each) for each in settings.source)
    begin = typed or f"stream-engine run {sources} --state {settings.state or 'DIR'}"
    return f"{begin} {as_arguments(asked_options(settings))}".removesuffix(" no input options")


def first_records(settings: Settings) -> Records:
    """The first rows of the files that a run names, as columns; none where they cannot be read."""
    columns: dict[str, list[Any]] = {}
    size, commas = 0, False
    for record in _first_of_files(settings):
        try:
            commas |= record.format == "csv" and delimiter_of(record.header) != ord(",")
            for _, row in islice(rows_of_record(record, record.format), ROWS - size):
                if isinstance(row, dict):
                    for name, cell in row.items():
                        columns.setdefault(name, [None] * size).append(cell)
                    size += 1
                    for cells in columns.values():
                        cells.extend([None] * (size - len(cells)))
        except (UnusableOptions, ValueError, RecursionError):
            continue  # the run itself says what is wrong
        if size >= ROWS:
            break
    return records_of(columns, commas)


def first_columns(settings: Settings) -> list[str]:
    """The names of the columns, or of the fields of the first events."""
    return list(first_records(settings).columns)


def examples(settings: Settings, most: int = EXAMPLES) -> list[str]:
    """The first answers in words, as these settings read them: what a person can check."""
    ingest = Ingest(event_options(settings)._replace(provenance=True), settings.input.format)
    lines: list[str] = []
    try:
        for record in _first_of_files(settings):
            for block in ingest.blocks([record]):
                lines += [in_words(who, answer) for who, answer in islice(answers(block.decoded), most - len(lines))]
                if len(lines) >= most:
                    return lines
    except (UnusableOptions, ValueError):
        pass  # the run itself says what is wrong
    return lines


def _first_of_files(settings: Settings) -> Iterator[Record]:
    """The first block of each of the first files."""
    for uri in settings.source:
        if split_uri(uri)[0] in STORES:
            yield from _first_of_store(settings, uri)
    paths = [path for scheme, glob in map(split_uri, settings.source) if scheme == "file" for path in expand(glob)]
    for path in paths[:FILES]:
        try:
            kind = kind_of(path, settings.input.format, text_layout_of(settings))
            reader = open_reader(path, kind, Position(0), _SAMPLE)
        except (SourceFailed, UnusableSource, OSError, ValueError):
            continue
        try:
            record = reader.read()
            if record is not None and not record.problem:
                yield record._replace(value=record.value.slice(0, ROWS)) if record.format == "arrow" else record
        except (SourceFailed, OSError, ValueError):
            continue
        finally:
            reader.close()


def _first_of_store(settings: Settings, uri: str) -> Iterator[Record]:
    """The first block of the first object."""
    with closing(source(settings, uri, {})) as opened:
        try:
            while not opened.finished():
                for record in opened.poll(1.0):
                    if not record.problem:
                        yield record._replace(value=record.value.slice(0, ROWS)) if record.format == "arrow" else record
                    return
        except SourceFailed:
            return  # the run itself says what is wrong


def read(settings: Settings) -> Questions:
    """The questions in the sources of these settings. Raises `BadQuestion` (no file, or hardly any row is a
    question), and what a run with these settings would raise before it reads."""
    settings = structs.replace(settings, follow=False)
    if odd := [uri for uri in settings.source if split_uri(uri)[0] not in ("file", "stdin")]:
        raise BadQuestion(f"{odd[0]}: expected files of questions, or - for standard input")
    try:
        settings = prepared(settings).settings
        asking, lines = (
            QuestionReader(event_options(settings)),
            LineNumbers(settings.input.format, text_layout_of(settings)),
        )
        for uri in settings.source:
            opened = source(settings, uri, {})
            try:
                while not opened.finished():
                    for record in opened.poll(1.0):
                        _add(record, asking, lines, settings.input.format)
            finally:
                opened.close()
        lines.close()
    except (SourceFailed, UnusableSource, UnreadableHeader) as error:
        raise BadQuestion(str(error)) from None
    return asking.questions()


def _add(record: Record, asking: QuestionReader, lines: LineNumbers, format: str | None) -> None:
    kind = format or record.format
    asking.text = kind == "csv"
    where = record.partition
    if record.problem:
        asking.refuse(record.problem, place(where, record.offset, lines))
        return
    for at, row in rows_of_record(record, kind):
        where_in_file = _place(record, at, lines)
        if isinstance(row, str):
            asking.refuse(row, where_in_file)
        else:
            asking.add(row, where_in_file)


def _place(record: Record, at: int, lines: LineNumbers) -> str:
    if record.unit == "row":
        return f"{record.partition} row {record.offset + at + 1:,}"
    return place(record.partition, record.offset + at, lines)
