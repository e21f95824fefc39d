"""Names numbered from their bytes, against a dictionary; with hashes so weak that names collide."""

import numpy as np
import pytest

from stream_engine.data.interner import ALL_BITS, MAX_RECENT_BYTES, RECENT_SLOTS, RECENT_TRIAL, Interner
from stream_engine.data.packed_names import pack_names

LETTERS = ["", "a", "b", "é", "日", "\0", "x" * 7, "y" * 8, "z" * 9, "w" * 1024]


@pytest.mark.parametrize("bits", [0, 1, 7, 0xFFFFFFFF00000000, ALL_BITS])
def test_numbers_are_those_of_a_dictionary(bits):
    rng, known, interner = np.random.default_rng(bits % 97), {}, Interner(bits)
    for size in (0, 1, 3, 40, 500):
        names = ["".join(rng.choice(LETTERS, int(rng.integers(4)))) for _ in range(size)]
        assert interner.ids_of(names).tolist() == [known.setdefault(name, len(known)) for name in names]
        assert interner.names == tuple(known) and len(interner) == len(known)
    packed = pack_names([*known, "never seen", "x" * 6])
    ids, missing = interner.find(packed["utf8"], packed["offsets"][:-1], packed["offsets"][1:])
    unknown = [name not in known for name in ("never seen", "x" * 6)]
    assert ids[: len(known)].tolist() == list(range(len(known))) and missing == sum(unknown)


@pytest.mark.parametrize(("letters", "different"), [(1, 20), (2, 400), (3, 4 * RECENT_SLOTS)])
def test_names_met_lately_have_the_numbers_of_a_dictionary(letters, different):
    """Few names that come often, and so many that one displaces another: of any length around that of a short one, and
    alike but for their last letter, their length or a zero."""
    rng, known, interner = np.random.default_rng(letters), {}, Interner()
    ends = ["", "\0", "\0\0", "b"]
    lengths = [0, 1, 7, 8, 9, MAX_RECENT_BYTES - 2, MAX_RECENT_BYTES - 1, MAX_RECENT_BYTES, MAX_RECENT_BYTES + 1]
    for size in (3 * RECENT_TRIAL, 40_000):
        numbers = rng.integers(different, size=size).tolist()
        halves = [(f"{i // 4:0{letters}d}", lengths[i // 4 % len(lengths)], ends[i % 4]) for i in numbers]
        names = [stem.ljust(length, "x") + end for stem, length, end in halves]
        assert interner.ids_of(names).tolist() == [known.setdefault(name, len(known)) for name in names]
        assert interner.names == tuple(known)


def test_many_names_grow_every_array_and_views_stay():
    interner, rng = Interner(), np.random.default_rng(0)
    names = [f"object-{i}" for i in range(40_000)]
    for order in np.array_split(rng.permutation(40_000), 5):
        before = interner.names, tuple(interner.names)
        asked = [names[i] for i in order]
        first = interner.ids_of(asked).copy()
        assert interner.ids_of(asked).tolist() == first.tolist() and before[0] == before[1]
    assert len(interner) == 40_000 and len(set(interner.names)) == 40_000
