"""Layouts in which some objects are shown and an answer picks among them, beside an anchor or without one."""

from collections.abc import Iterator, Sequence

from stream_engine.formats.answers import (
    MIN_FIT,
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
from stream_engine.formats.asked_direction import asked_sign, sign_in_name
from stream_engine.formats.event_fields import place_of
from stream_engine.formats.field_values import number_of
from stream_engine.formats.reading import Proposal
from stream_engine.formats.record_columns import Column, Records
from stream_engine.formats.vocabulary import (
    ANCHOR,
    ANSWER,
    CENTRAL,
    OTHER,
    SHARE,
    SPATIAL,
    TRUTH,
    VOTES,
    accentless,
    place_in,
    sign_of,
    words_of,
)


def is_vote_count(column: Column) -> bool:
    return bool(VOTES & set(column.words)) and all(text.isdecimal() for text in column.distinct)


def shown_objects(records: Records) -> Iterator[Proposal]:
    """Some objects, or lists of them, and an answer: picks beside an anchor, odd-one-out or most central of three."""
    by_index = (
        "button" in " ".join(records.columns["trial_type"].distinct) if "trial_type" in records.columns else False
    )
    groups = shown_in([column for column in records.columns.values() if column.distinct])
    for group in groups:
        if any(_size(other) == _size(group) and is_textual(other) for other in groups):
            numbers = {text for column in group for text in column.items}
            if any(numbers == {str(first + place) for place in range(_size(group))} for first in (0, 1)):
                continue  # numbers of the objects in other columns: the order in which they were shown
        names = tuple(column.name for column in group)
        rows = [row for row in range(records.size) if all(column.values[row] for column in group)]
        within = records.select(rows)
        group = [within.columns[name] for name in names]
        answered = False
        in_turn = {column.name for other in groups if _size(other) == len(other) == _size(group) for column in other}
        for answer in _answers(within, group, by_index, in_turn):
            answered = True
            yield from _of_answer(within, group, answer)
        yield from _of_counts(within, group)
        shares = any(
            is_rating(column) or (SHARE & set(column.words) and _is_share(column)) for column in within.columns.values()
        )
        if (
            len(group) == 2
            and not answered
            and not shares
            and not any(is_answer(column) and spelt_otherwise(column, group) for column in within.columns.values())
            and not code_columns(within, group)
            and not any(is_answer(column) and in_sentences(column, group) for column in within.columns.values())
            and not any(all(place_in(column.words, order) >= 0 for column in group) for order in SPATIAL)
            and (anchors := anchors_of(within, group, ()))
        ):
            doubt = (
                "no column says which object was chosen: this looks like a design, or near and far without these names"
            )
            for near, far in (names, names[::-1]):
                fields = {"anchor": (anchors[0].name,), "near": (near,), "far": (far,)}
                yield Proposal("triplet", fields, Answer(), "the names of the columns", (0,), doubt)


def _size(group: Sequence[Column]) -> int:
    """How many objects these columns hold in a row."""
    return len(group) if len(group) > 1 else max(len(value) for value in group[0].values if value)


def _answers(records: Records, group: Sequence[Column], by_index: bool, in_turn: set[str]) -> Iterator[Answer]:
    """What may say which of these objects was chosen; `in_turn`: columns that may hold all of them."""
    names = {column.name for column in group}
    size = _size(group)
    columns = [column for column in records.columns.values() if column.name not in names and column.distinct]
    for flags in parallel(records, group):
        if all(map(is_flags, flags)) and any(is_answer(column) or sign_of(column.words) for column in flags):
            names_of_flags = tuple(column.name for column in flags)
            yield Answer(names_of_flags, "flag", why="1 for each object that was chosen, else 0")
    for column in columns:
        lengths = {len(value) for value in column.values if value}
        if (
            is_answer(column)
            and lengths == {size}
            and is_flags(column._replace(values=[(t,) for v in column.values for t in v or ()]))
        ):
            yield Answer((column.name,), "flag", why="1 for each object that was chosen, else 0")
    shares = [(column, named_share(column, group)) for column in columns if not TRUTH & set(column.words)]
    named = [
        column
        for column, share in shares
        if share >= MIN_FIT
        and (is_answer(column) and not OTHER - ANSWER - {"trial"} & set(column.words))
        and not ANCHOR & set(column.words)
    ]
    several = [column for column in named if all(column is other or _differ(column, other) for other in named)]
    if (
        size > 2
        and len(several) == len(named) > 1
        and not {-1} < {sign_of(column.words) for column in named}
        and not any(_LAST & {*column.words} for column in named)  # the farthest one, or one more that is near
        and len(named) < size
    ):
        names_of = ", ".join(column.name for column in named)
        yield Answer(tuple(column.name for column in named), why=f"{names_of} name different objects of those shown")
    for column, share in sorted(shares, key=lambda column: -column[1]):
        called = is_answer(column) and not OTHER & (set(column.words) - ANSWER - {"index", "position", "trial"})
        by_column = len(column.distinct) > 1 and column.distinct <= names
        lists_all = len(group) > 1 and all(len(value) == size for value in column.values if value)
        inside = share == 1 and not lists_all and sum(map(bool, column.values)) > 3 and not ANCHOR & set(column.words)
        if called or by_column or (inside and column.name not in in_turn):
            yield from answers_of(column, group, by_index)


def spelt_otherwise(column: Column, group: Sequence[Column]) -> tuple[str, str] | None:
    """A text of a column that is an object of these in another spelling, and that object, if most of its texts are."""
    plain = {words_of(text): text for one in group for text in one.distinct}
    alike = [text for text in sorted(column.distinct) if words_of(text) in plain and words_of(text)]
    others = [text for text in alike if text not in plain.values()]
    return (others[0], plain[words_of(others[0])]) if others and 2 * len(alike) > len(column.distinct) else None


def in_sentences(column: Column, group: Sequence[Column]) -> bool:
    """Whether the texts of a column are sentences with the names of objects of their rows.

    >>> shown = [Column("left", [("cat",), ("owl",)]), Column("right", [("dog",), ("cat",)])]
    >>> in_sentences(Column("said", [("The cat is closer",), ("The owl is closer",)]), shown)
    True
    """
    texts = [(text, offered(group, row)) for row, text in enumerate(column.texts) if text is not None]
    named = sum(any(name in text and name != text for name in names) and " " in text for text, names in texts)
    return named >= MIN_FIT * len(texts) > 0


_LAST = accentless("last final letzte letzter letztes dernier derniere ultimo ultima laatste")


def _differ(one: Column, other: Column) -> bool:
    """Whether two columns never hold the same thing in a row."""
    return not any(a is not None and a == b for a, b in zip(one.values, other.values))


def _of_answer(records: Records, group: list[Column], answer: Answer) -> Iterator[Proposal]:
    names = tuple(column.name for column in group)
    words = {word for name in answer.columns for word in records.columns[name].words}
    questions = {sign for name in answer.columns if (sign := sign_in_name(name))}
    named = next(iter(questions)) if len(questions) == 1 else sign_of(words)
    sign = named or min(0, asked_sign(records))
    chosen = bool(ANSWER & words)
    size = _size(group)
    several = len(answer.columns) > 1
    anchors = anchors_of(records, group, answer.columns)
    called = bool(anchors) and (bool(ANCHOR & set(anchors[0].words)) or anchors[0].name in "xX")
    if size == 3 and not called and (sign < 0 or chosen):
        anchors = []  # it may be anything beside three objects
    for anchor in anchors[:1]:
        fields = {"anchor": (anchor.name,), "shown": names, "chosen": answer.columns}
        column = records.columns[answer.columns[0]]
        if len(group) == 1 and [sorted(value or ()) for value in column.values] == [
            sorted(v or ()) for v in group[0].values
        ]:
            fields = {"anchor": (anchor.name,), "ranked": answer.columns}
        share = max(shared_values(anchor, column) for column in group)
        rank = (
            5,
            several,
            chosen or sign != 0,
            share > 0,
            is_textual(group),
            bool(ANCHOR & set(anchor.words)),
            len(group),
        )
        n_own = sum(bool(a) and a == b for a, b in zip(anchor.values, column.values))  # such as catch trials
        why = f"{share:.0%} of the anchors are options of other questions; "
        why += f"in {n_own:,} rows the answer is the anchor itself" if n_own else "an anchor is never the answer"
        clear = (
            sign
            or chosen
            or all(len(word) == 1 or word.isdecimal() or word == "{n}" for word in words)
            or "ranked" in fields
        )
        doubt = "" if clear else f"{answer.columns[0]} could name the object that is more similar, or less similar"
        if size == 3 and not called and clear:
            doubt = f"{anchor.name} could be what {', '.join(names)} are compared with, or something else"
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
        asked_elsewhere = sign < 0 and not named and not things
        never = _never_chosen(records, group, answer) if doubt or asked_elsewhere else None
        if never is not None:
            doubt = (
                f"{answer.columns[0]} never names {never.name}, with which the others may have been compared; or it "
            )
            doubt += "could be the odd one out"
            others = tuple(name for name in names if name != never.name)
            fields = {"anchor": (never.name,), "shown": others, "chosen": answer.columns}
            why, of_two = f"{never.name} is never the answer", answer
            if answer.by != "name":
                first = 0 if answer.by == "index" else 1
                places = {
                    text: place_of(answer.codes.get(text, text), names, first)
                    for text in sorted(records.columns[answer.columns[0]].distinct)
                }
                codes = {text: names[place] for text, place in places.items() if 0 <= place < size}
                of_two = answer._replace(by="position", codes=codes, accepted=frozenset(codes))
            yield Proposal("pick", fields, of_two, why, rank, doubt, sign < 0)
            kinds, central = ["odd_one_out"], False
        for kind in kinds[::-1] if central else kinds:
            fields = {"objects": names, "odd" if kind == "odd_one_out" else "central": answer.columns}
            yield Proposal(kind, fields, answer, "three objects, but no fourth", rank, doubt)


MIN_ANSWERED_ROWS = 20  # after which an object at each of three places was the answer


def _never_chosen(records: Records, group: Sequence[Column], answer: Answer) -> Column | None:
    """Which of three columns never holds the answer, where the two others do."""
    if len(group) != 3 or answer.by not in ("name", "position", "index") or len(answer.columns) != 1:
        return None
    texts, names = records.columns[answer.columns[0]].texts, tuple(column.name for column in group)
    if answer.by == "name":
        rows = [*zip(texts, *(column.texts for column in group))]
        places = [three.index(text) for text, *three in rows if text in three]
    else:
        first = 0 if answer.by == "index" else 1
        places = [place_of(answer.codes.get(text, text), names, first) for text in texts if text is not None]
    never = [column for place, column in enumerate(group) if place not in places]
    return never[0] if len(never) == 1 and len(places) >= MIN_ANSWERED_ROWS else None


def _of_counts(records: Records, group: list[Column]) -> Iterator[Proposal]:
    """Two objects beside an anchor, with the votes for each, or the share of one and the number of votes."""
    if len(group) != 2 or not (anchors := anchors_of(records, group, ())):
        return
    names = tuple(column.name for column in group)
    fields = {"anchor": (anchors[0].name,), "near": names[:1], "far": names[1:]}
    for votes in parallel(records, group):
        if all(map(is_vote_count, votes)):
            fields |= {"n_near": (votes[0].name,), "n_far": (votes[1].name,)}
            farther = any(sign_of(column.words) < 0 for column in votes)
            yield Proposal("triplet", fields, Answer(), "the votes for each of the two", (6,), "", farther)
    totals = [column for column in records.columns.values() if is_vote_count(column) and "0" not in column.distinct]
    shares = [column for column in records.columns.values() if SHARE & set(column.words) and _is_share(column)]
    if len(totals) == 1 == len(shares):
        words, words_of_group = set(shares[0].words), [set(column.words) for column in group]
        sides = [place for place in (0, 1) if words & (words_of_group[place] - words_of_group[1 - place])]
        bapps = shares[0].name == "judge" and names == ("p0", "p1")
        first = 1 if bapps else sides[0] if len(sides) == 1 else None
        doubt = "" if first is not None else f"{shares[0].name} could be the share of {names[0]} or of {names[1]}"
        for near in (0, 1) if first is None else (first,):
            fields_of_votes = {
                "near": (names[near],),
                "far": (names[1 - near],),
                "share": (shares[0].name,),
                "votes": (totals[0].name,),
            }
            yield Proposal("triplet", fields | fields_of_votes, Answer(), "shares of votes", (6,), doubt)


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
    anchors = []
    for column in records.columns.values():
        if column in group or column.name in answers or not column.distinct:
            continue
        words = set(column.words)
        if any(value is not None and len(value) > 1 for value in column.values) or (TRUTH | OTHER) & words - {
            "id",
            "trial",
        }:
            continue
        called = bool(ANCHOR & words) or column.name in "xX"
        if {"id", "trial"} & words and not called:
            continue
        share = max(shared_values(column, other) for other in group)
        repeats = sum(
            value is not None and set(value) <= set(offered(group, row)) for row, value in enumerate(column.values)
        )
        filled = sum(value is not None for value in column.values)
        text = is_textual([column]) == is_textual(group)
        unlike = repeats <= 0.5 * filled and text and not is_answer(column)
        if filled > 0.5 * records.size and ((called and text) or (share >= 0.5 and unlike and is_textual([column]))):
            anchors.append((not called, -share, column))
    anchors.sort(key=lambda anchor: anchor[:2])
    return [column for *_, column in anchors]
