"""Published state with its objects renumbered in the order of their names, code point by code point.

Ids follow first appearance, so two runs that learned the same comparisons in another order number their objects
otherwise; by name they agree, and equal statistics give equal files. O(state).
"""

import numpy as np

from stream_engine.accumulators import accumulator
from stream_engine.exports import NothingToExport
from stream_engine.guard.partial_order import PartialOrder
from stream_engine.state.artifact import Artifact
from stream_engine.state.published import Published
from stream_engine.state.snapshot import Snapshot

# Where an artifact's arrays speak of objects: axes that run over them, or ids as values. Others hold neither.
_PICTURES = {"coordinates": (0,), "neighbours": (0, "ids"), "linkage": ("dendrogram",)}
_KERNEL = {"K": (0, 1), "K0": (0, 1), "triplets": ("ids",), "constraints": ("ids",), "W": ("per kernel",), **_PICTURES}
# Of an artifact over chosen objects these run over its `ids`; what else has a row an object has one for all.
_OF_CHOSEN = ("K", "K0", "W", "linkage", "ids")
OBJECTS = {
    "sdp_clustering": {"labels": (0,), "stability": (0,), "together": (0, 1)},
    "spectral": {"labels": (0,)},
    "triplet_boost": {
        **dict.fromkeys(("predicted", "score", "margin", "abstained", "part", "given"), (0,)),
        "j": ("ids",),
        "k": ("ids",),
    },
    "kernel_learning": _KERNEL,
    "partial_order_embedding": _KERNEL,
    "online_kernel": {"L": (0,), "K": (0, 1), "row_sums": (0,)},
    "reliability": {},
    "hierarchy": {"leaves": ("ids",)},
}


def by_name(published: Published) -> Published:
    """The same, objects sorted by name. Raises `NothingToExport` for an artifact whose objects are not known here."""
    names = tuple(published.snapshot.objects)
    order = np.array(sorted(range(len(names)), key=names.__getitem__), np.int64)
    made = {kind: _artifact(kind, artifact, order) for kind, artifact in published.artifacts.items()}
    return published._replace(
        snapshot=_snapshot(published.snapshot, order),
        artifacts={kind: artifact for kind, (artifact, _) in made.items()},
        as_seen=published,
        known={kind: tuple(names[i] for i in known) for kind, (_, known) in made.items()},
    )


def _ranks(order: np.ndarray) -> np.ndarray:
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
        room = PartialOrder.renamed(snapshot.section("partial_order"), rank, snapshot.settings["guard"])
        arrays |= {f"partial_order/{key}": array for key, array in room.items()}
    names = tuple(snapshot.objects)
    return snapshot._replace(objects=tuple(names[i] for i in order.tolist()), arrays=arrays)


def _artifact(kind: str, artifact: Artifact, order: np.ndarray) -> tuple[Artifact, np.ndarray]:
    """The artifact, and the old ids of its rows: one of an older snapshot knows the first objects only."""
    if kind not in OBJECTS:
        raise NothingToExport(f"{kind}: cannot be put in the order of names; leave --object-order out")
    speaks, arrays = OBJECTS[kind], artifact.arrays
    chosen = "ids" in arrays
    rows = [len(arrays[name]) for name, how in speaks.items() if how[0] == 0 and name in arrays]
    known = order[order < (len(arrays["known"]) if chosen else min(rows, default=len(order)))]
    rank, inner = _ranks(known), known
    if chosen:
        inner = np.argsort(rank[arrays["ids"]], kind="stable")  # the chosen, by name
        speaks = {**speaks, "factor": (0,), "known": (0,), "ids": (0, "ids")}
    if artifact.params.get("features") is None:  # else the maps are over features
        speaks = {**speaks, **{name: (1,) for name in arrays if name.startswith("map_")}}
    of_chosen = {*_OF_CHOSEN, *(name for name in arrays if name.startswith("map_"))}
    return artifact._replace(
        arrays={
            name: _turned(array, speaks.get(name, ()), inner if name in of_chosen else known, rank, arrays)
            for name, array in arrays.items()
        }
    ), known


def _turned(array: np.ndarray, speaks: tuple, known: np.ndarray, rank: np.ndarray, beside) -> np.ndarray:
    for how in speaks:
        if how == "ids":
            array = np.where(array >= 0, rank[array], array).astype(array.dtype)
        elif how == "dendrogram":  # ids below n are objects (places among the chosen), others earlier merges
            array, place = array.copy(), _ranks(known)
            leaf = array[:, :2] < len(known)
            array[:, :2][leaf] = place[array[:, :2][leaf].astype(np.int64)]
        elif (
            how == "per kernel"
        ):  # (P, n) or (P, n, n); of features, without objects, where they did not come from kernels
            if array.ndim > 1 and len(array) == len(beside["mu"]):
                for axis in range(1, array.ndim):
                    array = np.take(array, known, axis)
        else:
            array = np.take(array, known, how)
    return array
