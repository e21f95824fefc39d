"""How records are to be read, from what stands in many of them: a reading with the evidence for each decision.

Pure: the same records give the same readings, whatever file or frame they come from. A reading is taken only where it
is the only one: two that fit equally well are both returned, and none is chosen. Names of columns suggest roles;
values decide: an answer names one of the objects beside it, or is a code with as many values as there are objects;
columns of objects hold the same things; what fits no question is told apart by a column that says what a record is.

Layouts that are read so: docs/files.md. Each is in tests/formats/survey_files.py, as its tool writes it.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations, islice
from typing import NamedTuple

import numpy as np

from stream_engine.formats.event_fields import LIST_SEPARATOR, Filter, filter_of, place_of
from stream_engine.formats.field_values import number_of
from stream_engine.formats.record_columns import (
    Column,
    Records,
    asked_in_header,
    catch_trials,
    distinguishing_filters,
    header_rows,
    melted,
    practice,
    with_answers,
)
from stream_engine.formats.roles import (
    ANCHOR,
    ANSWER,
    CENTRAL,
    FAR,
    NEAR,
    NOT_ANSWER,
    ODD,
    Answer,
    answer_of,
    family_of,
    participant,
    response_times,
)

LEAST_FIT = 0.98  # share of the questions that a reading must make sense of
LEAST_SHARED = 0.5  # the same for columns of which nothing else speaks for objects
MOST_TEXTS = 12  # columns of text among which those of objects are looked for
LEAST_ROWS = 10  # after which an object that is never chosen may be an anchor
LEAST_ALIKE = 0.2  # share of the values that columns of objects have in common
MOST_VALUES = 5  # of a column that are named
OWN = {"type", "near_i", "near_j", "far_i", "far_j", "n_near", "n_far"}


class Evidence(NamedTuple):
    """One decision: about what, what was decided, and why."""

    decision: str
    taken: str
    why: str


class Reading(NamedTuple):
    """How records are read: the options of events, and the evidence for them; `sure` is false where a choice was made
    that the records do not decide."""

    type: str
    columns: dict[str, tuple[str, ...]]
    answers_by: str = "name"
    codes: Mapping[str, Mapping[str, str]] = {}
    where: Mapping[str, str] = {}
    evidence: tuple[Evidence, ...] = ()
    doubt: str = ""  # what the records do not decide


def readings(records: Records, where: Mapping[str, str] = {}) -> list[Reading]:
    """The readings of records: one, if they decide it, several that fit equally well, or none. Records that `where`
    leaves out are not looked at. O(values).

    >>> from stream_engine.formats.record_columns import records_of
    >>> rows = {"Target": ["cat", "dog"], "Option1": ["dog", "owl"], "Option2": ["owl", "cat"], "Choice": ["2", "1"]}
    >>> [(found.type, found.columns, found.answers_by) for found in readings(records_of(rows))]
    [('pick', {'anchor': ('Target',), 'shown': ('Option1', 'Option2'), 'chosen': ('Choice',)}, 'position')]
    """
    if OWN & set(records.columns):
        return []
    records = _matching(records, where)
    top = header_rows(records)
    if top is not None:
        filters, kept = top
        return [
            found._replace(
                where={**filters, **found.where},
                evidence=(*found.evidence, Evidence("rows below the header", _shown(filters), "they describe columns")),
            )
            for found in _readings(records.kept(kept))
        ]
    return _readings(records)


def unmatched(records: Records, where: Mapping[str, str]) -> str:
    """Why records that could be read are not: `where` keeps none of them; "" for other records.

    >>> from stream_engine.formats.record_columns import records_of
    >>> rows = {"who": ["S1"], "Target": ["cat"], "Left": ["dog"], "Right": ["owl"], "Choice": ["owl"]}
    >>> unmatched(records_of(rows), {"who": "S9"})
    'none of the first 1 rows has who=S9; next: --where with a value that the column has: who (S1)'
    """
    if not records.size or _matching(records, where).size or not any(each.type for each in readings(records)):
        return ""
    sources = [filter_of(key, wanted).source for key, wanted in where.items()]
    some = [
        f"{name} ({', '.join(islice(dict.fromkeys(filter(None, records.columns[name].texts)), MOST_VALUES))})"
        for name in sources
        if name in records.columns
    ]
    return (
        f"none of the first {records.size:,} rows has {_shown(where)}; next: --where with a value that the column has: "
        f"{', '.join(some)}"
    )


def candidates(records: Records, where: Mapping[str, str] = {}) -> list[Reading]:
    """What records may be of which no name of a column says anything: three columns with the same values, and one that
    names an object beside it, or its column. Each has a doubt, and there are two of them: they are shown, never chosen.

    >>> from stream_engine.formats.record_columns import records_of
    >>> rows = {"eins": [*"abcd"], "zwei": [*"bcda"], "drei": [*"cdab"], "Wahl": ["eins", "drei", "zwei", "drei"]}
    >>> [(each.type, each.columns["objects"], each.answers_by) for each in candidates(records_of(rows))]
    [('odd_one_out', ('eins', 'zwei', 'drei'), 'position'), ('most_central', ('eins', 'zwei', 'drei'), 'position')]
    """
    if OWN & set(records.columns):
        return []
    records = _matching(records, where)
    texts = [
        each
        for each in records.columns.values()
        if len(each.distinct) > 2
        and _textual([each])
        and each.distinct == each.items
        and not set(each.name) & set(",|=")
    ]
    for group in combinations(texts[:MOST_TEXTS], 3):
        if all(_alike(one, other) >= LEAST_SHARED for one, other in combinations(group, 2)):
            names = tuple(each.name for each in group)
            for column in records.columns.values():
                if column.name not in names and (found := _candidates_of(records, names, column.name)):
                    return found
    return []


def _candidates_of(records: Records, names: tuple[str, ...], answered: str) -> list[Reading]:
    """The readings in which this column says which of three objects it was."""
    rows = [row for row in range(records.size) if all(records.columns[name].values[row] for name in (*names, answered))]
    within = records.kept(rows)
    said = within.columns[answered]
    offered = [[text for name in names for text in within.columns[name].values[row] or ()] for row in range(len(rows))]
    if sum(len(set(three)) == 3 for three in offered) < LEAST_FIT * len(rows) or len(said.distinct) < 2:
        return []
    by_column = not any(text.isdecimal() or place_of(text, names, 1) < 0 for text in said.distinct)
    places = [
        place_of(text, names, 1) if by_column else three.index(text) if text in three else -1
        for three, text in zip(offered, said.texts)
        if text is not None
    ]
    chosen = {place for place in places if place >= 0}
    if len(chosen) < 2 or sum(place < 0 for place in places) > (1 - LEAST_FIT) * len(rows):
        return []
    why = f"they share values, and {answered} names {'their columns' if by_column else 'one of them'}"
    answer = Answer("position" if by_column else "name", accepted=frozenset(said.distinct) if by_column else None)
    kinds: list[tuple[str, dict[str, tuple[str, ...]]]] = [
        ("odd_one_out", {"objects": names, "odd": (answered,)}),
        ("most_central", {"objects": names, "central": (answered,)}),
    ]
    meant = f"{answered} the odd one out or the most central object"
    if len(chosen) == 2 and len(rows) >= LEAST_ROWS:
        anchor = next(name for place, name in enumerate(names) if place not in chosen)
        shown = tuple(name for name in names if name != anchor)
        kinds = [("pick", {"anchor": (anchor,), "shown": shown, "chosen": (answered,)}), kinds[0]]
        meant = f"{anchor} what the others are compared with, or {answered} the odd one out"
    doubt = f"columns {', '.join(names)} could be objects ({why}), and {meant}"
    made = (next(_completed(records, kind, fields, answer, why, wide=False), None) for kind, fields in kinds)
    found = [each._replace(doubt=doubt) for each in made if each is not None]
    return found if len(found) > 1 else []


def _readings(records: Records) -> list[Reading]:
    for table in melted(records):
        wide = [each for each in _long(table, wide=True) if _is_wide(each)]
        if found := _best(wide):
            return found
    asked = asked_in_header(records)
    if asked is not None:
        table, answered = asked
        fields = {"anchor": ("{a}",), "shown": ("{b}", "{c}"), "chosen": (answered,)}
        found = list(_completed(table, "pick", fields, Answer("name"), "the header asks the questions", wide=True))
        return [_safe_names(each) for each in found]
    return _best(list(_long(records)))


def _is_wide(reading: Reading) -> bool:
    """Whether all that a question needs is numbered."""
    needed = [name for field, names in reading.columns.items() if field not in ("worker", "catch") for name in names]
    return all("{n}" in name for name in needed) and len(needed) > 2


def _best(found: list[Reading]) -> list[Reading]:
    """The readings that are as good as the first, without those that say the same."""
    by_meaning: dict[object, Reading] = {}
    for each in found:
        meaning = (each.type, tuple(each.columns.items()), each.answers_by, repr(each.codes), repr(each.where))
        by_meaning.setdefault(meaning, each)
    sure = [each for each in by_meaning.values() if not each.doubt]
    return sure[:1] if sure else list(by_meaning.values())[:2]


def preferences(records: Records) -> str:
    """Why records cannot be read that say which of two things is better; "" for other records.

    >>> from stream_engine.formats.record_columns import records_of
    >>> preferences(records_of({"winner": ["gpt"], "loser": ["llama"]}))[:52]
    "columns winner, loser: got preferences ('a is better"
    >>> preferences(records_of({"anchor": ["a"], "near": ["b"], "far": ["c"]}))
    ''
    """
    for names in ("winner", "loser"), ("model_a", "model_b", "winner"):
        if set(names) <= set(records.columns):
            return (
                f"columns {', '.join(names)}: got preferences ('a is better than b'), expected comparisons of "
                "distances ('a is more like b than like c'); next: choix or arena-rank rank by preferences"
            )
    return ""


def _long(records: Records, wide: bool = False) -> Iterator[Reading]:
    """Readings of a table with one question a record, the best first."""
    yield from _triplets(records, wide)
    columns = list(records.columns.values())
    groups = sorted(family_of(columns), key=lambda group: (-_textual(group), -len(group)))
    found = [(rank, each) for group in groups for rank, each in _questions(records, group, wide)]
    if found:
        best = max(rank for rank, _ in found)
        yield from (each for rank, each in found if rank == best)


def _textual(group: Sequence[Column]) -> bool:
    return not all(text.lstrip("-").isdecimal() for each in group for text in each.distinct)


# ---- anchor, near, far


def _triplets(records: Records, wide: bool) -> Iterator[Reading]:
    """An anchor, the nearer and the farther object, each in a column of its own."""
    names = records.columns
    fields: dict[str, tuple[str, ...]]
    if {"i", "j", "k"} <= set(names) and "l" not in names:
        rest = [names[name] for name in ("response", "responses", "answer") if name in names]
        fields = {"anchor": ("i",), "near": ("j",), "far": ("k",)}
        if not rest and not {"yes", "no"} & set(names):
            yield from _completed(records, "triplet", fields, Answer("name"), "the list order of cblearn", wide)
        elif rest and rest[0].distinct <= {"1", "-1"}:
            answer = Answer("position", {"1": "j", "-1": "k"}, "1 is j, -1 is k", accepted=frozenset(("1", "-1")))
            fields = {"anchor": ("i",), "shown": ("j", "k"), "chosen": (rest[0].name,)}
            yield from _completed(records, "pick", fields, answer, "triplets and answers of cblearn", wide)
        return
    if list(names) == ["1", "2", "3"]:
        doubt = "three columns without names could be anchor, near, far, or two objects and the odd one"
        readings: dict[str, dict[str, tuple[str, ...]]] = {
            "triplet": {"anchor": ("1",), "near": ("2",), "far": ("3",)},
            "odd_one_out": {"objects": ("1", "2", "3"), "odd": ("3",)},
        }
        for kind, fields in readings.items():
            for each in _completed(records, kind, fields, Answer("name"), "the order of the columns", wide):
                yield each._replace(doubt=doubt)
        return
    if sum(name in names for name in ("anchor", "near", "far")) == 3:
        fields = {name: (name,) for name in ("anchor", "near", "far")}
        yield from _completed(records, "triplet", fields, Answer("name"), "the columns have these names", wide)
        return
    near, far, anchors = (_named(records, words) for words in (NEAR, FAR, ANCHOR))
    anchors = [each for each in anchors if each not in near and each not in far]
    if len(near) == 1 == len(far) and anchors and _textual(near) == _textual(anchors):
        anchor = max(anchors, key=lambda each: _alike(each, near[0]))
        if _textual([each for group in family_of(list(names.values())) for each in group] or near) != _textual(near):
            return  # numbers of objects whose names stand there too
        fields = {"anchor": (anchor.name,), "near": (near[0].name,), "far": (far[0].name,)}
        yield from _completed(records, "triplet", fields, Answer("name"), "the names of the columns", wide)


def _named(records: Records, words: frozenset[str]) -> list[Column]:
    return [each for each in records.columns.values() if words & set(each.words) and each.distinct]


def _alike(one: Column, other: Column) -> float:
    """The share of the values of the smaller column that the other one has."""
    smaller, larger = sorted((one.items, other.items), key=len)
    return len(smaller & larger) / len(smaller) if smaller else 0.0


# ---- some objects and an answer


def _questions(records: Records, group: list[Column], wide: bool) -> Iterator[tuple[tuple[int, ...], Reading]]:
    """Readings in which these columns hold the objects that were shown, each with how much speaks for it."""
    shown = tuple(each.name for each in group)
    rows = [row for row in range(records.size) if all(each.values[row] for each in group)]
    if not rows:
        return
    within = records.kept(rows)
    group = [within.columns[name] for name in shown]
    for column in _answer_columns(within, shown):
        if len(group) == 2 and ODD & set(column.words) and not _shows(group, column):
            fields = {"objects": (*shown, column.name), "odd": (column.name,)}
            found = _completed(records, "odd_one_out", fields, Answer("name"), "two objects, and the odd one", wide)
            yield from (((1, True, False, _textual(group), False), each) for each in found)
            continue
        for answer in answer_of(column, group, by_index=_has_buttons(records)):
            chosen = set(ANSWER) & set(column.words)
            anchors = _anchors(within, group, column)
            for anchor in anchors[:1]:
                fields = {"anchor": (anchor.name,), "shown": shown, "chosen": (column.name,)}
                if len(group) == 1 and [sorted(value or ()) for value in column.values] == [
                    sorted(value or ()) for value in group[0].values
                ]:
                    fields = {"anchor": (anchor.name,), "ranked": (column.name,)}
                alike = max(_alike(anchor, each) for each in group)
                rank = (2, bool(chosen), alike > 0, _textual(group), bool(ANCHOR & set(anchor.words)))
                why = f"{alike:.0%} of the anchors are options of other questions; an anchor is never the answer"
                kind = "ranking" if "ranked" in fields else "pick"
                yield from ((rank, each) for each in _completed(records, kind, fields, answer, why, wide))
            if not anchors and len(group) == 3:
                rank = (1, bool(chosen), True, _textual(group), False)
                for kind, doubt in _kinds_of_three(column, shown):
                    field = "odd" if kind == "odd_one_out" else "central"
                    fields = {"objects": shown, field: (column.name,)}
                    found = _completed(records, kind, fields, answer, "three objects, but no fourth", wide)
                    yield from ((rank, each._replace(doubt=each.doubt or doubt)) for each in found)
    if len(group) == 2 and not any(_answer_columns(within, shown)) and (anchors := _anchors(within, group, None)):
        for near, far in (shown, shown[::-1]):
            fields = {"anchor": (anchors[0].name,), "near": (near,), "far": (far,)}
            for each in _completed(records, "triplet", fields, Answer("name"), "the names of the columns", wide):
                yield (0,), each._replace(doubt="no column says which object was chosen")


def _has_buttons(records: Records) -> bool:
    """Whether these are answers of jsPsych's buttons, which count from 0."""
    kinds = records.columns.get("trial_type")
    return kinds is not None and any("button" in text for text in kinds.distinct)


