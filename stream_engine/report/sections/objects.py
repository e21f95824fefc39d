"""Every object in a row, those with the least evidence first."""

from typing import Any

import numpy as np

from stream_engine.data.numbers_in_words import amount
from stream_engine.evaluation.few_comparisons import MIN_COMPARISONS
from stream_engine.exports import object_table
from stream_engine.report import Section, Table
from stream_engine.report.findings.words import listing
from stream_engine.report.material import Material


def section(material: Material) -> Section:
    """Which objects little is known about; a table of all that are shown."""
    answers = material.answers.answers
    if not len(answers):
        return Section("Objects", "There are no objects yet.")
    few = np.flatnonzero(answers < MIN_COMPARISONS)
    typical = float(np.median(answers))
    says = f"The median number of comparisons per object is {typical:,.0f}."
    if not material.by_object:
        says = f"{says.removesuffix('.')}, without those that are not counted by object."
    if len(few) and material.by_object:
        least = few[np.argsort(answers[few], kind="stable")]
        says += (
            f" {amount(len(few), 'object has', 'objects have')} fewer than {MIN_COMPARISONS} comparisons: "
            f"{listing([material.names[i] for i in least.tolist()])}."
        )
    elif material.by_object:
        says += f" {material.names[int(answers.argmin())]} has the fewest comparisons: {answers.min():,}."
    ids = material.shown[np.argsort(answers[material.shown], kind="stable")]
    table = Table(
        "objects",
        columns(material, ids),
        np.searchsorted(material.shown, ids),
        ABOUT + _axes(material) + _sets(material),
    )
    return Section("Objects", says, (), (table,), tuple(filter(None, [material.sampled])))


ABOUT = (
    "Contradicted: number of comparisons that disagree with the majority for their question (ties count half). "
    "Agreement: share of the object's answers that the answers to other questions predict (AddS-3)."
)


def _axes(material: Material) -> str:
    shown = material.places is not None and material.facts.positions_comparable
    d = material.places.points.shape[1] if shown and material.places is not None else 0
    return f" Axes: the first two of {d}; the export objects has all." if d > 2 else ""


def _sets(material: Material) -> str:
    """What may be compared where the objects fall into sets."""
    if material.facts.connected:
        return ""
    return " Set: of objects that were compared with each other. The nearest three are those of the same set."


HEADS = {"answers": "comparisons", "x": "axis 1", "y": "axis 2"}
OF_ALL_POSITIONS = ("cluster", "x", "y")  # columns that compare the positions of all objects
LEFT_OUT = (
    "cluster_label",
    "stability",
    "z",
    "picture_x",
    "picture_y",
    "ellipse_a",
    "ellipse_b",
    "ellipse_angle",
)  # the map shows the last


def columns(material: Material, ids: np.ndarray) -> dict[str, list[Any]]:
    """One row an object: the columns of the export `objects` that a page has room for."""
    of_objects = object_table.columns(material.published, ids, material.answers, material.facts.beats_chance)
    columns_of = {
        head: values.tolist() if isinstance(values, np.ndarray) else list(values) for head, values in of_objects.items()
    }
    if "cluster" in columns_of:
        shown_clusters = zip(columns_of["cluster"], (material.cluster[ids] >= 0).tolist())
        columns_of["cluster"] = [number if known else None for number, known in shown_clusters]
    label = dict(zip(material.snapshot.objects, material.names))
    near = [
        ", ".join(label[name] for name in row if name)
        for row in zip(*(columns_of.pop(head, []) for head in object_table.NEAREST))
    ]
    columns_of["object"] = [label[name] for name in columns_of["object"]]
    shown = {
        HEADS.get(head, head): values
        for head, values in columns_of.items()
        if head not in LEFT_OUT
        and not head.startswith(("axis_", "se_"))
        and (head not in OF_ALL_POSITIONS or material.facts.positions_comparable)
    }
    return shown | ({"nearest three": near} if near else {})
