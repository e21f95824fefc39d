"""Every compiled kernel checks its bounds in tests (tests/conftest.py), and a run of all tests reaches each of the hot
path: one that it does not fails the run."""

import numpy as np
import pytest

from stream_engine.data.comparisons import Triplet
from stream_engine.data.compiled import njit
from stream_engine.state.engine import Engine
from tests.support import reached_kernels
from tests.support.process import ENVIRONMENT


def at(values, index):
    values[index] += 1
    return values[index]


def test_an_index_out_of_range_is_an_error():
    kernel = njit(cache=False)(at)
    assert kernel(np.zeros(3), 2) == kernel(np.zeros(3), -1) == 1
    for index in (3, -4):
        with pytest.raises(IndexError):
            kernel(np.zeros(3), index)
    assert ENVIRONMENT["NUMBA_BOUNDSCHECK"] == "1", "commands of their own check, too"


def test_what_a_kernel_calls_is_reached_with_it():
    engine = Engine(("triplet_counts",))
    engine.learn_many([Triplet("a", "b", "c"), Triplet("b", "c", "a"), Triplet("c", "a", "b")])
    known, found = reached_kernels.kernels(), reached_kernels.reached()
    assert len(known) > 120 and {"judging.offer", "judging._reorder", "triplet_counts._encode"} <= known & found
