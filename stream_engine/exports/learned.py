"""Artifacts as files: hierarchies, maps, learned kernels."""

from typing import Any

import numpy as np

from stream_engine.evaluation.connection import are_connected, components, joins_sets
from stream_engine.exports import Content, NothingToExport
from stream_engine.exports.declarations import LEFT_OUT
from stream_engine.exports.files import merges
from stream_engine.exports.object_places import has_regions
from stream_engine.state.artifact import Artifact, figure
from stream_engine.state.published import Published

TOP_OBJECTS = 10  # objects that a dimension is described by


def artifact_of(published: Published, kind: str) -> Artifact:
    """The newest artifact of a kind. Raises `NothingToExport`."""
    if kind not in published.artifacts:
        raise NothingToExport(f"no {kind} artifact in this state; run `stream-engine refit --state DIR {kind}`")
    return published.artifacts[kind]


def names_of(published: Published, kind: str, n: int) -> list[str]:
    """Names of the n objects of an artifact: one of an older snapshot knows fewer objects."""
    return list(published.object_names.get(kind, published.snapshot.objects)[:n])


def hierarchy(published: Published) -> dict[str, Content]:
    """The linkage and its leaves; the table is that of `files.merges`. Raises `NothingToExport`."""
    arrays = artifact_of(published, "hierarchy").arrays
    object_names = published.object_names.get("hierarchy", published.snapshot.objects)
    names = [object_names[i] for i in arrays["leaves"].tolist()]
    tree = dict(merges(arrays["linkage"], names))
    sets = components(published.snapshot)
    if sets is not None and not are_connected(sets):
        set_of = dict(zip(published.snapshot.objects, sets.tolist()))
        tree["joins_sets"] = joins_sets(arrays["linkage"], np.array([set_of.get(name, -1) for name in names]))
    arrays_and_names = {**arrays, "names": np.array(names, np.str_)}
    return {"hierarchy": Content(arrays_and_names, {"hierarchy": tree}, objects=tuple(object_names))}


def kernel(published: Published) -> dict[str, Content]:
    """Learned kernels. `kernel` is that of kernel_learning, `kernel.partial_order_embedding` that of
    partial_order_embedding, and `kernel` too where it is the only one. Raises `NothingToExport`."""
    learned = {kind: a for kind, a in published.artifacts.items() if {"K", "W", "L"} & set(a.arrays)}
    if not learned:
        raise NothingToExport("no learned kernel in this state; run `stream-engine refit --state DIR kernel_learning`")
    contents = {kind: _kernel(published, artifact) for kind, artifact in sorted(learned.items())}
    first = contents.get("kernel_learning") or next(iter(contents.values()))
    further = {kind: content for kind, content in contents.items() if kind != "kernel_learning"}
    return {"kernel": first} | {f"kernel.{kind}": content for kind, content in further.items()}


def _kernel(published: Published, artifact: Artifact) -> Content:
    arrays = {"method": np.array(artifact.kind)}
    arrays |= {name: np.asarray(a) for name, a in artifact.arrays.items() if name not in LEFT_OUT[artifact.kind]}
    mixed = _auxiliary(artifact)
    if "mu" in arrays and len(mixed) == len(arrays["mu"]):
        arrays["auxiliary"] = np.array(mixed, np.str_)
    rows = [len(arrays[name]) for name in ("coordinates", "known") if name in arrays]
    rows += [len(arrays["K"])] if "K" in arrays and "ids" not in arrays else []
    object_names = published.object_names.get(artifact.kind, published.snapshot.objects)
    names = tuple(object_names[: rows[0]] if rows else object_names)
    return Content(arrays, _weights(published, artifact), objects=names, subset=_learned(published, artifact))


