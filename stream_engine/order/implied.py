"""What follows from an order without having been said: its transitive closure over triplets, T-infinity of Heim et al.

T-trans = T-infinity \\ T (Heim et al. 2014, sec. 3, Def. 1 and 2): the triplets {a, b} -> ... -> {a, c} that a path of
kept comparisons implies, quadruplets among them, and that nobody was asked. Whoever chooses questions need not ask
them. A search is skipped where the supports of the finished graph answer (see `supports`). The order may be given as
kept or as its transitive reduction: the answers are the same, and the reduction is searched faster.
Cost: O(m words) for m comparisons to make ready; a question some ns where a support answers, else a search of what may
lie between.
"""

from typing import NamedTuple

import numpy as np

from stream_engine.data.compiled import njit
from stream_engine.order.hash_tables import key_columns, pair_keys
from stream_engine.order.pair_rows import in_topological_order, increasing_successors
from stream_engine.order.reachability_masks import Supports, may_reach, passes_a_third, supports_of

EVERY = 4_000_000  # questions up to which all are looked at
SAMPLE = 20_000  # that are drawn of more
SURE = 1.96  # standard errors of an interval: 95 %


class Order(NamedTuple):
    """A finished order that can be asked. Nodes are topological positions 0 .. N - 1."""

    key: np.ndarray  # (N,) int64 pair keys, increasing
    position: np.ndarray  # (N,) int32: where the pair of each key stands
    start: np.ndarray  # (N + 1,) int64: successors of x are targets[start[x]:start[x + 1]], increasing
    targets: np.ndarray  # (m,) int32
    supports: Supports


class ImpliedCount(NamedTuple):
    """`number` triplets follow and were not said; the truth lies in `low` .. `high` (95 %), and is `number` where
    `exact`. `said`: triplets of the order itself. `questions`: looked at, of `possible` whose two pairs both occur."""

    number: int
    low: int
    high: int
    exact: bool
    said: int
    questions: int
    possible: int


def order_of(rows: np.ndarray) -> Order:
    """Make acyclic rows (m, 4), or their reduction, ready. Raises `ValueError` for a cycle. O(m words + N log N)."""
    found = in_topological_order(rows, "implied")
    start, targets = increasing_successors(found.near, found.far, len(found.key))
    return Order(found.key, found.position, start, targets, supports_of(start, targets))


def answers(order: Order, questions: np.ndarray) -> np.ndarray:
    """(q,) int8 for (q, 3) questions anchor, b, c: 1 where "b is nearer" follows (or was said), -1 where "c is nearer"
    does, 0 where nothing follows: those are left to ask.

    >>> order = order_of(np.array([[0, 1, 0, 2], [0, 2, 1, 2]]))
    >>> answers(order, np.array([[1, 0, 2], [1, 2, 0], [2, 0, 1], [0, 1, 3]])).tolist()
    [1, -1, 1, 0]
    """
    a, b, c = np.asarray(questions, np.int64).T
    one, other = _positions(order, a, b), _positions(order, a, c)
    forward = _reaches(*order[2:4], *order.supports, np.minimum(one, other), np.maximum(one, other))
    return (forward * np.where(one < other, 1, -1)).astype(np.int8)


