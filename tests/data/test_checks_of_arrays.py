"""Checks of arrays from files against what they say, entry by entry: on small random arrays that are often right and
often just wrong, with blocks of one, two and many entries."""

import itertools

import numpy as np
import pytest

from stream_engine.data import array_checks
from stream_engine.data.array_checks import (
    LARGEST_COUNT,
    MAX_COUNT,
    MAX_NAME_BYTES,
    ArraySpec,
    check_array,
    check_arrays,
    check_names,
    check_range,
)
from stream_engine.data.container import Corrupt
from stream_engine.data.packed_names import pack_names
from stream_engine.data.triplet_columns import COUNT_LIMIT


@pytest.fixture(params=[1, 2, 5, 1000])
def block(request, monkeypatch):
    for name in ("BLOCK", "NAMES_PER_BLOCK"):
        monkeypatch.setattr(array_checks, name, request.param)
    return request.param


def holds(check, *arguments, **more):
    try:
        check(*arguments, **more)
    except Corrupt as error:
        assert "\n" not in str(error)
        return False
    return True


def worlds(seeds=150):
    for seed in range(seeds):
        yield np.random.default_rng(seed)


def both(outcomes):
    """Both outcomes came often: neither is a test of nothing."""
    assert 0.05 < np.mean(outcomes) < 0.95, np.mean(outcomes)


@pytest.mark.parametrize("least", [0, 1])
def test_offsets(least, block):
    seen = []
    for rng in worlds():
        starts = np.concatenate(
            [[rng.integers(5) == 0], np.cumsum(rng.integers(-1 if rng.random() < 0.2 else least, 4, 4))]
        )
        starts, end = starts.astype(np.int64), int(starts[-1]) + int(rng.integers(6) == 0)
        right = starts[0] == 0 and starts[-1] == end and all(b - a >= least for a, b in itertools.pairwise(starts))
        assert holds(array_checks.check_offsets, "x", starts, end, least) == right
        seen.append(right)
    both(seen)


@pytest.mark.parametrize("columns", [1, 2, 3])
@pytest.mark.parametrize("twice", [False, True])
def test_rows_that_rise(columns, twice, block):
    seen = []
    for rng in worlds():
        rows = rng.integers(3 if columns > 1 else 8, size=(rng.integers(0, 6), columns))
        if rng.random() < 0.6:
            rows = np.array(sorted(rows.tolist()), np.int64).reshape(-1, columns)
        pairs = list(zip(rows.tolist(), rows.tolist()[1:]))
        right = all(a <= b if twice else a < b for a, b in pairs)
        assert holds(array_checks.check_rising, "x", *rows.T, twice=twice) == right
        seen.append(right)
        if not right:
            at = next(t for t, (a, b) in enumerate(pairs) if not (a <= b if twice else a < b))
            with pytest.raises(Corrupt, match=f"^x: .*{at}.*{at + 1}"):
                array_checks.check_rising("x", *rows.T, twice=twice)
    both(seen)


def test_groups_rise_inside_and_hold_none_of_their_owners(block):
    seen = []
    for rng in worlds():
        sizes = rng.integers(1, 4, rng.integers(1, 5))
        starts = np.concatenate([[0], np.cumsum(sizes)])
        lo, hi = rng.integers(0, 12, (2, len(sizes)))
        parts = [rng.choice(12, size, replace=rng.random() < 0.2) for size in sizes]
        parts = [np.sort(part) if rng.random() < 0.9 else part for part in parts]
        right = all(
            all(a < b for a, b in itertools.pairwise(part)) and not {lo[p], hi[p]} & set(part.tolist())
            for p, part in enumerate(parts)
        )
        assert holds(array_checks.check_groups, "x", starts, np.concatenate(parts), lo, hi) == right
        seen.append(right)
    both(seen)


def test_columns_of_counts(block):
    seen = []
    for rng in worlds():
        pairs = sorted({tuple(rng.choice(5, 2, replace=False)) for _ in range(3)})
        pairs = [(min(p), max(p)) if rng.random() < 0.9 else p for p in pairs]
        pairs = sorted(set(pairs)) if rng.random() < 0.8 else pairs
        anchors = [sorted(rng.choice(5, rng.integers(1, 3), replace=False)) for _ in pairs]
        start = np.concatenate([[0], np.cumsum([len(each) for each in anchors])])
        state = {
            "lo": np.array([p[0] for p in pairs]), "hi": np.array([p[1] for p in pairs]),
            "start": start, "anchor": np.concatenate(anchors),
        }  # fmt: skip
        right = all(a < b for a, b in pairs) and all(p < q for p, q in itertools.pairwise(pairs))
        right &= all(len({*p, *each}) == 2 + len(each) for p, each in zip(pairs, anchors))
        assert holds(array_checks.check_columns, state) == right
        seen.append(right)
    both(seen)


