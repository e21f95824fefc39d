"""How records are to be read, from what stands in many of them: a reading with the evidence for each decision.

Pure: the same records give the same readings, whatever file or frame they come from. `LAYOUTS` is a table of functions
that propose readings; each proposal is completed (filters, participant, times) and taken only if it explains the whole
file: every column that could bear on the answer has a role in it (`explanation`), and so has the direction of the words
in names and questions. A reading is taken only where it is the only one: two that fit equally well are both returned,
and none is chosen. What no reading explains is named by `fact_of`.

Layouts that are read so: docs/files.md. Each is in tests/formats/survey_files.py, as its tool writes it.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import combinations, islice
from typing import NamedTuple, TypeAlias

import numpy as np

from stream_engine.formats.answers import (
    LEAST_FIT,
    Answer,
    answers_of,
    is_answer,
    is_flags,
    is_textual,
    named_share,
    offered,
    pairs_in,
    parallel,
    shown_in,
)
from stream_engine.formats.cells import LIST_SEPARATOR
from stream_engine.formats.event_fields import Filter, filter_of, place_of
from stream_engine.formats.explanation import (
    RATINGS,
    asked_sign,
    best_and_worst,
    code_columns,
    contradicted,
    is_rating,
    unexplained,
)
from stream_engine.formats.field_values import flag_of, number_of
from stream_engine.formats.record_columns import (
    Column,
    Filters,
    Records,
    asked_in_header,
    catch_trials,
    distinguishing_filters,
    header_rows,
    melted,
    practice,
    response_times,
)
from stream_engine.formats.vocabulary import (
    ANCHOR,
    ANSWER,
    CENTRAL,
    FAR,
    NEAR,
    OTHER,
    PARTICIPANTS,
    SHARE,
    TRUTH,
    VOTES,
    place_in,
    sign_of,
    words_of,
)

LEAST_SHARED = 0.5  # of their values, for columns of which nothing else speaks for objects
MOST_TEXTS = 12  # columns of text among which those of objects are looked for
LEAST_ROWS = 10  # after which an object that is never chosen may be an anchor
MOST_OTHERS = 0.6  # share of the answers that may be no answers, and are named
MOST_VALUES = 5  # of a column that are named
OWN = {"type", "near_i", "near_j", "far_i", "far_j", "n_near", "n_far"}
_NO_ANSWER = frozenset(
    ("timeout", "timed out", "no response", "no_response", "noresponse", "none", "null", "", "space", "escape", "-1")
)


class Evidence(NamedTuple):
    """One decision: about what, what was decided, and why."""

    decision: str
    taken: str
    why: str


def excluding(evidence: Sequence[Evidence]) -> list[Evidence]:
    """The decisions that leave out rows of the table, or judge participants by them."""
    decisions = ("questions", "practice", "catch trials", "no answers", "empty cells")
    return [each for each in evidence if each.decision in decisions]


class Reading(NamedTuple):
    """How records are read: the options of events, and the evidence for them; `doubt` is not empty where a choice was
    made that the records do not decide."""

    type: str
    columns: dict[str, tuple[str, ...]]
    answers_by: str = "name"
    codes: Mapping[str, Mapping[str, str]] = {}
    where: Mapping[str, str] = {}
    evidence: tuple[Evidence, ...] = ()
    doubt: str = ""  # what the records do not decide
    answer_is: str = "nearer"
    separator: str | None = None


Fields: TypeAlias = Mapping[str, tuple[str, ...]]  # of an event -> columns


class Proposal(NamedTuple):
    """A reading that a layout proposes: a type, the columns of its fields, and what the answers mean."""

    kind: str
    fields: Fields
    answer: Answer
    why: str
    rank: tuple[int, ...] = ()
    doubt: str = ""
    farther: bool = False
    field: str = ""  # of the answer


class Understanding(NamedTuple):
    """The readings of records, the best ones alone; the fact that keeps others from being taken."""

    readings: list[Reading]
    fact: str = ""


def readings(records: Records, where: Mapping[str, str] = {}) -> list[Reading]:
    """The readings of records: one, if they decide it, several that fit equally well, or none. Records that `where`
    leaves out are not looked at. O(values).

    >>> from stream_engine.formats.record_columns import records_of
    >>> rows = {"Target": ["cat", "dog"], "Option1": ["dog", "owl"], "Option2": ["owl", "cat"], "Choice": ["2", "1"]}
    >>> [(found.type, found.columns, found.answers_by) for found in readings(records_of(rows))]
    [('pick', {'anchor': ('Target',), 'shown': ('Option1', 'Option2'), 'chosen': ('Choice',)}, 'position')]
    """
    return understood(records, where).readings


def understood(records: Records, where: Mapping[str, str] = {}) -> Understanding:
    """The readings of records, and what keeps others from being taken."""
    if OWN & set(records.columns):
        return Understanding([])
    records = matching(records, where)
    if (top := header_rows(records)) is None:
        return _understood(records)
    filters, kept = top
    found = _understood(records.kept(kept), [text for row in range(3) for text in _row_texts(records, row)])
    told = Evidence("rows below the header", shown(filters), "they describe columns")
    return found._replace(
        readings=[
            each._replace(where={**filters, **each.where}, evidence=(*each.evidence, told)) for each in found.readings
        ]
    )


def _row_texts(records: Records, row: int) -> list[str]:
    return [text for each in records.columns.values() if row < records.size and (text := each.texts[row])]


def _understood(records: Records, said: Sequence[str] = ()) -> Understanding:
    """`said`: texts that ask, apart from the cells."""
    facts: list[str] = []
    for table in melted(records):
        found = [
            each
            for proposal in _proposals(table)
            if _is_wide(proposal)
            for each in _read(table, proposal, True, said, facts)
        ]
        if best := _best(found):
            return Understanding(best)
    if (asked := asked_in_header(records)) is not None:
        table, answered = asked
        fields = {"anchor": ("{a}",), "shown": ("{b}", "{c}"), "chosen": (answered,)}
        farther = sign_of(_words_outside(answered)) < 0
        if farther and not any(map(str.isalpha, answered.partition("{a}")[2].partition("{b}")[0])):
            return Understanding([], "the header asks about three objects, perhaps for the odd one out")
        proposal = Proposal("pick", fields, Answer((answered,)), "the header asks the questions", farther=farther)
        return Understanding([_safe_names(each) for _, each in _read(table, proposal, True, (), facts)])
    table = records
    best = _best([each for proposal in _proposals(table) for each in _read(table, proposal, False, said, facts)])
    if not best and not facts:
        best = candidates(records)
    return Understanding(best, "" if best else best_and_worst(records) or next(iter(facts), ""))


def _words_outside(pattern: str) -> list[str]:
    return list(Column(pattern.replace("{a}", " ").replace("{b}", " ").replace("{c}", " "), []).words)


def _is_wide(proposal: Proposal) -> bool:
    """Whether all that a question needs is numbered."""
    needed = [name for names in proposal.fields.values() for name in names]
    return all("{n}" in name for name in needed) and len(needed) > 2


def _best(found: list[tuple[tuple[int, ...], Reading]]) -> list[Reading]:
    """The best readings, without those that say the same: one, if any is sure."""
    best = max((rank for rank, _ in found), default=())
    by_meaning: dict[object, Reading] = {}
    for rank, each in found:
        if rank == best:
            meaning = (
                each.type,
                tuple(each.columns.items()),
                each.answers_by,
                repr(each.codes),
                repr(each.where),
                each.answer_is,
            )
            by_meaning.setdefault(meaning, each)
    sure = [each for each in by_meaning.values() if not each.doubt]
    return sure[:1] if sure else list(by_meaning.values())[:2]


# ---- what layouts there are: each proposes readings of a table


def _proposals(records: Records) -> Iterator[Proposal]:
    """The proposals of all layouts, the best first."""
    found = [each for layout in LAYOUTS for each in layout(records)]
    yield from sorted(found, key=lambda each: each.rank, reverse=True)


def _own(records: Records) -> Iterator[Proposal]:
    """This engine's own columns, and those of cblearn, MLDS, and lists of triplets without a header."""
    names = records.columns
    fields: dict[str, tuple[str, ...]]
    if {"anchor", "near", "far"} <= set(names):
        fields = {name: (name,) for name in ("anchor", "near", "far")}
        yield from _with_truth(
            records, Proposal("triplet", fields, Answer(), "the columns have these names", (9,)), True
        )
    if {"i", "j", "k"} <= set(names) and "l" not in names:
        rest = [names[name] for name in ("response", "responses", "answer") if name in names]
        fields = {"anchor": ("i",), "near": ("j",), "far": ("k",)}
        if not rest and not {"yes", "no"} & set(names):
            yield Proposal("triplet", fields, Answer(), "the list order of cblearn", (8,))
        elif rest and rest[0].distinct <= {"1", "-1"}:
            accepted = frozenset(("1", "-1"))
            answer = Answer((rest[0].name,), "position", {"1": "j", "-1": "k"}, "1 is j, -1 is k", accepted=accepted)
            fields = {"anchor": ("i",), "shown": ("j", "k"), "chosen": answer.columns}
            yield Proposal("pick", fields, answer, "triplets and answers of cblearn", (8,))
    if list(names)[:4] == ["resp", "S1", "S2", "S3"] and names["resp"].distinct <= {"0", "1"}:
        four = "S4" in names
        sides = (("S1", "S2"), ("S3", "S4")) if four else (("S1",), ("S3",))
        answer = Answer(
            ("resp",), "index", accepted=frozenset("01"), why="1 where the second interval is larger (MLDS)"
        )
        fields = {"near": sides[0], "far": sides[1]} if four else {"anchor": ("S2",), "shown": ("S1", "S3")}
        fields["chosen"] = ("resp",)
        yield Proposal("quadruplet" if four else "pick", fields, answer, "the columns of MLDS", (8,), farther=True)
    if list(names) == ["1", "2", "3", "4"]:
        doubt = "four columns without names could be two pairs, of which the first is more alike"
        fields = {"near": ("1", "2"), "far": ("3", "4")}
        yield Proposal("quadruplet", fields, Answer(), "the order", (1,), doubt)
    if list(names) == ["1", "2", "3"]:
        doubt = "three columns without names could be anchor, near, far, or two objects and the odd one"
        yield Proposal("triplet", {"anchor": ("1",), "near": ("2",), "far": ("3",)}, Answer(), "the order", (1,), doubt)
        fields = {"objects": ("1", "2", "3"), "odd": ("3",)}
        yield Proposal("odd_one_out", fields, Answer(("3",)), "the order", (1,), doubt)


