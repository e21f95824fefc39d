"""Contradictions, and the partial order that is left when what would close a cycle is refused."""

import numpy as np

from stream_engine.data.triplet_columns import pair_of_entry
from stream_engine.report import Section, Table
from stream_engine.report.material import Material
from stream_engine.report.words import count, percent, some
from stream_engine.state.snapshot import triplet_columns

SHOWN = 20
COUNTED = (
    "What the partial order leaves out is left out nowhere else: map, clusters and similarities are made of all "
    "answers. It leaves out single comparisons, in the order in which they came; answered both ways are questions."
)


def section(material: Material) -> Section:
    """How many questions were answered both ways, which most; what the guard kept."""
    summary = material.summary
    columns = triplet_columns(material.snapshot)
    smaller = np.minimum(columns.n_lo, columns.n_hi)
    guard = summary["guard"]
    title = "Contradictions and the partial order"
    if not summary["comparisons"]:
        return Section(title, "No comparison has come yet.")
    pairs, triplets = summary["contradicting_pairs"], summary["contradicting_triplets"]
    if not summary["triplets"]:
        says = "All comparisons are of four objects: whether a question was answered both ways is not counted."
    elif not pairs:
        says = f"No answer contradicts another ({some(summary['unique_triplets'], 'different one')})."
    else:
        says = (
            f"{some(pairs, 'question was', 'questions were')} answered both ways, {count(_ties(columns))} of them "
            f"equally often; {percent(triplets / summary['triplets'])} of all answers are in the minority of their "
            "question, of equally many either half."
        )
    tables, left_out = [], guard.get("cycle", 0) + guard.get("contradiction", 0)
    if pairs:
        tables.append(_both_ways(material, columns, smaller))
    if guard:
        says += (
            f" The partial order keeps {some(guard.get('accepted', 0), 'comparison')}, "
            f"{count(guard.get('duplicate', 0))} repeat one of "
            f"them; {count(guard.get('cycle', 0))} would have closed a cycle of three or more, and "
            f"{count(guard.get('contradiction', 0))} say the opposite of one that is kept."
        )
        tables.append(Table("guard", {"verdict": list(guard), "comparisons": list(guard.values())}))
    return Section(title, says, (), tuple(tables), (COUNTED,) if left_out else ())


def _ties(columns) -> int:
    return int(np.count_nonzero((columns.n_lo == columns.n_hi) & (columns.n_lo > 0)))


def _both_ways(material: Material, columns, smaller: np.ndarray) -> Table:
    most = np.argsort(-smaller, kind="stable")[:SHOWN]
    most = most[smaller[most] > 0]
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
            "said so": np.maximum(columns.n_lo, columns.n_hi)[most].tolist(),
            "said the opposite": smaller[most].tolist(),
        },
        about=f"Questions that were answered both ways, the most divided first, at most {SHOWN}; where both were said "
        "equally often, there is no majority.",
    )
