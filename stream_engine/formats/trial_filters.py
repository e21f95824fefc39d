"""Which records are questions, as other columns say: not practice, instructions, catch trials or rows of a header."""

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from stream_engine.formats.cells import LIST_SEPARATOR
from stream_engine.formats.field_values import flag_of
from stream_engine.formats.record_columns import Column, Records
from stream_engine.formats.vocabulary import words_of

MAX_RECORD_KINDS = 25  # values of a column that says what a record is
MAX_KINDS_BY_NUMBER = 3  # more numbers than these count something: trials, blocks
RECORD_KIND_WORDS = frozenset(
    words_of(
        "bedingung gruppe versuch durchgang phase "
        "type kind task zone screen block stage part section component sender condition name display routine "
        "event status set alg trial node round"
    )
)
_PRACTICE = re.compile(
    r"\b(?:practi[cs]e\w*|prac|warm ?up\w*|demos?|demonstration\w*|example\w*|tutorial\w*|familiari[sz]ation\w*"
    r"|ue?bung\w*|probe(?:durch|auf|lauf)\w*|entrainement|entrenamiento|practicas?|pratica|oefen\w*"
    r"|(?:essais?|passation) a blanc|proef(?:ronde|trial|blok|beurt)\w*|ensayos? de (?:practica|prueba)"
    r"|dry ?runs?|try ?outs?|(?:test|trial) ?runs?|rehearsals?)\b"
)
_NOT_PRACTICE = {"no", "non", "not", "post", "after", "without", "ohne", "nach"}
RESULTS = frozenset(
    words_of("passed pass failed fail done complete completed finished correct score ok acc accuracy result")
)
_LOOP = re.compile(r"(.+)\.(thisN|thisRepN|thisTrialN|thisIndex|ran)")  # PsychoPy: empty outside of the loop
CATCH_WORDS = {"catch", "attention", "check", "gold", "sanity", "catchtrial", "vigilance", "imc"}
_CATCH_TRIAL = re.compile(
    r"(catch|attention|check|vigilance|comprehension|instructed|imc|sanity|bot|captcha)([ _-]?\w*)?", re.I
)
OTHER_TRIAL = re.compile(
    r"(filler|screening|screener|dummy|distractor|lure|ensayo)s?([ _-]?\w*)?", re.I
)  # may be answers
FAILED = {"fail", "failed", "failing", "wrong", "incorrect", "not passed", "bad"}
PASSED = {"pass", "passed", "ok", "right", "correct", "good"}


class Filters(NamedTuple):
    """What leaves records out, or tells what they are, and why."""

    topic: str
    where: Mapping[str, str]
    why: str
    columns: Mapping[str, tuple[str, ...]] = {}
    doubt: str = ""


def is_boolean(column: Column) -> bool:
    """Whether a column says yes or no."""
    return bool(column.distinct) and all(flag_of(text) is not None for text in column.distinct)


def header_rows(records: Records) -> tuple[dict[str, str], list[int]] | None:
    """The filter that leaves out rows below the header that describe columns (Qualtrics, SurveyMonkey), and previews;
    and the rows that stay. None where there are no such rows.

    >>> from stream_engine.formats.record_columns import records_of
    >>> header_rows(records_of({"Progress": ["Progress", '{"ImportId":"progress"}', "100"], "Q1": ["?", "{}", "a"]}))
    ({'Progress>=': '0'}, [2])
    """
    columns = list(records.columns.values())
    tops = [row for row in range(min(3, records.size)) if any(_describes(column, row) for column in columns)]
    if not tops:
        return None
    first = max(tops) + 1
    for column in sorted(columns, key=lambda column: not {"progress", "duration", "respondent"} & set(column.words)):
        texts = column.texts
        numbers = texts[first:] and all(text is not None and _is_number(text) for text in texts[first:])
        if numbers and not any(text and _is_number(text) for text in texts[:first]):
            filters = {f"{column.name}>=": "0"}
            break
    else:
        named = next((column for column in columns if _names_alone(column, first)), None)
        if named is None:
            return None
        filters = {f"{named.name}!=": LIST_SEPARATOR.join(text for text in named.texts[:first] if text)}
    questions = list(range(first, records.size))
    for column in columns:
        if previews := sorted(filter(is_preview, {text for text in column.texts[first:] if text})):
            key = f"{column.name}!="
            filters[key] = LIST_SEPARATOR.join([*filter(None, [filters.get(key)]), *previews])
            questions = [row for row in questions if column.texts[row] not in previews]
    return filters, questions


def _names_alone(column: Column, first: int) -> bool:
    """Whether every row before the first one has a text of its own that a filter can name, and no row below has it."""
    above, below = column.texts[:first], {*column.texts[first:]}
    plain = all(text and text not in below and not set(text) & set(",|") for text in above)
    return plain and None not in below and not set(column.name) & set(",|=")


