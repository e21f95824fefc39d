"""Layouts in which some objects are shown and an answer picks among them, beside an anchor or without one."""

from collections.abc import Iterator, Sequence

from stream_engine.formats.answers import (
    LEAST_FIT,
    Answer,
    answers_of,
    code_columns,
    is_answer,
    is_flags,
    is_rating,
    is_textual,
    named_share,
    offered,
    parallel,
    shown_in,
)
from stream_engine.formats.asked_direction import asked_sign
from stream_engine.formats.field_values import number_of
from stream_engine.formats.reading import Proposal
from stream_engine.formats.record_columns import Column, Records
from stream_engine.formats.vocabulary import ANCHOR, ANSWER, CENTRAL, OTHER, SHARE, TRUTH, VOTES, sign_of


def is_vote_count(column: Column) -> bool:
    return bool(VOTES & set(column.words)) and all(text.isdecimal() for text in column.distinct)


def shown_objects(records: Records) -> Iterator[Proposal]:
    """Some objects, or lists of them, and an answer: picks beside an anchor, odd-one-out or most central of three."""
    by_index = (
        "button" in " ".join(records.columns["trial_type"].distinct) if "trial_type" in records.columns else False
    )
    for group in shown_in([each for each in records.columns.values() if each.distinct]):
        names = tuple(each.name for each in group)
        rows = [row for row in range(records.size) if all(each.values[row] for each in group)]
        within = records.select(rows)
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
            and (anchors := anchors_of(within, group, ()))
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
    anchors = anchors_of(records, group, answer.columns)
    if size == 3 and anchors and not (ANCHOR & set(anchors[0].words) or anchors[0].name in "xX"):
        anchors = []  # it may be anything beside three objects
    for anchor in anchors[:1]:
        fields = {"anchor": (anchor.name,), "shown": names, "chosen": answer.columns}
        column = records.columns[answer.columns[0]]
        if len(group) == 1 and [sorted(value or ()) for value in column.values] == [
            sorted(v or ()) for v in group[0].values
        ]:
            fields = {"anchor": (anchor.name,), "ranked": answer.columns}
        share = max(shared_values(anchor, each) for each in group)
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
    if len(group) != 2 or not (anchors := anchors_of(records, group, ())):
        return
    names = tuple(each.name for each in group)
    fields = {"anchor": (anchors[0].name,), "near": names[:1], "far": names[1:]}
    for votes in parallel(records, group):
        if all(map(is_vote_count, votes)):
            fields |= {"n_near": (votes[0].name,), "n_far": (votes[1].name,)}
            farther = any(sign_of(each.words) < 0 for each in votes)
            yield Proposal("triplet", fields, Answer(), "the votes for each of the two", (6,), "", farther)
    totals = [each for each in records.columns.values() if is_vote_count(each) and "0" not in each.distinct]
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


def shared_values(one: Column, other: Column) -> float:
    """The share of the values of the smaller column that the other one has."""
    smaller, larger = sorted((one.items, other.items), key=len)
    return len(smaller & larger) / len(smaller) if smaller else 0.0


def anchors_of(records: Records, group: Sequence[Column], answers: Sequence[str]) -> list[Column]:
    """Columns that may hold what the objects were compared with: called so, or with the same objects in other rows;
    the most probable first."""
    found = []
    for each in records.columns.values():
        if each in group or each.name in answers or not each.distinct:
            continue
        words = set(each.words)
        if any(value is not None and len(value) > 1 for value in each.values) or (TRUTH | OTHER) & words:
            continue
        called, share = bool(ANCHOR & words) or each.name in "xX", max(shared_values(each, other) for other in group)
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
