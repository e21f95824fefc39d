"""Other readings of the same rows, to be offered where the rows do not say which is right."""

from collections.abc import Sequence, Set

from stream_engine.formats.answered_rows import ANSWERS, MAX_LISTED_VALUES
from stream_engine.formats.asked_direction import (
    EITHER_END,
    Contradiction,
    asked_sign,
    doubtful_questions,
    sign_in_name,
)
from stream_engine.formats.cells import LIST_SEPARATOR
from stream_engine.formats.draft import Draft
from stream_engine.formats.event_fields import place_of
from stream_engine.formats.key_mappings import KeyMapping, codes_of, key_mapping
from stream_engine.formats.question_texts import UNKNOWN
from stream_engine.formats.reading import FLIPPED, IN_DOUBT, Decision, Reading, flipped
from stream_engine.formats.record_columns import Column, Records
from stream_engine.formats.shown_orders import listed, shown_order
from stream_engine.formats.vocabulary import ANSWER, SWAP, accentless, words_of


def by_key_mapping(records: Records, draft: Draft, reading: Reading, questions: Sequence[str]) -> list[Reading]:
    """The reading, with what another column says that keys mean, or a text beside the cells; one for each part of the
    rows where it differs, or for each way in which it could be meant."""
    names = next((draft.fields[field] for field in ("shown", "objects") if field in draft.fields), ())
    answered = next((field for field in ANSWERS if field in draft.fields), "")
    if draft.answer.by not in ("position", "index") or len(draft.answer.columns) != 1:
        return [reading]
    answers = {*draft.answer.codes_of(records.columns[draft.answer.columns[0]])}
    answered_name = draft.answer.columns[0]
    texts = [("the header", answered_name), *(("the header", text) for text in questions)]
    texts += [(beside.place, beside.text) for beside in records.beside if beside.kind in ("line", "sheet")]
    mapping = key_mapping(records, names, answers, draft.roles(), texts)
    if mapping is None:
        mapping = _in_file(records, draft, names, answers)
    if mapping is None and (fact := _unread_file(records, draft, names, answers)):
        return [reading._replace(evidence=(*reading.evidence, Decision(IN_DOUBT, "read", fact)))]
    if mapping is None or not mapping.differs(draft.answer.by, draft.answer.codes, names):
        return [reading] if mapping is None or not mapping.doubt else _in_other_codes(mapping, draft, reading, answers)
    fact = f"{mapping.name} ({', '.join(mapping.means)}) says what {answered_name} means"
    if mapping.doubt:
        return _in_other_codes(mapping, draft, reading, answers)
    coded = [
        (mapping.filters(texts, draft.participant), {answered: codes_of(means, names)})
        for texts, means in mapping.parts
    ]
    if len(coded) == 1:
        decision = Decision("answer", ", ".join(draft.answer.columns), fact)
        evidence = [decision if each.topic == "answer" else each for each in reading.evidence]
        return [reading._replace(codes=coded[0][1], answers_by="position", evidence=tuple(evidence), doubt="")]
    return [
        reading._replace(
            codes=codes,
            answers_by="position",
            where={**reading.where, **where},
            doubt=f"{fact}, and this differs between rows",
        )
        for where, codes in coded
    ]


_EXCHANGED = SWAP | accentless(
    "counterbalanced counterbalancing counterbalance even opposite inverse umgekehrt ausbalanciert contrebalance "
    "contrabalanceado invers inversa inverso"
)


def exchanged_for_some(records: Records, draft: Draft, questions: Sequence[str]) -> str:
    """What to say of a text beside the cells that spells out what answers mean, and that it was otherwise for some; ""
    where there is none."""
    names = next((draft.fields[field] for field in ("shown", "objects") if field in draft.fields), ())
    if draft.answer.by not in ("position", "index") or len(draft.answer.columns) != 1:
        return ""
    (name,) = draft.answer.columns
    answers = {*draft.answer.codes_of(records.columns[name])}
    texts = [("the header", text) for text in (name, *questions)]
    texts += [(beside.place, beside.text) for beside in records.beside if beside.kind != "name"]
    for place, text in texts:
        if _EXCHANGED & {*words_of(text)} and key_mapping(Records({}, 0), names, answers, set(), [(place, text)]):
            fact = f'{place} says "{text[:120]}": {name} could mean the other object in some rows; next: add a column '
            meant = ", ".join(f"{answer}={column}" for answer, column in zip(sorted(answers), names))
            return f"{fact}that says in each row what answers mean there, such as {meant}"
    return ""


