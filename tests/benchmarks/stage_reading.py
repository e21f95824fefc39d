"""From bytes to complete state: ids, counts, guard, what each of them takes, and what predicting before learning adds.

A food-like stream: 100 objects in five dimensions, 15 % of the answers flipped. Rivals: decoding alone, with the same
library, into ids (msgspec and a dict; pyarrow and a dictionary); for predictions the same ingestion without them: exact
totals, the sample for every predictor, calibration, drift, and what each snapshot makes.
"""

import io
from collections.abc import Iterator

import numpy as np
import structlog

from connectors import Record
from stream_engine.formats.options import EventOptions
from stream_engine.prediction import PREDICTORS, predictor
from stream_engine.service import ingest
from stream_engine.service.metrics import Metrics
from stream_engine.service.prediction_monitor import PredictionMonitor
from stream_engine.service.settings import DriftSettings
from stream_engine.state.artifact import Artifact
from stream_engine.state.engine import Engine
from stream_engine.state.published import Published
from tests.benchmarks.rows import REPEATS, row, timed
from tests.support.generators import planted_triplets

OBJECTS, NOISE = 100, 0.15
HEADER = b"anchor,near,far\n"


def stream(size: int) -> tuple[np.ndarray, list[str]]:
    """(size, 3) triplets and the names of their objects."""
    rng = np.random.default_rng(0)
    return planted_triplets(rng, rng.normal(size=(OBJECTS, 5)), size, NOISE), [f"dish-{i:03d}" for i in range(OBJECTS)]


def records(triplets: np.ndarray, names: list[str], format: str) -> list[Record]:
    """The stream as a source would give it, in blocks."""
    if format == "arrow":
        import pyarrow as pa

        columns = [pa.array(names).take(pa.array(column)) for column in triplets.T]
        blocks = pa.table(columns, names=["anchor", "near", "far"]).to_batches(max_chunksize=1_000_000)
    else:
        line = '{{"anchor":"{}","near":"{}","far":"{}"}}\n' if format == "json" else "{},{},{}\n"
        lines = [line.format(names[a], names[b], names[c]) for a, b, c in triplets.tolist()]
        blocks = ["".join(lines[i : i + 100_000]).encode() for i in range(0, len(lines), 100_000)]
    return [Record(block, "x", 0, 1, format=format, header=HEADER if format == "csv" else b"") for block in blocks]


def shared(given: list[Record]) -> dict[str, float]:
    """CPU seconds of each part over all blocks."""
    engine, reader = Engine(), ingest.Ingest(EventOptions())
    spent: dict[str, float] = {}

    def part(name, call, *arguments):
        found, took = timed(call, *arguments)
        spent[name] = spent.get(name, 0.0) + took
        return found

    for record in given:
        batch = part("ids", engine.batch, part("decode", reader.decode, record))
        for name, each in engine.accumulators.items():
            part(name, each.update, batch)
        part("guard", engine.guard.offer, batch)
    part("snapshot", engine.snapshot)
    assert engine.counters["rejected"] == {}
    return spent


def by_msgspec(blocks: list[bytes], ids: dict[str, int] | None = None) -> None:
    """Bare decoding with a dict of ids, nothing checked, nothing counted."""
    import msgspec

    class Event(msgspec.Struct):
        anchor: str
        near: str
        far: str

    ids = {} if ids is None else ids
    decoder, number = msgspec.json.Decoder(Event), ids.setdefault
    for block in blocks:
        events = decoder.decode_lines(block)
        rows = [(number(e.anchor, len(ids)), number(e.near, len(ids)), number(e.far, len(ids))) for e in events]
        np.array(rows, np.int32)


def by_pyarrow(blocks: list[bytes]) -> None:
    """Bare reading of CSV into dictionary-encoded columns."""
    import pyarrow as pa
    from pyarrow import csv

    types = dict.fromkeys(("anchor", "near", "far"), pa.dictionary(pa.int32(), pa.string()))
    options = csv.ConvertOptions(column_types=types)
    for block in blocks:
        csv.read_csv(io.BytesIO(HEADER + block), csv.ReadOptions(use_threads=False), convert_options=options)


