"""Algorithm 1 of TripletBoost (Perrot & von Luxburg 2019, eqs. 2-4), a million rounds in seconds."""

import math
from typing import NamedTuple

import numpy as np

from stream_engine.boosting.careful_sums import careful_sum, plain_size
from stream_engine.boosting.codes import Codes
from stream_engine.boosting.labels import Groups, scramble
from stream_engine.boosting.references import draw
from stream_engine.data.compiled import njit

# Weights are unnormalised and signed, v[x, y] = +w if y is in x's label set, -w if not, starting at 1: a round then
# needs only d[side, y] = sum of v over the side, since o_side = {y: d > 0} (eq. 2), W+ - W- = sum |d| and W+ + W- = the
# weight of all that do not abstain (eq. 3). A sum is a tie if it is no more than rounding of its own terms, however
# small these are compared with others. Weights with equal pasts are equal to the bit, so ties by symmetry cancel.
#
# A weight far below the largest stays representable: the true one is |v| 2^lag, and all scaling is by powers of two, so
# no digit is lost. Invariant: a weight with lag != 0 is below 2^MIN_LOG_WEIGHT after a refresh, none moves by more than
# DRIFT until the next one, and so a label sum above CAREFUL_BELOW is not affected by any such weight; one below is
# summed with its lags.
#
# Totals, from which references are drawn, are updated by differences, which lose digits as totals shrink; invariant: a
# group's total is summed again whenever it has halved. O(column * |Y| + sqrt n) a round.
ROUNDING = 2.0**-43  # |d| below this share of its own terms is rounding: an exact tie
MIN_LOG_WEIGHT = -500  # log2 of the least weight that is stored as it is, if the largest is in [1, 2)
LIFTED_LOG_WEIGHT = -800  # log2 of the size at which smaller ones are stored, each with a lag of its own
DRIFT = 140.0  # bits that the sum of alpha may reach between two refreshes
CAREFUL_BELOW = 2.0 ** (MIN_LOG_WEIGHT + DRIFT + 60)  # label sums below it are summed with the lags of their terms
MIN_ROUNDS_PER_REFRESH = 4096  # more if a refresh costs more


class State(NamedTuple):
    """The weights after some rounds, and what the sampler needs; arrays are changed in place by `advance`."""

    v: np.ndarray  # (n, Y) float64 signed unnormalised weights
    lag: np.ndarray  # (n, Y) int64: log2 of the true weight over |v|; 0 but for negligible weights
    mass: np.ndarray  # (n,) float64: sum_y |v[x, y]|
    positive: np.ndarray  # (n, Y) bool: y in the label set of x
    group: np.ndarray  # (n,) int32
    block: np.ndarray  # (n,) int32
    first_example: np.ndarray  # (B + 1,) int64 of each block
    first_block: np.ndarray  # (G + 1,) int64 of each group
    block_sum: np.ndarray  # (B,) float64
    group_sum: np.ndarray  # (G,) float64
    group_peak: np.ndarray  # (G,) float64: the largest total since it was last summed up
    total: np.ndarray  # (3,) float64: sum of mass; log of the factor taken out of the weights; alpha since a refresh
    rng: np.ndarray  # (3,) uint64: SplitMix64 state; rounds since the last refresh; negligible weights at that time


class Classifiers(NamedTuple):
    """Triplet classifiers in the order of their rounds; label sets are packed bits, y at bit y % 8 of byte y // 8."""

    j: np.ndarray  # (C,) int32
    k: np.ndarray  # (C,) int32
    alpha: np.ndarray  # (C,) float64
    o_j: np.ndarray  # (C, ceil(Y / 8)) uint8
    o_k: np.ndarray  # (C, ceil(Y / 8)) uint8


