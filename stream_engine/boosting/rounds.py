"""Algorithm 1 of TripletBoost (Perrot & von Luxburg 2019, eqs. 2-4), a million rounds in seconds.

Weights are kept unnormalised and with a sign, v[x, y] = +w if y is in x's label set, -w if not, starting at 1: a round
then needs only d[side, y] = sum of v over the side, since o_side = {y: d > 0} (eq. 2), W+ - W- = sum |d| and
W+ + W- = the weight of all that do not abstain (eq. 3). A sum is a tie when it is rounding beside its own terms,
however small these are beside others. Weights with equal pasts are equal to the bit, so what ties by symmetry cancels.

A weight far below the largest stays representable: the true one is |v| 2^lag, and all scaling is by powers of two, so
no digit is lost. Invariant: a weight with lag != 0 is below LEAST after a refresh, none moves by more than DRIFT until
the next one, and so a label sum above SMALL is not touched by any such weight; one below is summed with its lags.

Totals, from which references are drawn, move by differences, and those lose digits as totals shrink; invariant:
a group's total is re-summed whenever it has halved.
O(column * |Y| + sqrt n) a round.

Drawing the references of a round: j from the marginal of the weights on the examples, k from the same marginal given
another group than j's, which is what redrawing k until the labels differ amounts to (Perrot & von Luxburg 2019,
sec. 2.2). By group totals -> block sums -> elements, O(groups + sqrt n).

One label's sum of eq. (2) where a plain sum of float64 does not do: terms that cancel, or that are very small.

What ties by symmetry are terms of equal size and opposite sign: weights of equal pasts, which are equal to the bit.
They are taken out in pairs, so that whatever is left decides, however small it is beside them. O(m log m), m terms.
"""

import math
from typing import NamedTuple

import numpy as np

from stream_engine.boosting.codes import Codes
from stream_engine.boosting.labels import Groups, scramble
from stream_engine.data.compiled import njit
from stream_engine.data.hashing import GOLDEN_GAMMA, mix64


@njit(cache=True)
def careful_sum(v, lag, code, side, y):
    """(lead, own, power) of the entries of one side: the sum of v 2^lag, and that of |v| 2^lag over the terms that no
    other one cancels; both times 2^power."""
    size, late, net = np.empty(len(code)), np.empty(len(code), np.int64), np.empty(len(code))
    count = 0
    for e in range(len(code)):
        if code[e] & 1 == side:
            x = code[e] >> 1
            size[count], late[count], net[count] = abs(v[x, y]), lag[x, y], 1.0 if v[x, y] > 0 else -1.0
            count += 1
    order = np.argsort(late[:count], kind="mergesort")
    order = order[np.argsort(size[:count][order], kind="mergesort")]
    power = np.int64(-(2**40))
    for i in range(count):  # of equal terms the last holds how many there are net of the opposite ones, the others none
        if i + 1 < count and size[order[i]] == size[order[i + 1]] and late[order[i]] == late[order[i + 1]]:
            net[order[i + 1]] += net[order[i]]
            net[order[i]] = 0.0
        elif net[order[i]] != 0:
            power = max(power, math.frexp(size[order[i]])[1] + late[order[i]])
    lead = own = 0.0
    for at in range(count):
        if net[at] != 0:
            term = net[at] * math.ldexp(size[at], max(late[at] - power, -3000))
            lead += term
            own += abs(term)
    return lead, own, max(power, -3000)


@njit(cache=True)
def plain_size(v, code, begin, end, side, y):
    """The sum of |v| over the entries of one side."""
    size = 0.0
    for e in range(begin, end):
        if code[e] & 1 == side:
            size += abs(v[code[e] >> 1, y])
    return size


@njit(cache=True)
def _uniform(rng):
    """A float64 in [0, 1) (SplitMix64, 53 bits)."""
    rng[0] += np.uint64(GOLDEN_GAMMA)
    return np.float64(mix64(rng[0]) >> np.uint64(11)) * (1.0 / 9007199254740992.0)