def _with_truth(records: Records, proposal: Proposal, doubtful: bool) -> Iterator[Proposal]:
    """A triplet, reversed where a column says that the answer was wrong."""
    flags = [each for each in records.columns.values() if is_flags(each) and TRUTH & set(each.words)]
    flags = [each for each in flags if len({flag_of(text) for text in each.distinct}) > 1]
    if len(flags) != 1:
        yield proposal
        return
    codes = {text: "near" if flag_of(text) else "far" for text in sorted(flags[0].distinct, reverse=True)}
    name, of = flags[0].name, proposal.fields
    answer = Answer((name,), "position", codes, f"{name} says whether {of['near'][0]} was chosen", "", frozenset(codes))
    doubt = f"{name} could say where {of['near'][0]} and {of['far'][0]} are to be exchanged, or something else"
    yield proposal._replace(fields={**of, "chosen": (name,)}, answer=answer, doubt=doubt if doubtful else "")
    if doubtful:
        yield proposal._replace(doubt=doubt, why=f"{name} says something else")


def _near_and_far(records: Records) -> Iterator[Proposal]:
    """An anchor, the nearer and the farther object, each in a column called so."""
    columns = [each for each in records.columns.values() if each.distinct]
    near, far, anchors = (
        [each for each in columns if words & set(each.words) and sign_of(each.words) == sign and not is_flags(each)]
        for words, sign in ((NEAR | FAR, 1), (NEAR | FAR, -1), (ANCHOR, 0))
    )
    if {"pos", "neg"} <= set(records.columns):
        near, far = [records.columns["pos"]], [records.columns["neg"]]
    near, far = (  # `winner` where there is `winner_html`, too
        [one for one in some if not any({*other.words} < {*one.words} for other in some)] for some in (near, far)
    )
    if len(near) != 1 or len(far) != 1 or not anchors or is_textual(near) != is_textual(anchors):
        return
    anchor = max(anchors, key=lambda each: alike(each, near[0]))
    if is_textual([each for group in shown_in(columns) for each in group] or near) != is_textual(near):
        return  # numbers of objects whose names stand there too
    votes = [
        each.name
        for side in (near[0], far[0])
        for each in columns
        if _counts(each) and side.name != each.name and set(side.words) <= set(each.words)
    ]
    fields = {"anchor": (anchor.name,), "near": (near[0].name,), "far": (far[0].name,)}
    if len(votes) == 2:
        fields |= {"n_near": (votes[0],), "n_far": (votes[1],)}
    proposal = Proposal("triplet", fields, Answer(), "the names of the columns", (7,))
    yield from _with_truth(records, proposal, not {*near[0].words, *far[0].words} & {"positive", "pos"})


