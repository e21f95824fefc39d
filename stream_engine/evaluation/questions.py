"""Questions in rows of a table: which of two objects is nearer to an anchor, or which of two pairs is more alike.

The fields are `anchor`, `left`, `right`, or those of an event, as the options of events (`--columns`, `--type`) name
them.
"""

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np

from stream_engine.data.comparisons import READABLE_TYPES
from stream_engine.formats.cells import LIST_SEPARATOR, inside, items_of, paths_of
from stream_engine.formats.event_fields import SHAPES, Filter, fields_of, filter_of
from stream_engine.formats.field_values import is_absent, name_text, number_of
from stream_engine.formats.options import EventOptions, UnusableOptions

Four = tuple[str, str, str, str]  # i, j, k, l: is d(i, j) < d(k, l)?
SIDES = ("left", "right")
PAIRS = ("near_i", "near_j", "far_i", "far_j")
QUESTION_COLUMNS = ("asked_anchor", "asked_left", "asked_right")  # which of several questions of a row this is
NOTHING: Four = ("", "", "", "")  # the question of a row that asks none: no model knows it
_TRIADS = {name for name, shapes in SHAPES.items() if shapes[0].name == "objects"}


class BadQuestion(UnusableOptions):
    """A row that is no question; the message is one line: where, what, got, expected."""


class QuestionTable(NamedTuple):
    """Questions in the order of the input; `rows` and `names` are parallel."""

    rows: list[dict[str, Any]]  # the fields of the row; a row with several questions is repeated
    names: list[Four]
    note: str = ""  # one line about rows without a question, if there are any


