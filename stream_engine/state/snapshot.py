"""A snapshot: the whole state of an engine after some prefix of its stream, immutable, with the position inside.

What is in it is what `Engine.restore` needs to go on, what refits and exports read, and nothing else. Equal states
give equal bytes.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from connectors import Position
from stream_engine.data import container
from stream_engine.data.mapped_arrays import IN_MEMORY, Allocation, is_whole
from stream_engine.data.packed_names import Names, pack_names, unpack_names
from stream_engine.data.signatures import UNSIGNED, Signing
from stream_engine.data.triplet_columns import Columns, columns_of_state
from stream_engine.order.stored_states import FORMER, without_former_policy
from stream_engine.state.snapshot_schema import check_contents, check_meta, drop_removed

KIND = "snapshot"
ORDER = "partial_order/"


class Snapshot(NamedTuple):
    """`arrays` are read-only and named "section/array": `adds3/*`, `adds4/*`, `triplet_counts/*`, `partial_order/*`,
    …"""

    sequence: int
    positions: Mapping[str, Position]  # partition -> after the last read item
    objects: Sequence[str]  # position = id; `packed_names.Names`, decoded when asked for
    labels: Mapping[str, str]  # object name -> class; may name objects that no comparison has named yet
    counters: Mapping[str, Any]  # events, records, comparisons, rejected, ...: see Engine
    settings: Mapping[str, Any]  # what shapes the state: accumulators in use, guard policy
    arrays: Mapping[str, np.ndarray]
    digest: str = ""  # SHA-256 of its encoding, once it has one
    ignored: tuple[str, ...] = ()  # accumulators of older engines that its file holds, and that were not read

    def section(self, name: str) -> dict[str, np.ndarray]:
        """The arrays of one accumulator or ledger, without the prefix; empty when it is not in use."""
        prefix = name + "/"
        return {key[len(prefix) :]: array for key, array in self.arrays.items() if key.startswith(prefix)}


def frozen(arrays: Mapping[str, np.ndarray], allocation: Allocation = IN_MEMORY) -> dict[str, np.ndarray]:
    """The same arrays, such that nothing can change them any more. One that is all of its memory and read-only was made
    for us (`triplet_columns.handed_over`) and is taken as it is; all others are copied, allocated as told: a read-only
    view still changes with its base."""
    final = {name: array if _is_final(array) else allocation.copied(array) for name, array in arrays.items()}
    for array in final.values():
        array.setflags(write=False)
    return final


def _is_final(array: np.ndarray) -> bool:
    return type(array) is np.ndarray and is_whole(array) and not array.flags.writeable and array.flags.c_contiguous


def encode(snapshot: Snapshot, signing: Signing = UNSIGNED) -> tuple[list[memoryview], Snapshot]:
    """`(chunks to write, the snapshot with its digest)`; the digest does not depend on a key."""
    meta = {
        "sequence": snapshot.sequence,
        "positions": {name: list(position) for name, position in snapshot.positions.items()},
        "counters": snapshot.counters,
        "settings": snapshot.settings,
    }
    names = {f"objects/{k}": v for k, v in pack_names(snapshot.objects).items()}
    labelled = sorted(snapshot.labels)
    labels = pack_names(labelled), pack_names([snapshot.labels[name] for name in labelled])
    for prefix, packed in zip(("labels/object", "labels/label"), labels):
        names |= {f"{prefix}_{k}": v for k, v in packed.items()}
    chunks, digest = container.encode(KIND, meta, {**snapshot.arrays, **names}, signing)
    return chunks, snapshot._replace(digest=digest)


def _decoded(kind: str, meta: dict, arrays: dict[str, np.ndarray], digest: str) -> Snapshot:
    if kind != KIND:
        raise container.Corrupt(f"holds {kind!r}, expected {KIND!r}")
    ignored = drop_removed(meta, arrays)
    check_meta(meta)
    if meta["settings"]["guard"] in FORMER:
        arrays = _of_former_policy(arrays, meta["settings"]["guard"])
    check_contents(meta, arrays)
    objects = Names(arrays.pop("objects/utf8"), arrays.pop("objects/offsets"))
    keys = unpack_names(arrays.pop("labels/object_utf8"), arrays.pop("labels/object_offsets"))
    values = unpack_names(arrays.pop("labels/label_utf8"), arrays.pop("labels/label_offsets"))
    positions = {name: Position(*position) for name, position in meta["positions"].items()}
    return Snapshot(
        meta["sequence"],
        positions,
        objects,
        dict(zip(keys, values)),
        meta["counters"],
        meta["settings"],
        arrays,
        digest,
        ignored,
    )


def _of_former_policy(arrays: Mapping[str, np.ndarray], policy: str) -> dict[str, np.ndarray]:
    """With what the guard goes on from instead of what it remembered under a policy of version 0.1."""
    section = {name.removeprefix(ORDER): array for name, array in arrays.items() if name.startswith(ORDER)}
    others = {name: array for name, array in arrays.items() if not name.startswith(ORDER)}
    try:
        kept = without_former_policy(section, policy)
    except container.Corrupt as error:
        raise container.Corrupt(f"partial_order: {error}") from None
    return others | {ORDER + name: array for name, array in kept.items()}


def decode(buffer: bytes | memoryview, signing: Signing = UNSIGNED) -> Snapshot:
    """The snapshot in `buffer`, all of it checked (`snapshot_schema`). Raises `container.Corrupt`."""
    return _decoded(*container.decode(buffer, signing))


def read_snapshot(path: str | Path, signing: Signing = UNSIGNED) -> Snapshot:
    """The snapshot in a file, its arrays mapped, not copied, all checked. Raises `container.Corrupt`, `OSError`.

    >>> import tempfile
    >>> from stream_engine import read
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     state = read([("lemon", "lime", "bread")]).save(folder)
    ...     snapshot = read_snapshot(next(state.rglob("*.snapshot")))
    ...     list(snapshot.objects), snapshot.section("triplet_counts")["n_lo"].tolist()
    (['lemon', 'lime', 'bread'], [1])
    """
    return _decoded(*container.load(path, signing))


def triplet_columns(snapshot: Snapshot) -> Columns:
    """The triplet counts of a snapshot as columns; no columns when they are not counted.

    >>> len(triplet_columns(Snapshot(1, {}, ["lemon", "lime"], {}, {}, {}, {})).lo)
    0
    """
    counts = snapshot.section("triplet_counts")
    if not counts:
        none, uncounted = np.empty(0, np.int32), np.empty(0, np.int64)
        return Columns(none, none, np.zeros(1, np.int64), none, uncounted, uncounted, len(snapshot.objects))
    return columns_of_state(counts, len(snapshot.objects))