def test_counts_have_one_type_and_neither_is_negative_nor_are_both_0(block):
    seen = []
    for rng in worlds():
        kind, other = rng.choice(["i4", "i8"], 2, p=[0.8, 0.2])
        far = COUNT_LIMIT if kind == "i8" and rng.random() < 0.8 else 1
        drawn = rng.choice([-1, 0, 1, 2, far], (2, 4), p=[0.03, 0.3, 0.3, 0.3, 0.07])
        n_lo, n_hi = drawn[0].astype(kind), drawn[1].astype(kind if rng.random() < 0.9 else other)
        right = n_lo.dtype == n_hi.dtype and drawn.min() >= 0 and (drawn.sum(axis=0) > 0).all()
        right = bool(right and (n_lo.dtype.itemsize == 4 or drawn.max() >= COUNT_LIMIT))
        assert holds(array_checks.check_counts, n_lo, n_hi) == right
        seen.append(right)
    both(seen)
    for kind, most in (("i4", COUNT_LIMIT - 1), ("i8", LARGEST_COUNT - 1)):
        large = np.array([most], kind)
        assert holds(array_checks.check_counts, large, large) and holds(array_checks.check_counts, 0 * large, large)
        assert not holds(array_checks.check_counts, large + 1, large)
    none = np.empty(0, np.int32)
    assert holds(array_checks.check_counts, none, none)
    assert LARGEST_COUNT * 64 == MAX_COUNT == 2**53


NAMES = ["", "a", "b", "aa", "é", "日本", "a" * 7, "a" * 8, "a" * 9, "a" * 16 + "b", "a" * 16 + "c", "\x00", "\x00a"]


@pytest.mark.parametrize("rising", [False, True])
def test_names_are_told_apart(rising, block):
    seen = []
    for rng in worlds():
        names = [NAMES[i] for i in rng.integers(1, len(NAMES), rng.integers(0, 5))]
        names = sorted(names) if rng.random() < 0.5 else names
        right = all(a < b for a, b in itertools.pairwise(names)) if rising else len(set(names)) == len(names)
        packed = pack_names(names)
        assert holds(check_names, "x", packed["utf8"], packed["offsets"], rising=rising) == right
        seen.append(right)
    both(seen)


def test_names_are_text_of_a_size(block):
    def fine(names, **more):
        packed = pack_names(names)
        return holds(check_names, "x", packed["utf8"], packed["offsets"], **more)

    assert fine(["a" * MAX_NAME_BYTES]) and not fine(["b", "a" * (MAX_NAME_BYTES + 1)])
    assert fine(["a" * (MAX_NAME_BYTES + 1)], most=None)
    assert fine(["abc"], most=3)
    assert not fine(["a", "abcd"], most=3)
    assert not fine(["a", ""])
    assert fine(["a", ""], least=0)
    assert fine(["", ""], least=0)
    packed = pack_names(["a", "é", "b"])
    assert packed["offsets"].tolist() == [0, 1, 3, 4]
    for offsets in ([0, 2, 3, 4], [0, 1, 2, 4]):
        assert not holds(check_names, "x", packed["utf8"], np.array(offsets))
    for broken in ([0x61, 0xFF, 0x62, 0x63], [0x61, 0x62, 0xC3, 0x62]):
        assert not holds(check_names, "x", np.array(broken, np.uint8), packed["offsets"])
    assert check_names("x", packed["utf8"], packed["offsets"]) == 3