def _shows(group: Sequence[Column], column: Column) -> bool:
    """Whether a column holds one of the objects beside it more often than in catch trials."""
    inside = [value in (each.values[row] for each in group) for row, value in enumerate(column.values) if value]
    return sum(inside) > 0.2 * len(inside)


def _kinds_of_three(column: Column, shown: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    """What an answer about three objects means, and what is doubtful about it."""
    words = set(column.words)
    things = shown == ("image1", "image2", "image3") and column.name == "choice"
    odd, central = bool(ODD & words) or things, bool(CENTRAL & words)
    doubt = "" if odd or central else f"{column.name} could be the odd one out or the most central object"
    if odd or not central:
        yield "odd_one_out", doubt
    if central or not odd:
        yield "most_central", doubt


def _answer_columns(records: Records, shown: tuple[str, ...]) -> list[Column]:
    """Columns that may hold an answer: called so, or holding one of the objects shown; the most probable first."""
    found = []
    for each in records.columns.values():
        words = set(each.words)
        if each.name in shown or NOT_ANSWER & words or not each.distinct:
            continue
        rows = [row for row, value in enumerate(each.values) if value]
        inside = sum(
            set(each.values[row] or ()) <= {text for name in shown for text in records.columns[name].values[row] or ()}
            for row in rows
        )
        called = bool((ANSWER | ODD | CENTRAL) & words)
        if called or (inside == len(rows) > 3 and not ANCHOR & words):
            found.append((not inside, not called, each))
    found.sort(key=lambda each: each[:2])
    return [each for *_, each in found]


def _anchors(records: Records, group: list[Column], answer: Column | None) -> list[Column]:
    """Columns that may hold what the objects were compared with: called so, or with the same objects in other rows;
    the most probable first."""
    found = []
    for each in records.columns.values():
        if each in group or (answer is not None and each.name == answer.name) or not each.distinct:
            continue
        if any(value is not None and len(value) > 1 for value in each.values) or NOT_ANSWER & set(each.words):
            continue
        called, alike = bool(ANCHOR & set(each.words)), max(_alike(each, other) for other in group)
        repeats = sum(value in (other.values[row] for other in group) for row, value in enumerate(each.values) if value)
        filled = sum(value is not None for value in each.values)
        unlike = repeats <= 0.5 * filled and _textual([each]) == _textual(group)
        if filled > 0.5 * records.size and (called or (alike >= 0.5 and unlike and _textual([each]))):
            found.append((not called, -alike, each))
    found.sort(key=lambda each: each[:2])
    return [each for *_, each in found]


# ---- which records are questions


def _completed(
    records: Records,
    kind: str,
    fields: dict[str, tuple[str, ...]],
    answer: Answer,
    why: str,
    wide: bool,
) -> Iterator[Reading]:
    """The reading with its filters, its participant and its response times; none where too much does not fit."""
    inputs = [name for names in fields.values() for name in names]
    answered = next((names[0] for field, names in fields.items() if field in ("chosen", "odd", "central")), None)
    objects = [name for name in inputs if name != answered]
    evidence = [Evidence("objects", ", ".join(objects), why)]
    if answered is not None:
        evidence.append(Evidence("answer", answered, answer.why or f"it names one of those shown ({answer.by})"))
    state = [_state(records, row, fields, answer) for row in range(records.size)]
    filters: dict[str, str] = {}
    counts = Counter(state)
    if not counts["fits"] + counts["catch"]:
        return
    if counts["other"]:
        told = distinguishing_filters(
            records, [each in ("fits", "catch") for each in state], [each == "other" for each in state]
        )
        if told is None and answered is not None and answer.codes_of(records.columns[answered]):
            told = with_answers(records.columns[answered], answer.codes_of(records.columns[answered]))
        if told is None and counts["other"] > (1 - LEAST_FIT) * records.size:
            return
        if told is not None:
            filters |= told.where
            evidence.append(Evidence("questions", _shown(told.where), told.why))
    kept = _matching(records, filters)
    own = kind == "triplet" and all(names == (field,) for field, names in fields.items())
    if not own:  # what the engine's own format lacks is refused, and told
        filters |= _filled(kept, inputs, answered if wide else None)
    if empty := [name for name in inputs if f"{name}!=" in filters]:
        evidence.append(Evidence("empty cells", ", ".join(empty), "instructions, fixations and unanswered questions"))
    kept = _matching(kept, {key: value for key, value in filters.items() if key.endswith("!=")})
    kept = kept.kept(row for row in range(kept.size) if all(kept.columns[name].values[row] for name in inputs))
    columns, doubt = dict(fields), ""
    for told in (practice(kept, objects), catch_trials(kept, fields, own)):
        if told is not None:
            filters |= told.where
            columns |= told.columns
            doubt = doubt or told.doubt
            evidence.append(Evidence(told.decision, _shown(told.where) or "judge the participant", told.why))
    who = participant(kept, wide)
    if who is not None:
        columns["worker"] = (who.name,)
        evidence.append(Evidence("participant", who.name, f"{len(who.distinct):,} in {kept.size:,} questions"))
    if not wide and (told_times := response_times(kept)) is not None:
        field, column, why = told_times
        columns[field] = (column.name,)
        evidence.append(Evidence("response times", f"{column.name}, in {field}", why))
    codes = (
        {next(field for field in fields if field in ("chosen", "odd", "central")): answer.codes} if answer.codes else {}
    )
    plain = {field: names for field, names in columns.items() if names != (field,)}
    found = Reading(
        "" if own else kind,
        plain if own else columns,
        answer.by,
        codes,
        filters,
        tuple(evidence),
        answer.doubt or doubt,
    )
    yield found
    if doubt and not answer.doubt:
        others = {key: value for key, value in filters.items() if key not in distinguishing_columns(found, doubt)}
        yield found._replace(where=others)


def distinguishing_columns(reading: Reading, doubt: str) -> set[str]:
    """The filters that a doubt is about: those on the column that it names first."""
    return {key for key in reading.where if doubt.startswith(filter_of(key, reading.where[key]).source)}


def _state(records: Records, row: int, fields: Mapping[str, tuple[str, ...]], answer: Answer) -> str:
    """Whether a record is a question that `fits`, a `catch` trial, `empty`, or some `other` thing."""
    held = {field: [records.columns[name].values[row] for name in names] for field, names in fields.items()}
    if any(value is None for values in held.values() for value in values):
        return "empty"
    texts = {field: [text for value in values for text in value or ()] for field, values in held.items()}
    offered = (
        texts.get("shown")
        or texts.get("ranked")
        or texts.get("objects")
        or [*texts.get("near", ()), *texts.get("far", ())]
    )
    said = texts.get("chosen") or texts.get("odd") or texts.get("central")
    if said is not None and not all(answer.names(each, offered) for each in said):
        return "other"
    everything = [*texts.get("anchor", ()), *offered]
    return "fits" if len(set(everything)) == len(everything) else "catch"


def _filled(records: Records, inputs: Sequence[str], answered: str | None) -> dict[str, str]:
    """Filters that leave out records without an object or an answer: as few as do; the empty answer of a wide table
    is excluded anyway."""
    filters: dict[str, str] = {}
    left = list(range(records.size))
    for name in reversed(inputs):
        column = records.columns[name]
        empty = [row for row in left if column.values[row] is None]
        if empty:
            left = [row for row in left if column.values[row] is not None]
            if name != answered or column.empties:
                filters[f"{name}!="] = LIST_SEPARATOR.join(["", *sorted(column.empties)])
    return {key: value for key, value in filters.items() if "{" not in key or not key.startswith("{")}


def _matching(records: Records, where: Mapping[str, str]) -> Records:
    """The records that filters keep."""
    rows = list(range(records.size))
    for key, wanted in where.items():
        filter = filter_of(key, wanted)
        column = records.columns.get(filter.source)
        if column is None:
            continue
        texts = column.texts
        rows = [row for row in rows if _keeps(filter, texts[row])]
    return records if len(rows) == records.size else records.kept(rows)


def _keeps(filter: Filter, text: str | None) -> bool:
    number = number_of(text, text=True)
    compared = np.nan if number is None else number
    return bool(filter.keeps(lambda wanted: text == wanted, np.bool_(text is None), lambda: compared))


def _shown(where: Mapping[str, str]) -> str:
    return ", ".join(f"{key}{'' if key[-1] in '=<>' else '='}{value}" for key, value in where.items())


def _safe_names(reading: Reading) -> Reading:
    """Without the characters in names of columns that mean something on a command line."""

    def safe(name: str) -> str:
        return "".join("*" if letter in ",|=" else letter for letter in name)

    columns = {field: tuple(map(safe, names)) for field, names in reading.columns.items()}
    return reading._replace(columns=columns)
