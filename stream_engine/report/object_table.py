"""Every object in a row, those with the least evidence first."""

from typing import Any

import numpy as np

from stream_engine.exports import object_table
from stream_engine.findings.words import listed, some
from stream_engine.report import Section, Table
from stream_engine.report.material import Material

FEW = 10  # answers, below which little is known of an object


def section(material: Material) -> Section:
    """Which objects little is known about; a table of all that are shown."""
    answers = material.answers.answers
    if not len(answers):
        return Section("Objects", "No object is known yet.")
    few = np.flatnonzero(answers < FEW)
    typical = float(np.median(answers))
    says = f"Half of the objects have {some(int(typical), 'answer')} or more."
    if not material.by_object:
        says = f"Comparisons of four objects are not counted by object; of three, half have {typical:,.0f} or more."
    if len(few) and material.by_object:
        least = few[np.argsort(answers[few], kind="stable")]
        says += (
            f" Little is known about {some(len(few), 'object')} with fewer than {FEW} answers: "
            f"{listed([material.names[i] for i in least.tolist()])}."
        )
    elif material.by_object:
        says += f" The least known is {material.names[int(answers.argmin())]}, with {answers.min():,}."
    ids = material.shown[np.argsort(answers[material.shown], kind="stable")]
    table = Table("objects", columns(material, ids), np.searchsorted(material.shown, ids), ABOUT + _axes(material))
    return Section("Objects", says, (), (table,), tuple(filter(None, [material.sampled])))


ABOUT = (
    "Contradicted: answers in the minority of their own question, of equally many either half. "
    "Agreement: the share of its answers that all the "
    "other answers would have foretold."
)


def _axes(material: Material) -> str:
    d = 0 if material.places is None else material.places.points.shape[1]
    return f" Axes: the first two of the map's {d}; the export objects has all." if d > 2 else ""


HEADS = {"x": "axis 1", "y": "axis 2"}
LEFT_OUT = ("stability", "z", "ellipse_a", "ellipse_b", "ellipse_angle")  # the map shows the last


def columns(material: Material, ids: np.ndarray) -> dict[str, list[Any]]:
    """One row an object: the columns of the export `objects` that a page has room for."""
    found = {
        head: values.tolist() if isinstance(values, np.ndarray) else list(values)
        for head, values in object_table.columns(material.published, ids, material.answers).items()
    }
    near = [
        ", ".join(name for name in row if name) for row in zip(*(found.pop(head, []) for head in object_table.NEAREST))
    ]
    shown = {
        HEADS.get(head, head): values
        for head, values in found.items()
        if head not in LEFT_OUT and not head.startswith("axis_")
    }
    return shown | ({"nearest three": near} if near else {})
