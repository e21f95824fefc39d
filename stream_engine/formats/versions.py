"""Versions of a study in one table, of which one may have meant the other object: keys that were swapped, a question
for the other end. A column of a few values tells them apart, by participant or by block."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence, Set
from itertools import pairwise
from math import sqrt
from shlex import quote

from stream_engine.formats.answers import Answer, is_flags
from stream_engine.formats.cells import LIST_SEPARATOR
from stream_engine.formats.event_fields import place_of
from stream_engine.formats.explanation import is_constant, row_roles
from stream_engine.formats.field_values import flag_of
from stream_engine.formats.key_mappings import codes_of, key_mapping
from stream_engine.formats.record_columns import Column, Records
from stream_engine.formats.vocabulary import MATERIAL, OBJECTS, POSITION, SIDES, SWAP, accentless, words_of

MAX_VERSIONS = 6
MIN_ANSWERS = 20  # of a version
MAX_CHANGES = 0.1  # of such a column from row to row, as a share of the rows: it is of blocks, not of answers
MIN_REVERSED = 0.5  # how far below one half the others' answers agree, as a share of how far above it its own ones do
MIN_OWN_AGREEMENT = 0.55  # share of the answers of a version that agree with others of the same version
MIN_DEVIATIONS = 3.5  # standard deviations from one half
_COUNTERBALANCE = SWAP | {
    *("counterbalance", "counterbalanced", "counterbalancing", "counterbal", "cb", "mapping", "keymap", "keymapping"),
    *("keys", "keyset", "assignment", "handedness", "tastenbelegung", "zuordnung", "contrabalanceo"),
}
_VERSION = {
    *("condition", "group", "version", "order", "form", "variant", "set", "cond", "bedingung", "gruppe"),
    *("groupe", "condicion", "grupo", "versie", "groep", "versione", "gruppo", "condizione", "versao", "grupa"),
}
_KEYCODES = {str(code) for code in (*range(65, 91), *range(37, 41))}

_MERGE = "stream-engine merge adds the two states, if the second one is of a copy of the file"

Columns = Mapping[str, tuple[str, ...]]  # of the fields of a reading


def doubtful_versions(
    records: Records, columns: Columns, answers_by: str, all_codes: Mapping[str, Mapping[str, str]]
) -> list[str]:
    """What to say of answers that may mean another object in some rows than in others."""
    field = next((field for field in ("chosen", "odd", "central") if len(columns.get(field, ())) == 1), "")
    if bool(field) == ("near" in columns):
        return []
    answer = Answer(columns[field], answers_by, all_codes.get(field, {})) if field else Answer()
    used = {name for of_field in columns.values() for name in of_field}
    who = records.columns.get("".join(columns["worker"])) if "worker" in columns else None
    versions = [column for name, column in records.columns.items() if name not in used and _is_version(column, who)]
    agreements = [(column, [*_agreements(records, columns, answer, column)]) for column in versions]
    says = [_contradiction(column, *rows[0]) for column, rows in agreements if rows]
    names = columns.get("shown") or columns.get("objects") or ()
    if answers_by == "name" and field == "chosen" and not any(says):
        says += [*_reversed_rows(records, columns, answer, used)]
    if answers_by not in ("position", "index") or len(names) < 2 or not field:
        return [text for text in says if text]
    first = 0 if answers_by == "index" else 1
    answers = records.columns[columns[field][0]].distinct
    answers = {text for text in answers if 0 <= place_of(answer.codes.get(text, text), names, first) < len(names)}
    mapping = key_mapping(records, names, answers, used)
    if mapping is not None and mapping.differs(answers_by, answer.codes, names):
        parts = [(mapping.filters(texts, who), codes_of(means, names)) for texts, means in mapping.parts]
        fact = f"{mapping.column.name} ({', '.join(mapping.means)}) says that answers mean other objects than they are "
        return [f"{fact}read as: {_each_part(field, [part for part in parts if part[0]])}"]
    if mapping is not None or any(says) or not _are_keys(answers, names):
        return [text for text in says if text]
    for column, rows in agreements:
        if _is_called_counterbalance(column) and max([_deviations(*counts) for _, *counts, _ in rows], default=0) < 3:
            texts = sorted(column.distinct)
            swapped = {
                text: names[1 - place_of(answer.codes.get(text, text), names, first)] for text in sorted(answers)
            }
            codes = swapped if len(names) == len(answers) == 2 else {"KEY": "COLUMN,..."}
            where = [{column.name: text} for text in texts[:2]]
            keys = ", ".join(sorted(answers))
            fact = (
                f"answers are keys ({keys}), and {column.name} is {', '.join(texts)}: if keys mean other objects for "
            )
            return [f"{fact}some of these, {_each_part(field, [(where[0], {}), (where[1], codes)])}"]
    return []


_REVERSED = accentless(
    "reverse reversed inverse inverted negated invertiert umgekehrt inverse inverso inversa invertido omgekeerd"
)
_OF_PLACES = OBJECTS | MATERIAL | POSITION | SIDES | accentless("order sides keys stimulus picture image face display")


def _reversed_rows(records: Records, columns: Columns, answer: Answer, used: Set[str]) -> Iterator[str]:
    """What to say of a column that is called reversed, and says yes of some rows: the question may have been reversed
    there, if their answers do not agree with the other ones."""
    for name, column in records.columns.items():
        words, is_flag = {*column.words}, is_flags(column) and len(column.distinct) == 2
        if name in used or not is_flag or not _REVERSED & words or _OF_PLACES & words:
            continue
        counts = [(agree, differ) for _, agree, differ, _ in _agreements(records, columns, answer, column)]
        if counts and min(_deviations(agree, differ) for agree, differ in counts) >= MIN_DEVIATIONS:
            continue
        text = max(column.distinct, key=lambda value: bool(flag_of(value)))
        where = [quote(f"{name}{sign}{text}") for sign in ("!=", "=")]
        fact = (
            f"{column.texts.count(text):,} of {records.size:,} rows count like the others although {name} is {text}: "
        )
        fact += f"if the question was reversed there, read each part by itself, with --where {where[0]}, and with "
        yield f"{fact}--where {where[1]} --answer-is farther; {_MERGE}"


def _each_part(field: str, parts: Sequence[tuple[Mapping[str, str], Mapping[str, str]]]) -> str:
    """How to read each part of the rows by itself: by filters, and with its own codes."""
    options = []
    for where, codes in parts:
        text = " ".join(f"--where {quote(f'{name}={wanted}')}" for name, wanted in where.items())
        as_text = ",".join(f"{answer}={name}" for answer, name in codes.items())
        options.append(f"{text} --codes {quote(f'{field}:{as_text}')}" if codes else text)
    each = f"read each part by itself, with {', and with '.join(options)}" if options else "read each part by itself"
    return f"{each}; {_MERGE}"


def _is_version(column: Column, who: Column | None) -> bool:
    """Whether a column of a few values is the same for each participant, or in blocks."""
    if not 2 <= len(column.distinct) <= MAX_VERSIONS or None in column.values or LIST_SEPARATOR in column.name:
        return False
    changes = sum(one != other for one, other in pairwise(column.texts))
    in_blocks = changes < max(len(column.distinct), MAX_CHANGES * len(column.texts))
    return in_blocks or (who is not None and is_constant(column, who))


def _is_called_counterbalance(column: Column) -> bool:
    """Whether a column is called like counterbalancing, or has values that are; or is called like a group, with values
    that say nothing: A, 1, c2."""
    called = {*column.words, "".join(column.words)}
    coded = all(len(text) < 3 or text.isdecimal() for text in column.distinct)
    swapped = any(SWAP & {*words_of(text)} for text in column.distinct)
    return bool(called & _COUNTERBALANCE) or swapped or (bool(called & _VERSION) and coded)


def _are_keys(answers: Set[str], names: Sequence[str]) -> bool:
    """Whether answers are keys: letters that begin no name of a column, arrows, or codes of keys."""
    initials = {word[0] for name in names for word in words_of(name)}
    return len(answers) > 1 and all(
        (len(text) == 1 and text.isalpha() and text.casefold() not in initials)
        or text in _KEYCODES
        or "arrow" in text.casefold()
        for text in answers
    )


def _agreements(
    records: Records, columns: Columns, answer: Answer, column: Column
) -> Iterator[tuple[str, int, int, float]]:
    """For each value of a column, how many of its answers agree with the nearness of the objects in the other rows, how
    many do not, and the share that agrees with its own other rows, from the least agreement on; none of a value whose
    answers do not agree with each other."""
    nearness = {text: Counter[frozenset[str]]() for text in column.distinct}
    rows = []
    for row, text in enumerate(column.texts):
        near, far = _pairs(records, row, columns, answer)
        if text is not None and near and far:
            rows.append((text, near, far))
            nearness[text].update(near)
            nearness[text].subtract(far)
    total = Counter[frozenset[str]]()
    for counts in nearness.values():
        total.update(counts)
    with_others, with_own = ({text: [0, 0] for text in nearness} for _ in range(2))
    for text, near, far in rows:
        own = nearness[text]
        of_others = sum(total[pair] - own[pair] for pair in near) - sum(total[pair] - own[pair] for pair in far)
        of_own = sum(own[pair] - 1 for pair in near) - sum(own[pair] + 1 for pair in far)  # without this answer
        for agreement, difference in ((with_others, of_others), (with_own, of_own)):
            if difference:
                agreement[text][difference < 0] += 1
    for text, (agree, differ) in sorted(with_others.items(), key=lambda item: item[1][0] / max(1, sum(item[1]))):
        agree_own, differ_own = with_own[text]
        if agree + differ >= MIN_ANSWERS and agree_own >= MIN_OWN_AGREEMENT * (agree_own + differ_own):
            yield text, agree, differ, agree_own / max(1, agree_own + differ_own)


def _pairs(
    records: Records, row: int, columns: Columns, answer: Answer
) -> tuple[list[frozenset[str]], list[frozenset[str]]]:
    """The pairs of objects that an answer says are nearer than others, and these others."""
    anchor, offered, chosen, others = row_roles(records, row, columns, answer)
    if "objects" in columns:
        if len(offered) != 3 or len(chosen) != 1:
            return [], []
        apart = [frozenset((chosen[0], other)) for other in others]
        return ([frozenset(others)], apart) if "odd" in columns else (apart, [frozenset(others)])
    if len(anchor) != 1:
        return [], []
    return [frozenset((anchor[0], name)) for name in chosen], [frozenset((anchor[0], name)) for name in others]


def _deviations(agree: int, differ: int) -> float:
    """By how many standard deviations more answers agree than one half."""
    return (agree - differ) / sqrt(max(1, agree + differ))


def _contradiction(column: Column, text: str, agree: int, differ: int, own: float) -> str:
    """What to say of a value of a column if its answers contradict those of the other rows; else ""."""
    n_answers = agree + differ
    is_reversed = 0.5 - agree / n_answers >= MIN_REVERSED * (own - 0.5)
    if not is_reversed or _deviations(agree, differ) > -MIN_DEVIATIONS:
        return ""
    where = [quote(f"{column.name}{sign}{text}") for sign in ("=", "!=")]
    fact = f"where {column.name} is {text}, {differ:,} of {n_answers:,} answers contradict those of the other rows "
    fact += "(by chance: one half): do keys mean the other object there, or does the question ask for it? Read each "
    fact += f"part by itself, with --where {where[0]}, and with --where {where[1]}; one needs --answer-is farther; "
    return f"{fact}{_MERGE}"
