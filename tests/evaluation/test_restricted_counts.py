"""Counts of some objects, matrices from entries and lengths of feature vectors: each against a slow count by hand."""

from collections import Counter

import numpy as np
import pytest

from stream_engine.data.triplet_columns import columns_from_triplets
from stream_engine.evaluation import subset

N = 7


def triplets(rng, m=60):
    return np.array([rng.permutation(N)[:3] for _ in range(m)], np.int32)


def counted(rows):
    """{(anchor, lo, hi): [lo nearer, hi nearer]} one by one."""
    found = {}
    for a, b, c in rows.tolist():
        found.setdefault((a, min(b, c), max(b, c)), [0, 0])[int(b > c)] += 1
    return found


def as_dict(columns):
    pair = np.repeat(np.arange(len(columns.lo)), np.diff(columns.start))
    keys = zip(columns.anchor.tolist(), columns.lo[pair].tolist(), columns.hi[pair].tolist())
    return dict(zip(keys, np.stack([columns.n_lo, columns.n_hi], axis=1).tolist()))


@pytest.mark.parametrize("seed", range(8))
def test_restricted_columns_are_the_counts_among_the_objects(seed):
    rng = np.random.default_rng(seed)
    rows = triplets(rng, 5 if seed % 4 == 0 else 60)
    columns = columns_from_triplets(rows, N)
    pairs, anchors = (np.sort(rng.choice(N, rng.integers(0, N + 1), replace=False)) for _ in range(2))
    new_pair, new_anchor = subset.renumbering(pairs, N), subset.renumbering(anchors, N)
    found = subset.restrict_columns(columns, new_pair, new_anchor)
    expected = {
        (int(new_anchor[a]), int(new_pair[b]), int(new_pair[c])): votes
        for (a, b, c), votes in counted(rows).items()
        if new_anchor[a] >= 0 and new_pair[b] >= 0 and new_pair[c] >= 0
    }
    assert as_dict(found) == expected
    assert found.n_objects == N
    assert (np.diff(found.start) > 0).all()
    named = Counter(rows.ravel().tolist())
    assert subset.answers(columns).tolist() == [named[i] for i in range(N)]
