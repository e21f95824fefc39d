"""Interpretable dimensions: how reproducible and how important each is, and the objects with the largest weights."""

import numpy as np

from stream_engine.data.numbers_in_words import amount
from stream_engine.embedding.sparse_fit import REPRODUCIBLE
from stream_engine.report import Section, Table
from stream_engine.report.findings.words import listing, percent
from stream_engine.report.material import Material
from stream_engine.state.artifact import Artifact, figure

TITLE = "Interpretable dimensions"
TOP_OBJECTS = 8  # objects of a dimension
QUALITY = (
    "Reproducibility: smallest correlation with the matching dimension of a fit with another seed, on the same "
    "responses. Importance: log loss that held-out responses gain without the dimension, in units of .001 nats, with "
    "its standard error."
)
WEIGHTS = "The objects with the largest weights on each dimension, with standard errors."


def section(material: Material) -> Section | None:
    """A sentence, a row a dimension, and a row an object of each; only why not where the positions of objects cannot be
    compared. None without the refit."""
    artifact, facts = material.artifact("dimensions"), material.facts
    if artifact is None:
        return None
    if not facts.connected:
        says = f"Nothing is said of dimensions: the objects fall into sets that {facts.apart}, and have none in common."
        return Section(TITLE, says, caution=True)
    if facts.beats_chance is False:
        says = "The dimensions are not interpretable: no model predicts the answers better than chance."
        return Section(TITLE, says, caution=True)
    weights = np.asarray(artifact.arrays["X"])
    top = [np.argsort(-column, kind="stable")[:TOP_OBJECTS] for column in weights.T]
    top = [objects[column[objects] > 0] for objects, column in zip(top, weights.T)]
    share = weights.sum(axis=0) / max(float(weights.sum()), 1e-300)
    unit = np.nan if figure(artifact.report, "held_out_responses") == 0 else 1.0  # nothing was held out: unknown
    columns = {
        "dimension": list(range(1, weights.shape[1] + 1)),
        "share of weights": share.tolist(),
        "reproducibility": artifact.arrays["reproducibility"].tolist(),
        "importance": (1000 * unit * artifact.arrays["importance"]).tolist(),
        "standard error": (1000 * unit * artifact.arrays["importance_error"]).tolist(),
        "objects": [listing([material.names[i] for i in objects.tolist()], TOP_OBJECTS) for objects in top],
    }
    quality = Table("dimension-quality", columns, about=QUALITY)
    return Section(TITLE, _says(artifact), (), (quality, _objects(material, artifact, top)))


def _says(artifact: Artifact) -> str:
    report = artifact.report
    d, reproducible = (int(figure(report, name) or 0) for name in ("dimensions", "reproducible"))
    says = f"The responses are described by {amount(d, 'non-negative dimension')}; {amount(reproducible, 'is', 'are')} "
    says += f"reproducible (correlation at least {REPRODUCIBLE:g} between fits with different seeds)."
    for kind, chance in (("odd_one_out", "33.3 %"), ("triplet", "50 %")):
        right, error = (figure(report, f"{kind}_{name}") for name in ("accuracy", "standard_error"))
        if right is not None and error is not None:
            says += f" They predict {percent(right)} of held-out {kind.replace('_', '-')} responses correctly (95 % CI "
            says += f"± {196 * error:.1f}; chance {chance})."
    return says


def _objects(material: Material, artifact: Artifact, top: list[np.ndarray]) -> Table:
    weights, errors = (np.asarray(artifact.arrays[name]) for name in ("X", "standard_error"))
    dimension = np.repeat(np.arange(len(top)), [len(objects) for objects in top])
    ids = np.concatenate([*top, np.empty(0, int)]).astype(int)
    columns = {
        "dimension": (dimension + 1).tolist(),
        "object": [material.names[i] for i in ids.tolist()],
        "weight": weights[ids, dimension].astype(float).tolist(),
        "standard error": errors[ids, dimension].astype(float).tolist(),
    }
    return Table("dimension-objects", columns, ids=ids, about=WEIGHTS)