_PREVIEW = re.compile(r".*(preview|vorschau|apercu|vista previa|voorbeeld|anteprima|visualizacao)")
_SURVEY = re.compile(r".*(survey|umfrage|enquete|encuesta|sondaggio|pesquisa|inquerito)")


def is_preview(text: str) -> bool:
    """Whether a text says that a row is the preview of a survey, as Qualtrics writes it.

    >>> [is_preview(text) for text in ("Survey Preview", "Umfragevorschau", "Aperçu de l'enquête", "survey")]
    [True, True, True, False]
    """
    plain = " ".join(words_of(text)) if len(text) < 40 else ""
    return bool(_PREVIEW.match(plain) and _SURVEY.match(plain))


def _describes(column: Column, row: int) -> bool:
    text = column.texts[row] or ""
    return "ImportId" in text or text in ("Response", "Open-Ended Response")


def _is_number(text: str) -> bool:
    return re.fullmatch(r"-?[0-9]+(\.[0-9]+)?", text) is not None


_TIMES = {"rt", "time", "latency", "duration", "seconds", "ms", "timestamp", "zeit", "reaktionszeit"}


def distinguishing_filters(records: Records, good: Sequence[bool], other: Sequence[bool]) -> Filters | None:
    """The column whose values tell questions from what is none, the one that is called so first."""
    candidates = []
    for name, column in records.columns.items():
        texts = column.texts
        of_good = {text for text, is_good in zip(texts, good) if is_good}
        of_other = {text for text, is_other in zip(texts, other) if is_other}
        if None in of_good or of_good & of_other or len(column.distinct) > MAX_RECORD_KINDS or name.startswith("{"):
            continue
        called = bool(RECORD_KIND_WORDS & set(column.words))
        if _TIMES & set(column.words):  # how fast an answer was says nothing of what a record is
            continue
        if len(of_good) > MAX_KINDS_BY_NUMBER and all(_is_number(text) for text in of_good if text):
            continue
        if called or len(of_good) == 1:
            candidates.append((not called, len(of_good), name, sorted(text for text in of_good if text)))
    if not candidates:
        return None
    _, _, name, values = min(candidates, key=lambda candidate: candidate[:2])
    why = f"{sum(other):,} records are something else"
    return Filters("questions", {name: LIST_SEPARATOR.join(values)}, why)


_TRAINING = re.compile(r"training.*", re.I)
_TRAIN = re.compile(r"train([ _-]?(trials?|block|phase))?", re.I)
_PARTS_OF_DATA = {"set", "sample", "split", "fold", "alg"}  # on which models are trained
_TEST_SET = re.compile(r"test.*|valid.*|hold.?out.*|check.*", re.I)


def is_practice(text: str, inside: bool) -> bool:
    """Whether a text says that a trial is practice: at its beginning, or, in a short one, `inside` it, too.

    >>> [is_practice(text, True) for text in ("triplet_practice", "Übungsblock", "Democrat", "no practice")]
    [True, True, False, False]
    """
    words = words_of(text)
    if not inside or len(words) > 4 or _NOT_PRACTICE.intersection(words):
        return _PRACTICE.match(" ".join(words)) is not None
    return _PRACTICE.search(" ".join(words)) is not None


def practice(records: Records, objects: Sequence[str]) -> Filters | None:
    """The filter that leaves out practice trials, where there are others too."""
    if (loops := _practice_loops(records)) is not None:
        return loops
    for name, column in records.columns.items():
        if name in objects or not column.distinct or len(column.distinct) > MAX_RECORD_KINDS or _LOOP.fullmatch(name):
            continue
        if is_boolean(column):
            words = set(column.words) - {"is", "trial", "block"}
            called = words == {"demo"} or (("training" in words or is_practice(name, True)) and "demo" not in words)
            true = sorted(text for text in column.distinct if flag_of(text))
            if called and true and not RESULTS & words and not all(text in true for text in column.texts):
                return Filters("practice", {f"{name}!=": LIST_SEPARATOR.join(true)}, f"{name} says so")
            continue
        kind = bool(RECORD_KIND_WORDS & set(column.words))
        halves = any(_TEST_SET.fullmatch(text) for text in column.distinct)
        of_trials = kind and halves and not _PARTS_OF_DATA & set(column.words)
        practice_values = sorted(text for text in column.distinct if is_practice(text, kind))
        training = sorted(
            text for text in column.distinct if _TRAINING.fullmatch(text) or (of_trials and _TRAIN.fullmatch(text))
        )
        others = {*column.texts} - set(practice_values) - set(training)
        if practice_values and others:
            return Filters(
                "practice",
                {f"{name}!=": LIST_SEPARATOR.join(practice_values)},
                f"{name} is {', '.join(practice_values)}",
            )
        if training and others:
            filters = Filters("practice", {f"{name}!=": LIST_SEPARATOR.join(training)}, f"{name} is {training[0]}")
            doubt = f"{name} may say what is practice, or which part of the data to train models on"
            return (
                filters._replace(doubt=doubt)
                if halves and not _disjoint(records, objects, column, training)
                else filters
            )
    return None


