"""Layouts recognised by the names of columns: anchor, near, far; pairs; ranks; triads; two objects and the odd one."""

from collections.abc import Iterator, Sequence
from itertools import combinations

from stream_engine.formats.answers import (
    RATINGS,
    Answer,
    code_columns,
    families,
    is_answer,
    is_flags,
    is_textual,
    named_share,
    pairs_in,
    parallel,
    shown_in,
)
from stream_engine.formats.field_values import flag_of
from stream_engine.formats.reading import Proposal
from stream_engine.formats.record_columns import ORDERING, Column, Records
from stream_engine.formats.shown_layouts import anchors_of, is_vote_count, shared_values
from stream_engine.formats.vocabulary import ANCHOR, FAR, NEAR, ORDINALS, OTHER, TRUTH, place_in, sign_of

MIN_SHARED = 0.5  # of their values, for columns that nothing else marks as objects
RANKS = {"rank", "ranks", "rang", "ranked", "ranking", "place", "platz", "puesto", "plaats", "posto"}
FOILS = {"foil", "foils", "distractor", "distractors", "lure"}  # the wrong option of a matching task


def named_fields(records: Records) -> Iterator[Proposal]:
    """This engine's own columns, and those of cblearn, MLDS, and lists of triplets without a header."""
    names = records.columns
    fields: dict[str, tuple[str, ...]]
    if {"anchor", "near", "far"} <= set(names):
        fields = {name: (name,) for name in ("anchor", "near", "far")}
        yield from _with_truth(
            records, Proposal("triplet", fields, Answer(), "the columns have these names", (9,)), True
        )
    if {"i", "j", "k"} <= set(names) and "l" not in names:
        answers = [names[name] for name in ("response", "responses", "answer") if name in names]
        fields = {"anchor": ("i",), "near": ("j",), "far": ("k",)}
        if not answers and not {"yes", "no"} & set(names):
            yield Proposal("triplet", fields, Answer(), "the list order of cblearn", (8,))
        elif answers and answers[0].distinct <= {"1", "-1"}:
            accepted = frozenset(("1", "-1"))
            answer = Answer((answers[0].name,), "position", {"1": "j", "-1": "k"}, "1 is j, -1 is k", accepted=accepted)
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
    flags = [column for column in records.columns.values() if is_flags(column) and TRUTH & set(column.words)]
    flags = [column for column in flags if len({flag_of(text) for text in column.distinct}) > 1]
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


def near_and_far(records: Records) -> Iterator[Proposal]:
    """An anchor, the nearer and the farther object, each in a column called so."""
    columns = [column for column in records.columns.values() if column.distinct]
    near, far, anchors = (
        [
            column
            for column in columns
            if words & set(column.words) and sign_of(column.words) == sign and not is_flags(column)
        ]
        for words, sign in ((NEAR | FAR, 1), (NEAR | FAR, -1), (ANCHOR, 0))
    )
    foils = [] if far else [column for column in columns if FOILS & set(column.words) and not is_flags(column)]
    far = far or foils
    if {"pos", "neg"} <= set(records.columns):
        near, far = [records.columns["pos"]], [records.columns["neg"]]
    near, far = (  # `winner` where there is `winner_html`, too
        [one for one in some if not any({*other.words} < {*one.words} for other in some)] for some in (near, far)
    )
    if len(near) != 1 or len(far) != 1 or not anchors or is_textual(near) != is_textual(anchors):
        return
    anchor = max(anchors, key=lambda column: shared_values(column, near[0]))
    if is_textual([column for group in shown_in(columns) for column in group] or near) != is_textual(near):
        return  # numbers of objects whose names stand there too
    votes = [
        column.name
        for side in (near[0], far[0])
        for column in columns
        if is_vote_count(column) and side.name != column.name and set(side.words) <= set(column.words)
    ]
    fields = {"anchor": (anchor.name,), "near": (near[0].name,), "far": (far[0].name,)}
    if len(votes) == 2:
        fields |= {"n_near": (votes[0],), "n_far": (votes[1],)}
    proposal = Proposal("triplet", fields, Answer(), "the names of the columns", (7,))
    designed = bool({*near[0].words, *far[0].words} & {"positive", "pos"})  # what should be nearer
    for with_truth in _with_truth(records, proposal, not designed):
        if with_truth.answer.columns or not foils:  # the options of a matching task say nothing of what was chosen
            yield with_truth


