"""Who sees it differently: participants with models of their own, weights on the axes of the map, and groups."""

from typing import Any

import numpy as np

from stream_engine.data.packed_names import unpack_names
from stream_engine.report import Section, Table
from stream_engine.report.findings import GAP, sentences
from stream_engine.report.findings.agreement import FEWEST
from stream_engine.report.findings.words import listed
from stream_engine.report.material import Material
from stream_engine.state.artifact import Artifact

TITLE = "Who sees it differently"
ENDS = 3  # objects that are named at each end of an axis
AXES = (
    "Share: of the axis in the differences between objects, for the group and for the middle 80 % of participants. "
    "The objects are those at the two ends of the axis."
)
WHO = (
    "Gain: log loss on held-out answers of the group's map less that of the participant's own model, in nats an "
    "answer, with its 95 % interval; p corrected for the number of participants (Holm). The objects are those whose "
    "answers gain most."
)
PEOPLE = (
    "Slope: how sharply a participant distinguishes, compared with the group (1). Axis columns: weight relative to the "
    "slope; 1 as for the group, 0 if the axis does not count."
)


def section(material: Material) -> Section | None:
    """The verdict; a row an axis, a row a group, and on request a row a participant. None where nothing was tested."""
    found = material.findings["differences"]
    if not found:
        return None
    notes = tuple(each.text for each in found if each.level == GAP)
    artifact, tables = material.artifact("embedding"), []
    if artifact is not None and "worker_weights" in artifact.arrays:
        weights, group = (np.asarray(artifact.arrays[f"worker_{name}"]) for name in ("weights", "group"))
        seen = weights[group >= 0] * artifact.arrays["X"].var(axis=0)
        if len(seen) >= FEWEST:
            seen /= np.maximum(seen.sum(axis=1, keepdims=True), 1e-300)
            tables.append(_axes(material, artifact, seen))
            if group.max() > 0:
                tables.append(_groups(seen, weights[group >= 0].mean(axis=1), group[group >= 0]))
        if material.workers:
            tables.append(_people(artifact, weights, group))
    if material.workers and (rows := material.facts.report("embedding").get("individual_differences", {}).get("who")):
        tables.insert(0, _who(rows))
    return Section(TITLE, sentences(material.findings, "differences"), (), tuple(tables), notes)


def _who(rows: list[dict[str, Any]]) -> Table:
    rows = sorted(rows, key=lambda each: -each["gain"])
    columns = {
        "participant": [each["participant"] for each in rows],
        "gain": [each["gain"] for each in rows],
        "from": [each["gain"] - 1.96 * each["standard_error"] for each in rows],
        "to": [each["gain"] + 1.96 * each["standard_error"] for each in rows],
        "p": [each["p_value"] for each in rows],
        "objects": [listed(each["objects"]) for each in rows],
    }
    return Table("who-differs", columns, about=WHO)


def _axes(material: Material, artifact: Artifact, seen: np.ndarray) -> Table:
    points = np.asarray(artifact.arrays["X"])
    asked = np.flatnonzero(np.asarray(artifact.arrays["asked"]))
    size = points.var(axis=0)
    low, high = np.quantile(seen, [0.1, 0.9], axis=0)
    order = [asked[np.argsort(points[asked, axis], kind="stable")] for axis in range(points.shape[1])]
    columns = {
        "axis": list(range(1, points.shape[1] + 1)),
        "share, group": (size / max(float(size.sum()), 1e-300)).tolist(),
        "from": low.tolist(),
        "to": high.tolist(),
        "one end": [listed([material.names[i] for i in each[:ENDS]]) for each in order],
        "other end": [listed([material.names[i] for i in each[::-1][:ENDS]]) for each in order],
    }
    return Table("axes", columns, about=AXES)


def _groups(seen: np.ndarray, slope: np.ndarray, group: np.ndarray) -> Table:
    of = [group == number for number in range(int(group.max()) + 1)]
    columns = {
        "group": [number + 1 for number in range(len(of))],
        "participants": [int(each.sum()) for each in of],
        "mean slope": [float(slope[each].mean()) for each in of],
        **{
            f"share of axis {axis + 1}": [float(seen[each, axis].mean()) for each in of]
            for axis in range(seen.shape[1])
        },
    }
    return Table("participant-groups", columns)


def _people(artifact: Artifact, weights: np.ndarray, group: np.ndarray) -> Table:
    names, slope = unpack_names(artifact.arrays["utf8"], artifact.arrays["offsets"]), weights.mean(axis=1)
    known = np.flatnonzero(group >= 0)
    columns = {
        "participant": [names[i] for i in known],
        "group": (group[known] + 1).tolist(),
        "slope": slope[known].tolist(),
        **{f"axis {axis + 1}": (weights[known, axis] / slope[known]).tolist() for axis in range(weights.shape[1])},
    }
    return Table("participant-weights", columns, about=PEOPLE)
