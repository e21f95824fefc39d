"""Artifacts as files: clusters, booster, learned kernels."""

import numpy as np

from stream_engine.exports import Content, NothingToExport
from stream_engine.state.artifact import Artifact
from stream_engine.state.published import Published


def _artifact(published: Published, kind: str) -> Artifact:
    if kind not in published.artifacts:
        raise NothingToExport(f"no {kind} artifact in this state; `stream-engine refit --state DIR {kind}` makes one")
    return published.artifacts[kind]


def _names(published: Published, kind: str, n: int) -> list[str]:
    """Names of the n objects of an artifact: one of an older snapshot knows fewer objects."""
    return list(published.known.get(kind, published.snapshot.objects)[:n])


def clusters(published: Published) -> dict[str, Content]:
    """labels (n,) int32 (-1: not clustered), k, lam, objective, criterion, residuals; CSV object,cluster."""
    held = _artifact(published, "sdp_clustering").arrays
    arrays = {
        name: array for name, array in held.items() if not name.startswith("warm_")
    }  # the solver's state is no result
    labels = arrays["labels"]
    table = {"object": _names(published, "sdp_clustering", len(labels)), "cluster": labels}
    return {"clusters": Content(arrays, {"clusters": table})}


def booster(published: Published) -> dict[str, Content]:
    """Triplet classifiers j, k, alpha and label sets; CSV object,label,predicted,score,abstained."""
    artifact = _artifact(published, "triplet_boost")
    arrays, report = artifact.arrays, artifact.report
    classes = [*report["classes"], *report.get("other_classes", []), ""]  # index -1 is the empty text
    table = {
        "object": _names(published, "triplet_boost", len(arrays["predicted"])),
        "label": [classes[i] for i in arrays["given"].tolist()],
        "predicted": [classes[i] for i in arrays["predicted"].tolist()],
        "score": arrays["score"],
        "abstained": arrays["abstained"],
    }
    return {"booster": Content(dict(arrays), {"predictions": table})}


def kernel(published: Published) -> dict[str, Content]:
    """Learned kernels: K, W or L (K = LL' + sum mu K_a), mu, objective, satisfied; one file per method. One over a
    subset has their `ids`, and K is over these; `factor` F (K ~ FF') and `known` are over all."""
    learned = {kind: a for kind, a in published.artifacts.items() if {"K", "W", "L"} & set(a.arrays)}
    if not learned:
        raise NothingToExport(
            "no learned kernel in this state; `stream-engine refit --state DIR kernel_learning` makes one"
        )
    alone = len(learned) == 1
    return {
        "kernel" if alone else f"kernel.{kind}": Content(
            {name: np.asarray(array) for name, array in a.arrays.items()},
            _weights(published, a),
            objects=_learned(published, a),
        )
        for kind, a in learned.items()
    }


def embedding(published: Published) -> dict[str, Content]:
    """X (n, d) float64: where the objects lie, on principal axes; asked (n,) bool: of whom anything was asked (the
    others lie at 0); covariance (n, d, d) float32 of each place, where it was computed; lapse (); alpha () of t-STE, 0
    for STE; CSV object,asked,axis_1 ... axis_d, and with covariances sd_1 ... sd_d, the standard deviation along each
    axis (a place lies within 1.96 of them 95 times in 100). Nothing about workers."""
    artifact = _artifact(published, "embedding")
    points, asked = np.asarray(artifact.arrays["X"]), np.asarray(artifact.arrays["asked"])
    arrays = {"X": points, "asked": asked, "lapse": np.asarray(artifact.arrays["lapse"])}
    arrays["alpha"] = np.array(float(artifact.report["alpha"]))
    names = _names(published, "embedding", len(points))
    axes = {f"axis_{number + 1}": points[:, number] for number in range(points.shape[1])}
    if "covariance" in artifact.arrays:
        arrays["covariance"] = np.asarray(artifact.arrays["covariance"])
        deviations = np.sqrt(np.einsum("naa->na", arrays["covariance"]).astype(np.float64))
        axes |= {f"sd_{number + 1}": deviations[:, number] for number in range(points.shape[1])}
    return {"embedding": Content(arrays, {"embedding": {"object": names, "asked": asked, **axes}})}


def _learned(published: Published, artifact: Artifact) -> tuple[str, ...] | None:
    """Names of the objects that K is over; None: of all."""
    if "ids" not in artifact.arrays:
        return None
    names = published.known.get(artifact.kind, published.snapshot.objects)
    return tuple(names[i] for i in artifact.arrays["ids"].tolist())


def _weights(published: Published, artifact: Artifact) -> dict[str, dict]:
    """CSV of the diagonal form of partial order embedding: a row an object, a column a kernel (McFee & Lanckriet's
    Fig. 8)."""
    if artifact.params.get("form") != "diagonal" or artifact.params.get("features") or "W" not in artifact.arrays:
        return {}
    weights = artifact.arrays["W"]
    names = [each["name"] for each in artifact.report["kernels"]] or ["identity"]
    objects = _learned(published, artifact) or _names(published, artifact.kind, weights.shape[1])
    return {"kernel_weights": {"object": list(objects), **dict(zip(names, weights, strict=True))}}