def artifacts(sequence: int) -> dict[str, Artifact]:
    """Artifacts of every kind that predicts, so that every predictor runs."""
    x = np.random.default_rng(0).normal(size=(OBJECTS, 5))
    kinds = {
        "sdp_clustering": {"labels": np.arange(OBJECTS, dtype=np.int32) % 5},
        "kernel_learning": {"K": x @ x.T},
        "partial_order_embedding": {"K": x @ x.T},
    }
    return {kind: Artifact(kind, "", sequence, {}, 0, arrays, {}) for kind, arrays in kinds.items()}


def ingested(given: list[Record], every: int, watched: bool) -> Engine:
    """A whole ingestion, with a snapshot every so many comparisons; `watched`: with the prediction monitor."""
    engine, reader, at = Engine(), ingest.Ingest(EventOptions()), 0
    monitor = PredictionMonitor(DriftSettings(), Metrics(), structlog.get_logger()) if watched else None
    for record in given:
        batch = engine.learn(reader.decode(record))
        if monitor:
            monitor.observed(batch, engine.counters["progressive"])
        if engine.counters["comparisons"] - at >= every:
            at = engine.counters["comparisons"]
            snapshot = engine.snapshot()
            if monitor:
                monitor.serve(snapshot)
                monitor.published(Published(snapshot, artifacts(snapshot.sequence)))
    if monitor:
        monitor.close()
    return engine


def predictors(engine: Engine) -> Iterator[dict]:
    """Making each predictor, and asking it."""
    snapshot = engine.snapshot()
    published = Published(snapshot, artifacts(snapshot.sequence))
    order = np.tile(np.arange(OBJECTS, dtype=np.int32), (2048, 1))
    asked = np.random.default_rng(0).permuted(order, axis=1)[:, [0, 1, 0, 2]]
    for name in PREDICTORS:
        one, making = timed(predictor, name, published)
        if one is not None:
            one.margins(asked)
            _, took = timed(lambda: [one.margins(asked) for _ in range(20)])  # noqa: B023
            notes = f"margins of 2,048 comparisons {took / 20 * 1e6:.0f} us"
            yield row("predictors", f"{name}: making it", making * 1e3, "ms", notes=notes)


def rows(quick: bool) -> list[dict]:
    """The least of three turns each: all are memory-bound, and neighbours on the machine take turns too."""
    size = 1_000_000 if quick else 10_000_000
    triplets, names = stream(size)
    made = []
    for format, events, floor, name in (
        ("arrow", size, None, ""),
        ("csv", size // 2, by_pyarrow, "pyarrow read"),
        ("json", size // 4, by_msgspec, "msgspec + dict ids"),
    ):
        given, case = records(triplets[:events], names, format), f"{format}, {events:,}"
        shared(given[:1]), ingested(given[:1], 50_000, True)  # compile, warm up
        turns = [shared(given) for _ in range(REPEATS)]
        spent = min(turns, key=lambda each: sum(each.values()))
        total = sum(spent.values())
        blocks = [record.value for record in given]
        bare = min(timed(floor, blocks)[1] for _ in range(REPEATS)) if floor else None
        shares = ", ".join(f"{part} {seconds / total:.0%}" for part, seconds in spent.items())
        rival = (events / bare / 1e6, name) if bare else (None, "")
        target = ">= 1.5" if format == "arrow" else ""
        made.append(row("end to end", case, events / total / 1e6, "M comparisons/s", *rival, target, shares))
        if bare:
            rate = events / (spent["decode"] + spent["ids"]) / 1e6
            made.append(row("decode", case, rate, "M events/s", *rival, ">= 0.7" if format == "json" else ""))
        pairs = [[timed(ingested, given, events // 4, watched) for watched in (True, False)] for _ in range(REPEATS)]
        full, without = (events / min(took for _, took in each) / 1e6 for each in zip(*pairs, strict=True))
        case += ", predicted, four snapshots"
        made.append(row("progressive", case, full, "M comparisons/s", without, "without predictions", ">= 0.90"))
    return [*made, *predictors(pairs[0][0][0])]
