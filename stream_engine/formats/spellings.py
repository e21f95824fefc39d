"""Answers that name the objects shown in another spelling: with other capitals or spaces, without zeros at the front,
or without the folder and the ending of a file."""

import re
import unicodedata
from collections.abc import Callable, Iterator, Sequence

from stream_engine.formats.answers import MIN_FIT, is_answer, named_share, offered, shown_in
from stream_engine.formats.record_columns import Column, Records
from stream_engine.formats.shown_layouts import anchors_of
from stream_engine.formats.vocabulary import OTHER, TRUTH

READ_TABLE = "table = pandas.read_csv(FILE, dtype=str)"  # who knows the file writes how it is read
_FOLDER_AND_ENDING = r"^.*[/\\]|[.][A-Za-z0-9]{2,5}$"
_ZEROS = r"^0+(?=[0-9])"


def _spaces(text: str) -> str:
    return " ".join(unicodedata.normalize("NFC", text).split())


FORMS: tuple[tuple[str, Callable[[str], str], str], ...] = (  # what differs, without it, and the same in pandas
    ("spaces", _spaces, ".str.normalize('NFC').str.split().str.join(' ')"),
    (
        "spaces or capitals",
        lambda text: _spaces(text).lower(),
        ".str.normalize('NFC').str.split().str.join(' ').str.lower()",
    ),
    ("zeros at the front", lambda text: re.sub(_ZEROS, "", text), f".str.replace(r'{_ZEROS}', '', regex=True)"),
    (
        "the folder or the ending of a file",
        lambda text: re.sub(_FOLDER_AND_ENDING, "", _spaces(text).lower()),
        f".str.split().str.join(' ').str.lower().str.replace(r'{_FOLDER_AND_ENDING}', '', regex=True)",
    ),
)


def other_spelling(records: Records) -> str:
    """What to say of answers that are the objects shown in another spelling; "" where there are none.

    >>> from stream_engine.formats.record_columns import records_of
    >>> rows = {"target": [*"xyz"], "left": ["a/b.jpg", "a/c.jpg", "a/b.jpg"], "right": ["a/d.jpg"] * 3}
    >>> other_spelling(records_of(rows | {"choice": ["b", "d", "b"]})).partition(":")[0]
    "answers in choice are the objects shown (left, right) but for the folder or the ending of a file ('b', 'a/b.jpg')"
    """
    columns = [column for column in records.columns.values() if column.distinct]
    for group in shown_in(columns):
        for answer in columns:
            called = is_answer(answer) and not (TRUTH | OTHER) & {*answer.words}
            if answer in group or not called or named_share(answer, group) >= MIN_FIT:
                continue
            if fact := _of_columns(records, answer, group):
                return fact
    return ""


def _of_columns(records: Records, answer: Column, group: Sequence[Column]) -> str:
    objects = {text for column in group for text in column.items}
    for what, form, in_pandas in FORMS:
        folded, group_folded = _folded(answer, form), [_folded(column, form) for column in group]
        if "file" in what and len({*map(form, objects)}) < len({_spaces(text).lower() for text in objects}):
            continue  # files of the same name in several folders
        if named_share(folded, group_folded) < MIN_FIT or _are_alike(group_folded):
            continue
        one, other = next(_pairs(answer, group, form))
        anchors = anchors_of(records, group, (answer.name,))[:1]
        names = [column.name for column in (*anchors, *group, answer)]
        listed = ", ".join(column.name for column in group)
        return (
            f"answers in {answer.name} are the objects shown ({listed}) but for {what} ({one!r}, {other!r}): next: "
            f"write them alike, in pandas: {READ_TABLE}; table[{names}] = table[{names}].apply(lambda column: "
            f"column{in_pandas}); table.to_csv('alike.csv', index=False), then stream-engine preview alike.csv"
        )
    return ""


def _pairs(answer: Column, group: Sequence[Column], form: Callable[[str], str]) -> Iterator[tuple[str, str]]:
    """The answers that are spelt otherwise than the object shown, and that object."""
    for row, value in enumerate(answer.values):
        shown = offered(group, row)
        for text in value or ():
            yield from ((text, other) for other in shown if text not in shown and form(text) == form(other))


def _folded(column: Column, form: Callable[[str], str]) -> Column:
    return column._replace(values=[None if value is None else tuple(map(form, value)) for value in column.values])


def _are_alike(group: Sequence[Column]) -> bool:
    """Whether two objects of a row are the same."""
    rows = [[text for text in texts if text is not None] for texts in zip(*(column.texts for column in group))]
    return sum(len({*texts}) < len(texts) for texts in rows) > (1 - MIN_FIT) * len(rows)
