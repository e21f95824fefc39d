"""`stream-engine warm-up`: fill numba's cache by running a little of everything once.

Without a cache the compiler takes about a minute of CPU, here shared by two processes. NUMBA_CACHE_DIR is the folder of
the cache (default: the package's `__pycache__`); after a change, only kernels that contain it are compiled again.
"""

import gc
import json
import multiprocessing
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import cache, partial
from pathlib import Path
from tempfile import TemporaryDirectory

import click
import numpy as np

from stream_engine.data.compiled import all_compiled, nothing_is_compiled

OBJECTS = 12
PROCESSES = 2


@click.command("warm-up")
def command() -> None:
    """Compile all kernels in advance, so that a run starts at full speed."""
    for what, seconds in in_processes():
        click.echo(f"{what:24}{seconds:6.2f} s")


def in_processes(parts: Iterable[str] | None = None) -> Iterator[tuple[str, float]]:
    """As `warm_up`, of all parts or some, by processes that take the next one when they are done with one."""
    with multiprocessing.get_context("spawn").Pool(PROCESSES) as pool:
        yield from pool.imap_unordered(_seconds_of, PARTS if parts is None else parts)


@contextmanager
def beside(what: str) -> Iterator[None]:
    """A process of its own compiles a part meanwhile, where nothing is compiled yet."""
    if not nothing_is_compiled():
        yield
        return
    process = multiprocessing.get_context("spawn").Process(target=_seconds_of, args=(what,), daemon=True)
    process.start()
    try:
        yield
    finally:
        process.terminate()
        process.join()


def warm_up() -> Iterator[tuple[str, float]]:
    """Yields (what, seconds) for each part that was run."""
    yield from map(_seconds_of, PARTS)


def _seconds_of(what: str) -> tuple[str, float]:
    began = time.perf_counter()
    gc.set_threshold(100_000, 50, 1000)  # a tenth of the compiler's time
    with all_compiled():
        PARTS[what]()
    return what, time.perf_counter() - began


def _events() -> Iterator[bytes]:
    """Answers of three people, and some of nobody, as lines of JSON."""
    rng = np.random.default_rng(0)
    names = [f"object-{i}" for i in range(OBJECTS)]
    for number in range(400):
        a, b, c, d = (names[i] for i in rng.permutation(OBJECTS)[:4])
        worker = {"worker": f"worker-{number % 4}"} if number % 4 else {}
        if number % 10 == 0:  # an answer of two comparisons
            yield json.dumps({"type": "odd_one_out", "objects": [a, b, c], "odd": c, **worker}).encode()
        elif rng.random() < 0.2:
            yield json.dumps({"type": "quadruplet", "near": [a, b], "far": [c, d], **worker}).encode()
        else:
            yield json.dumps({"anchor": a, "near": b, "far": c, **worker}).encode()


def _learn(accumulators: Iterable[str], guard: bool):
    """Count and judge, restore and merge; the snapshot of all."""
    from stream_engine.counts import empty
    from stream_engine.formats import decoder
    from stream_engine.formats.options import EventOptions
    from stream_engine.state.engine import Engine

    lines, decode = list(_events()), decoder("json", EventOptions(provenance=True))
    engine = Engine(accumulators, guard)
    part = Engine([name for name in accumulators if empty(name).mergeable], guard)
    for learner in (engine, part):
        for start in range(0, len(lines), 100):
            learner.learn(decode(b"\n".join(lines[start : start + 100])), records=100)
    snapshot = engine.snapshot()
    Engine.restore(snapshot)
    merged = Engine.restore(part.snapshot())
    merged.merge(part)
    return snapshot


