"""Snapshots with a right checksum and wrong contents: refused as `Corrupt`, or a state that goes on, is written again,
and is read back the same. Never a death of the process, never another exception."""

import tempfile
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import numpy as np

from stream_engine import Engine, Quadruplet, Triplet
from stream_engine.data import container
from stream_engine.state.snapshot import decode, encode, read_snapshot
from tests.fuzz.mutations import flipped, kept_case
from tests.fuzz.reading import chance

TRUSTED = False
ACCUMULATORS = (
    ("adds3", "adds4", "triplet_counts", "quadruplet_counts"),
    ("adds3", "triplet_counts", "adds3_weighted", "triplet_counts_weighted", "worker_votes"),
    ("adds3", "adds3_decayed", "window"),
)
NUMBERS = (0, -1, 1, 2**31 - 1, -(2**31), 2**62, -(2**62), 7)
ODD: tuple[Any, ...] = (None, -1, 0, 1, 2**62, 2**70, 1.5, "", "x", [], {}, True, [[1]], {"a": 1})


@cache
def _valid(which: int) -> tuple[str, dict, dict[str, np.ndarray]]:
    engine = Engine(ACCUMULATORS[which])
    rng = Random(which)
    names = [f"o{i}" for i in range(9)]
    for _ in range(40):
        i, j, k, l = rng.sample(names, 4)
        engine.learn_one(Triplet(i, j, k) if rng.random() < 0.6 else Quadruplet((i, j), (k, l)))
    data = b"".join(encode(engine.snapshot())[0])
    kind, meta, arrays, _ = container.decode(data)
    return kind, meta, {name: np.array(array) for name, array in arrays.items()}


def make(rng: Random) -> bytes:
    case = kept_case(rng, "snapshot")
    if case is not None:
        return flipped(rng, case)
    kind, meta, arrays = _valid(rng.randrange(len(ACCUMULATORS)))
    arrays = dict(arrays)
    for _ in range(rng.randint(1, 2)):
        if rng.random() < 0.7:
            name = rng.choice(sorted(arrays))
            arrays[name] = _bent(rng, arrays[name])
        else:
            meta = _bent_header(rng, meta)
    if rng.random() < 0.05:
        del arrays[rng.choice(sorted(arrays))]
    try:
        data = b"".join(container.encode(kind, meta, arrays)[0])
    except (TypeError, ValueError):
        return b""
    return flipped(rng, data) if rng.random() < 0.1 else data


def _bent(rng: Random, array: np.ndarray) -> np.ndarray:
    """One array, one thing wrong with it."""
    array, how = array.copy(), rng.random() if array.ndim else rng.choice((0.1, 0.85, 0.92))
    if how < 0.5 and array.size:
        flat = array.reshape(-1)
        place = rng.randrange(flat.size)
        if array.dtype.kind == "f":
            flat[place] = rng.choice((np.nan, np.inf, -1.0, 1e308))
        else:
            info = np.iinfo(array.dtype) if array.dtype.kind in "iu" else np.iinfo(np.uint8)
            number = rng.choice((*NUMBERS, info.min, info.max, int(flat[place]) + 1, int(flat[place]) - 1))
            flat[place] = min(max(number, info.min), info.max)
        return array
    if how < 0.6:
        return array[::-1].copy()
    if how < 0.7:
        return array[: len(array) // 2].copy() if array.ndim else array.reshape(1)
    if how < 0.8:
        return np.concatenate([array, array[-1:]]) if array.ndim else array
    if how < 0.9:
        with np.errstate(invalid="ignore"):
            return array.astype(rng.choice((np.int8, np.int32, np.int64, np.float64, np.uint8)))
    return array.reshape(*array.shape, 1) if how < 0.95 else np.zeros((), np.int64)


def _bent_header(rng: Random, tree: Any) -> Any:
    """The header with one value, at any depth, something else or missing."""
    if isinstance(tree, dict) and tree and rng.random() < 0.85:
        key = rng.choice(sorted(tree))
        out = dict(tree)
        if rng.random() < 0.15:
            del out[key]
        else:
            out[key] = _bent_header(rng, tree[key])
        if rng.random() < 0.1:
            out["new"] = rng.choice(ODD)
        return out
    if isinstance(tree, list) and tree and rng.random() < 0.7:
        at = rng.randrange(len(tree))
        return [*tree[:at], _bent_header(rng, tree[at]), *tree[at + 1 :]]
    return rng.choice(ODD)


def check(data: bytes) -> str:
    with tempfile.TemporaryDirectory(prefix="fuzz-") as folder:
        path = Path(folder) / "000000000001.snapshot"
        path.write_bytes(data)
        try:
            snapshot = read_snapshot(path)
            engine = Engine.restore(snapshot)
        except container.Corrupt as error:
            assert "\n" not in str(error)
            return "refused"
        same = encode(engine.snapshot()._replace(sequence=snapshot.sequence))[1].digest
        assert same == snapshot.digest, "a state that was accepted is not what is written again"
        rng = chance(data)
        names = [*list(snapshot.objects)[:6], "new1", "new2", "new3", "new4"]
        for _ in range(6):
            i, j, k, l = rng.sample(names, 4)
            engine.learn_many([Triplet(i, j, k), Quadruplet((i, j), (k, l))])
        written = encode(engine.snapshot())
        assert decode(b"".join(written[0])).digest == written[1].digest
    return "accepted"
