"""How the input of a run is read without options: inferred from its first records, shown in words, never guessed.

Everything that reads events (a run, `preview`, `predict`, `Study`) goes through `prepared`, so that all of them read
the same.
"""

from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from shlex import quote

from msgspec import structs

from stream_engine.formats.example_reading import example_reading
from stream_engine.formats.field_values import number_of
from stream_engine.formats.inference import readings, understood
from stream_engine.formats.json_places import is_utf8
from stream_engine.formats.options import UnusableOptions
from stream_engine.formats.reading import Obstacle, Reading
from stream_engine.formats.record_columns import Records
from stream_engine.formats.record_filters import matching
from stream_engine.formats.trial_filters import header_rows
from stream_engine.formats.unreadable import COMMAND, fact_of, header_again
from stream_engine.input.answers_in_words import answers, in_words
from stream_engine.input.decoding import RecordDecoder
from stream_engine.input.first_records import FILES, first_of_files, first_records
from stream_engine.input.settings import Input, Settings
from stream_engine.input.sources import check_runnable, event_options
from stream_engine.input.stored_options import PreparedSettings, as_arguments, asked_options

EXAMPLES = 3
MOST_SKIPPED = 3  # lines before the header
MOST_REJECTED = 0.1  # share of the rows, of a reading that is offered


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
    problem = problem.replace(COMMAND, command_of(structs.replace(settings, input=Input()), typed))
    return PreparedSettings(settings, problem=f"{settings.source[0]}: {problem}" if problem else "")


def _next_step(obstacle: Obstacle, settings: Settings, typed: str) -> str:
    """What to do about an obstacle: the command of the reading without the column that could bear on the answer."""
    if obstacle.rival is not None and obstacle.reading is not None:
        name, reading = obstacle.rival.column.name, obstacle.reading
        step = f"; next: if {name} says nothing about the answer, {command_of(_with(settings, reading), typed)}"
        if obstacle.rival.is_answer and "chosen" in reading.columns:
            trial = _with(settings, reading._replace(columns={**reading.columns, "chosen": (name,)}))
            step += f"; if it is the answer, {command_of(trial, typed)}" if _reads_most(trial) else ""
        return step
    trials = [_with(settings, each) for each in obstacle.offers]
    if obstacle.by_rows and all(map(_reads_most, trials)):
        return f"; next: {_each_its_rows(trials)}"
    if offered := _offered([] if obstacle.by_rows else trials, typed):
        return f"; next: {offered}"
    return "" if "next:" in obstacle.fact else f"; next: {_example(settings, typed)}"


def _each_its_rows(trials: list[Settings]) -> str:
    """Commands that read some rows in one way and the others in another, the latter of a copy of the file: of two
    states that have read the same file there is no sum."""
    path = Path(trials[0].source[0])
    copy = path.with_name(f"copy_of_{path.name}")
    rest, flipped = structs.replace(trials[0], state="A"), structs.replace(trials[1], state="B", source=(str(copy),))
    first, second = ("; ".join(examples(each, 1)) for each in trials)
    return (
        f"cp {quote(str(path))} {quote(str(copy))}, then {command_of(rest)} ({first}), then {command_of(flipped)} "
        f"({second}), then stream-engine merge A B --out DIR"
    )


def _example(settings: Settings, typed: str) -> str:
    """One whole command that reads the input, with its first answer to check; or if none is found, its form."""
    reading = example_reading(first_records(settings))
    trial = _with(settings, reading) if reading is not None else settings
    if reading is not None and _reads_most(trial):
        said = f"({'; '.join(examples(trial, 1))}), if that is what was answered"
        return f"{command_of(trial, typed)} {said}; columns that are not named are left out"
    fields = {"anchor": "COLUMN", "shown": "COLUMN|COLUMN", "chosen": "COLUMN"}
    form = structs.replace(settings, input=structs.replace(settings.input, type_="pick", columns=fields))
    return (
        f"{command_of(form, typed)}, with the columns of the object that others were compared with, of those that were "
        "shown, and of the answer; columns that are not named are left out"
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
    commands = _offered(trials, typed)
    encoding = trials[0].input.encoding if trials else settings.input.encoding
    doubt = (
        first.doubt
        if encoding == settings.input.encoding
        else f"{first.doubt}; the text is not UTF-8 (--encoding {encoding})"
    )
    step = f"; next: {commands}" if commands else _next_step(Obstacle(doubt), settings, typed)
    problem = f"{settings.source[0]}: {doubt}; nothing was read{step}"
    return PreparedSettings(settings, True, first.evidence, "", doubt, tuple(trials), problem)


def _offered(trials: list[Settings], typed: str) -> str:
    """The commands of those that read nearly all rows, each with its first answer in words."""
    trials = [each for each in trials if _reads_most(each)]
    return ", or ".join(f"{command_of(each, typed)} ({'; '.join(examples(each, 1))})" for each in trials)


def _reads_most(settings: Settings) -> bool:
    """Whether these settings read nearly all of the first rows that they do not filter."""
    ingest = RecordDecoder(event_options(settings)._replace(provenance=True), settings.input.format)
    n_read = rejected = 0
    try:
        for record in islice(first_of_files(settings), FILES):
            for block in ingest.blocks([record]):
                n_read += sum(block.decoded.events.values())
                rejected += len(block.dead_letters)
    except (UnusableOptions, ValueError):
        return False
    return n_read > 0 and rejected <= MOST_REJECTED * (n_read + rejected)


def _encoding(settings: Settings) -> str | None:
    """The encoding of the text, as it was said, or else None if it is UTF-8."""
    values = (bytes(each.value) for each in first_of_files(settings) if each.format == "csv")
    if settings.input.encoding is not None or all(map(is_utf8, values)):
        return settings.input.encoding
    return "cp1252"


def _layouts(settings: Settings) -> Iterator[Input]:
    """The layouts of text that are tried: as it is said; below lines before the header, where the first line is none;
    without a header, where the first line holds numbers."""
    events = settings.input
    yield events
    first = next(first_of_files(settings), None)
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


def examples(settings: Settings, most: int = EXAMPLES) -> list[str]:
    """The first answers in words, as these settings read them: what a person can check."""
    ingest = RecordDecoder(event_options(settings)._replace(provenance=True), settings.input.format)
    lines: list[str] = []
    try:
        for record in first_of_files(settings):
            for block in ingest.blocks([record]):
                lines += [in_words(who, answer) for who, answer in islice(answers(block.decoded), most - len(lines))]
                if len(lines) >= most:
                    return lines
    except (UnusableOptions, ValueError):
        pass  # the run itself says what is wrong
    return lines