def _counts(column: Column) -> bool:
    return bool(VOTES & set(column.words)) and all(text.isdecimal() for text in column.distinct)


def _pairs(records: Records) -> Iterator[Proposal]:
    """Two pairs of objects, and which of them is more alike."""
    columns = [each for each in records.columns.values() if each.distinct]
    found = [
        (pairs, order) for pairs, order in pairs_in(columns) if _are_alike([each for pair in pairs for each in pair])
    ]
    if {"i", "j", "k", "l"} <= set(records.columns):
        held = [records.columns[name] for name in "ijkl"]
        found.append(([held[:2], held[2:]], ()))
    for place, (pairs, order) in enumerate(found):
        numbered = place % 2 == 0 and {"1", "2"} <= {word for words in order for word in words}
        names = [tuple(each.name for each in pair) for pair in pairs]
        for column in columns:
            if column.name in sum(names, ()) or not is_answer(column) or (TRUTH | OTHER) & set(column.words):
                continue
            placed = {text: place_in(Column(text, []).words, order) for text in column.distinct} if order else {}
            codes, doubt = {text: place for text, place in placed.items() if place >= 0}, ""
            if set(codes.values()) != {0, 1}:
                pairs_of = [values for values in (("1", "2"), ("0", "1"), ("1", "-1")) if {*values} <= column.distinct]
                codes = dict(zip(pairs_of[0], (0, 1))) if len(pairs_of) == 1 else {}
            if all(any(word.isdecimal() for word in Column(text, []).words) for text in codes):
                doubt = "" if numbered and "0" not in codes else f"{column.name} could name either of the pairs"
            if not codes:
                continue
            sides = {text: ("near", "far")[place] for text, place in sorted(codes.items(), key=lambda each: each[1])}
            told = ", ".join(
                f"{text} is {' and '.join(names[('near', 'far').index(side)])}" for text, side in sides.items()
            )
            answer = Answer((column.name,), "position", sides, told, doubt, frozenset(sides))
            fields = {"near": names[0], "far": names[1], "chosen": (column.name,)}
            farther = sign_of(column.words) < 0
            yield Proposal("quadruplet", fields, answer, "two pairs of columns", (6,), doubt, farther)


def _are_alike(group: Sequence[Column]) -> bool:
    return is_textual(group) and all(alike(one, other) >= LEAST_SHARED for one, other in combinations(group, 2))


