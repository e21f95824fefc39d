"""An artifact: what a refit made of a published snapshot. Same snapshot, params, seed and versions: same bytes."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np

from stream_engine.data import container
from stream_engine.data.signatures import UNSIGNED, Signing

KIND = "artifact"


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
