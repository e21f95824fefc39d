"""Headers that do not fit the rows below them: names that occur twice, tables on their side, rows with names."""

import csv

from stream_engine.data.csv_grammar import column_names, delimiter_of
from stream_engine.formats.vocabulary import ANSWER, PARTICIPANTS, SCREENS, in_one_word, words_of
from stream_engine.input.first_records import first_of_files
from stream_engine.input.settings import Settings

MAX_LINES = 200  # that are looked at
MAX_TURNED = 30  # lines of a table whose columns are the answers


def misfit_header(settings: Settings) -> str:
    """What to say of a table of text whose header does not fit, and what mends it; "" where it fits, or is no text."""
    record = next(first_of_files(settings), None)
    if record is None or record.format != "csv" or not settings.input.header:
        return ""
    try:
        names, delimiter = [name.strip() for name in column_names(record.header)], chr(delimiter_of(record.header))
        lines = bytes(record.value).decode().splitlines()[:MAX_LINES]
    except ValueError:
        return ""
    rows = [row for row in csv.reader(lines, delimiter=delimiter) if row]
    separator = "" if delimiter == "," else f", sep={delimiter!r}"
    if settings.input.skip_rows:
        separator += f", skiprows={settings.input.skip_rows}"
    again = [*dict.fromkeys(name for place, name in enumerate(names) if name and name in names[:place])]
    table = f"next: in pandas, pandas.read_csv({settings.source[0]!r}{separator}"
    then = ".to_csv('answers.csv', index=False), then stream-engine run answers.csv --state DIR"
    if not again:
        if not rows or any(len(row) != len(names) + 1 for row in rows) or len(names) < 2:
            return ""
        return f"each row has one cell more than the header (names of rows, as R writes them?); {table}){then}"
    if any(len(row) != len(names) for row in rows) or {*again} & {cell for row in rows for cell in row}:
        return ""  # the delimiter is another one, or the first line is a row
    sides = [names[0], *(row[0] for row in rows)]
    if len(sides) <= MAX_TURNED and len({*sides}) == len(sides) and sum(map(_is_called, sides)) > 1:
        fact = f"the table is on its side: {', '.join(sides[:5])} are in its first column, and each other column is an "
        then = then.replace("index=False", "header=False, index=False")
        return f"{fact}answer; {table}, header=None).T{then}"
    fact = f"several columns are called {', '.join(again[:5])}, and each needs a name of its own"
    return f"{fact}; {table}){then}: they are {again[0]}, {again[0]}.1, ... then"


def log_of_eprime(settings: Settings) -> str:
    """What to say of a log of E-Prime, which is no table; "" of others."""
    record = next(first_of_files(settings), None)
    if record is None or record.format != "csv" or b"*** Header Start ***" not in bytes(record.header):
        return ""
    fact = (
        f"{settings.source[0]}: got a log of E-Prime, with one line for each value, expected a table; next: open it in "
    )
    return f"{fact}E-DataAid, export it as text, and read that"


def _is_called(name: str) -> bool:
    """Whether a text is the name of a participant's, a trial's or an answer's column."""
    return in_one_word(name) in PARTICIPANTS or bool((SCREENS | ANSWER) & {*words_of(name)})