def _shown(records: Records) -> Iterator[Proposal]:
    """Some objects, or lists of them, and an answer: picks beside an anchor, odd-one-out or most central of three."""
    by_index = (
        "button" in " ".join(records.columns["trial_type"].distinct) if "trial_type" in records.columns else False
    )
    for group in shown_in([each for each in records.columns.values() if each.distinct]):
        names = tuple(each.name for each in group)
        rows = [row for row in range(records.size) if all(each.values[row] for each in group)]
        within = records.kept(rows)
        group = [within.columns[name] for name in names]
        answered = False
        for answer in _answers(within, group, by_index):
            answered = True
            yield from _of_answer(within, group, answer)
        yield from _of_counts(within, group)
        shares = any(
            is_rating(each) or (SHARE & set(each.words) and _is_share(each)) for each in within.columns.values()
        )
        if (
            len(group) == 2
            and not answered
            and not shares
            and not code_columns(within, group)
            and (anchors := _anchors(within, group, ()))
        ):
            doubt = (
                "no column says which object was chosen: this looks like a design, or near and far without these names"
            )
            for near, far in (names, names[::-1]):
                fields = {"anchor": (anchors[0].name,), "near": (near,), "far": (far,)}
                yield Proposal("triplet", fields, Answer(), "the names of the columns", (0,), doubt)


def _answers(records: Records, group: Sequence[Column], by_index: bool) -> Iterator[Answer]:
    """What may say which of these objects was chosen."""
    names = {each.name for each in group}
    size = len(group) if len(group) > 1 else max(len(value) for value in group[0].values if value)
    columns = [each for each in records.columns.values() if each.name not in names and each.distinct]
    for flags in parallel(records, group):
        if all(map(is_flags, flags)) and any(is_answer(each) or sign_of(each.words) for each in flags):
            yield Answer(tuple(each.name for each in flags), "flag", why="1 for each object that was chosen, else 0")
    for each in columns:
        lengths = {len(value) for value in each.values if value}
        if (
            is_answer(each)
            and lengths == {size}
            and is_flags(each._replace(values=[(t,) for v in each.values for t in v or ()]))
        ):
            yield Answer((each.name,), "flag", why="1 for each object that was chosen, else 0")
    found = [(each, named_share(each, group)) for each in columns if not TRUTH & set(each.words)]
    named = [
        each
        for each, share in found
        if share >= LEAST_FIT
        and (is_answer(each) and not OTHER - ANSWER & set(each.words))
        and not ANCHOR & set(each.words)
    ]
    several = [each for each in named if all(each is other or _differ(each, other) for other in named)]
    if (
        size > 2
        and len(several) == len(named) > 1
        and len({sign_of(each.words) for each in named} | {0}) < 3
        and len(named) < size
    ):
        told = ", ".join(each.name for each in named)
        yield Answer(tuple(each.name for each in named), why=f"{told} name different objects of those shown")
    for each, share in sorted(found, key=lambda each: -each[1]):
        called = is_answer(each) and not OTHER & (set(each.words) - ANSWER - {"index", "position"})
        if called or (share == 1 and sum(map(bool, each.values)) > 3 and not ANCHOR & set(each.words)):
            yield from answers_of(each, group, by_index)


def _differ(one: Column, other: Column) -> bool:
    """Whether two columns never hold the same thing in a row."""
    return not any(a is not None and a == b for a, b in zip(one.values, other.values))


def _of_answer(records: Records, group: list[Column], answer: Answer) -> Iterator[Proposal]:
    names = tuple(each.name for each in group)
    words = {word for name in answer.columns for word in records.columns[name].words}
    sign, chosen = sign_of(words) or min(0, asked_sign(records)), bool(ANSWER & words)
    size = len(group) if len(group) > 1 else max(len(value) for value in group[0].values if value)
    several = len(answer.columns) > 1
    anchors = _anchors(records, group, answer.columns)
    if size == 3 and anchors and not (ANCHOR & set(anchors[0].words) or anchors[0].name in "xX"):
        anchors = []  # it may be anything beside three objects
    for anchor in anchors[:1]:
        fields = {"anchor": (anchor.name,), "shown": names, "chosen": answer.columns}
        column = records.columns[answer.columns[0]]
        if len(group) == 1 and [sorted(value or ()) for value in column.values] == [
            sorted(v or ()) for v in group[0].values
        ]:
            fields = {"anchor": (anchor.name,), "ranked": answer.columns}
        share = max(alike(anchor, each) for each in group)
        rank = (
            5,
            several,
            chosen or sign != 0,
            share > 0,
            is_textual(group),
            bool(ANCHOR & set(anchor.words)),
            len(group),
        )
        why = f"{share:.0%} of the anchors are options of other questions; an anchor is never the answer"
        clear = (
            sign
            or chosen
            or all(len(word) == 1 or word.isdecimal() or word == "{n}" for word in words)
            or "ranked" in fields
        )
        doubt = "" if clear else f"{answer.columns[0]} could name the object that is more similar, or less similar"
        for farther in (sign < 0,) if clear else (False, True):
            yield Proposal("ranking" if "ranked" in fields else "pick", fields, answer, why, rank, doubt, farther)
    if not anchors and size == 3 and not (several and answer.by != "flag"):
        rank = (4, several, chosen or sign != 0, True, is_textual(group), False, len(group))
        things = names == ("image1", "image2", "image3") and answer.columns == ("choice",)
        central = bool(CENTRAL & words) or sign > 0
        kinds = (
            ["odd_one_out"]
            if things or sign < 0
            else ["most_central"]
            if CENTRAL & words
            else ["odd_one_out", "most_central"]
        )
        doubt = f"{answer.columns[0]} could be the odd one out or the most central object" if len(kinds) > 1 else ""
        for kind in kinds[::-1] if central else kinds:
            fields = {"objects": names, "odd" if kind == "odd_one_out" else "central": answer.columns}
            yield Proposal(kind, fields, answer, "three objects, but no fourth", rank, doubt)