def nearer_pairs(records: Records) -> Iterator[Proposal]:
    """Two pairs of objects of which the names of the columns say which is the nearer one.

    >>> from stream_engine.formats.record_columns import records_of
    >>> rows = {"far_1": [*"abcd"], "far_2": [*"bcda"], "near_1": [*"cdab"], "near_2": [*"dabc"]}
    >>> [proposal.fields for proposal in nearer_pairs(records_of(rows))]
    [{'near': ('near_1', 'near_2'), 'far': ('far_1', 'far_2')}]
    """
    columns = [column for column in records.columns.values() if column.distinct]
    if any(ANCHOR & set(column.words) for column in columns):
        return  # several objects nearer to it
    for pairs, order in pairs_in(columns):
        by_sign = {sign_of(words): tuple(column.name for column in pair) for words, pair in zip(order, pairs)}
        if by_sign.keys() == {1, -1} and _are_alike([column for pair in pairs for column in pair]):
            fields = {"near": by_sign[1], "far": by_sign[-1]}
            yield Proposal("quadruplet", fields, Answer(), "the names of the columns", (7,))


def two_pairs(records: Records) -> Iterator[Proposal]:
    """Two pairs of objects, and which of them is more alike."""
    columns = [column for column in records.columns.values() if column.distinct]
    arrangements = [
        (pairs, order)
        for pairs, order in pairs_in(columns)
        if _are_alike([column for pair in pairs for column in pair])
    ]
    if {"i", "j", "k", "l"} <= set(records.columns):
        columns_ijkl = [records.columns[name] for name in "ijkl"]
        arrangements.append(([columns_ijkl[:2], columns_ijkl[2:]], ()))
    for place, (pairs, order) in enumerate(arrangements):
        numbered = place % 2 == 0 and {"1", "2"} <= {word for words in order for word in words}
        names = [tuple(column.name for column in pair) for pair in pairs]
        others = [column for column in columns if column.name not in sum(names, ())]
        answers = [column for column in others if is_answer(column) and not (TRUTH | OTHER) & set(column.words)]
        coded = code_columns(records, [column for pair in pairs for column in pair])
        coded = [column for column in coded if len(column.distinct) == 2] if not answers and order else []
        for column in answers or (coded if len(coded) == 1 else []):
            placed = {text: place_in(Column(text, []).words, order) for text in column.distinct} if order else {}
            codes, doubt = {text: place for text, place in placed.items() if place >= 0}, ""
            if set(codes.values()) != {0, 1}:
                pairs_of = [values for values in (("1", "2"), ("0", "1"), ("1", "-1")) if {*values} <= column.distinct]
                codes = dict(zip(pairs_of[0], (0, 1))) if len(pairs_of) == 1 else {}
            if all(any(word.isdecimal() for word in Column(text, []).words) for text in codes):
                doubt = "" if numbered and "0" not in codes else f"{column.name} could name either of the pairs"
            if not codes:
                continue
            sides = {text: ("near", "far")[place] for text, place in sorted(codes.items(), key=lambda item: item[1])}
            why = ", ".join(
                f"{text} is {' and '.join(names[('near', 'far').index(side)])}" for text, side in sides.items()
            )
            answer = Answer((column.name,), "position", sides, why, doubt, frozenset(sides))
            fields = {"near": names[0], "far": names[1], "chosen": (column.name,)}
            farther = sign_of(column.words) < 0
            if coded:
                doubt = f"{column.name} ({', '.join(sides)}) could be the pair that is more alike, or less"
            for is_farther in (False, True) if coded else (farther,):
                yield Proposal("quadruplet", fields, answer, "two pairs of columns", (6,), doubt, is_farther)


