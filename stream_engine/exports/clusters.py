"""The answer about clusters as files, and beside it what the semidefinite program of the same answers found.

Where the refit `clusters` was not made, as in states of earlier versions, the partition is that of the program.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from stream_engine.clustering import MIN_CORE_STABILITY
from stream_engine.clustering.sentence import CANNOT_TELL, CHANCE, UNCERTAIN, UNCONNECTED, sentence
from stream_engine.data.array_checks import pattern_of
from stream_engine.evaluation.connection import are_connected, components
from stream_engine.exports import Content, NothingToExport
from stream_engine.exports.declarations import LEFT_OUT
from stream_engine.exports.learned import names_of
from stream_engine.exports.models import any_beats_chance
from stream_engine.exports.object_places import numbers
from stream_engine.state.artifact import Artifact, figure
from stream_engine.state.published import Published

ANSWER, PROGRAM = "clusters", "sdp_clustering"
OF_POSITIONS = (CHANCE, UNCERTAIN)  # reasons that depend on whether a model beats chance
OF_PARTITION = {"labels": "sdp_labels", "k": "sdp_k"}  # array of the program -> its name beside the answer


def grouping(artifacts: Mapping[str, Artifact]) -> Artifact | None:
    """Whose groups are shown: the answer's, or else the program's."""
    return artifacts.get(ANSWER) or artifacts.get(PROGRAM)


def gated(report: Mapping[str, Any], connected: bool, beats_chance: bool | None) -> Mapping[str, Any]:
    """The report of the refit `clusters`, whose grade is "cannot tell" unless the objects are connected and a model
    beats chance, as far as is known."""
    grade, reason = report.get("grade"), report.get("reason")
    if grade == CANNOT_TELL and reason not in OF_POSITIONS:
        return report
    if not connected:
        gate = UNCONNECTED
    elif beats_chance is False:
        gate = CHANCE
    elif grade == CANNOT_TELL and reason == CHANCE:  # as earlier versions called it
        gate = UNCERTAIN
    else:
        return report
    report = {**report, "grade": CANNOT_TELL, "reason": gate}
    return {**report, "note": sentence(report)} if "note" in report else report


def reports(published: Published) -> dict[str, Mapping[str, Any]]:
    """The report of each artifact as every surface shows it: that of the clusters with the gated grade."""
    reports_as_fitted = {kind: artifact.report for kind, artifact in published.artifacts.items()}
    return reports_as_fitted | ({ANSWER: cluster_answer(published)} if ANSWER in reports_as_fitted else {})


def cluster_answer(published: Published) -> Mapping[str, Any]:
    """What every surface says of the clusters: `gated`; empty without the refit `clusters`."""
    artifact, published = published.artifacts.get(ANSWER), published.as_seen or published
    if artifact is None:
        return {}
    if artifact.report.get("grade") == CANNOT_TELL and artifact.report.get("reason") not in OF_POSITIONS:
        return artifact.report
    connected = are_connected(components(published.snapshot))
    return gated(artifact.report, connected, any_beats_chance(published) if connected else None)


def clusters(published: Published) -> dict[str, Content]:
    """The groups, the figures of the answer, and those of the semidefinite program. Raises `NothingToExport`."""
    artifact = grouping(published.artifacts)
    if artifact is None:
        raise NothingToExport(f"no clusters artifact in this state; run `stream-engine refit --state DIR {ANSWER}`")
    program = published.artifacts.get(PROGRAM)
    arrays = dict(_exported(artifact))
    if artifact.kind == ANSWER and program is not None and program.snapshot == artifact.snapshot:
        arrays = {OF_PARTITION.get(name, name): array for name, array in _exported(program).items()} | arrays
    names = names_of(published, artifact.kind, len(arrays["labels"]))
    answer = cluster_answer(published)
    tables: dict[str, dict[str, Any]] = {"clusters": cluster_table(artifact, names, answer, arrays.get("sdp_labels"))}
    if artifact.kind == ANSWER:
        tables["cluster_answer"] = {name: [value] for name, value in _answer(artifact, answer).items()}
        tables["cluster_numbers"] = {"k": arrays["tested_k"], "clearness": arrays["tested_clearness"]}
    return {"clusters": Content(arrays, tables, objects=tuple(names))}


def _exported(artifact: Artifact) -> dict[str, np.ndarray]:
    """Its arrays but those that are no result, or of earlier versions."""
    left_out = LEFT_OUT.get(artifact.kind, {})
    return {name: array for name, array in artifact.arrays.items() if pattern_of(name, left_out) is None}


def cluster_table(
    artifact: Artifact, names: list[str], answer: Mapping[str, Any], program: np.ndarray | None = None
) -> dict[str, Any]:
    """A row an object, with the grade of the answer in each, so that who reads this table alone knows it; `program`:
    the labels of the semidefinite program."""
    labels = artifact.arrays["labels"]
    table: dict[str, Any] = {"object": names[: len(labels)], "cluster": numbers(labels), "cluster_label": labels}
    if artifact.kind == ANSWER:
        stability, subgroup = artifact.arrays["stability"], artifact.arrays["subgroup"]
        table |= {
            "stability": stability,
            "second": numbers(labels, artifact.arrays["second"]),
            "between": (labels >= 0) & (stability < MIN_CORE_STABILITY),
            "subgroup": np.where(subgroup >= 0, subgroup + 1, -1),
            "grade": [str(answer.get("grade") or "")] * len(labels),
        }
    if program is not None:
        table["sdp_cluster"] = numbers(program)
    return table


def _answer(artifact: Artifact, report: Mapping[str, Any]) -> dict[str, Any]:
    """The row of `cluster_answer`."""
    figures = {
        "clearer_than": figure(report, "clearer_than"),
        "detection_limit": figure(report, "detection_limit"),
        "ari": figure(report, "replication", "ari"),
        "ari_low": figure(report, "replication", "low"),
        "ari_high": figure(report, "replication", "high"),
        "gain": figure(report, "gain"),
        "gain_error": figure(report, "gain_se"),
    }
    return {
        "grade": str(report.get("grade") or ""),
        "reason": str(report.get("reason") or ""),
        "k": int(artifact.arrays["k"]),
        **{name: np.nan if value is None else value for name, value in figures.items()},
        "sentence": sentence(report),
    }