def _of_counts(records: Records, group: list[Column]) -> Iterator[Proposal]:
    """Two objects beside an anchor, with the votes for each, or the share of one and the number of votes."""
    if len(group) != 2 or not (anchors := _anchors(records, group, ())):
        return
    names = tuple(each.name for each in group)
    fields = {"anchor": (anchors[0].name,), "near": names[:1], "far": names[1:]}
    for votes in parallel(records, group):
        if all(map(_counts, votes)):
            fields |= {"n_near": (votes[0].name,), "n_far": (votes[1].name,)}
            farther = any(sign_of(each.words) < 0 for each in votes)
            yield Proposal("triplet", fields, Answer(), "the votes for each of the two", (6,), "", farther)
    totals = [each for each in records.columns.values() if _counts(each) and "0" not in each.distinct]
    shares = [each for each in records.columns.values() if SHARE & set(each.words) and _is_share(each)]
    if len(totals) == 1 == len(shares):
        words, own = set(shares[0].words), [set(each.words) for each in group]
        sides = [place for place in (0, 1) if words & (own[place] - own[1 - place])]
        bapps = shares[0].name == "judge" and names == ("p0", "p1")
        first = 1 if bapps else sides[0] if len(sides) == 1 else None
        doubt = "" if first is not None else f"{shares[0].name} could be the share of {names[0]} or of {names[1]}"
        for near in (0, 1) if first is None else (first,):
            told = {
                "near": (names[near],),
                "far": (names[1 - near],),
                "share": (shares[0].name,),
                "votes": (totals[0].name,),
            }
            yield Proposal("triplet", fields | told, Answer(), "shares of votes", (6,), doubt)


def _is_share(column: Column) -> bool:
    numbers = [number_of(text, text=True) for text in column.distinct]
    return len(numbers) > 2 and all(number is not None and 0 <= number <= 1 for number in numbers)


def _triads(records: Records) -> Iterator[Proposal]:
    """Three objects, and which pair of them is the most alike: AB, AC or BC."""
    for group in shown_in([each for each in records.columns.values() if each.distinct]):
        names = tuple(each.name for each in group)
        for column in records.columns.values():
            if len(group) != 3 or column.name in names or not 1 < len(column.distinct) <= 6:
                continue
            parts = {text: _pair_of(text, group) for text in column.distinct}
            if not all(len(pair) == 2 for pair in parts.values()):
                continue
            codes = {text: names[({0, 1, 2} - pair).pop()] for text, pair in parts.items()}
            sign = sign_of(column.words)
            told = ", ".join(f"{text} leaves {name}" for text, name in codes.items())
            doubt = "" if sign else f"{column.name} could be the pair that is most alike, or least"
            answer = Answer((column.name,), "position", codes, told, doubt, frozenset(codes))
            for kind, field in (("odd_one_out", "odd"), ("most_central", "central")):
                if sign == 0 or (sign > 0) == (field == "odd"):
                    yield Proposal(
                        kind, {"objects": names, field: answer.columns}, answer, "pairs of three", (6,), doubt
                    )


def _pair_of(text: str, group: Sequence[Column]) -> set[int]:
    """Which two of three columns a code such as AB or 1-3 names."""
    own = [set(each.words) for each in group]
    single = [each - set[str].intersection(*own) for each in own]
    parts = [part for word in Column(text, []).words for part in (word if len(word) == 2 else [word])]
    places = [next((place for place, words in enumerate(single) if part in words), -1) for part in parts]
    return set(places) if len(parts) == 2 and -1 not in places else set()


def _ranks(records: Records) -> Iterator[Proposal]:
    """Some objects beside an anchor, and the rank of each; or the object of each rank."""
    columns = [each for each in records.columns.values() if each.distinct]
    for group in shown_in(columns):
        if len(group) < 3 or not (anchors := _anchors(records, group, ())):
            continue
        names, anchor = tuple(each.name for each in group), (anchors[0].name,)
        if {"rank", "rang", "ranked", "place", "platz"} & set(group[0].words):
            yield Proposal(
                "ranking",
                {"anchor": anchor, "ranked": names},
                Answer(),
                "columns of ranks",
                (6, 1),
                "",
                _farther(group),
            )
        for ranks in parallel(records, group):
            whole = {str(place + 1) for place in range(len(group))}
            if all({value[0] for each in ranks if (value := each.values[row])} == whole for row in range(records.size)):
                told = {"anchor": anchor, "ranked": names, "rank": tuple(each.name for each in ranks)}
                yield Proposal("ranking", told, Answer(), "the rank of each, 1 first", (6,), "", _farther(ranks))


