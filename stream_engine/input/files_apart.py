"""Several files that are not read in one way: some ask for the farther object, or one holds no answers."""

from contextlib import suppress
from pathlib import PurePath
from typing import NamedTuple

from msgspec import structs

from stream_engine.data.csv_grammar import column_names
from stream_engine.formats.asked_direction import farther_beside, sign_in_name
from stream_engine.formats.vocabulary import ROUNDS, words_of
from stream_engine.input.beside_tables import lines_around, names_and_sheets
from stream_engine.input.first_records import first_columns, first_of_files, first_records, paths_of
from stream_engine.input.settings import Settings

MAX_LINES_ABOVE = 3  # a header that may ask something


class FilesApart(NamedTuple):
    """That some files may ask for the farther object and others for the nearer one: a fact, and both."""

    fact: str
    nearer: tuple[str, ...]
    farther: tuple[str, ...]


def files_apart(settings: Settings) -> FilesApart | None:
    """The files that may ask for the farther object, by their names, headers, or the lines above them, where others do
    not; None where all of them do, or none."""
    says = {path: _asks_for_farther(_of_one(settings, path)) for path in paths_of(settings)}
    farther = tuple(path for path, text in says.items() if text)
    nearer = tuple(path for path, text in says.items() if not text)
    if not farther or not nearer:
        return None
    fact = f"{says[farther[0]]}, and nothing says so of {nearer[0]}: the answers of some files could name the farther "
    return FilesApart(f"{fact}object, and those of others the nearer one", nearer, farther)


def _of_one(settings: Settings, path: str) -> Settings:
    return structs.replace(settings, source=(path,))


def _asks_for_farther(settings: Settings) -> str:
    """What says of a file that it asks for the farther object, in words."""
    above = structs.replace(settings, input=structs.replace(settings.input, skip_rows=MAX_LINES_ABOVE))
    for place, text in farther_beside((*names_and_sheets(settings), *lines_around(above))):
        where = place if place.startswith("the name") else f"{place} of {settings.source[0]}"
        return f'{where} says "{text[:80]}"'
    names = (name for name in first_columns(settings) if sign_in_name(name) < 0)
    return next((f"{settings.source[0]} has answers in column {name}" for name in names), "")


def same_numbers(settings: Settings, name: str) -> str:
    """What to say of participants who are numbers, and occur in several files that are not called sessions; "" where
    there are none."""
    if any((ROUNDS | {"day", "run", "part", "week"}) & {*words_of(PurePath(path).stem)} for path in paths_of(settings)):
        return ""
    common: set[str] | None = None
    paths = paths_of(settings)
    for path in paths if len(paths) > 1 else ():
        column = first_records(_of_one(settings, path)).columns.get(name)
        people = column.distinct if column is not None else set()
        common = people if common is None else common & people
        if not common or not all(map(str.isdecimal, people)):
            return ""
    if not common:
        return ""
    some = ", ".join(sorted(common, key=int)[:3])
    fact = f"{name} holds the same numbers in several files ({some}, …), and they count as the same participants: if "
    return f"{fact}these are different people, write the file into {name}, too, such as A-1"


def no_answers(settings: Settings) -> str:
    """What to say of a table of text that shares no column with another one: a code book, or properties of objects; ""
    where there is none."""
    paths = paths_of(settings)
    if len(paths) < 2 or not settings.input.header or settings.input.skip_rows:
        return ""
    columns = {}
    for path in paths:
        record = next(first_of_files(_of_one(settings, path)), None)
        if record is not None and record.format == "csv":
            with suppress(ValueError):  # the run itself reports the problem
                columns[path] = {name.strip() for name in column_names(record.header)}
    for path, names in columns.items():
        others = [other for other in columns if other != path]
        if others and all(len(names) < len(columns[other]) and not names & columns[other] for other in others):
            fact = f"{path} ({', '.join(sorted(names)[:5])}) has no column in common with {others[0]}: a code book, or "
            return f"{fact}a table of objects? next: name the files of answers alone: stream-engine preview {others[0]}"
    return ""