class QuestionReader:
    """Reads rows by the options of events: `add` each row, then `questions`.

    An event asks questions too, whatever was answered: a triplet and a pick of two ask one (`near`, or the first of
    `shown`, is i's partner); a pick or a ranking of m objects one for each of their C(m, 2) pairs, in their order; an
    odd-one-out and a most-central of a, b, c three: b or c nearer to a, a or c to b, a or b to c. Two pairs are `near`
    and `far` of two names each (also `near_i` ... `far_j`).
    """

    def __init__(self, options: EventOptions, text: bool = False):
        """`text`: every cell is text, and lists are joined by `|`. Raises `UnusableOptions` for contradictory options.

        >>> fields = {"anchor": ("probe",), "shown": ("a", "b"), "chosen": ("said",)}
        >>> asking = QuestionReader(EventOptions("pick", fields))
        >>> asking.add({"probe": "lemon", "a": "lime", "b": "bun", "said": "bun"}, "row 0")
        >>> asking.questions().names
        [('lemon', 'lime', 'lemon', 'bun')]
        """
        events = {field: inputs for field, inputs in options.columns.items() if field not in SIDES}
        fields_of(options._replace(columns=events))
        self.options, self.text = options, text
        self._rows: list[dict[str, Any]] = []
        self._names: list[Four] = []
        self._n_questions = self._n_refused = 0
        self._first_refusal = ""

    def add(self, row: Mapping[str, Any], where: str) -> None:
        """Add the questions of a row, or note that it has none. Rows are filtered by `where` of the options."""
        if not isinstance(row, Mapping):
            self.refuse(f"got {str(row)[:40]}, expected an object with anchor, left, right", where)
            return
        if not all(_passes_filter(filter_of(key, condition), row) for key, condition in self.options.where.items()):
            return
        inner = paths_of([name for names in self.options.columns.values() for name in names], list(row))
        try:
            questions = self._questions_of(
                {**row, **{name: inside(row[column]).get(inner_path) for name, (column, inner_path) in inner.items()}}
            )
        except BadQuestion as error:
            self.refuse(str(error), where)
            questions = [NOTHING]
        else:
            self._n_questions += 1
        for i, j, k, l in questions:
            which = dict(zip(QUESTION_COLUMNS, (i, j, l))) if len(questions) > 1 else {}
            self._rows.append({**row, **which})
            self._names.append((i, j, k, l))

    def refuse(self, message: str, where: str) -> None:
        """Note a row that is no question."""
        self._n_refused += 1
        self._first_refusal = self._first_refusal or f"{where}: {message}"

    def questions(self) -> QuestionTable:
        """All questions. Raises the first `BadQuestion` if half of the rows or more are no questions."""
        if self._n_refused and self._n_refused >= self._n_questions:
            raise BadQuestion(self._first_refusal)
        n_rows = self._n_refused + self._n_questions
        note = f"{self._n_refused:,} of {n_rows:,} rows are not questions; the first, {self._first_refusal}"
        return QuestionTable(self._rows, self._names, note if self._n_refused else "")

    def _questions_of(self, row: Mapping[str, Any]) -> list[Four]:
        """The questions d(i, j) < d(k, l) of a row. Raises `BadQuestion`."""
        kind = self.options.type or self._cell(row, "type")
        if kind is not None and kind not in SHAPES:
            raise BadQuestion(f"type: got {kind!r}, expected one of {', '.join(READABLE_TYPES)}")
        if kind == "label":
            raise BadQuestion("got a label, expected a question")
        if kind in _TRIADS or (kind is None and self._has(row, "objects")):
            a, b, c = _distinct("objects", self._list(row, "objects", 3))
            return [(a, b, a, c), (b, a, b, c), (c, a, c, b)]
        if not self._has(row, "anchor") or kind == "quadruplet":
            return [self._two_pairs(row)]
        anchor = self._name(row, "anchor")
        list_field = next((field for field in ("shown", "ranked") if self._has(row, field)), None)
        if list_field:
            names = _distinct(list_field, self._list(row, list_field, None))
            if anchor in names:
                raise BadQuestion(f"{list_field}: got the anchor {anchor!r} among them, expected other objects")
            return [(anchor, first_name, anchor, second_name) for first_name, second_name in combinations(names, 2)]
        first, second = SIDES if self._is_named(row, SIDES) else ("near", "far")
        first_name, second_name = self._name(row, first), self._name(row, second)
        if len({anchor, first_name, second_name}) < 3:
            raise BadQuestion(
                f"got anchor {anchor!r}, {first} {first_name!r}, {second} {second_name!r}; expected three objects"
            )
        return [(anchor, first_name, anchor, second_name)]

    def _two_pairs(self, row: Mapping[str, Any]) -> Four:
        if all(self._has(row, field) for field in PAIRS):
            i, j, k, l = (self._name(row, field) for field in PAIRS)
        elif self._has(row, "near") and self._has(row, "far") and not self._without_anchor(row):
            (i, j), (k, l) = (self._list(row, field, 2) for field in ("near", "far"))
        elif missing := self._missing(row):
            raise BadQuestion(f"{missing} is missing")
        else:
            raise BadQuestion(
                f"got fields {', '.join(map(str, row)) or 'none'}; expected anchor, left, right, or pairs near, far; "
                "set --columns and --type (in Python: columns and type) as for reading answers"
            )
        if i == j or k == l or {i, j} == {k, l}:
            raise BadQuestion(f"got the pairs {i!r}, {j!r} and {k!r}, {l!r}; expected two different pairs")
        return i, j, k, l

    def _missing(self, row: Mapping[str, Any]) -> str:
        """The field without a value in a row that has the columns of a question; "" if it has no such columns."""
        for fields in (("anchor", *SIDES), ("anchor", "near", "far"), PAIRS, ("near", "far")):
            if all(any(name in row for name in self._inputs(field)) for field in fields):
                return next(field for field in fields if not self._has(row, field))
        return ""

    def _without_anchor(self, row: Mapping[str, Any]) -> bool:
        """Whether a row is a triplet whose anchor has no value: near and far are single names."""
        sides = [row.get(self._inputs(field)[0]) for field in ("near", "far")]
        single = not any(isinstance(side, list) or LIST_SEPARATOR in str(side) for side in sides)
        return single and any(name in row for name in self._inputs("anchor"))

    def _is_named(self, row: Mapping[str, Any], sides: Sequence[str]) -> bool:
        """Whether a row has one of these fields, or columns for them where near and far have no value."""
        if any(self._has(row, side) for side in sides):
            return True
        columns = any(name in row for side in sides for name in self._inputs(side))
        return columns and not any(self._has(row, field) for field in ("near", "far"))

    def _inputs(self, field: str) -> Sequence[str]:
        return self.options.columns.get(field, (field,))

    def _has(self, row: Mapping[str, Any], field: str) -> bool:
        return any(row.get(name) not in (None, "") for name in self._inputs(field))

    def _cell(self, row: Mapping[str, Any], field: str) -> Any:
        """The value of a field; None also for an empty one."""
        value = row.get(self._inputs(field)[0])
        return None if value == "" else value

    def _list(self, row: Mapping[str, Any], field: str, size: int | None) -> list[str]:
        inputs = self._inputs(field)
        value: Any = [row.get(name) for name in inputs] if len(inputs) > 1 else row.get(inputs[0])
        parts = items_of(value, self.options.separator) if isinstance(value, str) else value
        if not isinstance(parts, list) or (len(parts) < 2 if size is None else len(parts) != size):
            raise BadQuestion(f"{field}: got {_short(value)}, expected {size or 'two or more'} names")
        return [self._checked(field, part) for part in parts]

    def _name(self, row: Mapping[str, Any], field: str) -> str:
        if (value := self._cell(row, field)) is None:
            raise BadQuestion(f"{field} is missing")
        return self._checked(field, value)

    def _checked(self, field: str, value: Any) -> str:
        name = None if value is None else name_text(value, self.text)
        if not name:
            raise BadQuestion(f"{field}: got {_short(value)}, expected the name of an object")
        return name


def _distinct(field: str, names: list[str]) -> list[str]:
    if len(set(names)) < len(names):
        raise BadQuestion(f"{field}: got {', '.join(names)[:60]}; expected different objects")
    return names


def _passes_filter(filter: Filter, row: Mapping[str, Any]) -> bool:
    value = row.get(filter.source)
    absent = np.bool_(is_absent(value, text=True))
    number = number_of(value, text=True)
    compared = np.nan if number is None else number
    return bool(filter.keeps(lambda text: not absent and _text_of(value) == text, absent, lambda: compared))


def _text_of(value: Any) -> str:
    """A cell as `--where` compares it."""
    return str(value).lower() if isinstance(value, bool) else name_text(value) or str(value)


def _short(value: Any) -> str:
    return "nothing" if value is None else repr(value)[:60]
