"""Triplets in cblearn's formats: every format to every other one and back, and what is no triplet."""

from collections import Counter

import numpy as np
import pytest
from scipy import sparse

from stream_engine.api.cblearn_formats import FORMATS
from stream_engine.estimators import triplets_as


def world(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(3, 7))
    rows = np.array([rng.choice(n, 3, replace=False) for _ in range(rng.integers(0, 40))]).reshape(-1, 3)
    return rows.astype(np.int64), n


def votes(rows):
    """Net votes by question, straight from the definition; even ones are left out."""
    net = Counter()
    for i, j, k in rows.tolist():
        net[(i, *sorted((j, k)))] += 1 if j < k else -1
    return {question: n for question, n in net.items() if n}


def given(made):
    return made if isinstance(made, tuple) else (made,)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("one", FORMATS)
@pytest.mark.parametrize("other", FORMATS)
def test_every_format_becomes_every_other(one, other, seed):
    rows, n = world(seed)
    here = triplets_as(one, rows, n_objects=n)
    there = triplets_as(other, *given(here), n_objects=n)
    back = triplets_as("list-order", *given(there))
    if "tensor-count" in (one, other):
        assert votes(back) == votes(rows) and sum(map(abs, votes(rows).values())) == len(back)
    else:
        assert np.array_equal(back, rows)


@pytest.mark.parametrize("seed", range(4))
def test_each_format_is_what_cblearn_says(seed):
    rows, n = world(seed)
    lists, true = triplets_as("list-boolean", rows)
    counted, count = triplets_as("list-count", rows)
    assert true.dtype == bool and np.array_equal(lists, counted) and (lists[:, 1] < lists[:, 2]).all()
    for row, question, is_true, vote in zip(rows.tolist(), lists.tolist(), true.tolist(), count.tolist()):
        assert question[0] == row[0] and is_true == (question[1:] == row[1:]) and vote == (1 if is_true else -1)
    tensor = triplets_as("tensor-count", rows, n_objects=n)
    assert isinstance(tensor, sparse.coo_matrix) and tensor.shape == (n, n * n)
    dense = tensor.toarray().reshape(n, n, n)
    assert {tuple(at): dense[tuple(at)] for at in np.argwhere(dense).tolist()} == votes(rows)
    ordered = triplets_as("list-order", tensor)
    assert np.array_equal(ordered, triplets_as("list-order", dense))
    assert np.array_equal(ordered, triplets_as("list-order", Coordinates(dense)))


class Coordinates:
    """What `sparse.COO` shows of itself."""

    def __init__(self, dense):
        self.coords, self.shape = np.array(np.nonzero(dense)), dense.shape
        self.data = dense[tuple(self.coords)]


def test_votes_are_repeated():
    assert triplets_as("list-order", [[0, 1, 2], [1, 2, 0]], [2, -3]).tolist() == [[0, 1, 2]] * 2 + [[1, 0, 2]] * 3
    assert triplets_as("list-order", ([[0, 1, 2]], [False])).tolist() == [[0, 2, 1]]


@pytest.mark.parametrize(
    "call, words",
    [
        (("list", [[0, 1, 2]]), "'list'"),
        (("list-order", [[0, 1]]), r"shape \(1, 2\), expected \(m, 3\)"),
        (("list-order", [[0.5, 1, 2]]), "got float64"),
        (("list-order", [[0, 1, 2], [0, -1, 2]]), r"X row 1: got \[0, -1, 2\]"),
        (("list-order", [[0, 1, 2]], [0]), "y row 0: got 0 votes"),
        (("list-order", [[0, 1, 2]], [0.5]), "y: got float64"),
        (("list-order", [[0, 1, 2]], [1, 1]), r"of shape \(2,\)"),
        (("tensor-count", [[0, 1, 2]], None, 2), "object 2.*n_objects = 2"),
        (("list-order", np.zeros((2, 2, 3))), r"\(2, 2, 3\).*\(n.*n\)"),
        (("list-order", sparse.coo_matrix((2, 3))), r"\(2, 3\).*\(n.*n\)"),
    ],
)
def test_what_is_no_triplet_is_said(call, words):
    with pytest.raises(ValueError, match=words):
        triplets_as(*call)
