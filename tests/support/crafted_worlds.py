"""Valid states to craft wrong ones from: every accumulator, every guard, an artifact of every refit."""

import json
from pathlib import Path

import msgspec
import numpy as np

from connectors import Position, Record
from stream_engine.counts import ACCUMULATORS, Forgetting
from stream_engine.embedding.online_predictor import Online
from stream_engine.formats.options import EventOptions
from stream_engine.input.decoding import RecordDecoder
from stream_engine.refits import NEEDED_ARTIFACT, REFITS, refit_module
from stream_engine.state import artifact as artifacts
from stream_engine.state import snapshot as snapshots
from stream_engine.state.engine import Engine
from stream_engine.state.published import Published
from stream_engine.state.snapshot import Snapshot
from tests.support.generators import as_batch
from tests.support.session_store import once

GUARDS = ("first", "drop-both", "majority", "sift")
OBJECTS = 9
FEATURES = str(Path(__file__).parents[1] / "refits" / "features.csv")
QUICK = {  # parameters under which the refits of a few objects take no time
    "sdp_clustering": {"k": 2},
    "triplet_boost": {"rounds": 40},
    "classify": {"similarities": ["k1"], "rounds": 40},
    "alignment": {"features": {"x": {"file": FEATURES}}, "linear": False},
    "embedding": {"dimensions": 2, "kernel": "ste", "ridge": 1.0},
    "kernel_learning": {"lambda1": 1.0, "lambda2": 1.0, "objects": 6},
    "partial_order_embedding": {"beta": 1.0, "form": "diagonal", "objects": 6},
}


def events(seed: int = 0, size: int = 150) -> bytes:
    """Lines of triplets and quadruplets with workers, times and weights, labels and catch trials."""
    rng, lines = np.random.default_rng(seed), []
    names = [f"o{i}" for i in range(OBJECTS - 1)] + ["é"]
    for number in range(size):
        a, b, c, d = (names[i] for i in rng.permutation(OBJECTS)[:4])
        more = {"worker": f"w{rng.integers(4)}", "time": 1000.0 + number, "weight": float(rng.integers(1, 5))}
        if number % 7 == 6:
            lines.append({"type": "label", "object": a, "label": f"class {rng.integers(2)}"})
        elif rng.random() < 0.3:
            lines.append({"type": "quadruplet", "near": [a, b], "far": [c, d], **more})
        else:
            near, far = (b, c) if (names.index(b) + names.index(a)) % 2 == 0 or rng.random() < 0.2 else (c, b)
            lines.append({"anchor": a, "near": near, "far": far, **more})
    return b"".join(json.dumps(line).encode() + b"\n" for line in lines)


def learned(engine: Engine, seed: int = 0, partition: str = "t/0", data: bytes = b"") -> Engine:
    """The engine after these events, or after those in `data`."""
    at = engine.positions.get(partition, Position(0)).offset
    record = Record(data or events(seed), partition, at, at + 1, 7, unit="message", format="json")
    for block in RecordDecoder(EventOptions(provenance=True), "json").blocks([record]):
        engine.learn(block.decoded, block.positions(), block.counts().total())
    return engine


def state(guard: str = "first", by: str = "count", accumulators=tuple(ACCUMULATORS), data: bytes = b"") -> Snapshot:
    """A snapshot of an engine that has counted everything; its number is 2."""
    engine = learned(Engine(accumulators, bool(guard), Forgetting(by, 50.0, 40.0)), data=data)
    engine.counters["progressive"]["adds3"] = {"tested": 5, "correct": 3, "undecided": 1}
    engine.lost["t/0"] = 2
    engine.note("seek", partition="t/0")
    engine.sinks, engine.share, engine.sequence = {"file": 3, "kafka": {"0": 4}}, "0/2", 1
    return snapshots.encode(engine.snapshot())[1]


def as_bytes(snapshot: Snapshot) -> bytes:
    return b"".join(snapshots.encode(snapshot)[0])


def artifacts_of(snapshot: Snapshot) -> dict[str, bytes]:
    """An artifact of every kind, as the file that it is."""
    made = {}
    for kind in REFITS:
        module = refit_module(kind)
        params = msgspec.convert(QUICK.get(kind, {}), module.Params)
        more = {"needed": made[NEEDED_ARTIFACT[kind]]} if kind in NEEDED_ARTIFACT else {}
        made[kind] = module.refit(snapshot, params, 0, **more)
    online = Online(3)
    online.learn([as_batch(np.array([[0, 1, 2], [3, 4, 5]]), 6)])
    made["online_embedding"] = online.artifact(online.state(), snapshot, None)
    return {kind: b"".join(artifacts.encode(artifact)[0]) for kind, artifact in made.items()}


def _files() -> tuple[bytes, dict[str, bytes]]:
    snapshot = as_bytes(state()._replace(sequence=1))
    return snapshot, artifacts_of(snapshots.decode(snapshot))


def files() -> tuple[bytes, dict[str, bytes]]:
    """The state as the first snapshot of a directory, and an artifact of every refit of it."""
    return once(_files)


def published() -> Published:
    """The same, opened anew from the same files each time."""
    snapshot, made = files()
    held = {kind: artifacts.decode(data) for kind, data in made.items()}
    return Published(snapshots.decode(snapshot), held)
