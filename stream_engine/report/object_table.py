"""Every object in a row, those with the least evidence first."""

from typing import Any

import numpy as np

from stream_engine.report import Section, Table
from stream_engine.report.material import Material
from stream_engine.report.places import nearest
from stream_engine.report.words import listed, some

FEW = 10  # answers, below which little is known of an object


def section(material: Material) -> Section:
    """Which objects little is known about; a table of all that are shown."""
    answers = material.answers.answers
    if not len(answers):
        return Section("Objects", "No object is known yet.")
    few = np.flatnonzero(answers < FEW)
    typical = float(np.median(answers))
    says = f"Half of the objects have {typical:,.0f} answers or more."
    if len(few):
        least = few[np.argsort(answers[few], kind="stable")]
        says += (
            f" Little is known about {some(len(few), 'object')} with fewer than {FEW} answers: "
            f"{listed([material.names[i] for i in least.tolist()])}."
        )
    else:
        says += f" The least known is {material.names[int(answers.argmin())]}, with {answers.min():,}."
    ids = material.shown[np.argsort(answers[material.shown], kind="stable")]
    table = Table("objects", columns(material, ids), np.searchsorted(material.shown, ids), ABOUT)
    return Section("Objects", says, (), (table,), tuple(filter(None, [material.sampled])))


ABOUT = (
    "Contradicted: answers in the minority of their own question. Agreement: the share of its answers that all the "
    "other answers would have foretold."
)


def columns(material: Material, ids: np.ndarray) -> dict[str, list[Any]]:
    """One row an object."""
    known, rows = material.answers, ids.tolist()
    found: dict[str, list[Any]] = {
        "object": [material.names[i] for i in rows],
        "answers": known.answers[ids].tolist(),
        "contradicted": known.contradicted[ids].tolist(),
        "agreement": [value if n else None for value, n in zip(known.agreement[ids].tolist(), known.answers[ids])],
    }
    if (material.cluster >= 0).any():
        found["cluster"] = [k if k >= 0 else None for k in material.cluster[ids].tolist()]
    labels = material.snapshot.labels
    if labels:
        found["label"] = [labels.get(material.names[i]) for i in rows]
    if (boost := material.artifact("triplet_boost")) is not None:
        classes = [*boost.report["classes"], *boost.report.get("other_classes", [])]
        guess = boost.arrays["predicted"]
        found["predicted"] = [classes[guess[i]] if i < len(guess) and guess[i] >= 0 else None for i in rows]
    if material.places is not None:
        for axis in range(min(2, material.places.points.shape[1])):
            found[f"axis {axis + 1}"] = [None if v != v else v for v in material.places.points[ids, axis].tolist()]
        found["nearest three"] = [
            ", ".join(material.names[k] for k in row if k >= 0) for row in nearest(material.places.points, ids).tolist()
        ]
    return found
