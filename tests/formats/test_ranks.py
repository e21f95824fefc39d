"""Ranks of objects: which end 1 is at, and columns that could be ranks or numbers of objects."""

import os
from collections import Counter
from random import Random

import pytest

from stream_engine.formats.reading import in_doubt
from tests.support.readings import comparisons, inferred, saved

NAMES = [*"pqrstuvw"]


def ranked_objects(n=60, names=NAMES):
    """Participants, anchors, objects as they were shown, and from the nearest on: all answer alike."""
    random = Random(0)
    for number in range(n):
        anchor, *shown = random.sample(names, 4)
        yield f"p{number % 4}", anchor, shown, sorted(shown, key=lambda name: hash_of(anchor, name))


def hash_of(anchor, name):
    return Random(f"{anchor}{name}").random()


def said(rows):
    return Counter(
        (who, anchor, near, far)
        for who, anchor, _, order in rows
        for at, near in enumerate(order)
        for far in order[at + 1 :]
    )


def run_in_pandas(text, path):
    """Run the line of pandas that a message has, as a person does."""
    pandas = pytest.importorskip("pandas")
    line = text.partition("in pandas, ")[2].partition(", then stream-engine")[0]
    os.chdir(path.parent)
    exec(line, {"table": pandas.read_csv(path)})


@pytest.mark.parametrize(
    ("name", "nearest_is_1"),
    [
        *(("dissimilarity_rank_1_is_least_similar", False), ("rank (1 = most different)", False)),
        *(("rank_1_is_closest", True), ("rank_most_similar_first", True), ("rank_least_similar_first", False)),
    ],
)
def test_the_name_of_a_column_of_ranks_says_which_end_is_first(tmp_path, monkeypatch, name, nearest_is_1):
    monkeypatch.chdir(tmp_path)
    rows = [*ranked_objects()]
    table = [
        {"participant": who, "trial": at, "target": anchor, "item": one, name: rank}
        for at, (who, anchor, _, order) in enumerate(rows)
        for rank, one in enumerate(order if nearest_is_1 else order[::-1], 1)
    ]
    path = saved(tmp_path, table)
    found = inferred(path)
    assert found.problem.count("stream-engine run ranked.csv") == 1 and "participant=participant" in found.problem
    run_in_pandas(found.problem, path)
    assert comparisons(inferred(tmp_path / "ranked.csv").settings) == said(rows)


def test_of_ranks_that_do_not_say_which_end_is_first_both_are_offered(tmp_path):
    table = [
        {"participant": who, "trial": at, "target": anchor, "item": one, "rank": rank}
        for at, (who, anchor, _, order) in enumerate(ranked_objects())
        for rank, one in enumerate(order, 1)
    ]
    found = inferred(saved(tmp_path, table))
    assert "nearest_rank_1|nearest_rank_2|nearest_rank_3" in found.problem
    assert "farthest_rank_3|farthest_rank_2|farthest_rank_1" in found.problem


def wide(rows, are_ranks, item="item_{}", rank="rank_{}"):
    for who, anchor, shown, order in rows:
        cells = [order.index(one) if are_ranks else shown.index(order[at]) for at, one in enumerate(shown)]
        row = {"participant": who, "target": anchor} | {item.format(at): one for at, one in enumerate(shown, 1)}
        yield row | {rank.format(at): cell + 1 for at, cell in enumerate(cells, 1)}


def test_ranks_are_told_from_numbers_of_objects_by_repeated_questions(tmp_path):
    rows = [*ranked_objects()]
    found = inferred(saved(tmp_path, [*wide(rows, True)]))
    assert comparisons(found.settings) == said(rows)
    (text,) = [decision.why for decision in found.evidence if decision.topic == "ranks"]
    assert "read as ranks" in text and "in pandas" in text and not in_doubt(found.evidence)


def test_numbers_of_objects_are_told_from_ranks_by_repeated_questions(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = [*ranked_objects()]
    path = saved(tmp_path, [*wide(rows, False)])
    found = inferred(path)
    assert "likely to be numbers" in found.problem and len(found.rivals) == 1
    run_in_pandas(found.problem, path)
    (tmp_path / "ranks.csv").rename(path)
    assert comparisons(found.rivals[0]) == said(rows)


def test_columns_of_ranks_that_nothing_decides_are_asked(tmp_path):
    found = inferred(saved(tmp_path, [*wide([*ranked_objects(6)], True)]))
    assert "could be the ranks of item_1" in found.problem and "if they are numbers, in pandas" in found.problem


def test_columns_of_ranks_that_are_called_like_their_objects_are_ranks(tmp_path):
    rows = [*ranked_objects(6)]
    found = inferred(saved(tmp_path, [*wide(rows, True, "item_{}", "item_{}_rank")]))
    assert comparisons(found.settings) == said(rows) and not in_doubt(found.evidence)


@pytest.mark.parametrize(
    ("above", "asked"),
    [("# ranks: 1 = least similar, 3 = most similar", True), ("# ranks: 1 = most similar, 3 = least similar", False)],
)
def test_a_line_that_says_that_rank_1_is_the_farthest_object_is_asked(tmp_path, above, asked):
    rows = [*ranked_objects()]
    table = [
        {"participant": who, "target": anchor, "item_1": one, "item_2": two, "item_3": three}
        | {f"rank_item_{at}": order.index(name) + 1 for at, name in enumerate((one, two, three), 1)}
        for who, anchor, (one, two, three), order in rows
    ]
    path = saved(tmp_path, table)
    path.write_text(f"{above}\n{path.read_text()}")
    found = inferred(path)
    assert (found.problem.count("stream-engine run") == 2) == asked
    assert asked or comparisons(found.settings) == said(rows)


@pytest.mark.parametrize("form", ["{}.", "{}st"])
def test_ranks_as_ordinals_are_no_objects(tmp_path, monkeypatch, form):
    monkeypatch.chdir(tmp_path)
    rows = [*ranked_objects()]
    table = [
        {"participant": who, "target": anchor, "item_1": one, "item_2": two, "item_3": three}
        | {f"rank_item_{at}": form.format(order.index(name) + 1) for at, name in enumerate((one, two, three), 1)}
        for who, anchor, (one, two, three), order in rows
    ]
    path = saved(tmp_path, table)
    problem = inferred(path).problem
    assert "ordinals" in problem
    run_in_pandas(problem, path)
    assert comparisons(inferred(tmp_path / "numbers.csv").settings) == said(rows)


@pytest.mark.parametrize(("name", "separator"), [("order", ";"), ("sequence", "|")])
def test_an_order_of_the_objects_in_a_cell_is_no_design(tmp_path, name, separator):
    rows = [*ranked_objects()]
    table = [
        {"participant": who, "target": anchor, "item_1": one, "item_2": two, "item_3": three}
        | {name: separator.join(order)}
        for who, anchor, (one, two, three), order in rows
    ]
    problem = inferred(saved(tmp_path, table)).problem
    assert "or a ranking?" in problem and f"anchor=target,ranked={name},participant=participant" in problem
