"""The little world in which a subset is learned and the others are joined to it: for tests of both and of readers."""

import numpy as np

from stream_engine.refits import kernel_learning, partial_order_embedding
from stream_engine.state.snapshot import Snapshot
from tests.support.generators import planted_triplets
from tests.support.kernel_reference import snapshot_of

N = 14
POINTS = np.random.default_rng(5).normal(size=(N, 2))
NAMES = tuple(f"o{i}" for i in range(N))
SOME = (0, 2, 3, 5, 6, 8, 11, 13)
OTHERS = tuple(sorted(set(range(N)) - set(SOME)))
KERNEL = kernel_learning.Params(form="t", lambda1=2.0, tolerance=1e-5, objects=tuple(NAMES[i] for i in SOME))
ORDER = partial_order_embedding.Params(constraints="raw", beta=200.0, objects=KERNEL.objects)


def learned(params, snapshot, previous=None, **more):
    """The artifact of the refit that these parameters belong to."""
    module = kernel_learning if isinstance(params, kernel_learning.Params) else partial_order_embedding
    return module.refit(snapshot, params, 0, previous, **more)


def planted() -> Snapshot:
    """2,500 answers, a twentieth of them wrong, about N points of a plane."""
    return snapshot_of(planted_triplets(np.random.default_rng(6), POINTS, 2500, 0.05), N)
