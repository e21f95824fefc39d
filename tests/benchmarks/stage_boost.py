"""TripletBoost: microseconds a round and bytes a triplet, beside a straightforward NumPy loop on the same pairs.

The rival runs whole rounds, drawing included; how it fares when it is handed our pairs, and does not have to draw, is
in the notes, and there its label sets and alphas are compared with ours. Predictions are raced against looping over
the classifiers.
"""

import json
import time

import numpy as np
from scipy.spatial.distance import cdist

from stream_engine.boosting import rounds as boosting
from stream_engine.boosting import votes
from stream_engine.boosting.codes import codes_from_columns
from stream_engine.boosting.labels import group, label_sets
from tests.benchmarks.boosting_worlds import sampled_columns
from tests.support.boosting_reference import numpy_rounds

FEW = 3000  # rounds that the rival runs


def world(n: int, n_labels: int, share: float, seed: int = 0):
    """Overlapping rings of classes in the plane: groups, codes, class of every example, seconds to lay out."""
    rng = np.random.default_rng(seed)
    y = rng.integers(n_labels, size=n)
    angle = 2 * np.pi * y / n_labels
    points = np.stack([np.cos(angle), np.sin(angle)], axis=1) + rng.normal(0, 0.35, (n, 2))
    columns = sampled_columns(cdist(points, points).astype(np.float32), share, 0.1, seed)
    groups = group(label_sets(y, n), np.arange(n))
    began = time.process_time()
    codes = codes_from_columns(columns, groups, groups.example)
    return groups, codes, y[groups.example], len(columns.anchor), time.process_time() - began


def column_of(codes):
    """`(anchors, near j's side)` of a pair, for the rival; our lookup, so that it needs no dictionary of all pairs."""
    boosting.find(codes, 0, 1)  # compile

    def column(j, k):
        p = boosting.find(codes, min(j, k), max(j, k))
        code = codes.code[codes.start[p] : codes.start[p + 1]] if p >= 0 else codes.code[:0]
        return (code >> 1).astype(np.int64), (code & 1) == (j > k)

    return column


def unpacked(sets, n_labels: int):
    return np.unpackbits(sets, axis=1, count=n_labels, bitorder="little")


def raced(n: int, n_labels: int, share: float, rounds: int) -> list[dict]:
    """Rows of one world."""
    groups, codes, y, triplets, laying_out = world(n, n_labels, share)
    boosting.advance(boosting.start(groups, 0), codes, 100)  # compile
    state = boosting.start(groups, 0)
    began = time.process_time()
    held = boosting.advance(state, codes, rounds)
    ours = (time.process_time() - began) / rounds
    pairs, column = np.stack([held.j, held.k], axis=1)[:FEW], column_of(codes)
    began = time.process_time()
    sets, alpha = numpy_rounds(column, y, n_labels, pairs)
    handed = (time.process_time() - began) / len(pairs)
    began = time.process_time()
    numpy_rounds(column, y, n_labels, None, np.random.default_rng(0), FEW)
    rival = (time.process_time() - began) / FEW
    said = np.stack([unpacked(o[:FEW], n_labels) for o in (held.o_j, held.o_k)], axis=1)
    gap = np.abs(alpha - held.alpha[: len(pairs)]).max()
    assert (said == sets).all() and gap < 1e-12, (int((said != sets).sum()), gap)
    case = f"n={n}, {n_labels} classes, {share:.0%}, {triplets / 1e6:.1f} M triplets"
    notes = (
        f"{rounds:,} rounds in {ours * rounds:.2f} s; handed our pairs the rival takes {handed * 1e6:.0f} us "
        f"({handed / ours:.0f}x), all label sets equal, alpha within {gap:.0e}; log bound "
        f"{boosting.log_bound(state):.0f}"
    )
    return [
        {
            "stage": "boost round",
            "case": case,
            "ours": ours * 1e6,
            "rival": rival * 1e6,
            "rival_name": "NumPy loop",
            "ratio": rival / ours,
            "unit": "us/round",
            "target": "<= 2 us, >= 75x",
            "notes": notes,
        },
        {
            "stage": "boost memory",
            "case": case,
            "ours": codes.nbytes / len(codes.code),
            "unit": "bytes/triplet",
            "target": "about 2",
            "notes": f"{codes.nbytes / 2**20:.0f} MB; laid out in {laying_out:.2f} s",
        },
        asked(case, groups, codes, held, n_labels),
    ]


def asked(case: str, groups, codes, held, n_labels: int) -> dict:
    """Predicting every example by matching keys, against looping over classifiers with NumPy."""
    n = len(groups.example)
    votes.add(votes.no_votes(n, n_labels), boosting.Classifiers(*(a[:10] for a in held)), codes)  # compile
    began = time.process_time()
    votes.add(votes.no_votes(n, n_labels), held, codes)
    ours = (time.process_time() - began) / len(held.alpha)
    few = boosting.Classifiers(*(a[:FEW] for a in held))
    column, weight = column_of(codes), np.zeros((n, n_labels))
    sets = [unpacked(o, n_labels) for o in (few.o_j, few.o_k)]
    began = time.process_time()
    for c, (j, k, alpha) in enumerate(zip(few.j, few.k, few.alpha)):
        anchors, near_j = column(j, k)
        weight[anchors] += alpha * np.where(near_j[:, None], sets[0][c], sets[1][c])
    rival = (time.process_time() - began) / len(few.alpha)
    assert np.allclose(votes.add(votes.no_votes(n, n_labels), few, codes).for_label, weight)
    return {
        "stage": "boost predict",
        "case": case,
        "ours": ours * 1e6,
        "rival": rival * 1e6,
        "rival_name": "NumPy loop",
        "ratio": rival / ours,
        "unit": "us/classifier",
        "target": "",
        "notes": f"{n} objects, {len(held.alpha):,} classifiers",
    }


def rows(quick: bool) -> list[dict]:
    """The two worlds of the targets; the large one is smaller when quick."""
    large = (1000, 10, 0.03) if quick else (3000, 10, 0.01)
    return [*raced(500, 2, 0.1, 1_000_000), *raced(*large, 200_000 if quick else 1_000_000)]


if __name__ == "__main__":
    print(json.dumps(rows(True), indent=1))
