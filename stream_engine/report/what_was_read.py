"""What was read, and what was refused and why."""

from stream_engine.report import Section, Table
from stream_engine.report.material import Material
from stream_engine.report.words import count, listed, percent, some

KINDS = {"odd_one_out": "odd-one-out", "most_central": "most-central"}


def section(material: Material) -> Section:
    """How many events of which kinds, how many were refused; a table of reasons."""
    summary = material.summary
    refused = sum(summary["rejected"].values())
    read = summary["events"]
    if not read and not refused:
        return Section("What was read", "Nothing has been read yet: this page fills as answers come.")
    named = {KINDS.get(kind, kind): n for kind, n in summary["kinds"].items()}
    kinds = [some(n, kind) for kind, n in named.items()] if len(named) > 1 else [f"{kind}s" for kind in named]
    says = (
        f"{some(read, 'event')} ({listed(kinds)}) about {some(summary['objects'], 'object')} gave "
        f"{some(summary['comparisons'], 'comparison')}{_each(summary)}."
    )
    if refused:
        reasons = [f"{count(n)} {reason.replace('_', ' ')}" for reason, n in summary["rejected"].items()]
        says += (
            f" {percent(refused / (read + refused))} of what came, {some(refused, 'event')}, was refused "
            f"({listed(reasons)}) and is kept among the dead letters."
        )
    else:
        says += " Nothing was refused."
    names = {
        "events": read,
        "refused": refused,
        "filtered out": summary["filtered"],
        "without a comparison": summary["empty"],
        "comparisons": summary["comparisons"],
        "of three objects": summary["triplets"],
        "of four objects": summary["quadruplets"],
        "different questions": summary["unique_triplets"] - summary["contradicting_pairs"],
        "different answers to them": summary["unique_triplets"],
        "objects": summary["objects"],
        "objects with a label": summary["labelled_objects"],
    }
    tables = [Table("read", {"what": list(names), "how many": list(names.values())})]
    if refused:
        rejected = summary["rejected"]
        tables.append(Table("refused", {"refused because": list(rejected), "events": list(rejected.values())}))
    notes = []
    if refused:
        notes.append(f"Look at them with: stream-engine dead-letters --state {material.directory} list")
    if summary["unknown_fields"]:
        notes.append(f"Fields that nobody reads were passed over: {listed(sorted(summary['unknown_fields']))}.")
    return Section("What was read", says, (), tuple(tables), tuple(notes))


def _each(summary: dict) -> str:
    """In how many an object is: each is about three objects, or about four."""
    if not summary["objects"]:
        return ""
    each = 3 * summary["triplets"] + 4 * summary["quadruplets"]
    about = "three" if not summary["quadruplets"] else "three or four" if summary["triplets"] else "four"
    return f", each about {about} of them: an object is in {count(each / summary['objects'])} on average"
