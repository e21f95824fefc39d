"""A guard's state from a file is one, or is refused with a line that says what is wrong; former policies are read."""

import numpy as np
import pytest

from stream_engine.data import container
from stream_engine.data.container import Corrupt
from stream_engine.order.partial_order import PartialOrder
from stream_engine.order.stored_states import FORMER, check_state, without_former_policy
from stream_engine.state.engine import Engine
from stream_engine.state.snapshot import decode, encode, read_snapshot
from tests.conftest import ROOT
from tests.order.invariants import check_guard

N = 6
FILES = {policy: ROOT / "tests" / "golden" / "former-guards" / f"{policy}.snapshot" for policy in FORMER}


@pytest.fixture
def state() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(2)
    pairs = np.sort(np.stack([rng.permutation(N)[:2] for _ in range(120)]), axis=1).reshape(60, 4)
    guard = PartialOrder()
    guard.offer_rows(pairs[(pairs[:, :2] != pairs[:, 2:]).any(axis=1)])
    return guard.state()


def sorted_rows(rows):
    return rows[np.lexsort(rows.T[::-1])]


def test_what_a_guard_says_of_itself_is_a_state(state):
    check_state(state, N)
    with pytest.raises(Corrupt, match=f"0 to {N - 1}.*0.*{N - 1}"):
        check_state(state, N - 1)
    with pytest.raises(Corrupt, match="kept, refused"):
        check_state({**state, "refused": state["kept"]}, N)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda rows: sorted_rows(rows[:, [1, 0, 2, 3]]), "the lower object first"),
        (lambda rows: sorted_rows(rows[:, [0, 1, 3, 2]]), "the lower object first"),
        (lambda rows: sorted_rows(rows[:, [0, 1, 0, 1]]), "two pairs"),
        (lambda rows: rows[::-1], "not in order"),
        (lambda rows: np.concatenate([rows[:1], rows[:-1]]), "not in order, or equal"),
    ],
)
def test_what_is_no_state_is_said(state, change, said):
    with pytest.raises(Corrupt, match=f"^kept.*{said}"):
        check_state({"kept": np.ascontiguousarray(change(state["kept"]))}, N)


def kept_by_its_definition(policy: str) -> list[tuple]:
    """What the guard of version 0.1 kept under this policy, straight from its arrays."""
    arrays = container.load(FILES[policy])[2]
    if policy != "sift":
        return [tuple(row) for row in arrays["partial_order/kept"].tolist()]
    order = [tuple(pair) for pair in arrays["partial_order/order"].tolist()]
    rows = arrays["partial_order/voted"].tolist()
    return [(a, b, c, d) for a, b, c, d in rows if order.index((a, b)) < order.index((c, d))]


@pytest.mark.parametrize("policy", FORMER)
def test_a_state_of_a_former_policy_goes_on_from_what_it_kept(policy):
    """Snapshots that version 0.1 wrote: read, gone on with, written, and read again."""
    old = read_snapshot(FILES[policy])
    kept = kept_by_its_definition(policy)
    assert old.settings["guard"] == policy and len(kept) > 100
    assert [tuple(row) for row in old.section("partial_order")["kept"].tolist()] == kept
    engine = Engine.restore(old)
    check_guard(engine.guard)
    assert [tuple(row) for row in engine.guard.kept().tolist()] == kept
    now = engine.snapshot()
    assert now.settings["guard"] == "first"
    assert [{**deed, "time": ""} for deed in now.counters["history"]] == [
        {"did": "guard policy", "time": "", "was": policy, "now": "first"}
    ]
    for name, array in old.arrays.items():
        np.testing.assert_array_equal(now.arrays[name], array, err_msg=name)
    again = decode(b"".join(encode(now)[0]))
    assert again.settings == now.settings and again.arrays.keys() == old.arrays.keys()
    assert decode(b"".join(encode(old)[0])).section("partial_order").keys() == {"kept"}  # as `forget` writes it


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"order": None}, "no order"),
        ({"voted": np.array([[0, 9, 1, 9]], np.int32)}, "pair"),
        ({"voted": np.array([[0, 1, 0, 2]], np.int64)}, "voted: got 2 axes of <i8"),
    ],
)
def test_what_is_no_state_of_the_former_policy_sift_is_said(change, said):
    state = {"order": np.array([[0, 1], [0, 2]], np.int32), "voted": np.array([[0, 1, 0, 2]], np.int32)}
    assert without_former_policy(state, "sift")["kept"].tolist() == [[0, 1, 0, 2]]
    with pytest.raises(Corrupt, match=said):
        without_former_policy({k: v for k, v in (state | change).items() if v is not None}, "sift")
