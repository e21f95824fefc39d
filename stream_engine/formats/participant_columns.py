"""Which column says who answered, and which one may."""

from collections.abc import Set
from itertools import pairwise

from stream_engine.formats.answers import is_flags, is_textual
from stream_engine.formats.changed_names import ROUNDED
from stream_engine.formats.field_values import number_of
from stream_engine.formats.record_columns import Column, Records
from stream_engine.formats.trial_filters import RECORD_KIND_WORDS
from stream_engine.formats.vocabulary import ANCHOR, MATERIAL, OBJECTS, PARTICIPANTS, ROUNDS, in_one_word

_PERSONAL = {"id", "code", "nr", "no", "name", "initials", "kurzel", "nick", "nickname", "alias", "ip", "email", "mail"}
_NAMES = {"name", "fullname", "firstname", "vorname", "nom", "nombre", "initials", "uid", "whoanswered", "answeredby"}
_MATERIAL = {"date", "day", "list", "seed"} | MATERIAL - {"id", "name"}
_IMPERSONAL = RECORD_KIND_WORDS | ROUNDS | _MATERIAL | OBJECTS | ANCHOR
_CALLED_PEOPLE = {
    *("participant", "subject", "worker", "annotator", "rater", "judge", "user", "person", "participante", "deelnemer"),
    *(
        "proefpersoon",
        "sujet",
        "sujeto",
        "vp",
        "vpn",
        "versuchsperson",
        "proband",
        "teilnehmer",
        "partecipante",
        "subj",
    ),
    *("ppt", "ppn", "pp", "coder", "observer", "informant", "respondent", "repondant", "prolific"),
}


def participant(records: Records, wide: bool) -> Column | None:
    """The column that says who answered: called so, filled, and the same in several records."""
    candidates = []
    for name, column in records.columns.items():
        inner = name if " " in name else name.rpartition(".")[2]
        called = next((name_part for name_part in map(in_one_word, (name, inner)) if name_part in PARTICIPANTS), "")
        filled = sum(value is not None for value in column.values)
        if called in PARTICIPANTS and filled >= 0.9 * records.size and records.size and not set(name) & set(",|="):
            repeated = wide or len(column.distinct) < max(2, 0.9 * filled) or records.size < 10
            repeated = repeated and (called != "session" or is_textual([column]))
            if repeated and not any("." in text and number_of(text, text=True) is not None for text in column.distinct):
                candidates.append((len(column.distinct) < 2, PARTICIPANTS.index(called), name))
    return records.columns[min(candidates)[2]] if candidates else None


def rounded_participants(records: Records, used: Set[str]) -> Column | None:
    """A column that is called like participants or their ids, and holds numbers that a spreadsheet rounded: 5.61E+09.

    >>> from stream_engine.formats.record_columns import records_of
    >>> rounded_participants(records_of({"prolific_no": ["5.61E+09"] * 4, "odd": [*"abab"]}), {"odd"}).name
    'prolific_no'
    """
    for name, column in records.columns.items():
        words = set(column.words)
        called = "".join(column.words) in PARTICIPANTS or (_PERSONAL & words and not _IMPERSONAL & words)
        is_rounded = any(map(ROUNDED.fullmatch, column.distinct))
        if called and is_rounded and name not in used and len(column.distinct) <= 0.5 * records.size:
            return column
    return None


def like_participants(records: Records, used: Set[str]) -> Column | None:
    """A column that may say who answered, although it is not called so: each value in rows one after another, or an id
    that repeats."""
    objects = {text for name in used if name in records.columns for text in records.columns[name].items}
    for name, column in records.columns.items():
        texts = column.texts
        words = {word for word in column.words if len(word) > 1 or len(column.words) == 1}  # no parts of foreign words
        called = "".join(column.words) in _NAMES
        if name in used or None in texts or (_IMPERSONAL & words and not called) or set(name) & set(",|="):
            continue
        if called and 2 <= len(column.distinct) <= len(texts) // 2 and not column.distinct & objects:
            return column
        runs = 1 + sum(one != other for one, other in pairwise(texts))
        several = 3 <= len(column.distinct) <= len(texts) // 3
        numbers = [number_of(text, text=True) for text in column.distinct]
        whole = all(number is None or number.is_integer() for number in numbers)
        if several and whole and (runs == len(column.distinct) or (_PERSONAL & words and not is_flags(column))):
            return column
    return None


def without_name(records: Records) -> str:
    """What to say of a column without a name that may say who answered, such as one below a header of two levels.

    >>> without_name(Records({"": Column("", [("S1",), None, None, ("S2",), None, None])}, 6))
    "no participants are read, and a column without a name holds 'S1', 'S2': if it says who answered, give it a name"
    """
    texts = records.columns[""].distinct if "" in records.columns else set()
    if not 2 <= len(texts) <= records.size // 3 or all(number_of(text, text=True) is not None for text in texts):
        return ""
    named = ", ".join(map(repr, sorted(texts)[:2])) + (", …" if len(texts) > 2 else "")
    fact = f"no participants are read, and a column without a name holds {named}"
    return f"{fact}: if it says who answered, give it a name"


def one_row_each(records: Records) -> Column | None:
    """A column that is called like participants, and differs in nearly every row."""
    for name, column in records.columns.items():
        words = set(column.words)
        called = "".join(column.words) in PARTICIPANTS and words & _CALLED_PEOPLE and not set(name) & set(",|=")
        if called and records.size >= 10 and len(column.distinct) >= 0.9 * records.size:
            return column
    return None
