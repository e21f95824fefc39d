"""Names that a spreadsheet changed, or that are spelt in several ways: dates, errors, rounded numbers, case, zeros."""

import re
from collections.abc import Iterable, Sequence
from shlex import quote

from stream_engine.formats.cells import LIST_SEPARATOR
from stream_engine.formats.record_columns import Column, Records

N_NAMED = 5  # names
_ERROR = re.compile(r"#(?:REF|DIV/0|VALUE|NUM|NULL|SPILL|CALC)!|#NAME\?|#N/A", re.I)
_MONTHS = "jan feb mar mär mrt apr may mai mei jun jul aug sep sept oct okt nov dec dez".replace(" ", "|")
_DATE = re.compile(rf"[0-9]{{1,2}}[-. ](?:{_MONTHS})\.?|(?:{_MONTHS})-[0-9]{{2}}", re.I)
_GROUPED = re.compile(r"[0-9]{1,3}(?:,[0-9]{3})+(?:\.0)?")
ROUNDED = re.compile(r"[0-9](?:[.,][0-9]+)?E\+[0-9]+", re.I)


def dates_of_names(texts: Iterable[str]) -> str:
    """What to say of dates among names, which spreadsheets make of names such as MARCH1; "" where there are none.

    >>> dates_of_names(["TP53", "1-Mar"])
    '1-Mar: dates, which spreadsheets make of names such as MARCH1 and SEPT2'
    >>> dates_of_names(["1-Mar", "2-Mar"]), dates_of_names(["TP53"])
    ('', '')
    """
    texts = {*texts}
    dates = sorted(filter(_DATE.fullmatch, texts))
    if not dates or len(dates) == len(texts):
        return ""
    return f"{', '.join(dates[:N_NAMED])}: dates, which spreadsheets make of names such as MARCH1 and SEPT2"


def changed_by_spreadsheets(records: Records, names: Sequence[str]) -> list[str]:
    """What to say of objects and answers that are errors of formulas, dates, or numbers in several spellings."""
    columns = [records.columns[name] for name in dict.fromkeys(names)]
    items = {text for column in columns for text in column.items}
    says = [f"among the objects are {dates}: write the names again"] if (dates := dates_of_names(items)) else []
    for column in columns:
        errors = sorted(text for text in column.empties if _ERROR.fullmatch(text))
        if errors and None in column.values:
            where = quote(f"{column.name}!={LIST_SEPARATOR.join(errors)}")
            fact = f"{column.name} holds {', '.join(errors)} in some rows: errors of a spreadsheet, no names; to leave "
            says.append(f"{fact}them out: --where {where}")
    if pair := spelt_as_numbers(items):
        fact = f"{pair[0]!r} and {pair[1]!r} are read as two objects: if they are one number, write it in one way"
        says.append(fact)
    return says


def spelt_as_numbers(texts: Iterable[str]) -> tuple[str, str] | None:
    """Two spellings of one number, with and without a comma between thousands; None where there are none.

    >>> spelt_as_numbers(["1024", "1,024", "7"]), spelt_as_numbers(["1,024"])
    (('1,024', '1024'), None)
    """
    texts = {*texts}
    pairs = [(text, text.replace(",", "").removesuffix(".0")) for text in sorted(filter(_GROUPED.fullmatch, texts))]
    return next((pair for pair in pairs if pair[1] in texts), None)


def rounded_ids(who: Column) -> list[str]:
    """What to say of participants that a spreadsheet rounded.

    >>> rounded_ids(Column("pid", [("5.60E+23",)]))[0][:62]
    'pid holds ids in scientific notation (5.60E+23): a spreadsheet'
    """
    rounded = sorted(filter(ROUNDED.fullmatch, who.distinct))
    if not rounded:
        return []
    fact = f"{who.name} holds ids in scientific notation ({', '.join(rounded[:N_NAMED])}): a spreadsheet rounded them, "
    return [f"{fact}and different participants may have become one; export the file again with ids as text"]


def spelt_in_several_ways(who: Column) -> list[str]:
    """What to say of participants whose ids differ in case, spaces and zeros before numbers alone.

    >>> spelt_in_several_ways(Column("pid", [("P1",), ("p01",), ("P2",)]))[0].partition("), ")[0]
    "pid holds ids that differ in case, spaces or zeros alone ('P1' and 'p01'"
    """
    ids: dict[str, list[str]] = {}
    for text in sorted(who.distinct):
        plain = "".join(text.casefold().split())
        number = re.fullmatch(r"([^0-9]*)0*([0-9]+?)(?:\.0)?", plain)
        ids.setdefault(number[1] + number[2] if number else plain, []).append(text)
    alike = [texts for texts in ids.values() if len(texts) > 1]
    if not alike:
        return []
    pairs = ", ".join(f"{texts[0]!r} and {texts[1]!r}" for texts in alike[:N_NAMED]) + ", …" * (len(alike) > N_NAMED)
    fact = f"{who.name} holds ids that differ in case, spaces or zeros alone ({pairs}), and they count as different "
    fact += f"participants: {len(who.distinct):,}, of which at most {len(ids):,} differ otherwise. If these are one, "
    column = f"table[{who.name!r}]"
    steps = r".str.replace(r'\s|(?<![0-9])0+(?=[0-9])', '', regex=True).str.lower()"
    return [f"{fact}write each in one way, in pandas (read with dtype=str): {column} = {column}{steps}"]
