"""What predicting before learning costs: the same ingestion with and without it, in CPU time of all threads.

A food-like stream (100 objects) is decoded, counted and guarded, with a snapshot every so many comparisons; *with*
adds the whole of the prediction monitor: exact totals, the sample for every predictor, calibration, drift, making
AddS, k1, k2 and the clusters, kernels and repeats of each snapshot. The rows below it say what a part of it costs.
"""

import json
import time

import numpy as np
import structlog

from connectors import Record
from stream_engine.data.comparisons import Decoded
from stream_engine.formats.options import EventOptions
from stream_engine.prediction import PREDICTORS, predictor
from stream_engine.service import ingest
from stream_engine.service.metrics import Metrics
from stream_engine.service.prediction_monitor import PredictionMonitor
from stream_engine.service.settings import DriftSettings
from stream_engine.state.artifact import Artifact
from stream_engine.state.engine import Engine
from stream_engine.state.published import Published
from tests.benchmarks.stage_end_to_end import OBJECTS, as_arrow, as_csv, as_jsonl, stream


def artifacts(sequence: int) -> dict[str, Artifact]:
    """Artifacts of every kind that predicts, so that every predictor runs."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(OBJECTS, 5))
    kinds = {
        "sdp_clustering": {"labels": np.arange(OBJECTS, dtype=np.int32) % 5},
        "kernel_learning": {"K": x @ x.T},
        "partial_order_embedding": {"K": x @ x.T},
    }
    return {kind: Artifact(kind, "", sequence, {}, 0, arrays, {}) for kind, arrays in kinds.items()}


def ingested(blocks, format: str, header: bytes, watched: bool, every: int) -> tuple[float, PredictionMonitor | None]:
    """CPU seconds of a whole ingestion."""
    engine, reader = Engine(), ingest.Ingest(EventOptions())
    monitor = PredictionMonitor(DriftSettings(), Metrics(), structlog.get_logger()) if watched else None
    at = 0
    began = time.process_time()
    for block in blocks:
        batch = engine.learn(reader.read(Record(block, "x", 0, 1, format=format, header=header))[0])
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
    return time.process_time() - began, monitor


def rows(quick: bool) -> list[dict]:
    """Ingestion with predictions against the same without; the least of three, taken in turns."""
    size = 4_000_000 if quick else 20_000_000
    triplets, names = stream(size)
    every = size // 4
    made = []
    ingested(as_arrow(triplets[:200_000], names), "arrow", b"", True, 50_000)  # compile, warm up
    for label, blocks, format, events in (
        ("Arrow", as_arrow(triplets, names), "arrow", size),
        ("CSV", as_csv(triplets[: size // 2], names), "csv", size // 2),
        ("JSONL", as_jsonl(triplets[: size // 4], names), "json", size // 4),
    ):
        header = b"anchor,near,far\n" if format == "csv" else b""
        spent: dict[bool, list[float]] = {False: [], True: []}
        for _ in range(3):
            for watched in (False, True):
                seconds, monitor = ingested(blocks, format, header, watched, every * events // size)
                spent[watched].append(seconds)
        bare, full = (min(spent[watched]) for watched in (False, True))
        found = monitor.tell()
        tested = {name: each["all"]["total"]["tested"] for name, each in found["predictors"].items()}
        made.append(
            {
                "stage": "progressive",
                "case": f"{label}, {events:,}, a snapshot every {every * events // size:,}",
                "ours": events / full / 1e6,
                "rival": events / bare / 1e6,
                "rival_name": "without predictions",
                "unit": "M comparisons/s",
                "ratio": bare / full,
                "target": ">= 0.90",
                "notes": f"sampled 1 in {found['seen'] / max(found['sampled'], 1):.0f}, {len(tested)} predictors",
            }
        )
    return made + _parts(triplets[:500_000])


def _parts(triplets: np.ndarray) -> list[dict]:
    engine = Engine(guard=False)
    engine.learn(
        Decoded(
            [str(i) for i in range(OBJECTS)], triplets, np.empty((0, 4), np.int32), np.empty(0, np.int64), [], {}, []
        )
    )
    published = Published(engine.snapshot(), artifacts(1))
    rows_of = np.random.default_rng(0).permuted(np.tile(np.arange(OBJECTS, dtype=np.int32), (2048, 1)), axis=1)[
        :, [0, 1, 0, 2]
    ]
    made = []
    for name in PREDICTORS:
        began = time.process_time()
        one = predictor(name, published)
        making = time.process_time() - began
        if one is None:
            continue
        one.margins(rows_of)
        began = time.process_time()
        for _ in range(20):
            one.margins(rows_of)
        made.append(
            {
                "stage": "progressive",
                "case": f"{name}: making it",
                "ours": making * 1e3,
                "unit": "ms",
                "notes": f"margins of 2,048 comparisons {(time.process_time() - began) / 20 * 1e6:.0f} us",
            }
        )
    return made


if __name__ == "__main__":
    print(json.dumps(rows(True), indent=1))