def implied(rows: np.ndarray, reduced: np.ndarray | None = None, seed: int = 0) -> ImpliedCount:
    """How many triplets follow from acyclic rows (m, 4) and are not among them; `reduced` is their reduction, where it
    is there already. Every question up to `EVERY`, else `SAMPLE` of them at random with Wilson's interval.

    >>> implied(np.array([[0, 1, 0, 2], [0, 2, 1, 2]]))[:4]             # {0, 1} is nearer than {1, 2}
    (1, 1, 1, True)
    """
    order = order_of(rows if reduced is None else reduced)
    pairs = key_columns(order.key).astype(np.int64)
    n = int(pairs.max(initial=-1)) + 1
    member = np.argsort(pairs.reshape(-1), kind="stable")  # the pairs of each object, object by object
    begin = np.searchsorted(pairs.reshape(-1)[member], np.arange(n + 1))
    spot = order.position[member // 2]
    each = np.diff(begin)
    possible = int((each * (each - 1) // 2).sum())
    said = _codes(order, rows)
    if possible <= EVERY:
        one, other = _all_questions(begin, spot, possible)
    else:
        one, other = _drawn(begin, spot, np.random.default_rng(seed))
    follows = _reaches(*order[2:4], *order.supports, one, other)
    follows &= ~_among(said, one.astype(np.int64) * len(order.key) + other)
    hits, looked = int(follows.sum()), len(one)
    if possible <= EVERY:
        return ImpliedCount(hits, hits, hits, True, len(said), looked, possible)
    least, most = wilson(hits, looked)
    number, low, high = (round(share * possible) for share in (hits / looked, least, most))
    return ImpliedCount(number, low, high, False, len(said), looked, possible)


def wilson(hits: int, of: int) -> tuple[float, float]:
    """Wilson's 95 % interval of a share (Wilson 1927).

    >>> [round(bound, 3) for bound in wilson(0, 100)]
    [0.0, 0.037]
    """
    share, square = hits / of, SURE**2 / of
    middle = (share + square / 2) / (1 + square)
    half = SURE * np.sqrt(share * (1 - share) / of + square / (4 * of)) / (1 + square)
    return max(0.0, float(middle - half)), min(1.0, float(middle + half))


def _positions(order: Order, i: np.ndarray, j: np.ndarray) -> np.ndarray:
    """(q,) int32 of the pairs {i, j}; -1 for one that no comparison names."""
    key = pair_keys(np.sort(np.stack([i, j], axis=1), axis=1))
    at = np.minimum(np.searchsorted(order.key, key), max(len(order.key) - 1, 0))
    if not len(order.key):
        return np.full(len(key), -1, np.int32)
    return np.where(order.key[at] == key, order.position[at], -1).astype(np.int32)


def _codes(order: Order, rows: np.ndarray) -> np.ndarray:
    """Sorted near * N + far of the rows that are triplets."""
    rows = np.asarray(rows, np.int64).reshape(-1, 4)
    rows = rows[(rows[:, [0, 0, 1, 1]] == rows[:, [2, 3, 2, 3]]).any(axis=1)]
    near, far = _positions(order, rows[:, 0], rows[:, 1]), _positions(order, rows[:, 2], rows[:, 3])
    return np.unique(near.astype(np.int64) * len(order.key) + far)


def _among(codes: np.ndarray, asked: np.ndarray) -> np.ndarray:
    """(q,) bool: which of the asked are among the sorted codes."""
    if not len(codes):
        return np.zeros(len(asked), bool)
    return codes[np.minimum(np.searchsorted(codes, asked), len(codes) - 1)] == asked


@njit(cache=True, nogil=True)
def _all_questions(begin, spot, possible):
    """`(one, other)` (possible,) int32: every two pairs that share an object, the earlier position first."""
    one, other = np.empty(possible, np.int32), np.empty(possible, np.int32)
    q = 0
    for a in range(len(begin) - 1):
        for k in range(begin[a], begin[a + 1]):
            for l in range(begin[a], k):
                one[q], other[q] = min(spot[k], spot[l]), max(spot[k], spot[l])
                q += 1
    return one, other


def _drawn(begin: np.ndarray, spot: np.ndarray, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """The same for `SAMPLE` of them, drawn with replacement, each as likely as any other."""
    each = np.diff(begin)
    weight = (each * (each - 1) // 2).astype(float)
    a = rng.choice(len(each), SAMPLE, p=weight / weight.sum())
    first = rng.integers(0, each[a])
    second = rng.integers(0, each[a] - 1)
    second += second >= first
    one, other = spot[begin[a] + first], spot[begin[a] + second]
    return np.minimum(one, other), np.maximum(one, other)


@njit(cache=True, nogil=True)
def _reaches(start, targets, before, after, number, one, other):
    """(q,) bool: whether position one[q] >= 0 reaches other[q] > one[q]."""
    n = len(start) - 1
    met, stack = np.full(n, -1, np.int64), np.empty(n, np.int32)
    out = np.zeros(len(one), np.bool_)
    for q in range(len(one)):
        x, v = one[q], other[q]
        if x < 0 or x == v or not may_reach(before, after, x, v):
            continue
        out[q] = passes_a_third(before, after, number, x, v)
        if out[q]:
            continue
        depth = 1
        stack[0] = x
        while depth > 0 and not out[q]:
            depth -= 1
            y = stack[depth]
            for k in range(start[y], start[y + 1]):
                z = targets[k]
                if z >= v:  # successors increase, and nothing behind v reaches it
                    out[q] = z == v
                    break
                if met[z] != q and may_reach(before, after, z, v):
                    met[z] = q
                    stack[depth] = z
                    depth += 1
    return out
