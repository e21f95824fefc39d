"""What the refits that learn a kernel share when it is over chosen objects: the choice, memory, artifact of all objects."""

from collections.abc import Callable
from typing import Any

import numpy as np

from stream_engine.data.available_memory import available
from stream_engine.kernel_learning.auxiliary_kernels import Across
from stream_engine.kernel_learning.out_of_sample_factor import LEARNED, Spread
from stream_engine.refits import CannotRefit
from stream_engine.state.artifact import Artifact
from stream_engine.state.snapshot import Snapshot
from stream_engine.statistics import embedding, subset
from stream_engine.statistics.subset import Subset


def chosen_part(kind: str, snapshot: Snapshot, objects, quadruplets: bool = False) -> Subset:
    """`chosen.part`, its error as `CannotRefit`."""
    try:
        return subset.restrict(snapshot, objects, quadruplets)
    except subset.UnknownObjects as error:
        raise CannotRefit(f"{kind}: {error}; expected names of the snapshot, next: see `export objects`") from None


def require(kind: str, snapshot: Snapshot, part: Subset, matrices: int, more: int, limit_gb: float | None) -> None:
    """Raise `CannotRefit` unless `matrices` (n', n') float64 matrices and `more` bytes fit (None: into what is free)."""
    n = len(part.ids)
    need, room = 8 * matrices * n * n + more, available() if limit_gb is None else int(limit_gb * 1e9)
    if room is not None and need > room:
        raise CannotRefit(
            f"{kind}: {n:,} objects need {need / 1e9:.1f} GB ({matrices} matrices of {n} x {n}, {more / 1e9:.1f} GB "
            f"of comparisons), {room / 1e9:.1f} GB may be used; next: choose objects (--set objects=500, or "
            "--objects FILE)"
        )


def given(
    across: list[Across], maps: list[np.ndarray], n: int
) -> tuple[Callable[[np.ndarray], np.ndarray], np.ndarray]:
    """`(ids (q,) -> (q, s) rows maps[p] K^p(chosen, x) side by side, who has any)`; 0 where a file does not have x."""
    known = np.logical_or.reduce([each.known for each in across]) if across else np.zeros(n, bool)

    def rows(ids: np.ndarray) -> np.ndarray:
        parts = [np.zeros((len(ids), 0))]
        for each, n_p in zip(across, maps, strict=True):
            out, there = np.zeros((len(ids), len(n_p))), each.known[ids]
            if there.any():
                out[there] = (n_p @ each.columns(ids[there])).T
            parts.append(out)
        return np.concatenate(parts, axis=1)

    return rows, known


def arrays(
    snapshot: Snapshot, params, part: Subset, gram, placed: Spread | None, previous: Artifact | None
) -> dict[str, np.ndarray]:
    """Pictures of a learned kernel; of a choice also `ids`, `known` and, where others were placed, `factor`."""
    before = None if previous is None else embedding.earlier(previous.arrays)
    if params.objects is None:
        return embedding.pictures(gram, params.dimensions, params.neighbours, before)
    n = len(snapshot.objects)
    known = (
        np.where(subset.renumbering(part.ids, n) >= 0, LEARNED, 0).astype(np.int8) if placed is None else placed.known
    )
    factor = None if placed is None else placed.factor
    found = embedding.pictures_of_subset(gram, part.ids, n, params.dimensions, params.neighbours, before, factor, known)
    found |= {"ids": part.ids.astype(np.int32), "known": known}
    return found if factor is None else found | {"factor": factor}


def report(snapshot: Snapshot, params, part: Subset, placed: Spread | None) -> dict[str, Any]:
    """What to say of a choice, and of those who were placed; nothing where all objects were learned."""
    if params.objects is None:
        return {}
    return {"objects": len(snapshot.objects), "chosen": len(part.ids)} | (placed.report if placed is not None else {})
