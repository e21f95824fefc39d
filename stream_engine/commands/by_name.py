"""Published state with its objects renumbered in the order of their names, code point by code point.

Ids follow first appearance, so runs that learned the same comparisons in another order agree by name only. The refit
that made an artifact declares what its arrays refer to (`AXES`, see `state.array_declarations`).
"""

from collections.abc import Mapping

import numpy as np

from stream_engine.counts import accumulator
from stream_engine.data.array_checks import ArraySpec
from stream_engine.exports import NothingToExport
from stream_engine.order.partial_order import PartialOrder
from stream_engine.refits import REFITS, refit_module
from stream_engine.state.array_declarations import OBJECTS, SUBSET, Axes, Undeclared, declared
from stream_engine.state.artifact import Artifact
from stream_engine.state.artifact_schemas import ONLINE_EMBEDDING
from stream_engine.state.published import Published
from stream_engine.state.snapshot import Snapshot


def by_name(published: Published) -> Published:
    """The same, objects sorted by name. Raises `NothingToExport` for an artifact that does not say what its arrays
    speak of."""
    names = tuple(published.snapshot.objects)
    order = np.array(sorted(range(len(names)), key=names.__getitem__), np.int64)
    renumbered = {kind: _artifact(kind, artifact, order) for kind, artifact in published.artifacts.items()}
    return published._replace(
        snapshot=_snapshot(published.snapshot, order),
        artifacts={kind: artifact for kind, (artifact, _) in renumbered.items()},
        as_seen=published,
        order_file=None,  # ties go by the numbers of objects: it is the order of the objects as seen
        object_names={kind: tuple(names[i] for i in old_ids) for kind, (_, old_ids) in renumbered.items()},
    )


def _ranks(order: np.ndarray) -> np.ndarray:
    """(n,) the inverse of a permutation: where each old id stands in the new order."""
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order))
    return rank


def _snapshot(snapshot: Snapshot, order: np.ndarray) -> Snapshot:
    rank, arrays = _ranks(order), dict(snapshot.arrays)
    for name in snapshot.settings["accumulators"]:
        arrays |= {
            f"{name}/{key}": array for key, array in accumulator(name).renamed(snapshot.section(name), rank).items()
        }
    if snapshot.settings["guard"]:
        room = PartialOrder.renamed(snapshot.section("partial_order"), rank)
        arrays |= {f"partial_order/{key}": array for key, array in room.items()}
    names = tuple(snapshot.objects)
    return snapshot._replace(objects=tuple(names[i] for i in order.tolist()), arrays=arrays)


def _axes(kind: str) -> Axes:
    """What the maker of this kind of artifact declares. Raises `NothingToExport` for a kind that nothing here makes."""
    if kind == "online_embedding":
        return ONLINE_EMBEDDING.axes
    if kind not in REFITS:
        raise NothingToExport(f"{kind}: cannot be sorted by name; omit --object-order")
    return vars(refit_module(kind)).get("AXES", {})


def _artifact(kind: str, artifact: Artifact, order: np.ndarray) -> tuple[Artifact, np.ndarray]:
    """The artifact renumbered, and the old ids of its objects in their new order: an artifact of an older snapshot
    knows the first objects only."""
    axes = _axes(kind)
    try:
        spoken = {name: declared(axes, name, artifact.params) for name in artifact.arrays}
    except Undeclared as name:
        raise NothingToExport(
            f"{kind}: AXES of {REFITS.get(kind, kind)} does not declare the axes of the array '{name}', so it cannot "
            "be sorted by name; declare them there, or omit --object-order"
        ) from None
    objects = order[order < _known_objects(artifact.arrays, spoken, len(order))]
    rank = _ranks(objects)
    subset = np.argsort(rank[artifact.arrays["ids"]], kind="stable") if "ids" in artifact.arrays else objects
    arrays = {name: _renumbered(array, spoken[name], objects, subset, rank) for name, array in artifact.arrays.items()}
    return artifact._replace(arrays=arrays), objects


def _known_objects(arrays: Mapping[str, np.ndarray], spoken: Mapping[str, ArraySpec], everyone: int) -> int:
    """How many objects the artifact's snapshot had: the length of the axes that run over them."""
    over_all = (OBJECTS,) if "ids" in arrays else (OBJECTS, SUBSET)
    axes = [
        axis_and_size for name, array in arrays.items() for axis_and_size in zip(spoken[name].axes or (), array.shape)
    ]
    lengths = [size for axis, size in axes if axis in over_all]
    return min(lengths, default=everyone)


def _renumbered(
    array: np.ndarray, spoken: ArraySpec, objects: np.ndarray, subset: np.ndarray, rank: np.ndarray
) -> np.ndarray:
    """One array, its axes in the order of `objects` and `subset` (old places), its ids by `rank` (old id -> new)."""
    if spoken.values == "ids":
        array = np.where(array >= 0, rank[array], array).astype(array.dtype)
    for number, axis in enumerate((spoken.axes or ())[: array.ndim]):
        if axis in (OBJECTS, SUBSET):
            array = np.take(array, objects if axis == OBJECTS else subset, number)
    return array