@njit(cache=True)
def draw(state, other_than):
    """An example from the marginal of the weights, given that its group is not `other_than` (-1: any group)."""
    sums = state.group_sum
    rest = 0.0
    for g in range(len(sums)):
        rest += sums[g] if g != other_than else 0.0
    left, chosen = _uniform(state.rng) * rest, -1
    for g in range(len(sums)):
        if g != other_than:
            chosen = g
            if left < sums[g]:
                break
            left -= sums[g]
    # a total that is off by a rounding error may leave a remainder: the last candidate takes it, as it does below
    left = min(left, sums[chosen])
    block = state.first_block[chosen]
    while block < state.first_block[chosen + 1] - 1 and left >= state.block_sum[block]:
        left -= state.block_sum[block]
        block += 1
    x = state.first_example[block]
    while x < state.first_example[block + 1] - 1 and left >= state.mass[x]:
        left -= state.mass[x]
        x += 1
    return x


ROUNDING = 2.0**-43  # |d| below this share of its own terms is rounding, not evidence: an exact tie
LEAST = -500  # log2 of the least weight kept as it is, beside a largest in [1, 2)
LIFTED = -800  # log2 of where smaller ones are kept, each with a lag of its own
DRIFT = 140.0  # what the sum of alpha between two refreshes may reach, in bits
SMALL = 2.0 ** (LEAST + DRIFT + 60)  # label sums below it are taken with the lags of their terms
REFRESH = 4096  # rounds between two refreshes at least, more where a refresh costs more


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
    rng: np.ndarray  # (3,) uint64: SplitMix64 state; rounds since the last refresh; weights below LEAST at that time


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


