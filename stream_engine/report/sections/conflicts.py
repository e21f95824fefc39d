"""Conflicting answers, and what the partial order excluded."""

import numpy as np

from stream_engine.data.triplet_columns import pair_of_entry
from stream_engine.report import Section, Table
from stream_engine.report.findings import sentences
from stream_engine.report.material import Material
from stream_engine.state.snapshot import triplet_columns

MAX_LISTED = 20
TITLE = "Conflicting answers"


def section(material: Material) -> Section:
    """How many questions have conflicting answers, and which most; what the guard kept."""
    summary = material.summary
    if not summary["comparisons"]:
        return Section(TITLE, "No comparison has been counted yet.")
    conflicts = [finding.text for finding in material.findings["agreement"] if finding.what == "conflicting_answers"]
    if not summary["triplets"]:
        conflicts = ["All comparisons are of four objects; their conflicting answers are not counted."]
    elif not conflicts:
        conflicts = ["Conflicting answers are not counted: triplet_counts is not among the `accumulators`."]
    says = " ".join([*conflicts, sentences(material.findings, "order")]).strip()
    tables = []
    if summary["contradicting_pairs"]:
        tables.append(_both_ways(material))
    guard = {verdict: n for verdict, n in summary["guard"].items() if material.snapshot.settings["guard"]}
    if guard:
        tables.append(Table("guard", {"verdict": list(guard), "comparisons": list(guard.values())}, folded=True))
    return Section(TITLE + (" and the partial order" if guard else ""), says, (), tuple(tables))


def _both_ways(material: Material) -> Table:
    columns = triplet_columns(material.snapshot)
    smaller = np.minimum(columns.n_lo, columns.n_hi)
    most = np.argsort(-smaller, kind="stable")[:MAX_LISTED]
    most = most[smaller[most] > 0]
    n_conflicts = int(np.count_nonzero(smaller))
    listed = f"The {MAX_LISTED} questions with the most conflicting answers, of {n_conflicts:,}"
    listed = (
        listed if n_conflicts > MAX_LISTED else "All questions with conflicting answers, the most conflicting first"
    )
    pair = pair_of_entry(columns)[most]
    swap = columns.n_lo[most] < columns.n_hi[most]
    near = np.where(swap, columns.hi[pair], columns.lo[pair])
    far = np.where(swap, columns.lo[pair], columns.hi[pair])
    return Table(
        "both_ways",
        {
            "anchor": [material.names[i] for i in columns.anchor[most].tolist()],
            "nearer": [material.names[i] for i in near.tolist()],
            "farther": [material.names[i] for i in far.tolist()],
            "answers": np.maximum(columns.n_lo, columns.n_hi)[most].tolist(),
            "opposite answers": smaller[most].tolist(),
        },
        about=f"{listed}. In a tie there is no majority.",
    )
