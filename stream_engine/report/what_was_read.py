"""What was read, and what was rejected and why."""

from stream_engine.report import Section, Table
from stream_engine.report.findings import sentences
from stream_engine.report.material import Material

TITLE = "Data"


def section(material: Material) -> Section:
    """How many events of which kinds; tables of what was counted and of reasons to reject."""
    summary = material.summary
    rejected = sum(summary["rejected"].values())
    says = sentences(material.findings, "data")
    if not summary["events"] and not rejected:
        return Section(TITLE, says)
    counts = {
        "events": summary["events"],
        "rejected events": rejected,
        "filtered events": summary["filtered"],
        "events without a comparison": summary["empty"],
        "comparisons": summary["comparisons"],
        "comparisons of three objects": summary["triplets"],
        "comparisons of four objects": summary["quadruplets"],
        "distinct questions": summary["unique_triplets"] - summary["contradicting_pairs"],
        "distinct answers to them": summary["unique_triplets"],
        "objects": summary["objects"],
        "objects with a label": summary["labelled_objects"],
    }
    tables = [Table("read", {"what": list(counts), "number": list(counts.values())})]
    if rejected:
        reasons = summary["rejected"]
        tables.append(Table("rejected", {"reason": list(reasons), "events": list(reasons.values())}))
    notes = tuple(f"To see the rejected events: {each.command}" for each in material.findings["data"] if each.command)
    return Section(TITLE, says, (), tuple(tables), notes)