def _farther(group: Sequence[Column]) -> bool:
    return sign_of(group[0].words) < 0


def _two_and_odd(records: Records) -> Iterator[Proposal]:
    """Two objects, and the odd one in a column of its own."""
    columns = [each for each in records.columns.values() if each.distinct]
    for group in (each for each in shown_in(columns) if len(each) == 2):
        for column in columns:
            inside = (
                column not in group
                and not RATINGS & set(column.words)
                and sign_of(column.words) < 0
                and alike(column, group[0]) >= LEAST_SHARED
            )
            if inside and named_share(column, group) <= 0.2:
                names = (*(each.name for each in group), column.name)
                fields = {"objects": names, "odd": (column.name,)}
                yield Proposal("odd_one_out", fields, Answer((column.name,)), "two objects, and the odd one", (4,))


LAYOUTS: tuple[Callable[[Records], Iterator[Proposal]], ...] = (
    *(_own, _near_and_far, _pairs, _ranks, _triads, _shown, _two_and_odd),
)


def alike(one: Column, other: Column) -> float:
    """The share of the values of the smaller column that the other one has."""
    smaller, larger = sorted((one.items, other.items), key=len)
    return len(smaller & larger) / len(smaller) if smaller else 0.0


def _anchors(records: Records, group: Sequence[Column], answers: Sequence[str]) -> list[Column]:
    """Columns that may hold what the objects were compared with: called so, or with the same objects in other rows;
    the most probable first."""
    found = []
    for each in records.columns.values():
        if each in group or each.name in answers or not each.distinct:
            continue
        words = set(each.words)
        if any(value is not None and len(value) > 1 for value in each.values) or (TRUTH | OTHER) & words:
            continue
        called, share = bool(ANCHOR & words) or each.name in "xX", max(alike(each, other) for other in group)
        repeats = sum(
            value is not None and set(value) <= set(offered(group, row)) for row, value in enumerate(each.values)
        )
        filled = sum(value is not None for value in each.values)
        text = is_textual([each]) == is_textual(group)
        unlike = repeats <= 0.5 * filled and text and not is_answer(each)
        if filled > 0.5 * records.size and ((called and text) or (share >= 0.5 and unlike and is_textual([each]))):
            found.append((not called, -share, each))
    found.sort(key=lambda each: each[:2])
    return [each for *_, each in found]


def candidates(records: Records) -> list[Reading]:
    """What records may be of which no name of a column says anything: three columns with the same values, and one that
    names an object beside it, or its column. Each has a doubt, and there are two of them: they are shown, never chosen.

    >>> from stream_engine.formats.record_columns import records_of
    >>> rows = {"eins": [*"abcd"], "zwei": [*"bcda"], "drei": [*"cdab"], "Was": ["eins", "drei", "zwei", "drei"]}
    >>> [(each.type, each.columns["objects"], each.answers_by) for each in candidates(records_of(rows))]
    [('odd_one_out', ('eins', 'zwei', 'drei'), 'position'), ('most_central', ('eins', 'zwei', 'drei'), 'position')]
    """
    texts = [
        each
        for each in records.columns.values()
        if len(each.distinct) > 2
        and is_textual([each])
        and each.distinct == each.items
        and not set(each.name) & set(",|=")
    ]
    for group in combinations(texts[:MOST_TEXTS], 3):
        if all(alike(one, other) >= LEAST_SHARED for one, other in combinations(group, 2)):
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
    three = [offered([within.columns[name] for name in names], row) for row in range(len(rows))]
    if sum(len(set(each)) == 3 for each in three) < LEAST_FIT * len(rows) or len(said.distinct) < 2:
        return []
    by_column = not any(text.isdecimal() or place_of(text, names, 1) < 0 for text in said.distinct)
    places = [
        place_of(text, names, 1) if by_column else each.index(text) if text in each else -1
        for each, text in zip(three, said.texts)
        if text is not None
    ]
    chosen = {place for place in places if place >= 0}
    if len(chosen) < 2 or sum(place < 0 for place in places) > (1 - LEAST_FIT) * len(rows):
        return []
    why = f"they share values, and {answered} names {'their columns' if by_column else 'one of them'}"
    accepted = frozenset(said.distinct) if by_column else None
    answer = Answer((answered,), "position" if by_column else "name", accepted=accepted)
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
    facts: list[str] = []
    made = [_read(records, Proposal(kind, fields, answer, why, (), doubt), False, (), facts) for kind, fields in kinds]
    found = [each for some in made for _, each in islice(some, 1)]
    return found if len(found) > 1 else []


# ---- which records are questions, and whether a reading explains the others


