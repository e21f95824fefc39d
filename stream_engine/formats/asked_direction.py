"""The direction that questions and conditions ask for: the nearer or the farther object."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import NamedTuple

from stream_engine.formats.question_texts import Asked, asked, asked_in_name, is_question, is_text
from stream_engine.formats.record_columns import Beside, Column, Records
from stream_engine.formats.row_per_object import end_of_first
from stream_engine.formats.vocabulary import INSTRUCTION, NEARER, OTHER, SWAP, accentless, asks, sign_of, words_of

EITHER_END = "answers could name the farther object, or the nearer one (--answer-is)"
MAX_TEXTS = 300  # of a column that are looked at
_FARTHER_ALONE = accentless(  # that are not said of objects
    "dissimilar dissimilarity farthest furthest farther unlike unalike mismatch unahnlich unahnlicher unahnlichste "
    "unahnlichsten entfernteste dissemblable eloigne oddity oddoneout"
)


MAX_VERSIONS = 6  # of a question or an instruction
_QUESTIONS = accentless(
    "question instruction instructions prompt wording polarity direction frage anweisung instruktion consigne pregunta "
    "instruccion domanda istruzione vraag instructie"
)
_TURNED = SWAP | accentless(
    "inverse invers negated negative negativ umgekehrt verneint inverso inversa omgekeerd opposite"
)


class Contradiction(NamedTuple):
    """That something asks for the other direction than the reading has: a fact; where only some rows do so, their texts
    in a `column`."""

    fact: str
    column: str = ""
    texts: tuple[str, ...] = ()


def contradicted(
    records: Records, kind: str, used: set[str], farther: bool, answers: Sequence[str], by_ones: bool = False
) -> Contradiction | None:
    """Which column, or text beside the rows, asks for the other direction than the reading has; None if none does.
    `by_ones`: answers are flags, of which a text may say what 1 means."""
    expected = -1 if farther or kind == "odd_one_out" else 1
    for text in answers:
        if kind != "odd_one_out" and asked(text).sign * expected < 0:
            return Contradiction(
                f'the question "{text[:60]}" asks for the other direction than the answers are read in'
            )
    for name, column in records.columns.items():
        if name in used or OTHER & set(column.words) or 2 * len([*filter(None, column.values)]) < records.size:
            continue
        sign_of_text = _signs(column)
        signs = Counter(sign_of_text.values())
        if (
            signs[-expected]
            and (len(signs) > 1 or expected == 1)
            and not (kind == "odd_one_out" and not signs[expected])
        ):
            example = next(text for text, sign in sign_of_text.items() if sign == -expected)
            if kind == "odd_one_out" and " " not in example:
                continue
            mixed = " in some rows and something else in others" if len(signs) > 1 else ""
            others = [text for text in column.distinct if sign_of_text.get(text, asks(text)) == -expected]
            fact = f'column {name} says "{example[:60]}"{mixed}: {EITHER_END}'
            return Contradiction(fact, name if mixed else "", tuple(sorted(others)) if mixed else ())
    for name, column in records.columns.items():
        if name not in used and _QUESTIONS & {*column.words} and len(column.distinct) <= MAX_VERSIONS:
            turned = sorted(text for text in column.distinct if _TURNED & {*words_of(text)})
            if turned and len(turned) < len(column.distinct) and kind != "odd_one_out":
                return Contradiction(
                    f'column {name} says "{turned[0][:60]}" in some rows: {EITHER_END}', name, (*turned,)
                )
    of_one_end = expected == 1 and kind in ("pick", "quadruplet", "ranking")
    for place, text in farther_beside(records.beside, by_ones or kind == "ranking") if of_one_end else ():
        return Contradiction(f'{place} says "{text[:80]}": {EITHER_END}')
    return None


def asked_sign(records: Records) -> int:
    """The direction that the question in every row asks for, or a line above the rows; 0 where there is none, or
    another in some rows."""
    signs = set()
    for column in records.columns.values():
        signs_of_column = {*_signs(column).values()} if _is_text(column) else {0}
        signs |= signs_of_column if len(signs_of_column) == 1 else {0}
    signs |= {asked(beside.text).sign for beside in records.beside if beside.kind == "line" and _instructs(beside.text)}
    signs -= {0}
    return signs.pop() if len(signs) == 1 else 0


def sign_in_name(name: str) -> int:
    """The direction that the name of a column has: a word or two, or a whole question."""
    return asked_in_name(name).sign if is_question(name) else sign_of(words_of(name))


class Doubtful(NamedTuple):
    """A question of which it is not certain what it asks for, or that denies something; `column` "" where it stands in
    no cell."""

    place: str
    text: str
    asked: Asked
    column: str = ""


def doubtful_questions(records: Records, used: set[str], names: Sequence[str], texts: Sequence[str]) -> list[Doubtful]:
    """The questions in columns without a role, in the `names` of the answers, and in `texts` beside the cells."""
    found = [
        Doubtful(f"column {name}", text, said, name)
        for name, column in records.columns.items()
        if name not in used and _is_text(column) and _repeats(column)
        for text in sorted(column.distinct)
        if (said := asked(text)).doubt or said.denies
    ]
    beside = [
        *(("the header", name) for name in names if is_question(name)),
        *(("the header", text) for text in texts),
    ]
    beside += [(beside.place, beside.text) for beside in records.beside if beside.kind == "line"]
    for place, text in beside:
        said = asked_in_name(text)
        if (said.doubt or said.denies) and _instructs(text):
            found.append(Doubtful(place, text, said))
    return found


def _signs(column: Column) -> dict[str, int]:
    """The directions that the texts of a column ask for: questions, or words such as `dissimilar`."""
    texts, repeats = islice(column.distinct, MAX_TEXTS), _repeats(column)
    return {text: asked(text).sign if repeats else asks(text) for text in texts}


def farther_beside(texts: Iterable[Beside], of_ones: bool = False) -> Iterator[tuple[str, str]]:
    """The lines around the rows, and the names of files and sheets, that could ask for the farther object, or, where
    they are `of_ones`, say that it is rank 1, or 1."""
    for kind, place, text in texts:
        words = {*words_of(text)}
        named = bool(words & _FARTHER_ALONE) and not words & NEARER
        farther = asks(text) < 0 if kind == "name" else _instructs(text) and asked(text).sign < 0
        last = of_ones and kind in ("line", "sheet") and end_of_first(text) < 0
        if (kind in ("name", "line") and (named or farther)) or last:
            yield place, text


def _instructs(text: str) -> bool:
    """Whether a line tells somebody what to choose, as other lines above a table do not."""
    return "?" in text or bool(INSTRUCTION.intersection(words_of(text)))


def _repeats(column: Column) -> bool:
    """Whether the texts of a column are the same in many rows, or questions, and no comments."""
    distinct = column.distinct
    return 2 * len(distinct) <= len(column.values) or len(distinct) == 1 or all(text.endswith("?") for text in distinct)


def _is_text(column: Column) -> bool:
    """Whether a column holds a text in nearly every row: a question, no comment."""
    filled = sum(value is not None for value in column.values)
    return filled >= 0.9 * len(column.values) and any(map(is_text, column.distinct))
