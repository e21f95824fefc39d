"""One label's sum of eq. (2) where a plain sum of float64 does not do: terms that cancel, or that are very small.

What ties by symmetry are terms of equal size and opposite sign: weights of equal pasts, which are equal to the bit.
They are taken out in pairs, so that whatever is left decides, however small it is beside them. O(m log m), m terms.
"""

import math

import numpy as np

from stream_engine.data.compiled import njit


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
