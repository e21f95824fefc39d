"""The first records of an input as columns of text, in which empty values and lists are recognised."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations
from typing import Any, NamedTuple

from stream_engine.formats.cells import LIST_SEPARATOR, inside, is_bracketed, items_of
from stream_engine.formats.field_values import name_text
from stream_engine.formats.vocabulary import LISTS, words_of

_ERRORS = ("#ref!", "#div/0!", "#value!", "#name?", "#num!", "#null!", "#spill!", "#calc!")  # of spreadsheets
EMPTY = {*_ERRORS, "", "na", "n/a", "#n/a", "nan", "null", "none", "undefined", "nat"}  # in any case: no value


class Column(NamedTuple):
    """One column: a text or several per record, None where there is none."""

    name: str
    values: list[tuple[str, ...] | None]
    empties: frozenset[str] = frozenset()  # texts other than "" that stand for no value here

    @property
    def texts(self) -> list[str | None]:
        """The values as single texts; several are joined as in a table of text."""
        return [None if value is None else LIST_SEPARATOR.join(value) for value in self.values]

    @property
    def distinct(self) -> set[str]:
        return {text for text in self.texts if text is not None}

    @property
    def items(self) -> set[str]:
        """The single texts that occur."""
        return {text for value in self.values for text in value or ()}

    @property
    def words(self) -> tuple[str, ...]:
        """The words of its name in lower case.

        >>> Column("Input.stimulusLeft_2", []).words
        ('input', 'stimulus', 'left', '2')
        """
        return words_of(self.name)


class Beside(NamedTuple):
    """A text beside a table: a line above it, the `name` of its file or sheet, another sheet, or a code book in another
    file."""

    kind: str  # "line", "name", "sheet" or "file"
    place: str  # in words
    text: str


class Records(NamedTuple):
    """Some first records: columns of equal length."""

    columns: dict[str, Column]
    size: int
    decimal_commas: bool = False  # whether numbers may have one: in CSV with another delimiter
    separators: Mapping[str, str] = {}  # of the lists in the cells of these columns
    n_later: int = 0  # of the records are no first ones: they have marks that those lack
    cut: int = 0  # further rows that are none of these, because they have too few or too many cells
    beside: tuple["Beside", ...] = ()  # texts that stand beside the table

    def select(self, rows: Iterable[int]) -> "Records":
        """The records of these numbers."""
        rows = list(rows)
        columns = {
            name: column._replace(values=[column.values[row] for row in rows]) for name, column in self.columns.items()
        }
        return self._replace(columns=columns, size=len(rows))


def records_of(columns: Mapping[str, Sequence[Any]], decimal_commas: bool = False) -> Records:
    """Columns of cells, as a file or a frame has them. JSON in cells becomes columns of its own, names of no value stay
    where they can only be names, and lists are taken apart.

    >>> found = records_of({"a": ["x", "NA", 3.0], "b": [["x", "y"], "x|y", None], "c": ["['p', 'q']"] * 3})
    >>> found.columns["a"].values, sorted(found.columns["a"].empties), found.columns["b"].values
    ([('x',), None, ('3',)], ['NA'], [('x', 'y'), ('x', 'y'), None])
    >>> found.columns["c"].values[0], records_of({"j": ['{"k": "v"}']}).columns["j.k"].values
    (('p', 'q'), [('v',)])
    """
    reached: dict[str, Sequence[Any]] = {}
    for name, cells in columns.items():
        inner = [inside(cell) for cell in cells]
        if 2 * sum(map(bool, inner)) > sum(cell not in (None, "") for cell in cells):
            names = dict.fromkeys(f"{name}.{path}" for paths in inner for path in paths)
            reached |= {path: [paths.get(path[len(name) + 1 :]) for paths in inner] for path in names}
        else:
            reached[name] = cells
    separators = {name: separator for name, cells in reached.items() if (separator := _separator(name, cells, reached))}
    by_name = {
        name: Column(name, [_items(cell, separators.get(name)) for cell in cells]) for name, cells in reached.items()
    }
    named = _names_of_nothing(by_name)
    by_name = {name: _without_empty(column, named) for name, column in by_name.items()}
    return Records(
        by_name, max((len(column.values) for column in by_name.values()), default=0), decimal_commas, separators
    )


def _items(cell: Any, separator: str | None) -> tuple[str, ...] | None:
    """The texts of a cell; None where it holds nothing."""
    parts = cell if isinstance(cell, list) else items_of(cell, separator) if isinstance(cell, str) else [cell]
    texts = [_text(part) for part in parts]
    return tuple(text for text in texts if text) if texts and None not in texts and all(texts) else None


def _without_empty(column: Column, named: set[str]) -> Column:
    """The column without texts that stand for no value in it."""
    empties = {text for text in column.distinct if text.casefold() in EMPTY and text not in named}
    values = [
        None if value is not None and len(value) == 1 and value[0] in empties else value for value in column.values
    ]
    return column._replace(values=values, empties=frozenset(empties)) if empties else column


ORDERING = (" > ", ">", " < ", "<")  # between the items of a list that is an order
MAX_COMPARED_COLUMNS = 8  # with such a text


def _names_of_nothing(columns: Mapping[str, Column]) -> set[str]:
    """Texts such as NA that are names here: each of two columns with the same objects holds it where the other one
    holds an object, about as often as other objects; or a list has it among others."""
    candidates = [column for column in columns.values() if len(column.distinct) > 2]
    suspects = {text for column in candidates for text in column.distinct if text.casefold() in EMPTY}
    named = suspects & {
        text for column in candidates for value in column.values if value and len(value) > 1 for text in value
    }
    for text in suspects - named:
        having = [column for column in candidates if text in column.distinct]
        for one, other in combinations(having[:MAX_COMPARED_COLUMNS], 2):
            common = one.distinct & other.distinct
            counts = Counter(value[0] for value in one.values if value and len(value) == 1)
            usual = sorted(counts.values())[len(counts) // 2]
            are_alone = _is_alone(text, one, other) and _is_alone(text, other, one)
            in_turn = not any(a and b and (text,) not in (a, b) for a, b in zip(one.values, other.values))
            if len(common) > 2 and are_alone and not in_turn and 5 * counts[text] > usual:
                named.add(text)
                break
    return named


def _is_alone(text: str, one: Column, other: Column) -> bool:
    return any(a == (text,) and b is not None and b != a for a, b in zip(one.values, other.values))


def _separator(name: str, cells: Sequence[Any], columns: Mapping[str, Sequence[Any]]) -> str | None:
    """The sign between the items of lists in the cells of a column: each has as many, and most of them again and again;
    a comma only where another column holds them alone, or the column is called a list."""
    texts = [cell for cell in cells if isinstance(cell, str) and cell]
    if not texts or LIST_SEPARATOR in texts[0] or is_bracketed(texts[0]):
        return None
    for separator in (";", ",", *ORDERING):
        parts = [[item.strip() for item in text.split(separator)] for text in texts[:200]]
        if separator in ORDERING and separator not in texts[0]:
            continue
        sizes, items = {len(part) for part in parts}, {item for part in parts for item in part}
        if len(sizes) != 1 or min(sizes) < 2 or "" in items or 2 * len(items) > len(parts) * min(sizes):
            continue
        beside = any(
            items.issuperset(filter(None, map(str, other[:200]))) for key, other in columns.items() if key != name
        )
        if (
            beside
            or (LISTS & set(words_of(name)) and separator == ";")
            or (LISTS & set(words_of(name)) and min(sizes) == 3)
        ):
            return separator
    return None


def _text(cell: Any) -> str | None:
    if cell is None or isinstance(cell, (dict, list)):
        return None
    if isinstance(cell, bool):
        return str(cell).lower()
    text = name_text(cell.strip() if isinstance(cell, str) else cell, text=True)
    return str(cell) if text is None else text
