"""Clusters, or a continuum: how crowded the borders of every number of clusters are, and how stable the groups are."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from stream_engine.clustering import BETWEEN
from stream_engine.exports.object_places import by_size, numbers
from stream_engine.report import Section, Table
from stream_engine.report.drawings import Axis, Bars, Drawing
from stream_engine.report.findings.clusters import explained as explained_test
from stream_engine.report.findings.words import listed, some
from stream_engine.report.material import Material

TITLE = "Clusters"
STABILITY = (
    "Stability: share of random halves of the responses in which an object is assigned to its group; objects below "
    ".9 lie between groups. High stability means that there are enough responses to locate the borders, not that "
    "there are gaps: the parts of a continuum can be stable too."
)
TESTED = (
    "Crowding: density of objects at the borders between groups, relative to the density inside: 1 in a "
    "continuum, .6, .4 and .25 for groups 4, 5 and 6 standard deviations apart. p: test against a continuum, "
    "corrected for the choice of the number of groups. Several numbers can be significant; the number of clusters is "
    "the one whose borders are emptier than those of a continuum by the most."
)
CRITERION = (
    "SPUR objective (higher is better, at most 1): how close the relaxed solution is to a partition. It compares "
    "numbers of clusters; it does not test whether there are clusters."
)


def section(material: Material) -> Section:
    """What the clustering found and how far it may be believed."""
    artifact = material.artifact("sdp_clustering")
    if artifact is None:
        return Section(
            TITLE,
            "There is no clustering yet.",
            notes=(f"Fit one with: stream-engine refit --state {material.facts.commands.state} sdp_clustering",),
        )
    report, labels = artifact.report, by_size(artifact.arrays["labels"])
    sizes = np.bincount(labels[labels >= 0]) if (labels >= 0).any() else np.empty(0, int)
    if len(sizes) == 0:
        of_four = material.summary["comparisons"] and not material.summary["triplets"]
        return Section(
            TITLE,
            "No object was clustered: clustering needs comparisons of three objects, and there are none."
            if of_four
            else "No object was clustered: there are too few answers.",
        )
    members = [listed([material.names[i] for i in np.flatnonzero(labels == k).tolist()], 8) for k in range(len(sizes))]
    stability = artifact.arrays.get("stability") if len(sizes) > 1 else None  # one group agrees with itself
    columns = {"cluster": list(range(1, len(sizes) + 1)), "objects": sizes.tolist(), "among them": members}
    if stability is not None:
        columns["stability"] = [float(np.mean(stability[labels == k])) for k in range(len(sizes))]
    if "second" in artifact.arrays and stability is not None:
        columns["between"] = [int((stability[labels == k] < BETWEEN).sum()) for k in range(len(sizes))]
    gated = (each.text for each in material.findings["clusters"] if each.what == "clusters_gated")
    note = next(gated, report.get("note") or "").removesuffix(".")
    says = f"{note[:1].upper()}{note[1:]}. " if note else ""
    says += f"The partition assigns {some(int(sizes.sum()), 'object')} to {some(len(sizes), 'group')}"
    says += "." if stability is None else f"{_stable(report)}."
    tables = [Table("clusters", columns, about=STABILITY if stability is not None else "")]
    if stability is not None and "between" in columns and artifact.report.get("verdict", "").endswith(" clusters"):
        made = artifact.arrays["labels"]
        tables += _between(material.names, numbers(made), stability, numbers(made, artifact.arrays["second"]))
    drawings: tuple[Drawing, ...] = ()
    if "tested_k" in artifact.arrays and len(artifact.arrays["tested_k"]) > 1:
        k, crowding, p = (artifact.arrays[f"tested_{name}"] for name in ("k", "crowding", "p"))
        drawings = (_crowding(k, crowding, len(sizes)),)
        tested = {"clusters": k.tolist(), "crowding": crowding.tolist(), "p": p.tolist()}
        tables.append(Table("crowding", tested, about=TESTED))
    if len(criterion := report.get("criterion") or {}) > 1:
        unsolved = report.get("criterion_not_converged") or []
        rows: dict[str, list[Any]] = {"clusters": list(map(int, criterion)), "SPUR": list(criterion.values())}
        rows["converged"] = ["no" if k in unsolved else "yes" for k in rows["clusters"]]
        tables.append(Table("SPUR", rows, about=CRITERION))
    explained = explained_test(report, artifact.params)
    notes = ((explained,) if explained else ()) + _notes(report)
    return Section(TITLE, says, drawings, tuple(tables), notes)


def _between(names: Sequence[str], cluster: np.ndarray, stability: np.ndarray, second: np.ndarray) -> list[Table]:
    """The objects that lie between clusters, the least certain first; clusters by their numbers, below 1: none."""
    at = np.flatnonzero((cluster >= 1) & (stability < BETWEEN))
    at = at[np.argsort(stability[at], kind="stable")]
    if not len(at):
        return []
    columns = {
        "object": [names[i] for i in at.tolist()],
        "cluster": cluster[at].tolist(),
        "or cluster": [each if each >= 1 else None for each in second[at].tolist()],
        "stability": stability[at].tolist(),
    }
    return [Table("between", columns, ids=at, about="Objects between clusters.")]


def _stable(report: Mapping[str, Any]) -> str:
    again = report.get("stability") or {}
    if again.get("ari") is None:
        return ""
    return (
        f"; the expected agreement with a replication of this size is an adjusted Rand index of {again['ari']:.2f} "
        "(estimated from random halves of the responses; 1: identical, 0: chance)"
    )


def _notes(report: Mapping[str, Any]) -> tuple[str, ...]:
    notes = []
    if report.get("certified") and report.get("k_by") != "test":
        notes.append(
            "The partition is a certified optimum of its optimisation problem. This does not mean that there are "
            "clusters."
        )
    return tuple(notes)


def _crowding(k: np.ndarray, crowding: np.ndarray, chosen: int) -> Drawing:
    return Drawing(
        "crowding",
        "Crowding of borders for each number of clusters",
        f"Crowding of borders for {k.min()} to {k.max()} clusters; the partition has {chosen}.",
        Axis(
            "number of clusters", ticks=tuple((float(each), str(each)) for each in k.tolist()) if len(k) < 20 else None
        ),
        Axis("crowding at the borders"),
        (Bars(k.astype(float), crowding.astype(float), k == chosen),),
        width=480,
        height=260,
    )
