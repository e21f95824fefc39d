"""Columns of ranks beside as many objects: the rank of each object, or the number of the object at each rank."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from math import sqrt
from typing import NamedTuple

from stream_engine.formats.record_columns import Records
from stream_engine.formats.vocabulary import words_of

MIN_DEVIATIONS = 3.5  # of the difference between two shares of answers that agree
MIN_AGREEMENT = 0.6  # share of the answers to the same question that agree by the better meaning
Fields = Mapping[str, Sequence[str]]


class RankColumns(NamedTuple):
    """What to say of columns of ranks that could mean either; `are_ranks`: whether repeated questions say that they are
    ranks of objects, None where they do not decide."""

    are_ranks: bool | None
    text: str


def either_of_ranks(records: Records, fields: Fields, who: str) -> RankColumns | None:
    """What to say of the columns of a ranking; None where their names say what they are, or it is all the same.

    >>> from stream_engine.formats.record_columns import records_of
    >>> rows = {"a": [*"ppp"], "i1": [*"xyz"], "i2": [*"yzx"], "i3": [*"zxy"]}
    >>> fields = {"anchor": ("a",), "ranked": ("i1", "i2", "i3"), "rank": ("r1", "r2", "r3")}
    >>> either_of_ranks(records_of(rows | {"r1": [*"231"], "r2": [*"313"], "r3": [*"122"]}), fields, "").are_ranks
    >>> either_of_ranks(records_of(rows | {"r1": [*"222"], "r2": [*"111"], "r3": [*"333"]}), fields, "")
    """
    names, ranks = fields["ranked"], fields["rank"]
    if all({*words_of(name)} <= {*words_of(rank)} for name, rank in zip(names, ranks)):
        return None
    rows = [*_rows(records, fields)]
    if all(_inverse(order) == order for _, _, order in rows):
        return None
    as_ranks, total = _agreement(rows, inverse=True)
    as_numbers, _ = _agreement(rows, inverse=False)
    decided = max(as_ranks, as_numbers) >= MIN_AGREEMENT * total > 0
    decided = decided and abs(as_ranks - as_numbers) >= MIN_DEVIATIONS * sqrt(total / 2)
    columns = f"{ranks[0]} … {ranks[-1]}"
    read = f"anchor={fields['anchor'][0]},ranked={'|'.join(names)},rank={'|'.join(ranks)}"
    read += f",participant={who}" if who else ""
    turn = (
        f"in pandas, table[{[*ranks]}] = table[{[*ranks]}].to_numpy().argsort(axis=1) + 1; table.to_csv('ranks.csv', "
    )
    turn += f"index=False), then stream-engine run ranks.csv --state DIR --type ranking --columns '{read}'"
    shares = (
        f"{as_ranks:,} of {total:,} pairs of answers to the same question agree if they are ranks, {as_numbers:,} if "
    )
    shares += "they are numbers"
    either = f"{columns} could be the ranks of {names[0]} … {names[-1]}, or the numbers of the objects at each rank"
    if not decided:
        return RankColumns(None, f"{either}; if they are numbers, {turn}")
    if as_ranks > as_numbers:
        return RankColumns(True, f"{either}: they are read as ranks ({shares}); if they are numbers, {turn}")
    return RankColumns(False, f"{either}, and are likely to be numbers ({shares}): {turn}")


_ORDINAL = re.compile(r"[0-9]{1,2} ?(?:[.)°ºª]|st|nd|rd|th|er|e|eme|ème|de|ste)")
_RANKS = frozenset(words_of("rank ranks rang ranking place platz puesto plaats posto position"))


def ordinal_ranks(records: Records) -> str:
    """What to say of ranks that are written as ordinals, which would be read as names of objects; "" of others.

    >>> from stream_engine.formats.record_columns import records_of
    >>> ordinal_ranks(records_of({f"rank_{place}": ["1st", "2nd"] for place in "abc"})).partition(";")[0]
    "columns rank_a, rank_b, rank_c hold ranks as ordinals ('1st')"
    """
    called = [column for column in records.columns.values() if _RANKS & {*column.words} and column.distinct]
    names = [column.name for column in called if all(map(_ORDINAL.fullmatch, column.distinct))]
    if len(names) < 3:
        return ""
    fact = f"columns {', '.join(names)} hold ranks as ordinals ({min(records.columns[names[0]].distinct)!r})"
    step = f"table[{names}] = table[{names}].apply(lambda ranks: ranks.astype(str).str.extract('([0-9]+)')[0])"
    then = "table.to_csv('numbers.csv', index=False), then stream-engine preview numbers.csv"
    return f"{fact}; next: write them as numbers, in pandas, {step}; {then}"


_Row = tuple[str, list[str], tuple[int, ...]]  # anchor, objects, what stands in the columns, from 0


def _rows(records: Records, fields: Fields) -> Iterator[_Row]:
    for row in range(records.size):
        anchor, names, ranks = (
            [records.columns[name].texts[row] or "" for name in fields[field]] for field in ("anchor", "ranked", "rank")
        )
        order = tuple(int(text) - 1 for text in ranks if text.isdecimal())
        if sorted(order) == [*range(len(names))]:
            yield anchor[0], names, order


def _inverse(order: Sequence[int]) -> tuple[int, ...]:
    return tuple(order.index(place) for place in range(len(order)))


def _agreement(rows: Sequence[_Row], inverse: bool) -> tuple[int, int]:
    """How many pairs of answers to the same question agree, and how many there are."""
    said: dict[tuple[str, frozenset[str]], Counter[str]] = {}
    for anchor, names, order in rows:
        for near, far in combinations([names[at] for at in (_inverse(order) if inverse else order)], 2):
            said.setdefault((anchor, frozenset((near, far))), Counter())[near] += 1
    agree = sum(n * (n - 1) // 2 for counts in said.values() for n in counts.values())
    return agree, sum(n * (n - 1) // 2 for counts in said.values() for n in [counts.total()])