def test_an_array_is_what_it_is_declared_as(block):
    held = ArraySpec(("<i4", "<i8"), ("pairs", 2), 0, "objects")
    sizes = {"objects": 5}
    for array, told in (
        (np.zeros((3, 2), np.int32), ""),
        (np.zeros((3, 2), np.int64), ""),
        (np.zeros((3, 2), np.float64), "x: got 2 axes of <f8, expected 2 of <i4 or <i8"),
        (np.zeros(3, np.int32), "x: got 1 axes of <i4, expected 2 of"),
        (np.zeros((3, 1), np.int32), "1.*2$"),
        (np.zeros((4, 2), np.int32), "4.*3 pairs"),
    ):
        if told:
            with pytest.raises(Corrupt, match=told):
                check_array("x", held, array, sizes)
        else:
            check_array("x", held, array, sizes)
    assert sizes == {"objects": 5, "pairs": 3}
    begins = ArraySpec(("<i8",), ("words+1",))
    assert not holds(check_array, "x", begins, np.zeros(0, np.int64), {})
    for size in (1, 4):
        found = {}
        check_array("x", begins, np.zeros(size, np.int64), found)
        assert found == {"words": size - 1}


@pytest.mark.parametrize(
    ("held", "good", "bad"),
    [
        (ArraySpec((), (), 0, "objects"), [0, 4], [-1, 5]),
        (ArraySpec((), (), -1, 7), [-1, 6], [-2, 7]),
        (ArraySpec((), (), 0, None), [0, 1e300, np.inf], [-5e-324]),
        (ArraySpec((), (), None, 3), [-9, 2], [3]),
        (ArraySpec((), (), None, None, True), [-1e308, 0.0], [np.inf, -np.inf, np.nan]),
        (ArraySpec((), (), None, None), [np.nan, np.inf], []),
    ],
)
def test_values_lie_where_they_are_declared(held, good, bad, block):
    sizes = {"objects": 5}
    check_range("x", held, np.array([good[0]] * 3 + good), sizes)
    check_range("x", held, np.array([]), sizes)
    for each in bad:
        with pytest.raises(Corrupt, match="x: got"):
            check_range("x", held, np.array([good[0]] * 3 + [each] + [good[0]] * 2), sizes)


def test_there_are_exactly_the_arrays_that_are_held():
    held = {"i": array_checks.ids("keys"), "w": array_checks.figures("keys"), "b": array_checks.flags()}
    good = {"i": np.array([0, 2], np.int32), "w": np.ones(2), "b": np.array(True)}
    assert check_arrays(held, good, objects=3) == {"objects": 3, "keys": 2}
    for wrong, told in (
        ({**good, "more": np.ones(1)}, "b, i, more, w.*b, i, w"),
        ({"i": good["i"], "w": good["w"]}, "i, w.*b, i, w"),
        ({}, "none"),
        ({**good, "w": np.array([1.0, np.nan])}, "w: .*nan"),
        ({**good, "w": np.ones(3)}, "3.*2 keys"),
        ({**good, "i": np.array([0, 3], np.int32)}, "i: .*0 to 3.*0.*3"),
    ):
        with pytest.raises(Corrupt, match=told):
            check_arrays(held, wrong, objects=3)
    assert array_checks.counts("keys", least=1) == ArraySpec(("<i8",), ("keys",), 1, LARGEST_COUNT)
    assert array_checks.offsets("keys").axes == ("keys+1",)
    like = {"a": np.ones((2, 2)), "b": np.ones(1, np.int32)}
    array_checks.check_like(like, {"a": np.zeros((5, 1), np.float32), "b": np.ones(7, np.int64)})
    for wrong in ({"a": like["a"]}, {**like, "b": np.ones(1)}, {**like, "a": np.ones(4)}):
        assert not holds(array_checks.check_like, like, wrong)
    assert [array_checks.pattern_of(name, {"map_*": 1, "map_x": 2}) for name in ("map_0", "map_x", "other")] == [
        "map_*",
        "map_x",
        None,
    ]


def test_kinds_any_lengths_and_fewer_axes():
    held = ArraySpec(("f",), (None, "k"), fewer=True)
    for good in (np.zeros((5, 2)), np.zeros((0, 2), np.float32), np.zeros(7)):
        check_array("x", held, good, {"k": 2})
    for wrong in (np.zeros((5, 3)), np.zeros((5, 2), int), np.zeros((1, 2, 1))):
        assert not holds(check_array, "x", held, wrong, {"k": 2})
    assert not holds(check_array, "x", held._replace(fewer=False), np.zeros(7), {})
    for anything in (np.zeros(()), np.zeros((2, 2, 2)), np.array([True])):
        check_array("x", ArraySpec((), None), anything, {})
    check_range("x", ArraySpec((), None, -1, "objects"), np.array([2**31 - 1]), {})  # how many there are is not known
    assert not holds(check_range, "x", ArraySpec((), None, -1, "objects"), np.array([2**31]), {})