def _in_file(records: Records, draft: Draft, names: Sequence[str], answers: Set[str]) -> KeyMapping | None:
    """What a code book in a file beside the answers says that they mean, if they are read otherwise: it may be about
    other answers. Its texts about other columns are not looked at."""
    answered = draft.answer.columns[0]
    texts = [(beside.place, beside.text) for beside in records.beside if beside.kind == "file"]
    others = [{*words_of(name)} for name in records.columns if name not in (answered, *names)]
    named = [(place, text) for place, text in texts if {*words_of(answered)} <= {*words_of(text)}]
    of_none = [(place, text) for place, text in texts if not any(words <= {*words_of(text)} for words in others)]
    of_none = [
        (place, text) for place, text in of_none if ANSWER & {*words_of(text)} and ANSWER & {*words_of(answered)}
    ]
    book = key_mapping(Records({}, 0), names, answers, set(), named or of_none)
    if book is None or not all(book.means.values()) or not book.differs(draft.answer.by, draft.answer.codes, names):
        return None
    return book._replace(doubt=book.doubt or "could be about these answers")


def _unread_file(records: Records, draft: Draft, names: Sequence[str], answers: Set[str]) -> str:
    """What to say of a file of codes that has all letters of the answers, unless it agrees."""
    letters = {answer.casefold() for answer in answers if len(answer) == 1 and answer.isalpha()}
    letters -= {word for name in names for word in words_of(name)}  # such as image_A: they need no file
    texts = [(beside.place, beside.text) for beside in records.beside if beside.kind == "file"]
    book = key_mapping(Records({}, 0), names, answers, set(), texts)
    if len(letters) < 2 or (book is not None and not book.differs(draft.answer.by, draft.answer.codes, names)):
        return ""
    for place in dict.fromkeys(place for place, _ in texts):
        text = " / ".join(text for each, text in texts if each == place)
        if letters <= {*words_of(text)}:
            fact = f'{place} could say what {draft.answer.columns[0]} means ("{text[:100]}"), and is not read'
            return f"{fact}: compare it with the examples, and name the meanings with --codes if they differ"
    return ""


def _in_other_codes(mapping: KeyMapping, draft: Draft, reading: Reading, answers: Set[str]) -> list[Reading]:
    """The reading, and the one in which two answers mean the other objects."""
    names = next((draft.fields[field] for field in ("shown", "objects") if field in draft.fields), ())
    answered = next(field for field in ANSWERS if field in draft.fields)
    first = 0 if draft.answer.by == "index" else 1
    places = {answer: place_of(draft.answer.codes.get(answer, answer), names, first) for answer in answers}
    ((text, means),) = mapping.means.items()
    fact = f'{mapping.name} says "{text[:80]}", which {mapping.doubt}: what does {draft.answer.columns[0]} mean?'
    if not means and (len(names) != 2 or {*places.values()} != {0, 1}):
        doubt = Decision(IN_DOUBT, "read", f"{fact} Compare the first answers with what was answered")
        return [reading._replace(evidence=(*reading.evidence, doubt))]
    codes = codes_of(means or {answer: 1 - place for answer, place in places.items()}, names)
    reading = reading._replace(doubt=fact)
    return [reading, reading._replace(answers_by="position", codes={answered: codes})]


def in_other_order(records: Records, draft: Draft, rival: Column) -> tuple[str, ...]:
    """Columns with the objects of each row in another order, with the rival among them, if answers are places."""
    shown = next((draft.fields[field] for field in ("objects", "shown") if field in draft.fields), ())
    if draft.answer.by == "name" or len(shown) < 2:
        return ()
    stem = rival.words[:-1]
    others = [column for column in records.columns.values() if column.words[:-1] == stem and column.name not in shown]
    if len(others) != len(shown):
        return ()
    rows = range(records.size)
    sets = [[{records.columns[name].texts[row] for name in names} for row in rows] for names in (shown, _names(others))]
    return _names(others) if sets[0] == sets[1] else ()