def no_classifiers(n_labels: int, size: int = 0) -> Classifiers:
    """Room for `size` classifiers."""
    width = -(-n_labels // 8)
    sets = np.zeros((2, size, width), np.uint8)
    return Classifiers(np.zeros(size, np.int32), np.zeros(size, np.int32), np.zeros(size), sets[0], sets[1])


def concatenate(parts: list[Classifiers]) -> Classifiers:
    """The classifiers one after another."""
    return Classifiers(*(np.concatenate(arrays) for arrays in zip(*parts)))


def state_bytes(n: int, n_labels: int) -> int:
    """Bytes of a State over n examples."""
    return n * (n_labels * 25 + 24)


def start(groups: Groups, seed: int) -> State:
    """The weights before the first round, uniform.

    >>> from stream_engine.boosting.labels import group, label_sets
    >>> s = start(group(label_sets([0, 1, 1], 3), [0, 1, 2]), seed=0)
    >>> s.v.tolist(), float(s.total[0]), s.group_sum.tolist()
    ([[1.0, -1.0], [-1.0, 1.0], [-1.0, 1.0]], 6.0, [2.0, 4.0])
    """
    sizes = np.diff(groups.start)
    n, group_of_example = len(groups.example), np.repeat(np.arange(len(sizes)), sizes)
    length = max(32, int(np.sqrt(sizes.max(initial=1))))
    blocks = -(-sizes // length)
    first_block = np.append(0, np.cumsum(blocks)).astype(np.int64)
    position = np.arange(n) - groups.start[group_of_example]
    block = first_block[group_of_example] + position // length
    first_example = np.append(np.searchsorted(block, np.arange(first_block[-1])), n).astype(np.int64)
    positive = np.ascontiguousarray(groups.truth[group_of_example])
    v = np.where(positive, 1.0, -1.0)
    lag = np.zeros(v.shape, np.int64)
    rng = np.array([scramble(np.array([0x7072]), seed)[0], 0, 0], np.uint64)
    state = State(
        v,
        lag,
        np.zeros(n),
        positive,
        group_of_example.astype(np.int32),
        block.astype(np.int32),
        first_example,
        first_block,
        np.zeros(first_block[-1]),
        np.zeros(len(sizes)),
        np.zeros(len(sizes)),
        np.zeros(3),
        rng,
    )
    _refresh(state)
    return state


def advance(state: State, codes: Codes, rounds: int, pairs: np.ndarray | None = None) -> Classifiers:
    """Run `rounds` rounds, or one for each given (R, 2) pair of examples; returns the classifiers with alpha > 0.

    References are example numbers. A round whose classifier has alpha = 0 changes nothing and returns none. Rounds in
    several calls equal the same rounds in one. O(rounds * (column * |Y| + sqrt n)).
    """
    given_pairs = np.empty((0, 2), np.int64) if pairs is None else np.ascontiguousarray(pairs, np.int64)
    if pairs is None and len(state.group_sum) < 2:
        return no_classifiers(state.v.shape[1])  # no two examples differ: there is no triplet classifier
    room = no_classifiers(state.v.shape[1], rounds if pairs is None else len(given_pairs))
    n_stored = _rounds(state, codes, len(room.alpha), given_pairs, room)
    return Classifiers(*(array[:n_stored].copy() for array in room))


def log_bound(state: State) -> float:
    """log of Theorem 2's bound on the training error, (|Y| / 2) * prod Z_c = sum of unnormalised weights / (2 n).

    It holds with ties and abstentions counted as errors: a wrong y' of confidence F(x, y') >= F(x, y) leaves
    exp(-F(x, y)) + exp(F(x, y')) >= 2 in that sum.
    """
    n = len(state.mass)
    return float(np.log(state.mass.sum()) + state.total[1] - np.log(2 * n))


def confidences(state: State) -> np.ndarray:
    """(n, Y) float64: sum_c alpha_c (+1 if y is predicted, -1 if not) over classifiers that do not abstain on x; its
    argmax is eq. (5). The weight of (x, y) is exp of minus it where y is in the label set, of plus it elsewhere."""
    return np.where(state.positive, -1.0, 1.0) * (np.log(np.abs(state.v)) + state.lag * np.log(2.0) + state.total[1])


def errors(confidence: np.ndarray, positive: np.ndarray) -> float:
    """Share of rows whose largest confidence outside the label set reaches the largest inside it (ties are errors).

    >>> errors(np.array([[1., 0.], [0., 0.]]), np.array([[True, False], [True, False]]))
    0.5
    """
    inside = np.where(positive, confidence, -np.inf).max(axis=1, initial=-np.inf)
    outside = np.where(positive, -np.inf, confidence).max(axis=1, initial=-np.inf)
    return float(np.mean(inside <= outside + 1e-9)) if len(positive) else 0.0  # a lead of rounding errors is a tie


@njit(cache=True)
def _refresh(state):
    """Scale the weights by a power of two (exact) so that the largest is in [1, 2), lift those that have become
    negligible to 2^LIFTED_LOG_WEIGHT, restore those that no longer are, and recompute all sums."""
    v, lag = state.v, state.lag
    top_exponent = -(2**62)
    for x in range(v.shape[0]):
        for y in range(v.shape[1]):
            top_exponent = max(top_exponent, math.frexp(v[x, y])[1] - 1 + int(lag[x, y]))
    factor, n_negligible = math.ldexp(1.0, max(-top_exponent, -1100)), 0
    state.total[1] += top_exponent * np.log(2.0)
    for x in range(v.shape[0]):
        mass = 0.0
        for y in range(v.shape[1]):
            w = abs(v[x, y]) * factor
            if lag[x, y] != 0 or w < 2.0**MIN_LOG_WEIGHT:
                mantissa, exponent = math.frexp(abs(v[x, y]))
                power = exponent + lag[x, y] - top_exponent
                is_negligible = power <= MIN_LOG_WEIGHT
                lag[x, y] = power - LIFTED_LOG_WEIGHT if is_negligible else 0
                w = math.ldexp(mantissa, LIFTED_LOG_WEIGHT if is_negligible else power)
                n_negligible += is_negligible
            v[x, y] = w if state.positive[x, y] else -w
            mass += w
        state.mass[x] = mass
    for g in range(len(state.group_sum)):
        _sum_up(state, g)
    state.total[0], state.total[2] = state.group_sum.sum(), 0.0
    state.rng[1], state.rng[2] = np.uint64(0), np.uint64(n_negligible)


@njit(cache=True)
def _sum_up(state, g):
    """The block sums and the total of one group from its examples."""
    group_total = 0.0
    for b in range(state.first_block[g], state.first_block[g + 1]):
        block_total = 0.0
        for x in range(state.first_example[b], state.first_example[b + 1]):
            block_total += state.mass[x]
        state.block_sum[b] = block_total
        group_total += block_total
    state.group_sum[g] = group_total
    state.group_peak[g] = group_total


@njit(cache=True)
def find(codes, a, b):
    """The column of references a < b, or -1. A row that lacks m partners is searched over at most m + 1 places."""
    size = codes.row[a + 1] - codes.row[a]
    full = b - codes.first[a]
    left, right = max(0, full - (len(codes.first) - codes.first[a] - size)), min(size - 1, full)
    base = codes.row[a]
    while left <= right:
        middle = (left + right) >> 1
        at = np.int64(codes.partner[base + middle])
        if at == b:
            return base + middle
        if at < b:
            left = middle + 1
        else:
            right = middle - 1
    return np.int64(-1)


@njit(cache=True)
def _rounds(state, codes, rounds, given_pairs, out):
    """Rounds with drawn references, or with `given_pairs`, into `out`; returns the number of classifiers stored."""
    n, labels = state.v.shape
    d = np.zeros((2, labels))
    says = np.zeros((2, labels), np.bool_)
    rounds_per_refresh = max(MIN_ROUNDS_PER_REFRESH, state.v.size // 8)
    n_stored = 0
    for c in range(rounds):
        if len(given_pairs):
            j, k = given_pairs[c]
        else:
            j = draw(state, -1)
            k = draw(state, state.group[j])
        a, b = min(j, k), max(j, k)
        column = find(codes, a, b)
        if column >= 0:
            begin, end = np.int64(codes.start[column]), np.int64(codes.start[column + 1])
            alpha = _choose(state, codes, begin, end, d, says, n)
            if alpha > 0:
                _reweight(state, codes, begin, end, alpha, says)
                _store(out, n_stored, j, k, alpha, says, j > k)
                n_stored += 1
                state.total[2] += alpha
        state.rng[1] += np.uint64(1)
        has_drifted = state.total[2] > (DRIFT - 10) * np.log(2.0)  # one alpha is below log(n + 1) / 2
        if has_drifted or state.rng[1] >= rounds_per_refresh or state.total[0] < 2.0**-40 * state.v.size:
            _refresh(state)
    return n_stored


@njit(cache=True)
def _choose(state, codes, begin, end, d, says, n):
    """Eq. (2) into `says`, and alpha of eq. (3); 0 where the classifier is no better than chance. d: (2, Y) scratch.

    The size of a sum's own terms is at most `column_mass`: it is computed only if that bound does not decide."""
    d[:] = 0.0
    column_mass = 0.0
    for e in range(begin, end):
        x, side = codes.code[e] >> 1, codes.code[e] & 1
        column_mass += state.mass[x]
        for y in range(d.shape[1]):
            d[side, y] += state.v[x, y]
    tie = ROUNDING + (end - begin) * 2.0**-53
    edge = 0.0
    for side in range(2):
        for y in range(d.shape[1]):
            lead, size, power = d[side, y], column_mass, 0
            if abs(lead) <= tie * column_mass or abs(lead) < CAREFUL_BELOW:
                size = plain_size(state.v, codes.code, begin, end, side, y)
                may_be_negligible = size < CAREFUL_BELOW and state.rng[2] > 0
                if size > 0 and (may_be_negligible or abs(lead) <= tie * size):
                    lead, size, power = careful_sum(state.v, state.lag, codes.code[begin:end], side, y)
            says[side, y] = lead > tie * size
            if abs(lead) > tie * size:
                edge += math.ldexp(abs(lead), power)
    wrong_share = max(0.0, (column_mass - edge) / (2 * state.total[0]))
    return 0.5 * np.log1p(edge / state.total[0] / (wrong_share + 1 / n))


@njit(cache=True)
def _reweight(state, codes, begin, end, alpha, says):
    """Eq. (4) without its Z: correct weights times exp(-alpha), wrong ones times exp(alpha); totals by differences."""
    down, up = np.exp(-alpha), np.exp(alpha)
    change = 0.0
    for e in range(begin, end):
        x, side = codes.code[e] >> 1, codes.code[e] & 1
        mass = 0.0
        for y in range(state.v.shape[1]):
            w = state.v[x, y] * (down if (state.v[x, y] > 0) == says[side, y] else up)
            state.v[x, y] = w
            mass += abs(w)
        difference = mass - state.mass[x]
        state.mass[x] = mass
        state.block_sum[state.block[x]] += difference
        state.group_sum[state.group[x]] += difference
        change += difference
    state.total[0] += change
    stale = False
    for g in range(len(state.group_sum)):
        state.group_peak[g] = max(state.group_peak[g], state.group_sum[g])
        if state.group_sum[g] < 0.5 * state.group_peak[g]:
            _sum_up(state, g)
            stale = True
    if stale:
        state.total[0] = state.group_sum.sum()


@njit(cache=True)
def _store(out, at, j, k, alpha, says, is_swapped):
    """Store a classifier; side 0 is the smaller example number, which is k if `is_swapped`."""
    out.j[at], out.k[at], out.alpha[at] = j, k, alpha
    o_small, o_large = (out.o_k, out.o_j) if is_swapped else (out.o_j, out.o_k)
    for y in range(says.shape[1]):
        o_small[at, y >> 3] |= np.uint8(says[0, y]) << np.uint8(y & 7)
        o_large[at, y >> 3] |= np.uint8(says[1, y]) << np.uint8(y & 7)
