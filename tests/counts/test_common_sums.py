"""AddS-4 on the shoulders of AddS-3: whatever comes and whatever is merged, its state is the one that it has alone."""

import numpy as np
import pytest

from stream_engine.data.comparisons import Quadruplet, Triplet
from stream_engine.state.engine import Engine

NAMES = "abcdefg"


def stream(rng, size, quadruplets):
    """Comparisons over few objects; `quadruplets` of 1 are such."""
    for _ in range(size):
        four = rng.choice(list(NAMES), 4, replace=False).tolist()
        pairs = (four[0], four[1]), (four[2], four[3])
        yield Quadruplet(*pairs) if rng.random() < quadruplets else Triplet(*four[:3])


def alone(*streams):
    """AddS-4 that knows no AddS-3, over the same comparisons."""
    engine = Engine(("adds4",), guard=False)
    for each in streams:
        engine.learn_many(each)
    return engine


def same_states(engine, reference):
    """AddS-4 of both, by name."""
    entries = []
    for each in (engine, reference):
        state, names = each.accumulators["adds4"].state(), each.objects.names
        pairs = [tuple(sorted((names[i], names[j]))) for i, j in zip(state["i"], state["j"], strict=True)]
        entries.append(dict(zip(pairs, state["w"].tolist(), strict=True)))
    return entries[0] == entries[1]


@pytest.mark.parametrize("limit", [3, 100])
@pytest.mark.parametrize("seed", range(6))
def test_the_state_is_the_one_it_has_alone(monkeypatch, seed, limit):
    monkeypatch.setattr("stream_engine.counts.adds_similarity.DENSE_LIMIT", limit)
    rng = np.random.default_rng(seed)
    streams = [list(stream(rng, int(rng.integers(1, 12)), rng.choice([0, 0, 0.3]))) for _ in range(5)]
    engine, other = Engine(guard=False), Engine(guard=False)
    engine.learn_many(streams[0])
    assert (engine.accumulators["adds4"].same is None) == any(isinstance(each, Quadruplet) for each in streams[0])
    engine.learn_many(streams[1])
    other.learn_many(streams[2])
    taken = other.snapshot().arrays
    engine.merge(other)
    assert same_states(engine, alone(*streams[:3])) and same_states(other, alone(streams[2]))
    again = Engine.restore(engine.snapshot())
    for each in (engine, again, other):
        each.learn_many(streams[3])
        each.learn_many(streams[4])
    assert same_states(engine, alone(*streams)) and same_states(again, alone(*streams))
    assert same_states(other, alone(*streams[2:]))
    assert all(np.array_equal(array, taken[name]) for name, array in taken.items())
    for each in (engine, other):
        arrays, adds4 = each.arrays(), each.accumulators["adds4"]
        assert all(np.array_equal(arrays[f"adds4/{name}"], array) for name, array in adds4.state().items())
