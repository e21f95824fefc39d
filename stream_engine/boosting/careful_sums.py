"""One label's sum of eq. (2) of Perrot & von Luxburg (2019), if its terms cancel or are very small."""

import math

import numpy as np

from stream_engine.data.compiled import njit


@njit(cache=True)
def careful_sum(v, lag, code, side, y):
    """(signed sum, absolute sum, power) of the entries of one side: the sum of v 2^lag, and that of |v| 2^lag over the
    terms that no other one cancels, both in units of 2^power. O(m log m), m terms."""
    # Ties by symmetry are terms of equal size and opposite sign: weights with equal pasts, which are equal to the bit.
    # They are taken out in pairs, so that the other terms decide, however small they are.
    sizes, lags, net = np.empty(len(code)), np.empty(len(code), np.int64), np.empty(len(code))
    count = 0
    for e in range(len(code)):
        if code[e] & 1 == side:
            x = code[e] >> 1
            sizes[count], lags[count], net[count] = abs(v[x, y]), lag[x, y], 1.0 if v[x, y] > 0 else -1.0
            count += 1
    order = np.argsort(lags[:count], kind="mergesort")
    order = order[np.argsort(sizes[:count][order], kind="mergesort")]
    power = np.int64(-(2**40))
    for i in range(count):  # of equal terms the last holds how many there are net of the opposite ones, the others none
        if i + 1 < count and sizes[order[i]] == sizes[order[i + 1]] and lags[order[i]] == lags[order[i + 1]]:
            net[order[i + 1]] += net[order[i]]
            net[order[i]] = 0.0
        elif net[order[i]] != 0:
            power = max(power, math.frexp(sizes[order[i]])[1] + lags[order[i]])
    signed_sum = absolute_sum = 0.0
    for t in range(count):
        if net[t] != 0:
            term = net[t] * math.ldexp(sizes[t], max(lags[t] - power, -3000))
            signed_sum += term
            absolute_sum += abs(term)
    return signed_sum, absolute_sum, max(power, -3000)


@njit(cache=True)
def plain_size(v, code, begin, end, side, y):
    """The sum of |v| over the entries of one side."""
    size = 0.0
    for e in range(begin, end):
        if code[e] & 1 == side:
            size += abs(v[code[e] >> 1, y])
    return size
