"""TripletBoost: microseconds a round and bytes a triplet, beside a straightforward NumPy loop on the same pairs.

The rival runs whole rounds, drawing included; handed our pairs, it does not have to draw, and its label sets and alphas
are compared with ours. Predictions are raced against looping over the classifiers.
"""

import numpy as np
from scipy.spatial.distance import cdist

from stream_engine.boosting import rounds as boosting
from stream_engine.boosting.codes import codes_from_columns
from stream_engine.boosting.labels import group, label_sets
from tests.benchmarks.boosting_worlds import sampled_columns
from tests.benchmarks.rows import row, timed
from tests.support.boosting_reference import numpy_rounds

FEW = 3000  # rounds that the rival runs


def world(n: int, n_labels: int, share: float, seed: int = 0):
    """Overlapping rings of classes in the plane: groups, class of every example, columns of triplets."""
    rng = np.random.default_rng(seed)
    y = rng.integers(n_labels, size=n)
    angle = 2 * np.pi * y / n_labels
    points = np.stack([np.cos(angle), np.sin(angle)], axis=1) + rng.normal(0, 0.35, (n, 2))
    columns = sampled_columns(cdist(points, points).astype(np.float32), share, 0.1, seed)
    groups = group(label_sets(y, n), np.arange(n))
    return groups, y[groups.example], columns


def column_of(codes):
    """`(anchors, near j's side)` of a pair, for the rival; our lookup, so that it needs no dictionary of all pairs."""
    boosting.find(codes, 0, 1)  # compile

    def column(j, k):
        p = boosting.find(codes, min(j, k), max(j, k))
        code = codes.code[codes.start[p] : codes.start[p + 1]] if p >= 0 else codes.code[:0]
        return (code >> 1).astype(np.int64), (code & 1) == (j > k)

    return column


def raced(n: int, n_labels: int, share: float, rounds: int) -> list[dict]:
    """Rows of one world."""
    groups, y, columns = world(n, n_labels, share)
    codes, laying_out = timed(codes_from_columns, columns, groups, groups.example)
    boosting.advance(boosting.start(groups, 0), codes, 100)  # compile
    state = boosting.start(groups, 0)
    held, took = timed(boosting.advance, state, codes, rounds)
    few, ours = boosting.Classifiers(*(a[:FEW] for a in held)), 1e6 * took / rounds
    pairs = np.stack([few.j, few.k], axis=1)
    (sets, alpha), handed = timed(numpy_rounds, column_of(codes), y, n_labels, pairs)
    _, drawn = timed(numpy_rounds, column_of(codes), y, n_labels, None, np.random.default_rng(0), FEW)
    said = [np.unpackbits(o, axis=1, count=n_labels, bitorder="little") for o in (few.o_j, few.o_k)]
    gap = np.abs(alpha - few.alpha).max()
    assert (np.stack(said, axis=1) == sets).all() and gap < 1e-12, gap
    case = f"n={n}, {n_labels} classes, {share:.0%}, {len(columns.anchor) / 1e6:.1f} M triplets"
    notes = (
        f"{rounds:,} rounds; handed our pairs the rival takes {1e6 * handed / len(pairs):.0f} us, all label sets equal"
    )
    laid = f"{codes.nbytes / 2**20:.0f} MB; laid out in {laying_out:.2f} s"
    return [
        row("boost", case, ours, "us/round", 1e6 * drawn / FEW, "NumPy loop", "<= 2 us, >= 75x", notes),
        row("boost", f"{case}: memory", codes.nbytes / len(codes.code), "bytes/triplet", target="about 2", notes=laid),
    ]


def rows(quick: bool) -> list[dict]:
    """The two worlds of the targets; the large one is smaller when quick."""
    large = (1000, 10, 0.03) if quick else (3000, 10, 0.01)
    return [*raced(500, 2, 0.1, 1_000_000), *raced(*large, 200_000 if quick else 1_000_000)]