def _are_alike(group: Sequence[Column]) -> bool:
    return is_textual(group) and all(shared_values(one, other) >= MIN_SHARED for one, other in combinations(group, 2))


def triads(records: Records) -> Iterator[Proposal]:
    """Three objects, and which pair of them is the most alike: AB, AC or BC."""
    for group in shown_in([column for column in records.columns.values() if column.distinct]):
        names = tuple(column.name for column in group)
        for column in records.columns.values():
            if len(group) != 3 or column.name in names or not 1 < len(column.distinct) <= 6:
                continue
            parts = {text: _pair_of(text, group) for text in sorted(column.distinct)}
            if not all(len(pair) == 2 for pair in parts.values()):
                continue
            codes = {text: names[({0, 1, 2} - pair).pop()] for text, pair in parts.items()}
            sign = sign_of(column.words)
            why = ", ".join(f"{text} leaves {name}" for text, name in codes.items())
            doubt = "" if sign else f"{column.name} could be the pair that is most alike, or least"
            answer = Answer((column.name,), "position", codes, why, doubt, frozenset(codes))
            for kind, field in (("odd_one_out", "odd"), ("most_central", "central")):
                if sign == 0 or (sign > 0) == (field == "odd"):
                    yield Proposal(
                        kind, {"objects": names, field: answer.columns}, answer, "pairs of three", (6,), doubt
                    )


def _pair_of(text: str, group: Sequence[Column]) -> set[int]:
    """Which two of three columns a code such as AB or 1-3 names."""
    words = [set(column.words) for column in group]
    single = [column_words - set[str].intersection(*words) for column_words in words]
    parts = [part for word in Column(text, []).words for part in (word if len(word) == 2 else [word])]
    places = [next((place for place, words in enumerate(single) if part in words), -1) for part in parts]
    return set(places) if len(parts) == 2 and -1 not in places else set()


def ranks_of_objects(records: Records) -> Iterator[Proposal]:
    """Some objects beside an anchor, and the rank of each; or the object of each rank."""
    columns = [column for column in records.columns.values() if column.distinct]
    for column in columns:
        lists = {len(value) for value in column.values if value}
        called = RANKS & set(column.words) and not RATINGS & set(column.words)
        if called and min(lists) > 1 and (anchors := anchors_of(records, [column], ())):
            of_list = {"anchor": (anchors[0].name,), "ranked": (column.name,)}
            yield Proposal("ranking", of_list, Answer(), "a list in order", (6,), "", _asks_for_farther([column]))
        elif records.separators.get(column.name) in ORDERING and (anchors := anchors_of(records, [column], ())):
            yield from _either_end(anchors[0], [column])
    for group, order in families(columns):
        ordinal = len(group) > 2 and order in ORDINALS and _are_alike(group)
        others = [column for column in columns if column not in group and is_answer(column)]
        if ordinal and not others and (anchors := anchors_of(records, group, ())):
            yield from _either_end(anchors[0], group)
    yield from _between_ends(records, columns)
    for group in shown_in(columns):
        if len(group) < 3 or not (anchors := anchors_of(records, group, ())):
            continue
        names, anchor = tuple(column.name for column in group), (anchors[0].name,)
        if RANKS & set(group[0].words):
            yield Proposal(
                "ranking",
                {"anchor": anchor, "ranked": names},
                Answer(),
                "columns of ranks",
                (6, 1),
                "",
                _asks_for_farther(group),
            )
        for ranks in parallel(records, group):
            whole = {str(place + 1) for place in range(len(group))}
            if all(
                {value[0] for column in ranks if (value := column.values[row])} == whole for row in range(records.size)
            ):
                fields = {"anchor": anchor, "ranked": names, "rank": tuple(column.name for column in ranks)}
                words = {word for column in ranks for word in column.words}
                sure = bool(RANKS & words) and not RATINGS & words
                doubt = "" if sure else f"{ranks[0].name} could be 1 for the nearest object, or for the farthest one"
                for farther in (_asks_for_farther(ranks),) if sure else (False, True):
                    yield Proposal("ranking", fields, Answer(), "the rank of each, 1 first", (6,), doubt, farther)


