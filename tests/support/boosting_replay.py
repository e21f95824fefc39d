"""TripletBoost's rounds over again in decimals, to compare late rounds with: the same pairs, 80 digits, no float."""

from decimal import Decimal, localcontext
from typing import NamedTuple

import numpy as np

from stream_engine.boosting import rounds as boosting
from stream_engine.boosting.codes import Codes


class Replay(NamedTuple):
    """What the rounds were; `doubtful` counts label sums that are neither a tie of equal weights nor clear of 10^-60
    of their terms, so that these digits cannot tell."""

    sets: np.ndarray  # (R, 2, Y) bool: side of j, side of k
    alpha: np.ndarray  # (R,) float64
    confidence: list  # n lists of Y Decimals: sum of alpha, +1 where the label was said, -1 where not
    doubtful: int


def replay(codes: Codes, positive: np.ndarray, j: np.ndarray, k: np.ndarray, digits: int = 80) -> Replay:
    """Eqs. (2) to (4) for given pairs. Weights stay unnormalised (nothing depends on their scale); the total is summed
    anew when it has halved, so it keeps its digits. Weights of equal pasts are equal Decimals, whatever the digits."""
    n, labels = positive.shape
    sets, alphas, doubtful = np.zeros((len(j), 2, labels), bool), np.zeros(len(j)), 0
    with localcontext() as context:
        context.prec = digits
        zero, share, doubt = Decimal(0), Decimal(1) / n, Decimal(10) ** (20 - digits)
        w = [[Decimal(1)] * labels for _ in range(n)]
        f = [[zero] * labels for _ in range(n)]
        total = peak = Decimal(n * labels)
        truth = positive.tolist()
        for c in range(len(j)):
            a, b = min(j[c], k[c]), max(j[c], k[c])
            column = boosting.find(codes, a, b)
            code = codes.code[int(codes.start[column]) : int(codes.start[column + 1])].tolist()
            edge = touched = zero
            for side in (0, 1):
                members = [each >> 1 for each in code if each & 1 == side]
                for y in range(labels):
                    right = [w[x][y] for x in members if truth[x][y]]
                    wrong = [w[x][y] for x in members if not truth[x][y]]
                    d, size = sum(right, zero) - sum(wrong, zero), sum(right, zero) + sum(wrong, zero)
                    touched += size
                    if abs(d) <= doubt * size:
                        doubtful += sorted(right) != sorted(wrong)
                        continue
                    sets[c, side ^ int(j[c] > k[c]), y] = d > 0
                    edge += abs(d)
            good, bad = (touched + edge) / 2 / total, (touched - edge) / 2 / total
            up = ((good + share) / (bad + share)).sqrt()
            down, alpha = 1 / up, up.ln()
            alphas[c] = float(alpha)
            for each in code:
                x, side = each >> 1, (each & 1) ^ int(j[c] > k[c])
                for y, said in enumerate(sets[c, side].tolist()):
                    old = w[x][y]
                    w[x][y] = new = old * (down if truth[x][y] == said else up)
                    f[x][y] += alpha if said else -alpha
                    total += new - old
            peak = max(peak, total)
            if total < peak / 2:
                total = peak = sum((weight for row in w for weight in row), zero)
    return Replay(sets, alphas, f, doubtful)
