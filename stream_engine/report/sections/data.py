"""What was read: how many events of which kinds, and what was rejected."""

from stream_engine.report import Section, Table
from stream_engine.report.findings import sentences
from stream_engine.report.material import Material


def section(material: Material) -> Section:
    """How many events of which kinds; tables of what was counted and of reasons to reject."""
    summary = material.summary
    rejected = sum(summary["rejected"].values())
    says = sentences(material.findings, "data")
    if not summary["events"] and not rejected:
        return Section("Data", says)
    counts = {
        "answers read": summary["events"] - summary["kinds"].get("label", 0),
        "rejected": rejected,
        "filtered": summary["filtered"],
        "empty messages": summary["empty"],
        "comparisons": summary["comparisons"],
        "comparisons of three objects": summary["triplets"],
        "comparisons of four objects": summary["quadruplets"],
        "distinct questions (anchor and two objects)": summary["unique_triplets"] - summary["contradicting_pairs"],
        "distinct answers to these": summary["unique_triplets"],
        "objects": summary["objects"],
        "objects with a label": summary["labelled_objects"],
    }
    tables = [Table("read", {"what": list(counts), "number": list(counts.values())}, folded=True)]
    if rejected:
        reasons = summary["rejected"]
        tables.append(Table("rejected", {"reason": list(reasons), "events": list(reasons.values())}))
    notes = tuple(
        f"To see the rejected events: {finding.command}"
        for finding in material.findings["data"]
        if finding.what == "rejected" and finding.command
    )
    return Section("Data", says, (), tuple(tables), notes)
