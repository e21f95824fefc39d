"""Clusters, or a continuum: the criterion of every number of clusters, and how stable the chosen ones are."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from stream_engine.exports.in_words import p_explained
from stream_engine.report import Section, Table
from stream_engine.report.drawings import Axis, Bars, Drawing
from stream_engine.report.material import Material
from stream_engine.report.words import listed, percent, some

TITLE = "Clusters"
STABILITY = (
    "Stability: the part of its group that an object finds again when the answers are drawn anew and as many groups "
    "are made (1: all of it). It says that the answers are enough to draw these borders, not that there is a gap at "
    "them: pieces of a continuum come back too."
)
CRITERION = (
    "Criterion: how cleanly the objects fall into so many groups, 1 at most; larger is better. It compares numbers of "
    "groups and does not say whether there are clusters."
)


def section(material: Material) -> Section:
    """What the clustering found and how far it may be believed."""
    artifact = material.artifact("sdp_clustering")
    if artifact is None:
        return Section(
            TITLE,
            "No clustering was made.",
            notes=(f"Make one with: stream-engine refit --state {material.directory} sdp_clustering",),
        )
    report, labels = artifact.report, artifact.arrays["labels"]
    sizes = np.bincount(labels[labels >= 0]) if (labels >= 0).any() else np.empty(0, int)
    if len(sizes) == 0:
        of_four = material.summary["comparisons"] and not material.summary["triplets"]
        return Section(
            TITLE,
            "No object was put into a cluster: clusters are made of comparisons of three objects, and there are none."
            if of_four
            else "There are too few answers to put any object into a cluster.",
        )
    members = [listed([material.names[i] for i in np.flatnonzero(labels == k).tolist()], 8) for k in range(len(sizes))]
    stability = artifact.arrays.get("stability")
    columns = {"cluster": list(range(len(sizes))), "objects": sizes.tolist(), "among them": members}
    if stability is not None:
        columns["stability"] = [float(np.mean(stability[labels == k])) for k in range(len(sizes))]
    note = report.get("note") or ""
    says = f"{note[:1].upper()}{note[1:]}. " if note else ""
    says += f"The {some(int(sizes.sum()), 'object')} are put into {some(len(sizes), 'group')}{_stable(report)}."
    criterion = report.get("criterion") or {}
    if "level_k" in artifact.arrays:  # of every number of clusters, not only until the first peak
        values = artifact.arrays["level_criterion"].tolist()
        criterion = {k: value for k, value in zip(artifact.arrays["level_k"].tolist(), values) if value == value}
    drawings = (_criterion(criterion, len(sizes)),) if len(criterion) > 1 else ()
    tables = [Table("clusters", columns, about=STABILITY if stability is not None else "")]
    if drawings:
        rows = {"clusters": list(map(int, criterion)), "criterion": list(criterion.values())}
        tables.append(Table("criterion", rows, about=CRITERION))
    explained = p_explained(report, artifact.params)
    notes = ((explained,) if explained else ()) + _notes(report)
    return Section(TITLE, says, drawings, tuple(tables), notes)


def _stable(report: Mapping[str, Any]) -> str:
    again = report.get("bootstrap") or {}
    if again.get("mean_ari") is None:
        return ""
    return (
        f"; with the answers drawn anew, the same number comes out {percent(again.get('same_k'), 0)} of the time and "
        f"the groups agree by {again['mean_ari']:.2f} (adjusted Rand index; 1 the same, 0 by chance)"
    )


def _notes(report: Mapping[str, Any]) -> tuple[str, ...]:
    notes = []
    if report.get("certified"):
        notes.append(
            "The optimum is proven: no other partition solves the problem that was posed better. That does not say "
            "that there are clusters."
        )
    return tuple(notes)


def _criterion(criterion: dict, chosen: int) -> Drawing:
    k = np.array([int(each) for each in criterion])
    values = np.array([float(each) for each in criterion.values()])
    return Drawing(
        "criterion",
        "Criterion for each number of clusters",
        f"Bars of the criterion for {k.min()} to {k.max()} clusters; {chosen} clusters were chosen.",
        Axis("number of clusters", ticks=tuple((float(each), str(each)) for each in k.tolist())),
        Axis("criterion"),
        (Bars(k.astype(float), values, k == chosen),),
        width=480,
        height=260,
    )