def _between_ends(records: Records, columns: Sequence[Column]) -> Iterator[Proposal]:
    """An order whose ends are called nearest and farthest, and the places between them by numbers or ordinals:
    `least_similar, third, second, most_similar`; `rank1 (least similar), rank2, rank3 (most similar)`.

    >>> from stream_engine.formats.record_columns import records_of
    >>> rows = {"target": [*"abcd"], "least_similar": [*"bcda"], "second": [*"cdab"], "most_similar": [*"dabc"]}
    >>> found = _between_ends(records_of(rows), [*records_of(rows).columns.values()])
    >>> [proposal.fields["ranked"] for proposal in found]
    [('most_similar', 'second', 'least_similar')]
    """
    signs = {column.name: sign_of(column.words) for column in columns}
    nearest, farthest = ([column for column in columns if signs[column.name] == sign] for sign in (1, -1))
    if len(nearest) != 1 or len(farthest) != 1 or not _are_alike([*nearest, *farthest]):
        return
    placed = {column.name: _ordinal(column) for column in columns if signs[column.name] == 0}
    between = [column for column in columns if placed.get(column.name, -1) >= 0 and _are_alike([column, *nearest])]
    anchors = anchors_of(records, [*nearest, *between, *farthest], ())
    places = [placed[column.name] for column in between]
    if not between or len({*places}) < len(places) or not anchors or max(places) - min(places) + 1 != len(places):
        return
    first, last = (_ordinal(column) for column in (nearest[0], farthest[0]))
    descends = first > max(places) if first >= 0 else 0 <= last < min(places)
    inside = sorted(between, key=lambda column: placed[column.name] * (-1 if descends else 1))
    in_file = [column for column in columns if column in (*nearest, *between, *farthest)]
    sure = first >= 0 or last >= 0 or [*nearest, *inside, *farthest] in (in_file, in_file[::-1])
    doubt = "" if sure else f"{', '.join(column.name for column in inside)} could count from either end"
    for middle in (inside,) if sure else (inside, inside[::-1]):
        names = tuple(column.name for column in (*nearest, *middle, *farthest))
        fields = {"anchor": (anchors[0].name,), "ranked": names}
        yield Proposal("ranking", fields, Answer(), "an order between its ends", (8,), doubt)


def _ordinal(column: Column) -> int:
    """Which place of an order, from 0, a name says by a number or an ordinal; -1 where it says none."""
    places = {int(word) - 1 for word in column.words if word.isdecimal() and 0 < int(word) < 20}
    places = places or {place_in([word], ORDINALS[0]) for word in column.words} - {-1}
    return places.pop() if len(places) == 1 else -1


def _either_end(anchor: Column, group: Sequence[Column]) -> Iterator[Proposal]:
    """Rankings that nothing says which end of: the nearest first, or the farthest."""
    names = tuple(column.name for column in group)
    doubt = f"{', '.join(names)} could be in order with the nearest object first, or the farthest"
    for farther in (False, True):
        fields = {"anchor": (anchor.name,), "ranked": names}
        yield Proposal("ranking", fields, Answer(), "an order", (2,), doubt, farther)


def _asks_for_farther(group: Sequence[Column]) -> bool:
    return sign_of(group[0].words) < 0


def two_and_odd(records: Records) -> Iterator[Proposal]:
    """Two objects, and the odd one in a column of its own."""
    columns = [column for column in records.columns.values() if column.distinct]
    for group in (family for family in shown_in(columns) if len(family) == 2):
        for column in columns:
            inside = (
                column not in group
                and not RATINGS & set(column.words)
                and sign_of(column.words) < 0
                and shared_values(column, group[0]) >= MIN_SHARED
            )
            if inside and named_share(column, group) <= 0.2:
                names = (*(column.name for column in group), column.name)
                fields = {"objects": names, "odd": (column.name,)}
                yield Proposal("odd_one_out", fields, Answer((column.name,)), "two objects, and the odd one", (4,))
