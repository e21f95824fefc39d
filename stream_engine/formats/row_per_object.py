"""Tables with a row for each object of an answer, or for each rank of a ranking, and what reshapes them."""

from collections import Counter
from collections.abc import Sequence
from itertools import combinations, takewhile

from stream_engine.formats.answers import is_flags, is_textual
from stream_engine.formats.explanation import is_constant
from stream_engine.formats.field_values import flag_of
from stream_engine.formats.participant_columns import participant
from stream_engine.formats.record_columns import Column, Records
from stream_engine.formats.vocabulary import ANCHOR, sign_of, words_of

MAX_PLACES = 12  # of different ranks, flags or places


def are_ranks(column: Column) -> bool:
    return 1 < len(column.distinct) == max((int(text) for text in column.distinct if text.isdecimal()), default=0)


def of_ranks(records: Records, rank: Column) -> str:
    """What to say of rankings with a row for each rank, and how to bring them into one row."""
    fact = f"column {rank.name} holds one rank in each row; expected one row for each ranking, a column for each rank"
    keys = [column for column in records.columns.values() if column is not rank and column.distinct]
    for group in (some for size in (1, 2, 3) for some in combinations(keys, size)):
        ranking = _joined(group)
        items = [column for column in keys if is_textual([column]) and _are_different([ranking, column])]
        if (
            not _are_different([ranking, rank])
            or len(ranking.distinct) * len(rank.distinct) != records.size
            or not items
        ):
            continue
        index = [column.name for column in keys if is_constant(column, ranking)]
        anchors = [name for name in index if ANCHOR & set(words_of(name))]
        if len(anchors) == 1:
            who = participant(records, False)
            fields = (
                f"anchor={anchors[0]},ranked=" if who is None else f"participant={who.name},anchor={anchors[0]},ranked="
            )
            steps = {}
            for end, prefix in ((1, "nearest_rank_"), (-1, "farthest_rank_")):
                ranked = [f"{prefix}{text}" for text in sorted(rank.distinct, key=int)][::end]
                steps[end] = (
                    f"in pandas, table.pivot(index={index}, columns={rank.name!r}, values={items[0].name!r})"
                    f".add_prefix({prefix!r}).reset_index().to_csv('ranked.csv', index=False), then stream-engine run "
                    f"ranked.csv --state DIR --type ranking --columns '{fields}{'|'.join(ranked)}'"
                )
            if end_of_first(rank.name):
                return f"{fact}; next: {steps[end_of_first(rank.name)]}"
            return f"{fact}; next: if 1 is the nearest object, {steps[1]}; if 1 is the farthest one, {steps[-1]}"
    return fact


def end_of_first(name: str) -> int:
    """Which end rank 1 is at, as the name of a column says, or a text beside the rows: 1 the nearest object, -1 the
    farthest one, 0 where it does not say it.

    >>> [end_of_first(name) for name in ("dissimilarity_rank_1_is_least_similar", "rank (1 = closest)", "rank")]
    [-1, 1, 0]
    >>> end_of_first("rank_least_similar_first"), end_of_first("similarity_rank")
    (-1, 0)
    >>> end_of_first("ranks: 1 = least similar, 4 = most similar"), end_of_first("4 is the farthest, 1 the closest")
    (-1, 1)
    """
    words = words_of(name)
    if "1" in words:
        after = words[words.index("1") + 1 :]
        return sign_of(takewhile(lambda word: not word.isdecimal(), after))
    return sign_of(words[: words.index("first")]) if "first" in words else 0


def row_per_object(records: Records) -> str:
    """What to say of a table with a row for each object shown and a flag for the one chosen; "" for anything else.

    >>> from stream_engine.formats.record_columns import records_of
    >>> rows = {"trial": [*"111222333"], "image": [*"abcbcdacd"], "odd": [*"001010100"]}
    >>> row_per_object(records_of(rows)).partition(";")[0]
    'each row has one of the 3 objects of an answer (image), and odd says which was chosen'
    """
    columns = [column for column in records.columns.values() if column.distinct]
    flags = [column for column in columns if len(column.distinct) == 2 and is_flags(column)]
    keys = [column for column in columns if column not in flags]
    for group in (some for size in (1, 2, 3) for some in combinations(keys, size)):
        answer = _joined(group)
        size = records.size // max(len(answer.distinct), 1)
        if not 2 < size <= MAX_PLACES or len(answer.distinct) * size != records.size or not is_constant(answer, answer):
            continue
        n_chosen = [Counter(text for text, flag in zip(answer.texts, each.texts) if flag_of(flag)) for each in flags]
        chosen = [flag for flag, n in zip(flags, n_chosen) if len(n) == len(answer.distinct) and {*n.values()} == {1}]
        items = [column for column in keys if is_textual([column]) and _are_different([answer, column])]
        if chosen and items:
            index, values = (
                [column.name for column in keys if is_constant(column, answer)],
                [items[0].name, chosen[0].name],
            )
            return (
                f"each row has one of the {size} objects of an answer ({values[0]}), and {values[1]} says which was "
                "chosen; next: one row for each answer, in pandas: table['n'] = "
                f"table.groupby({index}).cumcount() + 1; wide = table.pivot(index={index}, columns='n', "
                f"values={values}); "
                "wide.columns = [f'{name}_{n}' for name, n in wide.columns]; wide.reset_index().to_csv('wide.csv', "
                "index=False), then stream-engine preview wide.csv"
            )
    return ""


def _joined(columns: Sequence[Column]) -> Column:
    """Some columns as one, of text."""
    return Column("", [(repr(texts),) for texts in zip(*(column.texts for column in columns))])


def _are_different(columns: Sequence[Column]) -> bool:
    """Whether no two rows have the same values in all of these columns."""
    return len(_joined(columns).distinct) == len(columns[0].values)