def _read(
    records: Records, proposal: Proposal, wide: bool, said: Sequence[str], facts: list[str]
) -> Iterator[tuple[tuple[int, ...], Reading]]:
    """The readings that come of a proposal: with its filters, its participant and its response times. None where too
    much does not fit, or something is left unexplained: `facts` has why."""
    kind, fields, answer = proposal.kind, proposal.fields, proposal.answer
    inputs = [name for names in fields.values() for name in names]
    objects = [name for name in inputs if name not in answer.columns]
    evidence = [Evidence("objects", ", ".join(objects), proposal.why)]
    if answer.columns:
        why = answer.why or f"it names one of those shown ({answer.by})"
        evidence.append(Evidence("answer", ", ".join(answer.columns), why))
    if proposal.farther:
        evidence.append(
            Evidence("direction", "farther", f"{', '.join(answer.columns) or 'the names'} name the farther object")
        )
    state = [_state(records, row, fields, answer) for row in range(records.size)]
    counts = Counter(state)
    filters: dict[str, str] = {}
    doubt = answer.doubt or proposal.doubt
    if not counts["fits"]:
        return
    if counts["other"]:
        told_by = distinguishing_filters(
            records, [each in ("fits", "catch") for each in state], [each == "other" for each in state]
        )
        if told_by is None and answer.columns:
            told_by, doubt = _with_answers(records, state, answer, doubt)
        if told_by is None and counts["other"] > (1 - LEAST_FIT) * records.size:
            return
        if told_by is not None:
            filters |= told_by.where
            evidence.append(Evidence(told_by.decision, shown(told_by.where), told_by.why))
    kept = matching(records, filters)
    own = kind == "triplet" and all(names == (field,) for field, names in fields.items())
    if (told_half := _half_empty(kept, fields, answer)) and not own:
        facts.append(told_half)
        return
    if not own:  # what the engine's own format lacks is refused, and told
        needed = [name for name in inputs if answer.by != "flag" or name not in answer.columns]
        empty = _filled(kept, needed, answer.columns[0] if wide and answer.columns else None)
        if empty:
            before, asked = kept.size, kept.kept(row for row, each in enumerate(_objects(kept, objects)) if each)
            kept = matching(kept, empty)
            silent = asked.size - matching(asked, empty).size
            filters |= empty
            why = f"{before - kept.size:,} of {before:,} rows, of which {silent:,} show objects and have no answer; to "
            why += "have them rejected, give the options of this reading without this filter"
            evidence.append(Evidence("empty cells", shown(empty), why))
    kept = matching(kept, {key: value for key, value in filters.items() if key.endswith("!=")})
    kept = kept.kept(row for row in range(kept.size) if all(kept.columns[name].values[row] for name in inputs))
    columns = dict(fields)
    for told_of in (practice(kept, objects), catch_trials(kept, fields, own)):
        if told_of is not None:
            filters |= told_of.where
            columns |= told_of.columns
            doubt = doubt or told_of.doubt
            left = kept.size - matching(kept, told_of.where).size
            why = f"{left:,} rows; {told_of.why}" if left else told_of.why
            evidence.append(Evidence(told_of.decision, shown(told_of.where) or "judge the participant", why))
    asked = matching(kept, filters)
    if (same := counts["catch"]) > (1 - LEAST_FIT) * records.size and "catch" not in columns and not own and asked.size:
        told = f"in {same:,} of {records.size:,} rows an object is compared with itself: catch trials, or a mistake?"
        judged = f"judge participants by them: catch={fields['anchor'][0]} in --columns" if "anchor" in fields else ""
        facts.append(f"{told} Exclude these rows" + (f", or {judged}" if judged else ""))
        return
    who = participant(kept, wide)
    if who is not None:
        columns["worker"] = (who.name,)
        evidence.append(Evidence("participant", who.name, f"{len(who.distinct):,} in {kept.size:,} questions"))
    if not wide and (told_times := response_times(kept)) is not None:
        field, column, why = told_times
        columns[field] = (column.name,)
        evidence.append(Evidence("response times", f"{column.name}, in {field}", why))
    used = {name for names in columns.values() for name in names} | {
        filter_of(*each).source for each in filters.items()
    }
    rest = asked.kept(row for row in range(asked.size) if _state(asked, row, fields, answer) == "fits")
    told_rest = unexplained(rest, fields, answer, used, who) or contradicted(rest, kind, used, proposal.farther, said)
    if told_rest:
        facts.append(told_rest)
        return
    field = next((each for each in fields if each in ("chosen", "odd", "central")), "")
    separators = {records.separators[name] for name in inputs if name in records.separators}
    found = Reading(
        "" if own else kind,
        {field: names for field, names in columns.items() if names != (field,)} if own else columns,
        answer.by if answer.columns else "name",
        {field: answer.codes} if answer.codes else {},
        filters,
        tuple(evidence),
        doubt,
        "farther" if proposal.farther else "nearer",
        separators.pop() if separators else None,
    )
    if own and found.doubt:
        found = found._replace(type=kind)
    whole = counts["other"] == 0 or not any(each.decision in ("questions", "no answers") for each in evidence)
    yield (int(whole), *proposal.rank), found
    if doubt and not (answer.doubt or proposal.doubt or not practice(kept, objects)):
        others = {key: value for key, value in filters.items() if not doubt.startswith(filter_of(key, value).source)}
        yield (int(whole), *proposal.rank), found._replace(where=others)