def _guard() -> None:
    from stream_engine.data.comparisons import empty_batch
    from stream_engine.data.interner import Interner
    from stream_engine.data.triplet_columns import columns_from_triplets, handed_over, state_of_columns
    from stream_engine.order.implied import answers, order_of
    from stream_engine.order.partial_order import PartialOrder, canonical_order, transitive_reduction, weight_kept
    from stream_engine.state.engine import Engine

    # Judged before anything is decoded: the process beside this one compiles the decoding meanwhile.
    rows = np.random.default_rng(0).permuted(np.tile(np.arange(OBJECTS, dtype=np.int32), (400, 1)), axis=1)
    order = PartialOrder()
    order.offer(empty_batch(OBJECTS)._replace(triplets=rows[:, :3].copy()))
    many = np.arange(900, dtype=np.int32).reshape(-1, 3)
    order.offer(empty_batch(900)._replace(triplets=many))  # more pairs than its tables have room for at first
    Interner().ids_of(map(str, range(300)))
    if guard := Engine.restore(_learn((), True)).guard:
        transitive_reduction(guard.kept())
    columns = columns_from_triplets(np.array([[0, 1, 2], [1, 2, 0], [0, 1, 2]]), 3)
    handed_over(state_of_columns(columns))  # read-only, as those of a snapshot are
    kept_rows = canonical_order(columns).kept
    weight_kept(kept_rows, columns)
    answers(order_of(kept_rows), np.array([[0, 1, 2]]))
    pairs = np.stack(np.triu_indices(OBJECTS, 1), axis=1).astype(np.int32)
    near, far = np.triu_indices(len(pairs), 1)
    transitive_reduction(np.hstack([pairs[near], pairs[far]]))  # more rows than pairs of objects: numbered by a table


@cache
def _full_snapshot():
    """A snapshot of every statistic there is."""
    from stream_engine.counts import ACCUMULATORS

    return _learn(tuple(ACCUMULATORS), False)


def _boost() -> None:
    from stream_engine.data.triplet_columns import (
        columns_from_triplets,
        columns_of_state,
        handed_over,
        state_of_columns,
    )
    from stream_engine.refits import triplet_boost

    rows = np.random.default_rng(0).permuted(np.tile(np.arange(OBJECTS), (400, 1)), axis=1)[:, :3]
    counted = handed_over(state_of_columns(columns_from_triplets(rows, OBJECTS)))  # read-only, as a snapshot's are
    triplet_boost.fit(columns_of_state(counted, OBJECTS), np.arange(OBJECTS) % 3, rounds=50, seed=0)


def _ask() -> None:
    from stream_engine import asking
    from stream_engine.asking.knowledge import knowledge_of
    from stream_engine.refits import embedding

    artifact = embedding.refit(_full_snapshot(), embedding.Params(dimensions=2, kernel="t-ste", ridge=0.3), 0)
    for arrays in (artifact.arrays, {name: array for name, array in artifact.arrays.items() if name != "covariance"}):
        learned = artifact._replace(arrays=arrays, report={**artifact.report, "accuracy": 1.0})
        for strategy in asking.STRATEGIES:
            asking.questions(knowledge_of(_full_snapshot(), learned), 20, strategy)


def _online() -> None:
    from stream_engine.embedding.online import OnlineEmbedding, PublishedFit

    online = OnlineEmbedding(2)
    online.learn(np.array([[0, 1, 0, 2]]))
    online.reset_to_fit(PublishedFit(np.zeros((3, 2)), np.ones(3, bool), 0.1, {}, 0.0, 1.0, 1.0, 1.0), 0)


def _predict() -> None:
    from stream_engine.data.comparisons import empty_batch
    from stream_engine.evaluation import PREDICTORS, predictor
    from stream_engine.evaluation.observer import Observer
    from stream_engine.state.published import Published

    for name in PREDICTORS:  # a run makes them in a thread of its own, sooner or later
        predictor(name, Published(_full_snapshot(), {}))
    observer = Observer()
    observer.serve(_full_snapshot())
    observer.observe(empty_batch(OBJECTS)._replace(triplets=np.array([[0, 1, 2]], np.int32)), {})
    observer.figures()


def _refit(*kinds: str) -> None:
    """Refits with kernels of their own, quickly, over the objects with the most answers."""
    import msgspec

    from stream_engine.refits import refit_module

    for kind in kinds:
        module = refit_module(kind)
        parameters = {"objects": OBJECTS - 2} if hasattr(module.Params(), "objects") else {}
        module.refit(_full_snapshot(), msgspec.convert(parameters, module.Params), 0)


def _map() -> None:
    """What the map of a survey and its clusters need."""
    from stream_engine.clustering import borders
    from stream_engine.embedding.fit import fit
    from stream_engine.embedding.individual import weighted_loss
    from stream_engine.embedding.posterior import posterior
    from stream_engine.embedding.questions import of_rows

    answer = of_rows(np.array([[0, 1, 0, 2]]), 3, worker=np.array([0]))
    posterior(answer, fit(answer, 2, 1.0).points, 0, evaluations=100)
    weighted_loss(answer, 0.0)(np.zeros((3, 2)), np.zeros((2, 2)), np.zeros(2))
    borders.cuts(np.arange(8.0).reshape(4, 2) ** 2, (2,))


