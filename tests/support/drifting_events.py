"""Answers that change their meaning half way."""

import numpy as np

from tests.support.generators import planted_triplets


def events(path, seed=0):
    """A file of 60,000 comparisons over 30 objects; after half of them a tenth of the objects are elsewhere."""
    rng = np.random.default_rng(seed)
    points = rng.normal(size=(30, 2))
    before = planted_triplets(rng, points, 30_000, 0.1)
    points[:3] = rng.normal(size=(3, 2)) * 3
    rows = np.concatenate([before, planted_triplets(rng, points, 30_000, 0.1)])
    path.write_text("anchor,near,far\n" + "\n".join(f"o{a},o{b},o{c}" for a, b, c in rows.tolist()) + "\n")
    return path
