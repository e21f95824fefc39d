"""What to do about a file that is not read: commands, each tried on its first records."""

from pathlib import Path
from shlex import quote
from string import ascii_uppercase

from msgspec import structs

from stream_engine.formats.doubtful_rows import (
    below_in_words,
    columns_of,
    copies,
    other_header_in_words,
)
from stream_engine.formats.example_reading import example_reading
from stream_engine.formats.inference import understood
from stream_engine.formats.options import FIRST_OF
from stream_engine.formats.reading import Obstacle, Reading
from stream_engine.formats.record_columns import Records
from stream_engine.formats.record_filters import matching
from stream_engine.input.files_apart import FilesApart
from stream_engine.input.first_records import first_records
from stream_engine.input.settings import Settings
from stream_engine.input.sources import event_options
from stream_engine.input.tried_readings import command_of, examples, reads_most, with_reading


def table_in_pandas(settings: Settings) -> str:
    """How pandas reads the first file, with every cell as text."""
    path = settings.source[0]
    if path.casefold().endswith(".xlsx"):
        return f"table = pandas.read_excel({path!r}, dtype=str, keep_default_na=False)"
    if path.casefold().endswith((".jsonl", ".json", ".ndjson")):
        return f"table = pandas.read_json({path!r}, lines=True, dtype=False)"
    return f"table = pandas.read_csv({path!r}, dtype=str, keep_default_na=False, sep=None, engine='python')"


def without_lower_table(settings: Settings, records: Records, begin: int) -> str:
    """What to say of another table below the answers, and how to leave it out."""
    fact = below_in_words(records, begin)
    if not _is_one_table_of_text(settings):
        return f"{fact}; next: save the answers as a file of their own"
    answers = f"answers{Path(settings.source[0]).suffix}"
    of_answers = command_of(structs.replace(settings, source=(answers,)))
    n_lines = begin + settings.input.skip_rows + settings.input.header
    return f"{fact}; next: head -n {n_lines} {quote(settings.source[0])} > {answers}, then {of_answers}"


def parted_at_header(settings: Settings, records: Records, row: int) -> str:
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


MIN_ROWS_OF_NUMBER = 10  # for each object, after which its number has occurred


def numbered_otherwise(settings: Settings, command: str) -> str:
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


def next_step(obstacle: Obstacle, settings: Settings, command: str) -> str:
    """What to do about an obstacle: the command of the reading without the column that could bear on the answer."""
    if obstacle.rival is not None and obstacle.reading is not None:
        name, reading = obstacle.rival.column.name, obstacle.reading
        step = (
            f"; next: if {name} says nothing about the answer, {command_of(with_reading(settings, reading), command)}"
        )
        if obstacle.rival.is_answer and "chosen" in reading.columns:
            trial = with_reading(settings, reading._replace(columns={**reading.columns, "chosen": (name,)}))
            step += f"; if it is the answer, {command_of(trial, command)}" if reads_most(trial) else ""
        if "at the place that an answer means" in obstacle.rival.why:
            step += f"; if it does, {name} and the answer name the chosen object together: write its name as the answer"
        arranged = [with_reading(settings, offer) for offer in obstacle.offers]
        if arranged and all(map(reads_most, arranged)):
            step += "; if it says which object stood at each place that is an answer, "
            step += _each_its_rows(arranged) if obstacle.by_rows else commands_of(arranged, command)
            step += f"; {obstacle.note}" if obstacle.note else ""
        return step
    candidates = [with_reading(settings, offer) for offer in obstacle.offers]
    if obstacle.by_rows and all(map(reads_most, candidates)):
        return f"; next: {_each_its_rows(candidates)}"
    if offered := commands_of([] if obstacle.by_rows else candidates, command):
        return f"; next: {offered}"
    return "" if "next:" in obstacle.fact else f"; next: {_example(settings, command)}"


def each_its_files(settings: Settings, apart: FilesApart) -> str:
    """What to say of files of which some may ask for the farther object, and how to read both and add them."""
    parts = []
    for paths, answer_is in ((apart.nearer, "nearer"), (apart.farther, "farther")):
        part = structs.replace(settings, source=paths)
        readings = understood(first_records(part), settings.input.where, answer_is).readings
        parts += [with_reading(part, readings[0])] if len(readings) == 1 and not readings[0].doubt else []
    if len(parts) == 2 and all(map(reads_most, parts)):
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
    trial = with_reading(settings, reading) if reading is not None else settings
    if reading is not None and reads_most(trial):
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


def repeated_header(
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


def commands_of(candidates: list[Settings], command: str) -> str:
    """The commands of those that read nearly all rows, each with its first answer in words."""
    candidates = [candidate for candidate in candidates if reads_most(candidate)]
    return ", or ".join(
        f"{command_of(candidate, command)} ({'; '.join(examples(candidate, 1))})" for candidate in candidates
    )