def embedding(published: Published) -> dict[str, Content]:
    """The places of the objects; nothing about workers. Raises `NothingToExport`."""
    artifact = artifact_of(published, "embedding")
    points, ids = np.asarray(artifact.arrays["X"]), np.asarray(artifact.arrays["asked"])
    arrays = {"X": points, "asked": ids, "lapse": np.asarray(artifact.arrays["lapse"])}
    arrays["alpha"] = np.array(float(artifact.report["alpha"]))
    names = names_of(published, "embedding", len(points))
    axes = {f"axis_{number + 1}": points[:, number] for number in range(points.shape[1])}
    if "covariance" in artifact.arrays:
        arrays["covariance"] = np.asarray(artifact.arrays["covariance"])
    if has_regions(artifact):
        deviations = np.sqrt(np.einsum("naa->na", arrays["covariance"]).astype(np.float64))
        axes |= {f"sd_{number + 1}": deviations[:, number] for number in range(points.shape[1])}
    if "picture" in artifact.arrays:
        arrays["picture"] = np.asarray(artifact.arrays["picture"])
        axes |= {f"picture_{axis}": arrays["picture"][:, number] for number, axis in enumerate("xy")}
    if "supported" in artifact.arrays:
        arrays["supported"] = np.asarray(artifact.arrays["supported"])
        axes |= {f"supported_{number}": column for number, column in enumerate(arrays["supported"].T, 1)}
    report = artifact.report
    arrays |= {"d": np.array(points.shape[1]), "held_out": np.array(str(report.get("held_out", "none")))}
    for name in ("accuracy", "log_loss"):
        arrays[f"held_out_{name}"] = np.array(np.nan if (value := figure(report, name)) is None else value)
    table = {"object": names, "asked": ids, **axes}
    return {"embedding": Content(arrays, {"embedding": table}, objects=tuple(names))}


def dimensions(published: Published) -> dict[str, Content]:
    """The weights of the objects on the interpretable dimensions. Raises `NothingToExport`."""
    artifact = artifact_of(published, "dimensions")
    arrays = dict(artifact.arrays)
    if figure(artifact.report, "held_out_responses") == 0:  # then importance is unknown
        arrays |= {name: np.full_like(arrays[name], np.nan) for name in ("importance", "importance_error")}
    weights = np.asarray(arrays["X"])
    columns = {f"dimension_{number + 1}": column for number, column in enumerate(weights.T)}
    names = names_of(published, "dimensions", len(weights))
    share = weights.sum(axis=0) / max(float(weights.sum()), 1e-300)
    quality: dict[str, Any] = {"dimension": np.arange(1, weights.shape[1] + 1), "share": share.astype(np.float64)}
    quality |= {name: arrays[name] for name in ("reproducibility", "importance", "importance_error")}
    top = [np.argsort(-column, kind="stable")[:TOP_OBJECTS] for column in weights.T]
    quality["objects"] = [
        "; ".join(names[i] for i in objects if column[i] > 0) for objects, column in zip(top, weights.T)
    ]
    tables = {"dimensions": {"object": names, "asked": arrays["asked"], **columns}, "dimension_quality": quality}
    return {"dimensions": Content(arrays, tables, objects=tuple(names))}


def _learned(published: Published, artifact: Artifact) -> tuple[str, ...] | None:
    """Names of the objects that K is over; None: of all."""
    if "ids" not in artifact.arrays:
        return None
    names = published.object_names.get(artifact.kind, published.snapshot.objects)
    return tuple(names[i] for i in artifact.arrays["ids"].tolist())


def _auxiliary(artifact: Artifact) -> list[str]:
    """Names of the auxiliary kernels in the order of the arrays; `mu` of a report that was read from a file has them in
    the order of names."""
    kernels = artifact.report.get("kernels") or []
    return [kernel["name"] for kernel in kernels] or list(artifact.report.get("mu") or [])


def _weights(published: Published, artifact: Artifact) -> dict[str, dict]:
    """CSV of the diagonal form of partial order embedding: a row an object, a column a kernel (McFee & Lanckriet's
    Fig. 8)."""
    if artifact.params.get("form") != "diagonal" or artifact.params.get("features") or "W" not in artifact.arrays:
        return {}
    weights = artifact.arrays["W"]
    names = _auxiliary(artifact) or ["identity"]
    objects = _learned(published, artifact) or names_of(published, artifact.kind, weights.shape[1])
    return {"kernel_weights": {"object": list(objects), **dict(zip(names, weights, strict=True))}}
