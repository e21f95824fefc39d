"""An artifact: what a refit made of a published snapshot. Same snapshot, params, seed and versions: same bytes.

Reports of models have figures of held-out answers: accuracy, standard_error, log_loss (nats per answer),
calibration_error, also by_worker and by_question; and the ceiling. Where nothing was held out they are None.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np

from stream_engine.data import container
from stream_engine.data.container import Corrupt
from stream_engine.data.signatures import UNSIGNED, Signing

SHARES = ("accuracy", "error", "standard_error", "calibration_error", "others", "themselves", "at_most")
FIGURES = (*SHARES, "log_loss")
WITHIN = ("by_worker", "by_question", "ceiling")
PRELIMINARY = "preliminary"  # in the report of an embedding that is shown until the refit ends
KIND = "artifact"


def check_figures(report: Mapping[str, Any], where: str = "report") -> None:
    """Raise `Corrupt` unless what is said of held-out answers is in numbers that it can be; absent ones are fine."""
    for name in FIGURES:
        value, maximum = report.get(name), 1.0 if name in SHARES else float("inf")
        if value is not None and not (type(value) in (int, float) and 0 <= value <= maximum):
            raise Corrupt(f"{where}.{name}: got {str(value)[:40]}, expected a number from 0 to {maximum:g}, or none")
    for name in WITHIN if where == "report" else ():
        inner = report.get(name)
        if inner is None:
            continue
        if not isinstance(inner, Mapping):
            raise Corrupt(f"{where}.{name}: got {str(inner)[:40]}, expected figures, or none")
        check_figures(inner, f"{where}.{name}")


def figure(report: Mapping[str, Any], *path: str) -> float | None:
    """A figure of a report by its path, None where it is not said.

    >>> figure({"accuracy": 0.8, "by_worker": None}, "accuracy"), figure({"by_worker": None}, "by_worker", "accuracy")
    (0.8, None)
    """
    value: Any = report
    for name in path:
        value = value.get(name) if isinstance(value, Mapping) else None
    return float(value) if type(value) in (int, float) else None


def is_of_subset(artifact: "Artifact") -> bool:
    """Whether a kernel was learned, and its figures are, over a subset of the objects."""
    return "ids" in artifact.arrays


class Artifact(NamedTuple):
    """`report` holds what a person or a dashboard wants to know: objective, residuals, bound, k, lambda, ..."""

    kind: str  # the refit's registered name
    snapshot: str  # digest of the snapshot it was made from
    sequence: int  # its sequence number
    params: Mapping[str, Any]  # JSON values: `plain_params` of what the refit was told
    seed: int
    arrays: Mapping[str, np.ndarray]
    report: Mapping[str, Any]  # JSON values only; no NaN (use None)
    digest: str = ""


def plain_params(params: msgspec.Struct) -> dict[str, Any]:
    """What a refit was told, as the JSON values that are read back from its artifact.

    >>> plain_params(msgspec.defstruct("Params", [("k", int), ("lams", tuple[float, ...])])(3, (0.5, 1.0)))
    {'k': 3, 'lams': [0.5, 1.0]}
    """
    return msgspec.json.decode(msgspec.json.encode(params))


def encode(artifact: Artifact, signing: Signing = UNSIGNED) -> tuple[list[memoryview], Artifact]:
    """`(chunks to write, the artifact with its digest)`."""
    meta = {key: getattr(artifact, key) for key in ("kind", "snapshot", "sequence", "params", "seed", "report")}
    chunks, digest = container.encode(KIND, meta, artifact.arrays, signing)
    return chunks, artifact._replace(digest=digest)


def decode(buffer: bytes | memoryview, signing: Signing = UNSIGNED) -> Artifact:
    """The artifact in `buffer`. Raises `container.Corrupt`."""
    return _decoded(*container.decode(buffer, signing))


def read_artifact(path: str | Path, signing: Signing = UNSIGNED) -> Artifact:
    """The artifact in a file, its arrays mapped. Raises `container.Corrupt`, `OSError`."""
    return _decoded(*container.load(path, signing))


def _decoded(kind: str, meta: dict, arrays: dict[str, np.ndarray], digest: str) -> Artifact:
    if kind != KIND:
        raise container.Corrupt(f"holds {kind!r}, expected {KIND!r}")
    _check_meta(meta)
    return Artifact(
        meta["kind"], meta["snapshot"], meta["sequence"], meta["params"], meta["seed"], arrays, meta["report"], digest
    )


_META = {"kind": str, "snapshot": str, "sequence": int, "params": dict, "seed": int, "report": dict}


def _check_meta(meta: Mapping[str, Any]) -> None:
    """What every artifact says of itself; the arrays are checked by what their kind declares (`artifact_schemas`)."""
    if meta.keys() != _META.keys():
        raise container.Corrupt(f"header: got {', '.join(sorted(meta))[:80]}, expected {', '.join(sorted(_META))}")
    for key, kind in _META.items():
        if type(meta[key]) is not kind or (key == "sequence" and meta[key] < 0):
            raise container.Corrupt(f"header: {key} is {str(meta[key])[:60]}, expected a {kind.__name__}")
