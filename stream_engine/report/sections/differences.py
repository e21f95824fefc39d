"""Who sees it differently: participants with models of their own, weights on the axes of the map, and groups."""

from typing import Any

import numpy as np

from stream_engine.data.packed_names import unpack_names
from stream_engine.evaluation.participants import MIN_PARTICIPANTS
from stream_engine.report import Section, Table
from stream_engine.report.findings import GAP, sentences
from stream_engine.report.findings.words import listing
from stream_engine.report.material import Material
from stream_engine.state.artifact import Artifact

TITLE = "Who sees it differently"
OBJECTS_AT_END = 3  # objects that are named at each end of an axis
AXES = "Share: of the axis in the differences between objects, for the group and for the middle 80 % of participants."
ENDS = " The objects are those at the two ends of the axis."
WHO = (
    "Gain: log loss on held-out answers of the group's map less that of the participant's own model, in nats an "
    "answer, with its 95 % interval; p corrected for the number of participants (Holm). The objects are those whose "
    "answers gain most."
)
PEOPLE = (
    "Slope: how sharply a participant distinguishes, compared with the group (1). Axis columns: weight relative to the "
    "slope; 1 as for the group, 0 if the axis does not count. Both are estimates without an interval; the "
    "fewer answers a participant gave, the more they are drawn towards those of the group."
)


def section(material: Material) -> Section | None:
    """The verdict; a row an axis, a row a group, and on request a row a participant. None where nothing was tested."""
    findings = material.findings["differences"]
    if not findings:
        return None
    notes = tuple(finding.text for finding in findings if finding.level == GAP)
    notes += tuple(f"To list them: {finding.command}" for finding in findings if finding.command)
    artifact, tables = material.artifact("embedding"), []
    if artifact is not None and "worker_weights" in artifact.arrays:
        weights, group = (np.asarray(artifact.arrays[f"worker_{name}"]) for name in ("weights", "group"))
        shares = weights[group >= 0] * artifact.arrays["X"].var(axis=0)
        if len(shares) >= MIN_PARTICIPANTS:
            shares /= np.maximum(shares.sum(axis=1, keepdims=True), 1e-300)
            tables.append(_axes(material, artifact, shares))
            if group.max() > 0:
                tables.append(_groups(shares, weights[group >= 0].mean(axis=1), group[group >= 0]))
        if material.workers:
            tables.append(_people(artifact, weights, group))
    if material.workers and (rows := material.facts.report("embedding").get("individual_differences", {}).get("who")):
        tables.insert(0, _who(rows))
    return Section(TITLE, sentences(material.findings, "differences"), (), tuple(tables), notes)


def _who(rows: list[dict[str, Any]]) -> Table:
    rows = sorted(rows, key=lambda row: -row["gain"])
    columns = {
        "participant": [row["participant"] for row in rows],
        "gain": [row["gain"] for row in rows],
        "from": [row["gain"] - 1.96 * row["standard_error"] for row in rows],
        "to": [row["gain"] + 1.96 * row["standard_error"] for row in rows],
        "p": [row["p_value"] for row in rows],
        "objects": [listing(row["objects"]) for row in rows],
    }
    return Table("who-differs", columns, about=WHO)


def _axes(material: Material, artifact: Artifact, shares: np.ndarray) -> Table:
    points = np.asarray(artifact.arrays["X"])
    asked = np.flatnonzero(np.asarray(artifact.arrays["asked"]))
    size = points.var(axis=0)
    low, high = np.quantile(shares, [0.1, 0.9], axis=0)
    order = [asked[np.argsort(points[asked, axis], kind="stable")] for axis in range(points.shape[1])]
    columns = {
        "axis": list(range(1, points.shape[1] + 1)),
        "share, group": (size / max(float(size.sum()), 1e-300)).tolist(),
        "from": low.tolist(),
        "to": high.tolist(),
    }
    if not material.facts.connected:  # the ends of an axis would be objects that were never compared
        return Table("axes", columns, about=AXES)
    columns |= {
        "one end": [listing([material.names[i] for i in objects[:OBJECTS_AT_END]]) for objects in order],
        "other end": [listing([material.names[i] for i in objects[::-1][:OBJECTS_AT_END]]) for objects in order],
    }
    return Table("axes", columns, about=AXES + ENDS)


def _groups(shares: np.ndarray, slope: np.ndarray, group: np.ndarray) -> Table:
    of = [group == number for number in range(int(group.max()) + 1)]
    columns = {
        "group": [number + 1 for number in range(len(of))],
        "participants": [int(members.sum()) for members in of],
        "mean slope": [float(slope[members].mean()) for members in of],
        **{
            f"share of axis {axis + 1}": [float(shares[members, axis].mean()) for members in of]
            for axis in range(shares.shape[1])
        },
    }
    return Table("participant-groups", columns)


def _people(artifact: Artifact, weights: np.ndarray, group: np.ndarray) -> Table:
    names, slope = unpack_names(artifact.arrays["utf8"], artifact.arrays["offsets"]), weights.mean(axis=1)
    grouped = np.flatnonzero(group >= 0)
    columns = {
        "participant": [names[i] for i in grouped],
        "group": (group[grouped] + 1).tolist(),
        "slope": slope[grouped].tolist(),
        **{f"axis {axis + 1}": (weights[grouped, axis] / slope[grouped]).tolist() for axis in range(weights.shape[1])},
    }
    return Table("participant-weights", columns, about=PEOPLE)
