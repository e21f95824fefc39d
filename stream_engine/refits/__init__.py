"""From a published snapshot to an artifact: `refit(snapshot, params, seed)` is a pure function. One paper, one file.

A refit module has

- `Params`: a frozen msgspec.Struct, every field with a default and a meaning in its docstring;
- `refit(snapshot, params, seed, previous=None, progress=no_progress) -> Artifact`. `previous` is the last artifact of
  the same kind (a warm start, never needed); `progress(done, total, **figures)` is called now and then and changes
  nothing;
- `AXES`: what the arrays of its artifact speak of, see `state.artifact_schemas`;
- `export`, `EXPORTED` and `COLUMNS`, where it brings its export, see `exports`. A report with `held_out` and `log_loss`
  has a row in the table of models.

It must cope with an empty snapshot, one object, only contradictions. Registered here, the quick ones before the slow
ones; the laws in tests/laws pick it up.
"""

from collections.abc import Mapping
from importlib import import_module
from types import ModuleType
from typing import Any, Protocol

REFITS = {
    "spectral": "stream_engine.refits.spectral",
    "hierarchy": "stream_engine.refits.hierarchy",
    "reliability": "stream_engine.refits.reliability",
    "triplet_boost": "stream_engine.refits.triplet_boost",
    "classify": "stream_engine.refits.classify",
    "dimensions": "stream_engine.refits.dimensions",
    "sdp_clustering": "stream_engine.refits.sdp_clustering",
    "alignment": "stream_engine.refits.alignment",
    "embedding": "stream_engine.refits.embedding",
    "clusters": "stream_engine.refits.clusters",
    "kernel_learning": "stream_engine.refits.kernel_learning",
    "partial_order_embedding": "stream_engine.refits.partial_order_embedding",
}

NEEDED = {"clusters": "embedding"}  # refit -> the one before it, whose artifact of the same snapshot is its `needed`
ENDS_EARLY = {"sdp_clustering", "embedding", "partial_order_embedding"}  # where progress returns True


class CannotRefit(ValueError):
    """The snapshot does not hold what this refit needs; the message is one line: what, got, expected, next step."""


def next_step(comparisons: int, accumulators: str, what: str = "comparisons") -> str:
    """What to do where a snapshot that has counted so many comparisons holds nothing to learn from."""
    kept = f"add {accumulators} to `accumulators` and " if comparisons else ""
    return f"{kept}read {what}"


class SolverFailed(RuntimeError):
    """The solver did not reach its tolerance; the message says how far it came."""


class Progress(Protocol):
    """Told now and then how far a refit has come, with figures that the refit knows by then.

    True asks the refit to end with the best that it has; those in `ENDS_EARLY` do."""

    def __call__(self, done: int, total: int, **figures: Any) -> bool | None: ...


def former(kind: str) -> Mapping[str, str]:
    """The parameters of earlier versions that the refit has no more, each with what replaced it."""
    return getattr(refit_module(kind), "FORMER", {})


def refit_module(name: str) -> ModuleType:
    """The module registered under `name`."""
    return import_module(REFITS[name])


def no_progress(done: int, total: int, **figures: Any) -> None:
    """A progress callback that shows nothing."""
