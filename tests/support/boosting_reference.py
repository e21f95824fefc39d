"""TripletBoost straight from the paper (Perrot & von Luxburg 2019), to compare with.

`paper_rounds` follows Algorithm 1 and eqs. (2)-(5) term by term with 60 decimal digits, so an exact tie is a tie.
"""

from decimal import Decimal, localcontext
from typing import NamedTuple

from stream_engine.data.triplet_columns import Columns, pair_of_entry


class Round(NamedTuple):
    """One round: references, label sets as frozensets, alpha, and Theorem 2's Z."""

    j: int
    k: int
    o_j: frozenset
    o_k: frozenset
    alpha: float
    z: float


def sides(columns: Columns) -> dict[tuple[int, int, int], int]:
    """(x, j, k) -> +1 if #(x,j,k) > #(x,k,j), -1 if less; equal ones are not in it."""
    out = {}
    pair = pair_of_entry(columns)
    for x, j, k, n_lo, n_hi in zip(columns.anchor, columns.lo[pair], columns.hi[pair], columns.n_lo, columns.n_hi):
        if n_lo != n_hi:
            out[int(x), int(j), int(k)] = 1 if n_lo > n_hi else -1
            out[int(x), int(k), int(j)] = -out[int(x), int(j), int(k)]
    return out


def paper_rounds(columns: Columns, label_sets: dict[int, frozenset], labels: range, pairs) -> tuple[list[Round], dict]:
    """Algorithm 1 on the examples {object: its labels} with given reference pairs; also the final weights w[x, y]."""
    side, n = sides(columns), Decimal(len(label_sets))
    with localcontext() as context:
        context.prec = 60
        w = {(x, y): 1 / (n * len(labels)) for x in label_sets for y in labels}
        rounds = []
        for j, k in pairs:
            h = {x: side.get((x, j, k), 0) for x in label_sets}
            o = {s: frozenset(y for y in labels if _eq2(w, label_sets, h, s, y) > Decimal(10) ** -40) for s in (1, -1)}
            right = sum(w[x, y] for x in h if h[x] for y in labels if (y in label_sets[x]) == (y in o[h[x]]))
            wrong = sum(w[x, y] for x in h if h[x] for y in labels if (y in label_sets[x]) != (y in o[h[x]]))
            alpha = ((right + 1 / n) / (wrong + 1 / n)).ln() / 2
            factor = {u: (-alpha * u).exp() for u in (1, -1)}
            for x in h:
                for y in labels if h[x] else ():
                    w[x, y] *= factor[(1 if y in label_sets[x] else -1) * (1 if y in o[h[x]] else -1)]
            z = sum(w.values())
            w = {key: value / z for key, value in w.items()}
            rounds.append(Round(j, k, o[1], o[-1], float(alpha) if abs(alpha) > Decimal(10) ** -40 else 0.0, float(z)))
        return rounds, {key: float(value) for key, value in w.items()}


def _eq2(w, label_sets, h, side, y):
    return sum((w[x, y] if y in label_sets[x] else -w[x, y] for x in h if h[x] == side), Decimal(0))


def paper_prediction(columns: Columns, rounds: list[Round], labels: range, x: int) -> tuple[dict[int, float], bool]:
    """Eq. (5) for one object, by looping over the classifiers: every label's weight, and whether all abstained."""
    side, weight, spoke = sides(columns), dict.fromkeys(labels, 0.0), False
    for r in rounds:
        h = side.get((x, r.j, r.k), 0)
        if h and r.alpha:
            spoke = True
            for y in r.o_j if h > 0 else r.o_k:
                weight[y] += r.alpha
    return weight, not spoke
