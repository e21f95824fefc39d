"""`stream-engine warm-up`: fill numba's cache by running a little of everything once.

So the first batch of a real run does not wait for a compiler. Without a cache the compiler takes some fifteen seconds
in all; with it, fractions of one. NUMBA_CACHE_DIR says where the cache is (default: in the package's `__pycache__`); a
change of the sources or of numba, numpy or Python begins a new one there, see `data/compiled.py`.
"""

import time
from collections.abc import Callable, Iterator

import click
import numpy as np

from stream_engine import asking
from stream_engine.accumulators import ACCUMULATORS, empty
from stream_engine.asking.known import known_from
from stream_engine.data.comparisons import Quadruplet, Triplet, empty_batch
from stream_engine.guard.partial_order import POLICIES, canonical_order, transitive_reduction
from stream_engine.kernel_learning.online_kernel import OnlineKernel
from stream_engine.prediction.observer import Observer
from stream_engine.refits import triplet_boost
from stream_engine.state.engine import Engine
from stream_engine.state.snapshot import Snapshot, triplet_columns
from stream_engine.statistics import kernels

OBJECTS = 12


@click.command("warm-up")
def command() -> None:
    """Compile what is compiled on first use, so that a run starts at full speed."""
    for what, seconds in warm_up():
        click.echo(f"{what:24}{seconds:6.2f} s")


def warm_up() -> Iterator[tuple[str, float]]:
    """Yields (what, seconds) for each part that was run."""
    comparisons = _comparisons()
    for policy in POLICIES:
        began = time.perf_counter()
        snapshot = _learn(comparisons, policy)
        yield f"counting, guard {policy}", time.perf_counter() - began
    for what, part in PARTS.items():
        began = time.perf_counter()
        part(snapshot)
        yield what, time.perf_counter() - began


def _comparisons() -> list[Triplet | Quadruplet]:
    rng = np.random.default_rng(0)
    names = [f"object-{i}" for i in range(OBJECTS)]
    comparisons: list[Triplet | Quadruplet] = []
    for _ in range(400):
        a, b, c, d = (names[i] for i in rng.permutation(OBJECTS)[:4])
        comparisons.append(Quadruplet((a, b), (c, d)) if rng.random() < 0.2 else Triplet(a, b, c))
    return comparisons


def _learn(comparisons: list[Triplet | Quadruplet], policy: str) -> Snapshot:
    """Count, restore and merge with every accumulator; the snapshot that holds them all."""
    mergeable = [name for name in ACCUMULATORS if empty(name).mergeable]
    engine, part = Engine(ACCUMULATORS, policy), Engine(mergeable, policy)
    for each in (engine, part):
        for start in range(0, len(comparisons), 100):
            each.learn_many(comparisons[start : start + 100])
    snapshot = engine.snapshot()
    Engine.restore(snapshot)
    merged = Engine.restore(part.snapshot())
    merged.merge(part)
    if merged.guard:
        transitive_reduction(merged.guard.kept())
    return snapshot


def _predict(snapshot: Snapshot) -> None:
    observer = Observer()
    observer.serve(snapshot)
    observer.observe(empty_batch(OBJECTS)._replace(triplets=np.array([[0, 1, 2]], np.int32)), {})
    observer.figures()


def _decode(snapshot: Snapshot) -> None:
    from stream_engine.formats import decoder
    from stream_engine.formats.options import EventOptions

    decoder("json", EventOptions())(
        b'{"anchor":"a","near":"b","far":"c"}\n{"type":"ranking","anchor":"a","ranked":["b","c"]}\n'
        b'{"type":"pick","anchor":"a","shown":["b","c","d"],"chosen":["b"]}\n'
        b'{"type":"odd_one_out","objects":["a","b","c"],"odd":"a"}\n'
    )
    decoder("csv", EventOptions())(b"a,b,c\n", b"anchor,near,far\n")


# what -> what runs it, given a snapshot of the comparisons above
PARTS: dict[str, Callable[[Snapshot], object]] = {
    "formats": _decode,
    "kernels": lambda snapshot: [kernel(triplet_columns(snapshot)) for kernel in (kernels.k1, kernels.k2)],
    "canonical order": lambda snapshot: canonical_order(triplet_columns(snapshot)),
    "predictions": _predict,
    "online kernel": lambda snapshot: OnlineKernel(OBJECTS, 4).learn(np.array([[0, 1, 2]])),
    "boosting": lambda snapshot: triplet_boost.fit(
        triplet_columns(snapshot), np.arange(OBJECTS) % 3, rounds=50, seed=0
    ),
    "asking": lambda snapshot: [asking.questions(known_from(snapshot), 20, strategy) for strategy in asking.STRATEGIES],
}