def _embed() -> None:
    """An embedding with groups and a picture, and the passes that many questions begin with."""
    from stream_engine.embedding import minibatch
    from stream_engine.embedding.gradient import Loss
    from stream_engine.embedding.neighbour_layout import neighbour_layout
    from stream_engine.embedding.questions import of_rows
    from stream_engine.embedding.stacking import stack_coefficients
    from stream_engine.refits import clusters, embedding

    artifact = embedding.refit(_full_snapshot(), embedding.Params(), 0)
    clusters.refit(_full_snapshot(), clusters.Params(), 0, needed=artifact)
    stack_coefficients(np.zeros(2), np.zeros(2), np.ones(2), np.zeros(2, np.int64), 1)
    own = of_rows(np.array([[0, 1, 0, 2]]), 3, worker=np.zeros(1, np.int32))
    Loss(own, weighted=True).weighted(np.zeros((3, 2)), np.ones((2, 2)), np.zeros(2))
    neighbour_layout(np.eye(4), 2.0, np.zeros((4, 2)))
    minibatch.descend(of_rows(np.array([[0, 1, 0, 2]]), 3), np.zeros((3, 2)), np.zeros(1), 1.0, 1.0)


def _run() -> None:
    """A run as anybody's, with snapshots and predictions, over events of every type as JSON lines and triplets as CSV
    and Arrow."""
    import pyarrow as pa
    import structlog

    from stream_engine.input.settings.loading import load
    from stream_engine.service.run import run

    rows = [event for event in map(json.loads, _events()) if {"anchor", "worker"} <= event.keys()]
    with TemporaryDirectory() as folder:
        jsonl, csv, arrow = (Path(folder) / f"events.{suffix}" for suffix in ("jsonl", "csv", "arrow"))
        jsonl.write_text("".join(json.dumps(event) + "\n" for event in rows + OTHER_EVENTS))
        csv.write_text("\n".join(["anchor,near,far,worker", *(",".join(row.values()) for row in rows)]) + "\n")
        nobody = csv.with_stem("of_nobody")
        nobody.write_text("\n".join(["anchor,near,far", *(",".join(list(row.values())[:3]) for row in rows)]) + "\n")
        table = pa.Table.from_pylist(rows)
        with pa.ipc.new_file(str(arrow), table.schema) as file:
            file.write_table(table)
        for source in (jsonl, csv, nobody, arrow):
            settings = {"source": [str(source)], "state": f"{source}.state", "snapshot.every": 150}
            quiet = structlog.wrap_logger(structlog.ReturnLogger(), processors=[])
            run(load(None, settings | {"refits.kinds": []}), log=quiet)


OTHER_EVENTS: list[dict] = [
    {"type": "quadruplet", "near": ["object-0", "object-1"], "far": ["object-2", "object-3"]},
    {"type": "ranking", "anchor": "object-0", "ranked": ["object-1", "object-2", "object-3"]},
    {"type": "pick", "anchor": "object-0", "shown": ["object-1", "object-2", "object-3"], "chosen": ["object-2"]},
    {"type": "odd_one_out", "objects": ["object-0", "object-1", "object-2"], "odd": "object-0"},
    {"type": "most_central", "objects": ["object-0", "object-1", "object-2"], "central": "object-0"},
    {"type": "label", "object": "object-0", "label": "x"},
]

# What a run of triplets with the usual refits compiles, of the parts below.
OF_A_RUN = ("guard", "a run", "boosting", "embedding", "clustering")

# what -> what runs it. Those that many kernels are for come first, and side by side such as share few.
PARTS: dict[str, Callable[[], object]] = {
    "guard": _guard,
    "counting": _full_snapshot,
    "boosting": _boost,
    "asking": _ask,
    "a run": _run,
    "predictions": _predict,
    "clustering": partial(_refit, "sdp_clustering"),
    "kernel learning": partial(_refit, "kernel_learning", "partial_order_embedding", "reliability", "dimensions"),
    "map": _map,
    "embedding": _embed,
    "online embedding": _online,
}
