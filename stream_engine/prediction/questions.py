"""A question: which of two objects is nearer to an anchor, or which of two pairs is more alike.

Its fields are `anchor`, `left`, `right` (or `anchor`, `near`, `far`, as in events, or `anchor` and two that are
`shown`, as `ask` writes them), or two pairs, `near` and `far` of two names each, also as `near_i` ... `far_j`.
"""

from collections.abc import Mapping
from typing import Any

from stream_engine.formats.options import UnusableOptions

SIDES = (("left", "right"), ("near", "far"))
PAIRS = ("near_i", "near_j", "far_i", "far_j")


class BadQuestion(UnusableOptions):
    """A question that cannot be asked; the message is one line: where, what, got, expected."""


def names_of(row: Mapping[str, Any], where: str) -> tuple[str, str, str, str]:
    """Which objects a question is about. Raises `BadQuestion`."""
    if row.get("anchor") is not None:
        if row.get("shown") is not None:
            left, right = _pair(row, "shown", where)
            row = {"anchor": row["anchor"], "left": left, "right": right}
        first, second = next((side for side in SIDES if row.get(side[0]) is not None), SIDES[0])
        anchor, one, other = (_name(row, field, where) for field in ("anchor", first, second))
        if len({anchor, one, other}) < 3:
            raise BadQuestion(
                f"{where}: got anchor {anchor!r}, {first} {one!r}, {second} {other!r}; expected three objects"
            )
        return anchor, one, anchor, other
    if all(row.get(field) is not None for field in PAIRS):
        i, j, k, l = (_name(row, field, where) for field in PAIRS)
    else:
        (i, j), (k, l) = (_pair(row, field, where) for field in ("near", "far"))
    if i == j or k == l or {i, j} == {k, l}:
        raise BadQuestion(f"{where}: got the pairs {i!r}, {j!r} and {k!r}, {l!r}; expected two different pairs")
    return i, j, k, l


def _pair(row: Mapping[str, Any], field: str, where: str) -> tuple[str, str]:
    value = row.get(field)
    pair = value.split("|") if isinstance(value, str) else value
    if not isinstance(pair, list) or len(pair) != 2:
        raise BadQuestion(
            f"{where}: got fields {', '.join(row) or 'none'}; expected anchor, left, right, or pairs of names near, far"
        )
    one, other = (_name({field: each}, field, where) for each in pair)
    return one, other


def _name(row: Mapping[str, Any], field: str, where: str) -> str:
    value = row.get(field)
    if isinstance(value, bool) or not isinstance(value, (str, int)) or value == "":
        raise BadQuestion(f"{where}: {field}: got {value!r}, expected the name of an object")
    return str(value)
