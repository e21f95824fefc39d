"""From a published snapshot to an artifact: `refit(snapshot, params, seed)` is a pure function. One paper, one file.

The interface of a refit module is described at `REFITS`; the laws in tests/laws test every registered one.
"""

from collections.abc import Mapping
from importlib import import_module
from types import ModuleType
from typing import Any, Protocol

# A refit module has
# - `Params`: a frozen msgspec.Struct, every field with a default and a meaning in its docstring;
# - `refit(snapshot, params, seed, previous=None, progress=no_progress) -> Artifact`. `previous` is the last artifact of
#   the same kind (a warm start, never needed); `progress(done, total, **figures)` is called from time to time and
#   changes nothing;
# - `AXES`: what the arrays of its artifact are about, see `state.array_declarations`;
# - `export`, `EXPORTED` and `COLUMNS`, if it has an export, see `exports`.
# A report with `held_out` and `log_loss` has a row in the table of models. A refit must cope with an empty snapshot,
# one object, and contradictions alone. Quick refits come before slow ones.
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

# refit -> the refit that is run before it, whose artifact of the same snapshot is passed to it as `needed`
NEEDED_ARTIFACT = {"clusters": "embedding"}
# refits that end with the best that they have if progress returns True
ENDS_EARLY = {"sdp_clustering", "embedding", "partial_order_embedding"}


class CannotRefit(ValueError):
    """The snapshot lacks what this refit needs; the message is one line: what, got, expected, next step."""


def next_step(comparisons: int, accumulators: str, what: str = "comparisons") -> str:
    """What to do if a snapshot that has counted so many comparisons contains nothing to learn from."""
    first_step = f"add {accumulators} to `accumulators` and " if comparisons else ""
    return f"{first_step}read {what}"


class SolverFailed(RuntimeError):
    """The solver did not reach its tolerance; the message says how far it came."""


class Progress(Protocol):
    """Called from time to time with the steps done, their total, and figures of the refit so far.

    True asks the refit to end with the best that it has; those in `ENDS_EARLY` do."""

    def __call__(self, done: int, total: int, **figures: Any) -> bool | None: ...


def former(kind: str) -> Mapping[str, str]:
    """Parameters of earlier versions that the refit no longer has, each with what replaced it."""
    return getattr(refit_module(kind), "FORMER", {})


def refit_module(name: str) -> ModuleType:
    """The module registered under `name`."""
    return import_module(REFITS[name])


def no_progress(done: int, total: int, **figures: Any) -> None:
    """A progress callback that shows nothing."""
