"""Fill numba's cache: run a little of everything once, so that the first batch of a real run does not wait for a compiler.

Without a cache the compiler takes some fifteen seconds in all; with it, fractions of one. NUMBA_CACHE_DIR says where the
cache is (default: in the package's `__pycache__`); a change of the sources or of numba, numpy or Python begins a new one
there, see `data/compiled.py`.
"""

import time
from collections.abc import Iterator

import numpy as np

from stream_engine import asking
from stream_engine.accumulators import ACCUMULATORS, made
from stream_engine.asking.known import known_from
from stream_engine.data.comparisons import Quadruplet, Triplet, empty_batch
from stream_engine.guard.partial_order import POLICIES, canonical_order, transitive_reduction
from stream_engine.kernel_learning.online_kernel import OnlineKernel
from stream_engine.prediction.observer import Progressive
from stream_engine.refits import triplet_boost
from stream_engine.state.engine import Engine
from stream_engine.state.snapshot import triplet_columns
from stream_engine.statistics import kernels


def warm_up() -> Iterator[tuple[str, float]]:
    """Yields (what, seconds) for each part that was run."""
    rng = np.random.default_rng(0)
    names = [f"object-{i}" for i in range(12)]
    stream = []
    for _ in range(400):
        a, b, c, d = (names[i] for i in rng.permutation(12)[:4])
        stream.append(Quadruplet((a, b), (c, d)) if rng.random() < 0.2 else Triplet(a, b, c))
    snapshot = None
    mergeable = [name for name in ACCUMULATORS if getattr(made(name), "mergeable", True)]

    def learn(policy: str) -> None:
        nonlocal snapshot
        engine, part = Engine(ACCUMULATORS, policy), Engine(mergeable, policy)
        for each in (engine, part):
            for start in range(0, len(stream), 100):
                each.learn_many(stream[start : start + 100])
        snapshot = engine.snapshot()
        Engine.restore(snapshot)
        again = Engine.restore(part.snapshot())
        again.merge(part)
        transitive_reduction(again.guard.kept())

    parts = {f"counting, guard {policy}": (lambda policy=policy: learn(policy)) for policy in POLICIES}
    parts["formats"] = _decode
    parts["kernels"] = lambda: [kernel(triplet_columns(snapshot)) for kernel in (kernels.k1, kernels.k2)]
    parts["canonical order"] = lambda: canonical_order(triplet_columns(snapshot))
    parts["predictions"] = lambda: _predict(snapshot)
    parts["online kernel"] = lambda: OnlineKernel(12, 4).learn(np.array([[0, 1, 2]]))
    parts["boosting"] = lambda: triplet_boost.fit(triplet_columns(snapshot), np.arange(12) % 3, rounds=50, seed=0)
    parts["asking"] = lambda: [asking.questions(known_from(snapshot), 20, strategy) for strategy in asking.STRATEGIES]
    for what, call in parts.items():
        began = time.perf_counter()
        call()
        yield what, time.perf_counter() - began


def _predict(snapshot) -> None:
    observer = Progressive()
    observer.serve(snapshot)
    observer.observe(empty_batch(12)._replace(triplets=np.array([[0, 1, 2]], np.int32)), {})
    observer.figures()


def _decode() -> None:
    from stream_engine.formats import decoder
    from stream_engine.formats.options import EventOptions

    decoder("json", EventOptions())(
        b'{"anchor":"a","near":"b","far":"c"}\n{"type":"ranking","anchor":"a","ranked":["b","c"]}\n'
        b'{"type":"pick","anchor":"a","shown":["b","c","d"],"chosen":["b"]}\n'
        b'{"type":"odd_one_out","objects":["a","b","c"],"odd":"a"}\n'
    )
    decoder("csv", EventOptions())(b"a,b,c\n", b"anchor,near,far\n")