def _practice_loops(records: Records) -> Filters | None:
    """The filter that leaves out loops of PsychoPy that are called practice: by the loop of all other trials, or else
    by the numbers in the loops of practice.

    >>> from stream_engine.formats.record_columns import records_of
    >>> _practice_loops(records_of({"practice.thisN": ["0", "1", ""], "trials.thisN": ["", "", "0"]})).where
    {'trials.thisN>=': '0'}
    """
    loops: dict[str, list[Column]] = {}
    for name, column in records.columns.items():
        if (loop := _LOOP.fullmatch(name)) and column.distinct:
            loops.setdefault(loop[1], []).append(column)
    called = {loop for loop in loops if is_practice(loop, True)}
    inside = [any(column.values[row] for loop in called for column in loops[loop]) for row in range(records.size)]
    if not any(inside) or all(inside):
        return None
    why = f"{sum(inside):,} of {records.size:,} trials are in the loop {', '.join(sorted(called))}"
    others = [column for loop in loops if loop not in called for column in loops[loop]]
    for column in sorted(others, key=lambda column: not column.name.endswith(".thisN")):
        if [value is None for value in column.values] == inside:
            return Filters("practice", {f"{column.name}>=": "0"}, why)
    fewest = [min(loops[loop], key=lambda column: len(column.distinct)) for loop in sorted(called)]
    if any(len(column.distinct) > MAX_RECORD_KINDS for column in fewest):
        return None
    return Filters(
        "practice", {f"{column.name}!=": LIST_SEPARATOR.join(sorted(column.distinct)) for column in fewest}, why
    )


def _disjoint(records: Records, objects: Sequence[str], column: Column, values: Sequence[str]) -> bool:
    """Whether records with these values have objects of their own."""
    inside, outside = set[str](), set[str]()
    for row, text in enumerate(column.texts):
        into = inside if text in values else outside
        into.update(text for name in objects for text in records.columns[name].values[row] or ())
    return not inside & outside


def catch_trials(records: Records, fields: Mapping[str, tuple[str, ...]], own_format: bool = False) -> Filters | None:
    """Trials in which an option is the target judge the participant; others that are called so are excluded. In the
    engine's own format such a trial is an error, unless another column marks catch trials."""
    offered = fields.get("shown") or (*fields.get("near", ()), *fields.get("far", ()))
    targets = records.columns[fields["anchor"][0]].values if "anchor" in fields else [None] * records.size
    same = [
        target is not None and any(target[0] in (records.columns[name].values[row] or ()) for name in offered)
        for row, target in enumerate(targets)
    ]
    used = {name for names in fields.values() for name in names}
    marks = {
        name: values for name, column in records.columns.items() if name not in used and (values := catch_marks(column))
    }
    marked = any(text in values for name, values in marks.items() for text in _at(records.columns[name], same))
    columns = {"catch": fields["anchor"]} if any(same) and marked else {}
    where, why = {}, f"in {sum(same):,} questions the target is an option"
    for name, values in marks.items():
        column = records.columns[name]
        unknown = sum(text in values and not same[row] for row, text in enumerate(column.texts))
        if 0 < 2 * unknown < records.size:
            where[f"{name}!="] = LIST_SEPARATOR.join(sorted(values))
            why, columns = f"{name} marks {unknown:,} of them, and their right answers are not known", {}
    return Filters("catch trials", where, why, columns) if columns or where else None


def _at(column: Column, rows: Sequence[bool]) -> list[str | None]:
    return [text for text, here in zip(column.texts, rows) if here]


def catch_marks(column: Column) -> set[str]:
    """The values of a column that mark catch trials."""
    called = CATCH_WORDS & {*column.words, "".join(column.words)}
    if called and None in column.values and {text.casefold() for text in column.distinct} <= FAILED | PASSED:
        return column.distinct
    if is_boolean(column):
        if called and RESULTS & set(column.words):  # how a catch trial ended, which others have not
            return column.distinct if None in column.values else set()
        return {text for text in column.distinct if flag_of(text)} if called else set()
    kinds = (RECORD_KIND_WORDS | CATCH_WORDS) & set(column.words) and len(column.distinct) <= MAX_RECORD_KINDS
    return {text for text in column.distinct if _CATCH_TRIAL.fullmatch(text)} if kinds else set()
