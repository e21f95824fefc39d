"""From published files to export files: `WHAT` -> files. One module per family, registered here.

An export module has `contents(published) -> {name: Content}`; `exports/files.py` turns contents into npz, parquet or
csv. Nothing here reads a live engine.
"""

from collections.abc import Mapping
from importlib import import_module
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from stream_engine.state.published import Published

# WHAT -> "module:function" giving {file name without suffix: Content}
EXPORTS = {
    "objects": "stream_engine.exports.summary:objects",
    "summary": "stream_engine.exports.summary:summary",
    "adds3": "stream_engine.exports.similarities:adds3",
    "adds4": "stream_engine.exports.similarities:adds4",
    "triplet_counts": "stream_engine.exports.similarities:triplet_counts",
    "k1": "stream_engine.exports.similarities:k1",
    "k2": "stream_engine.exports.similarities:k2",
    "partial_order": "stream_engine.exports.partial_order:partial_order",
    **{
        f"{what}_{how}": f"stream_engine.exports.similarities:{what}_{how}"
        for what in ("adds3", "triplet_counts")
        for how in ("window", "decayed", "weighted", "trusted")
    },
    "workers": "stream_engine.exports.workers:workers",
    "participants": "stream_engine.exports.workers:participants",
    "judgements": "stream_engine.exports.evidence:judgements",
    "clusters": "stream_engine.exports.clusters:clusters",
    "hierarchy": "stream_engine.exports.learned:hierarchy",
    "booster": "stream_engine.exports.label_predictions:booster",
    "classify": "stream_engine.exports.label_predictions:classify",
    "predictions": "stream_engine.exports.label_predictions:predictions",
    "kernel": "stream_engine.exports.learned:kernel",
    "embedding": "stream_engine.exports.learned:embedding",
    "dimensions": "stream_engine.exports.learned:dimensions",
    "models": "stream_engine.exports.models:models",
    "evidence": "stream_engine.exports.evidence:evidence",
    "questions": "stream_engine.exports.evidence:questions",
}
# export -> the kinds of artifacts that it is of; `kernel` has one file for each
# A refit that is not listed may bring an export of its own name: `export(published) -> {name: Content}`, `EXPORTED`
# (its arrays) and `COLUMNS` (those of its table), see `exports.declarations`.
OF_REFITS = {
    "clusters": ("clusters", "sdp_clustering"),
    "hierarchy": ("hierarchy",),
    "workers": ("reliability",),
    "participants": ("embedding",),
    "dimensions": ("dimensions",),
    "booster": ("triplet_boost",),
    "classify": ("classify",),
    "embedding": ("embedding",),
    "kernel": ("kernel_learning", "partial_order_embedding"),
}
REFIT_PACKAGE = "stream_engine.refits"  # loaded by its text: a refit is added there, not here
# table that is named otherwise than the export that makes it -> that export
TABLES = {
    "classifiers": "classify",
    "kernel_weights": "kernel",
    "cluster_answer": "clusters",
    "cluster_numbers": "clusters",
    "dimension_quality": "dimensions",
    "transform": "alignment",
    "alignment_objects": "alignment",
    "alignment_questions": "alignment",
}
# about people: written only when named, never served over HTTP
ON_REQUEST = frozenset({"workers", "participants", "judgements"})
# for which the reliability of workers is estimated each time: written only when named
FITTED_ANEW = frozenset({"adds3_trusted", "triplet_counts_trusted"})
# a row for each question that was asked, gigabytes of many: written only when named
EVERY_QUESTION = frozenset({"questions"})
ONLY_NAMED = ON_REQUEST | FITTED_ANEW | EVERY_QUESTION


class Content(NamedTuple):
    """`value` is a JSON document when given; else `arrays` by contract name, and beside them `tables` for people.
    `objects`: whom ids and axes of `arrays` speak of, where not of all objects of the snapshot; `subset`: whom what is
    over a subset of these speaks of. Every array is declared in `exports.declarations`."""

    arrays: Mapping[str, np.ndarray] = MappingProxyType({})
    tables: Mapping[str, Mapping[str, Any]] = MappingProxyType({})  # file name without suffix -> column -> values
    value: Any = None
    objects: tuple[str, ...] | None = None
    subset: tuple[str, ...] | None = None


class NothingToExport(LookupError):
    """The state does not have the requested results; the message says how to compute them."""


def all_exports() -> dict[str, str]:
    """WHAT -> "module:function" of every export: those of `EXPORTS`, and those that refits bring."""
    return EXPORTS | {kind: f"{module}:export" for kind, module in with_own_export().items()}


def with_own_export() -> dict[str, str]:
    """The refits that no export here is of, and their modules."""
    exported = {kind for kinds in OF_REFITS.values() for kind in kinds}
    return {kind: module for kind, module in import_module(REFIT_PACKAGE).REFITS.items() if kind not in exported}


def contents(what: str, published: Published) -> dict[str, Content]:
    """The contents registered under `what`. Raises `NothingToExport`."""
    module, _, function = all_exports()[what].partition(":")
    make = getattr(import_module(module), function, None)
    if make is None:
        raise NothingToExport(f"the refit {what} has no export")
    return make(published)


def export_of(file: str) -> tuple[str, str]:
    """What makes a file of this name, and in which format: ("", "") where nothing does.

    JSON files, which are documents and single figures, stand beside the tables of every format.

    >>> export_of("kernel.K.csv"), export_of("cluster_numbers.parquet"), export_of("summary.json")
    (('kernel', 'csv'), ('clusters', 'parquet'), ('summary', 'csv'))
    """
    stem, _, suffix = file.rpartition(".")
    first = stem.split(".")[0]
    what = TABLES.get(stem, TABLES.get(first, first))
    if suffix == "json":
        suffix = "csv"
    return (what, suffix) if what in all_exports() else ("", "")