def arranged(records: Records, draft: Draft, column: Column, reading: Reading) -> tuple[tuple[Reading, ...], str]:
    """The readings in which answers are places in the order that a column says objects were shown in: one, or one for
    the rows of each order; and a note on them."""
    names = next((draft.fields[field] for field in ("objects", "shown") if field in draft.fields), ())
    if draft.answer.by not in ("position", "index") or len(draft.answer.columns) != 1 or len(names) < 2:
        return (), ""
    answers = sorted(draft.answer.codes_of(records.columns[draft.answer.columns[0]]))
    listings = [
        records.separators.get(column.name, "") if len(value) > 1 else listed(value[0], offered)
        for row, value in enumerate(column.values)
        if value
        for offered in [[text for name in names for text in records.columns[name].values[row] or ()]]
        if len(value) == 1 or sorted(value) == sorted(offered)
    ]
    is_list = len(listings) == records.size and len({*listings}) == 1 and not draft.answer.codes
    if is_list and (listings[0] or LIST_SEPARATOR in "".join(filter(None, column.texts))):
        return (with_objects(reading, (column.name,))._replace(separator=listings[0] or None),), ""
    order = shown_order(records, column, names)
    if order is None:
        return (), ""
    answered = next(field for field in ANSWERS if field in draft.fields)
    first = 0 if draft.answer.by == "index" else 1
    places = {answer: place_of(draft.answer.codes.get(answer, answer), names, first) for answer in answers}
    parts = []
    for where, shown in order.parts:
        codes = codes_of({answer: shown[place] for answer, place in places.items()}, names)
        parts.append(reading._replace(answers_by="position", codes={answered: codes}, where={**reading.where, **where}))
    return tuple(parts), order.note


def _names(columns: Sequence[Column]) -> tuple[str, ...]:
    return tuple(column.name for column in columns)


def with_objects(reading: Reading, names: tuple[str, ...]) -> Reading:
    """The reading with the objects in these columns instead."""
    field = "objects" if "objects" in reading.columns else "shown"
    return reading._replace(columns={**reading.columns, field: names})


def both_directions(reading: Reading, other: Contradiction) -> tuple[Reading, ...]:
    """The reading, and the one in the other direction; each of its rows, where some ask for one and some for the
    other."""
    if not other.texts:
        return reading, flipped(reading)
    texts = LIST_SEPARATOR.join(other.texts)
    rest = reading._replace(where={**reading.where, f"{other.column}!=": texts})
    return rest, flipped(reading)._replace(where={**reading.where, other.column: texts})


def unsure_directions(reading: Reading, other: Contradiction) -> tuple[Reading, ...]:
    """The reading, and the one in the other direction; of the rows with the question that is not certain, and the
    reading of the others, where there are others."""
    if not other.texts:
        return reading, flipped(reading)
    rest, reversed_rows = both_directions(reading, other)
    return rest, reversed_rows._replace(answer_is=reading.answer_is), reversed_rows


def asked_in_words(
    records: Records, draft: Draft, reading: Reading, questions: Sequence[str]
) -> tuple[Reading, Contradiction | None]:
    """The reading, with what to say of questions that deny something or compare by words that are not known; and the
    question of which it is not certain what it asks for, if the names of the answers do not say it."""
    named = any(map(sign_in_name, draft.answer.columns))
    doubtful = doubtful_questions(records, draft.roles(), draft.answer.columns, questions)
    unsure = [question for question in doubtful if question.asked.doubt and question.asked.doubt != UNKNOWN]
    if unsure and not named:
        first = unsure[0]
        fact = f'{first.place} asks "{first.text[:80]}", which {first.asked.doubt}: {EITHER_END}'
        texts = tuple(question.text for question in unsure if question.column == first.column and first.column)
        others = {*records.columns[first.column].distinct} - {*texts} if first.column else set()
        return reading, Contradiction(fact, first.column if others else "", texts if others else ())
    if not any(question.asked.denies for question in doubtful) and (named or asked_sign(records)):
        return reading, None
    says = []
    for place, text, said, _ in doubtful:
        why = f", which {said.doubt}" if said.doubt else ""
        other_end = "farther" if reading.answer_is == "nearer" else "nearer"
        says.append(
            f'{place} asks "{text[:80]}"{why}: answers are read as the {reading.answer_is} object; if they name the '
            f"{other_end} one: {FLIPPED}"
        )
    doubts = tuple(Decision(IN_DOUBT, "read", text) for text in says[:MAX_LISTED_VALUES])
    return reading._replace(evidence=(*reading.evidence, *doubts)), None
