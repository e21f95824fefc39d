"""A guard's state from a file is one, or is refused with a line that says what is wrong."""

import numpy as np
import pytest

from stream_engine.data.container import Corrupt
from stream_engine.guard.partial_order import POLICIES, PartialOrder
from stream_engine.guard.sifting_kernels import GATE
from stream_engine.guard.stored_states import check_state

N = 6


def state_of(policy: str) -> dict[str, np.ndarray]:
    """Of a guard that kept, refused and, by its policy, struck some of random comparisons."""
    rng = np.random.default_rng(2)
    pairs = np.sort(np.stack([rng.permutation(N)[:2] for _ in range(120)]), axis=1).reshape(60, 4)
    pairs = pairs[(pairs[:, :2] != pairs[:, 2:]).any(axis=1)].astype(np.int32)
    guard = PartialOrder(policy)
    guard.offer_votes(pairs, rng.integers(1, 4, len(pairs)))
    state = {name: np.array(array) for name, array in guard.state().items()}
    assert all(len(array) > 1 for array in state.values())
    return state


def other_side_first(rows):
    """The same comparison as the one that is stored, or one nearly the same, with the higher pair first."""
    return rows[:, [2, 3, 0, 1]]


def sorted_rows(rows):
    return rows[np.lexsort(rows.T[::-1])]


@pytest.mark.parametrize("policy", POLICIES)
def test_what_a_guard_says_of_itself_is_a_state(policy):
    check_state(state_of(policy), policy, N)
    with pytest.raises(Corrupt, match=f"got 0 to {N - 1}, expected 0 and more, below {N - 1}"):
        check_state(state_of(policy), policy, N - 1)


@pytest.mark.parametrize(
    ("policy", "name", "change", "said"),
    [
        *(
            (policy, name, change, f"^{name}.*{said}")
            for policy, names in (
                ("first", ["kept"]),
                ("drop-both", ["kept", "refused", "struck"]),
                ("majority", ["kept", "refused"]),
                ("sift", ["voted"]),
            )
            for name in names
            for change, said in (
                (lambda rows: sorted_rows(rows[:, [1, 0, 2, 3]]), "the lower object first"),
                (lambda rows: sorted_rows(rows[:, [0, 1, 3, 2]]), "the lower object first"),
                (lambda rows: sorted_rows(rows[:, [0, 1, 0, 1]]), "two pairs"),
                (lambda rows: rows[::-1], "not in order"),
                (lambda rows: np.concatenate([rows[:1], rows[:-1]]), "not in order, or equal"),
            )
        ),
        ("drop-both", "struck", lambda rows: sorted_rows(other_side_first(rows)), "^struck.*the lower pair first"),
        ("majority", "kept_net", lambda votes: votes * 0, "^kept_net"),
        ("majority", "refused_net", lambda votes: votes[:-1], "refused"),
        ("sift", "order", lambda pairs: pairs[:, ::-1], "^order.*lo < hi"),
        ("sift", "debt", lambda debt: np.full_like(debt, 1 << 40), f"^debt.*{GATE}th"),
        ("sift", "net", lambda votes: votes * 0, "^net"),
    ],
)
def test_what_is_no_state_is_said(policy, name, change, said):
    state = state_of(policy)
    broken = np.ascontiguousarray(change(state[name]))
    with pytest.raises(Corrupt, match=said):
        check_state(state | {name: broken}, policy, N)