def joined(parts: list[Classifiers]) -> Classifiers:
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
    n, of = len(groups.example), np.repeat(np.arange(len(sizes)), sizes)
    length = max(32, int(np.sqrt(sizes.max(initial=1))))
    blocks = -(-sizes // length)
    first_block = np.append(0, np.cumsum(blocks)).astype(np.int64)
    within = np.arange(n) - groups.start[of]
    block = first_block[of] + within // length
    first_example = np.append(np.searchsorted(block, np.arange(first_block[-1])), n).astype(np.int64)
    positive = np.ascontiguousarray(groups.truth[of])
    v = np.where(positive, 1.0, -1.0)
    lag = np.zeros(v.shape, np.int64)
    rng = np.array([scramble(np.array([0x7072]), seed)[0], 0, 0], np.uint64)
    state = State(
        v,
        lag,
        np.zeros(n),
        positive,
        of.astype(np.int32),
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

    References are example numbers. A round whose classifier has alpha = 0 changes nothing and leaves nothing. Rounds in
    several calls equal the same rounds in one. O(rounds * (column * |Y| + sqrt n)).
    """
    given = np.empty((0, 2), np.int64) if pairs is None else np.ascontiguousarray(pairs, np.int64)
    if pairs is None and len(state.group_sum) < 2:
        return no_classifiers(state.v.shape[1])  # no two examples differ: there is no triplet classifier
    out = no_classifiers(state.v.shape[1], rounds if pairs is None else len(given))
    stored = _rounds(state, codes, len(out.alpha), given, out)
    return Classifiers(*(array[:stored].copy() for array in out))


def log_bound(state: State) -> float:
    """log of Theorem 2's bound on the training error, (|Y| / 2) * prod Z_c = sum of unnormalised weights / (2 n).

    It holds with ties and abstentions counted as errors: a wrong y' of confidence F(x, y') >= F(x, y) leaves
    exp(-F(x, y)) + exp(F(x, y')) >= 2 in that sum.
    """
    n = len(state.mass)
    return float(np.log(state.mass.sum()) + state.total[1] - np.log(2 * n))


def confidences(state: State) -> np.ndarray:
    """(n, Y) float64: sum_c alpha_c (+1 if y is said, -1 if not) over classifiers that do not abstain on x; its argmax
    is eq. (5). The weight of (x, y) is exp of minus it where y is in the label set, of plus it elsewhere."""
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
    negligible to 2^LIFTED, bring back those that are not any more, and sum everything up anew."""
    v, lag = state.v, state.lag
    top = -(2**62)
    for x in range(v.shape[0]):
        for y in range(v.shape[1]):
            top = max(top, math.frexp(v[x, y])[1] - 1 + int(lag[x, y]))
    factor, lagging = math.ldexp(1.0, max(-top, -1100)), 0
    state.total[1] += top * np.log(2.0)
    for x in range(v.shape[0]):
        mass = 0.0
        for y in range(v.shape[1]):
            w = abs(v[x, y]) * factor
            if lag[x, y] != 0 or w < 2.0**LEAST:
                mantissa, exponent = math.frexp(abs(v[x, y]))
                power = exponent + lag[x, y] - top
                small = power <= LEAST
                lag[x, y] = power - LIFTED if small else 0
                w = math.ldexp(mantissa, LIFTED if small else power)
                lagging += small
            v[x, y] = w if state.positive[x, y] else -w
            mass += w
        state.mass[x] = mass
    for g in range(len(state.group_sum)):
        _sum_up(state, g)
    state.total[0], state.total[2] = state.group_sum.sum(), 0.0
    state.rng[1], state.rng[2] = np.uint64(0), np.uint64(lagging)


@njit(cache=True)
def _sum_up(state, g):
    """The block sums and the total of one group from its examples."""
    whole = 0.0
    for b in range(state.first_block[g], state.first_block[g + 1]):
        part = 0.0
        for x in range(state.first_example[b], state.first_example[b + 1]):
            part += state.mass[x]
        state.block_sum[b] = part
        whole += part
    state.group_sum[g] = whole
    state.group_peak[g] = whole


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
def _rounds(state, codes, rounds, given, out):
    n, labels = state.v.shape
    d = np.zeros((2, labels))
    says = np.zeros((2, labels), np.bool_)
    every = max(REFRESH, state.v.size // 8)
    stored = 0
    for c in range(rounds):
        if len(given):
            j, k = given[c]
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
                _store(out, stored, j, k, alpha, says, j > k)
                stored += 1
                state.total[2] += alpha
        state.rng[1] += np.uint64(1)
        used = state.total[2] > (DRIFT - 10) * np.log(2.0)  # one alpha is below log(n + 1) / 2
        if used or state.rng[1] >= every or state.total[0] < 2.0**-40 * state.v.size:
            _refresh(state)
    return stored


@njit(cache=True)
def _choose(state, codes, begin, end, d, says, n):
    """Eq. (2) into `says`, and alpha of eq. (3); 0 where the classifier is no better than chance. d: (2, Y) scratch.

    A sum's own terms are no more than all that is touched: they are added up only where that does not settle it."""
    d[:] = 0.0
    touched = 0.0
    for e in range(begin, end):
        x, side = codes.code[e] >> 1, codes.code[e] & 1
        touched += state.mass[x]
        for y in range(d.shape[1]):
            d[side, y] += state.v[x, y]
    tie = ROUNDING + (end - begin) * 2.0**-53
    edge = 0.0
    for side in range(2):
        for y in range(d.shape[1]):
            lead, own, power = d[side, y], touched, 0
            if abs(lead) <= tie * touched or abs(lead) < SMALL:
                own = plain_size(state.v, codes.code, begin, end, side, y)
                small = own < SMALL and state.rng[2] > 0
                if own > 0 and (small or abs(lead) <= tie * own):
                    lead, own, power = careful_sum(state.v, state.lag, codes.code[begin:end], side, y)
            says[side, y] = lead > tie * own
            if abs(lead) > tie * own:
                edge += math.ldexp(abs(lead), power)
    wrong = max(0.0, (touched - edge) / (2 * state.total[0]))
    return 0.5 * np.log1p(edge / state.total[0] / (wrong + 1 / n))


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
def _store(out, at, j, k, alpha, says, turned):
    """Keep a classifier; side 0 is the smaller example number, which is k where the pair was drawn turned round."""
    out.j[at], out.k[at], out.alpha[at] = j, k, alpha
    o_small, o_large = (out.o_k, out.o_j) if turned else (out.o_j, out.o_k)
    for y in range(says.shape[1]):
        o_small[at, y >> 3] |= np.uint8(says[0, y]) << np.uint8(y & 7)
        o_large[at, y >> 3] |= np.uint8(says[1, y]) << np.uint8(y & 7)
