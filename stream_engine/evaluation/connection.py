"""Whether all objects were compared with each other, directly or through others, by more than a few questions.

Distances between sets of objects that no comparison joins are arbitrary: the sets have no common scale. Between sets
that few questions join (`evaluation.weak_joins`), they are as good as unknown.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from stream_engine.data.triplet_columns import pair_of_entry
from stream_engine.evaluation.weak_joins import well_joined
from stream_engine.state.snapshot import Snapshot, triplet_columns


def components(snapshot: Snapshot) -> np.ndarray | None:
    """(n,) the set of each object, such that objects of one set were compared with each other, directly or through
    others, and few questions join two sets: 0 is the largest set, -1 an object without comparisons. None if some
    comparisons are only summed. O(questions + n^2), see `weak_joins.well_joined`."""
    questions = different_questions(snapshot)
    return None if questions is None else sets_of_questions(questions, len(snapshot.objects))


def different_questions(snapshot: Snapshot) -> list[tuple[np.ndarray, ...]] | None:
    """Columns of the objects of the questions of three objects, and of those of four. None if some comparisons are only
    summed."""
    counted = {"triplets": "triplet_counts", "quadruplets": "quadruplet_counts"}
    if any(snapshot.counters.get(kind) and not snapshot.section(counts) for kind, counts in counted.items()):
        return None
    columns = triplet_columns(snapshot)
    pair = pair_of_entry(columns)
    questions: list[tuple[np.ndarray, ...]] = [(columns.anchor, columns.lo[pair], columns.hi[pair])]
    if quadruplets := snapshot.section("quadruplet_counts"):
        questions.append(tuple(quadruplets[name] for name in ("i", "j", "k", "l")))
    return questions


def sets_of_questions(questions: Sequence[Sequence[np.ndarray]], n: int) -> np.ndarray:
    """(n,) int: `components` of n objects, by columns of the objects of different questions."""
    edges = [(columns[0], other) for columns in questions for other in columns[1:]]
    first, second = (np.concatenate([np.asarray(edge[side], np.int64) for edge in edges]) for side in (0, 1))
    sets, apart = joined(first, second, n), well_joined(questions, n)
    return by_size(np.where(apart >= 0, n + apart, sets))


def questions_across(snapshot: Snapshot, sets: np.ndarray) -> int:
    """How many different questions are about objects of several sets (of `components`)."""
    return sum(
        int(np.any([sets[columns[0]] != sets[other] for other in columns[1:]], axis=0).sum())
        for columns in different_questions(snapshot) or []
    )


class JoiningObject(NamedTuple):
    """An object without which others fall into sets, and the objects of all of these but the largest."""

    object: int
    smaller: list[int]


MIN_JOINED, MAX_JOINED = 3, 300  # objects of a set that one object joins; objects among which it is looked for


def joining_object(snapshot: Snapshot) -> JoiningObject | None:
    """The object that alone joins the most others with the rest: every question about both has it. None where no object
    does so for `MIN_JOINED` others, and for more than `MAX_JOINED` objects. O(q + n^2)."""
    questions, n = different_questions(snapshot), len(snapshot.objects)
    if questions is None or n > MAX_JOINED:
        return None
    first, second = (
        np.concatenate(sides)
        for sides in zip(*((one, other) for columns in questions for one in columns for other in columns))
    )
    together = np.zeros(n * n, bool)
    together[np.asarray(first, np.int64) * n + second] = True
    first, second = np.divmod(np.flatnonzero(together), n)
    degrees = np.bincount(first[first != second], minlength=n)
    best: JoiningObject | None = None
    if 2 * degrees[degrees > 0].min(initial=n) > n:  # then no object divides the others
        return None
    for each in range(n):
        rest = (first != each) & (second != each) & (first != second)
        sets = joined(first[rest], second[rest], n)
        sizes = np.bincount(sets[sets >= 0], minlength=1)
        smaller = np.flatnonzero((sets > 0) & (sizes[sets] >= MIN_JOINED))
        if len(smaller) and (best is None or len(smaller) > len(best.smaller)):
            best = JoiningObject(each, smaller.tolist())
    return best


def are_connected(sets: np.ndarray | None) -> bool:
    """Whether no object is known to be in another set (of `components`) than the rest."""
    return sets is None or bool(sets.max(initial=0) == 0)


def joins_sets(linkage: np.ndarray, set_of: np.ndarray) -> np.ndarray:
    """(m - 1,) bool: which merges of a tree in scipy's format join objects of several sets (of `components`).

    >>> joins_sets(np.array([[0, 2, 1.0, 2], [1, 3, 2.0, 3]]), np.array([0, 1, 0])).tolist()
    [False, True]
    """
    sets: list[int | None] = list(set_of.tolist())
    for left, right in np.asarray(linkage)[:, :2].astype(np.int64).tolist():
        sets.append(sets[left] if sets[left] == sets[right] else None)
    return np.array([each is None for each in sets[len(set_of) :]], bool)


def members(sets: np.ndarray | None, ids: np.ndarray) -> list[np.ndarray]:
    """The objects `ids` by set, the largest set first; objects without comparisons, if any, come last. All of them
    together where nothing is known of sets.

    >>> [ids.tolist() for ids in members(np.array([0, 1, 0, -1, 1]), np.array([4, 0, 2, 3]))]
    [[0, 2], [4], [3]]
    """
    if sets is None or are_connected(sets):
        return [ids]
    order = np.argsort(np.where(sets[ids] < 0, len(sets), sets[ids]), kind="stable")
    starts = np.flatnonzero(np.diff(sets[ids][order])) + 1
    return np.split(ids[order], starts)


def joined(first: np.ndarray, second: np.ndarray, n: int) -> np.ndarray:
    """(n,) the component of each node in the graph with edges (first, second): 0 is the largest, -1 has no edge.

    >>> joined(np.array([4, 0, 1]), np.array([3, 1, 2]), 6).tolist()
    [0, 0, 0, 1, 1, -1]
    """
    compared = np.zeros(n, bool)
    compared[first] = compared[second] = True
    return by_size(np.where(compared, smallest_reachable(first, second, n), -1))


def by_size(label: np.ndarray) -> np.ndarray:
    """Labels as numbers by decreasing size from 0, of equal sizes the smaller label first; -1 stays.

    >>> by_size(np.array([7, -1, 2, 5, 5])).tolist()
    [2, -1, 1, 0, 0]
    """
    numbers, labelled = np.full(len(label), -1), label >= 0
    _, inverse, sizes = np.unique(label[labelled], return_inverse=True, return_counts=True)
    rank = np.empty(len(sizes), int)
    rank[np.argsort(-sizes, kind="stable")] = np.arange(len(sizes))
    numbers[labelled] = rank[inverse]
    return numbers


def smallest_reachable(first: np.ndarray, second: np.ndarray, n: int) -> np.ndarray:
    """(n,) the smallest node that can be reached from each of n nodes."""
    # Labels decrease until no edge joins two of them, in each round also to the labels of labels. scipy has this, too;
    # loading it takes longer than `inspect`.
    label = np.arange(n)
    while True:
        lower = np.minimum(label[first], label[second])
        previous = label.copy()
        np.minimum.at(label, previous[first], lower)
        np.minimum.at(label, previous[second], lower)
        label = label[label]
        if np.array_equal(label, previous):
            return label