def _with_answers(records: Records, state: list[str], answer: Answer, doubt: str) -> tuple[Filters | None, str]:
    """The filter that leaves out what is no answer, and the doubt where it might be one: "can't tell"."""
    column = records.columns[answer.columns[0]]
    others = Counter(text for text, each in zip(column.texts, state) if each == "other" and text)
    asked = sum(each != "empty" for each in state)
    n, most = others.total(), [text for text, _ in others.most_common(MOST_VALUES)]
    if (
        len(answer.columns) > 1
        or n > MOST_OTHERS * asked
        or len(others) > MOST_VALUES
        or LIST_SEPARATOR in "".join(most)
    ):
        return None, doubt
    quoted = ", ".join(f'"{text}"' for text in most)
    coded = answer.accepted is not None and len(answer.codes_of(column)) > 0
    nothing = all(text.casefold() in _NO_ANSWER for text in most)
    key = (
        coded
        and 10 * n <= asked
        and not any(map(str.isdecimal, most))
        and all(len(text) <= 12 and " " not in text for text in most)
        and _is_key(column)
    )
    if nothing or key:
        wanted = LIST_SEPARATOR.join(answer.codes_of(column)) if coded else ""
        where = {column.name: wanted} if coded else {f"{column.name}!=": LIST_SEPARATOR.join(most)}
        return Filters("no answers", where, f"{n:,} rows are no answers: {quoted}"), doubt
    told = f"{n:,} of {asked:,} answers ({n / asked:.0%}) in {column.name} are {quoted}, and no object is called so"
    where = {f"{column.name}!=": LIST_SEPARATOR.join(most)}
    return Filters("no answers", where, f"{n:,} of {records.size:,} rows"), told


def _is_key(column: Column) -> bool:
    return bool({"key", "keys", "keypress", "keyboard", "press", "resp"} & set(column.words)) or all(
        len(text) == 1 or text.startswith("arrow")
        for text in column.distinct - {" "}
        if text.casefold() not in _NO_ANSWER
    )


def _half_empty(records: Records, fields: Mapping[str, tuple[str, ...]], answer: Answer) -> str:
    """What to say of questions that lack one object and have the others: a name that was taken for none."""
    objects = [name for names in fields.values() for name in names if name not in answer.columns]
    holes: Counter[str] = Counter()
    for row in range(records.size):
        empty = [name for name in objects if records.columns[name].values[row] is None]
        if len(empty) == 1 and len(objects) > 2:
            holes[empty[0]] += 1
    if len(holes) < 2 or any("{" in name for name in objects):
        return ""
    return (
        f"{holes.total():,} of {records.size:,} rows lack one object and have the others ({', '.join(holes)}): an "
        "object called NA, None or null may have been taken for a missing value; next: in pandas read_csv(..., "
        f"keep_default_na=False), or leave these rows out with --where '{next(iter(holes))}!='"
    )


def _state(records: Records, row: int, fields: Mapping[str, tuple[str, ...]], answer: Answer) -> str:
    """Whether a record is a question that `fits`, a `catch` trial, `empty`, or some `other` thing."""
    held = {field: [records.columns[name].values[row] for name in names] for field, names in fields.items()}
    said = [text for name in answer.columns for text in records.columns[name].values[row] or ()]
    required = [
        value for field, values in held.items() for value in values if not (answer.by == "flag" and field in ANSWERS)
    ]
    if any(value is None for value in required):
        return "empty"
    texts = {field: [text for value in values for text in value or ()] for field, values in held.items()}
    shown = texts.get("shown") or texts.get("ranked") or texts.get("objects") or [*texts["near"], *texts["far"]]
    if answer.by == "flag":
        said = (
            [(records.columns[name].texts[row] or "") for name in answer.columns] if len(answer.columns) > 1 else said
        )
    if answer.columns and not answer.names(said, shown) and "ranked" not in fields:
        return "other"
    everything = [*texts.get("anchor", ()), *shown]
    pairs = "near" in fields and len(fields["near"]) == 2
    return "fits" if len(set(everything)) == len(everything) or (pairs and len({*shown}) > 2) else "catch"


ANSWERS = ("chosen", "odd", "central")


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


def _objects(records: Records, names: Sequence[str]) -> list[bool]:
    """Whether each record has all objects."""
    return [all(records.columns[name].values[row] for name in names) for row in range(records.size)]


def _called(name: str) -> str:
    return "".join(words_of(name))


def participant(records: Records, wide: bool) -> Column | None:
    """The column that says who answered: called so, filled, and the same in several records."""
    found = []
    for name, column in records.columns.items():
        inner = name if " " in name else name.rpartition(".")[2]
        called = next((each for each in map(_called, (name, inner)) if each in PARTICIPANTS), "")
        filled = sum(value is not None for value in column.values)
        if called in PARTICIPANTS and filled >= 0.9 * records.size and records.size and not set(name) & set(",|="):
            repeated = wide or len(column.distinct) < max(2, 0.9 * filled) or records.size < 10
            repeated = repeated and (called != "session" or is_textual([column]))
            if repeated and not any("." in text and number_of(text, text=True) is not None for text in column.distinct):
                found.append((PARTICIPANTS.index(called), name))
    return records.columns[min(found)[1]] if found else None


def matching(records: Records, where: Mapping[str, str]) -> Records:
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


def shown(where: Mapping[str, str]) -> str:
    """Filters as they are written."""
    return ", ".join(f"{key}{'' if key[-1] in '=<>' else '='}{value}" for key, value in where.items())


def _safe_names(reading: Reading) -> Reading:
    """Without the characters in names of columns that mean something on a command line."""

    def safe(name: str) -> str:
        return "".join("*" if letter in ",|=" else letter for letter in name)

    columns = {field: tuple(map(safe, names)) for field, names in reading.columns.items()}
    return reading._replace(columns=columns)
