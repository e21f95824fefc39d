"""Sets of objects that few questions join, and designs in which there are none."""

import numpy as np
import pytest

from stream_engine.evaluation.connection import components, questions_across, sets_of_questions
from stream_engine.evaluation.weak_joins import MAX_OBJECTS, MIN_QUESTIONS
from tests.support import survey_cases
from tests.support.learned import snapshot_of


def different(rng: np.random.Generator, ids: np.ndarray, number: int) -> np.ndarray:
    """Up to so many different random questions about these objects."""
    rows = np.array([rng.choice(ids, 3, replace=False) for _ in range(number)])
    rows[:, 1:].sort(axis=1)
    return np.unique(rows, axis=0)


def two_sets(rng: np.random.Generator, n: int, across: int) -> np.ndarray:
    joining = [(at % n, (at + 1) % n, n + at % n) for at in range(across)]
    return np.concatenate([different(rng, np.arange(n), 60 * n), different(rng, n + np.arange(n), 60 * n), joining])


@pytest.mark.parametrize("n", [10, 60])
@pytest.mark.parametrize("across", [1, 3, MIN_QUESTIONS - 1, MIN_QUESTIONS])
def test_sets_that_few_questions_join_are_separate(n, across):
    sets = sets_of_questions([two_sets(np.random.default_rng(0), n, across).T], 2 * n)
    assert sets.tolist() == ([0] * n + [1] * n if across < MIN_QUESTIONS else [0] * 2 * n)


def test_the_sets_do_not_depend_on_the_order_of_objects():
    rng = np.random.default_rng(3)
    rows, number = two_sets(rng, 20, 5), rng.permutation(40)
    sets = sets_of_questions([number[rows].T], 40)[number]
    assert len({*sets[:20]}) == len({*sets[20:]}) == 1 and sets[0] != sets[20]


def test_questions_about_four_join_too():
    rng = np.random.default_rng(5)
    ids = [np.arange(10), np.arange(10, 20)]
    within = np.array([rng.choice(ids[at % 2], 4, replace=False) for at in range(400)])
    across = np.array([rng.choice(20, 4, replace=False) for _ in range(60)])
    assert np.bincount(sets_of_questions([within.T], 20)).tolist() == [10, 10]
    assert np.bincount(sets_of_questions([np.concatenate([within, across[:4]]).T], 20)).tolist() == [10, 10]
    assert np.bincount(sets_of_questions([np.concatenate([within, across]).T], 20)).tolist() == [20]


def test_an_object_that_is_asked_about_seldom_is_no_set():
    rows = different(np.random.default_rng(1), np.arange(10), 600)
    seldom = np.array([(0, 1, 10), (11, 10, 12), (2, 3, 12)])
    assert sets_of_questions([np.concatenate([rows, seldom]).T], 13).tolist() == [0] * 13


@pytest.mark.parametrize("answers", [2, 3, 5, 10, 20])
@pytest.mark.parametrize("n", [10, 40, 150])
def test_sparse_random_designs_have_no_weak_joins(n, answers):
    for seed in range(5):
        rows = different(np.random.default_rng(seed), np.arange(n), n * answers // 3)
        reached, sizes = {int(rows[0, 0])}, [0, 1]
        while sizes[-1] != sizes[-2]:
            reached |= {*rows[np.isin(rows, list(reached)).any(axis=1)].ravel().tolist()}
            sizes.append(len(reached))
        sets = sets_of_questions([rows.T], n)
        assert {*np.flatnonzero(sets == sets[rows[0, 0]]).tolist()} == reached


def test_of_many_objects_weak_joins_are_not_looked_for():
    rows = two_sets(np.random.default_rng(0), 10, 3)
    assert sets_of_questions([rows.T], MAX_OBJECTS + 1)[:20].tolist() == [0] * 20


def test_a_snapshot_knows_how_many_questions_join_its_sets():
    snapshot = snapshot_of(survey_cases.weakly_joined())
    sets = components(snapshot)
    assert np.bincount(sets).tolist() == [10, 10] and questions_across(snapshot, sets) == 3
