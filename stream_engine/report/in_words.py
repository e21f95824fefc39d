"""Sections without figures: data quality, accuracy of models, agreement, what was read, what to ask next,
conflicting answers."""

from collections.abc import Iterator

import numpy as np

from stream_engine import asking
from stream_engine.asking.known import known_from
from stream_engine.data.triplet_columns import pair_of_entry
from stream_engine.exports.models import PEOPLE
from stream_engine.report import Section, Table
from stream_engine.report.findings import GAP, sentences, warnings
from stream_engine.report.findings.facts import Facts
from stream_engine.report.findings.models import explained
from stream_engine.report.findings.words import listed, some
from stream_engine.report.material import Material
from stream_engine.state.artifact import figure
from stream_engine.state.snapshot import triplet_columns


def quality(material: Material) -> Section:
    """Every warning in a line with the command that helps; then the checks that passed, and what is missing."""
    if not material.summary["comparisons"]:
        return Section("Data quality", "There is nothing to check yet.")
    found, passed = warnings(material.findings), list(_passed(material.facts))
    says = f"{some(len(found), 'problem')} found." if found else "No problem was found."
    notes = [f"{each.text} {each.command}".strip() for each in found]
    notes += [f"{each.text} {each.command}".strip() for each in material.findings["excluded"] if each.level != GAP]
    if passed:
        notes.append(f"Passed: {listed(passed)}.")
    missing = [each.text for topic in material.findings.values() for each in topic if each.level == GAP]
    return Section("Data quality", says, notes=(*notes, *missing))


def _passed(facts: Facts) -> Iterator[str]:
    """The checks that found nothing wrong."""
    if facts.beats_chance:
        yield "a model predicts held-out comparisons better than chance"
    if facts.sets is not None and facts.connected:
        yield "all objects are connected by comparisons"
    if facts.beats_chance and facts.participants is not None and not facts.participants.flagged:
        yield "no participant is flagged"


ACCURACY = "Prediction accuracy"
NEW_PEOPLE = "accuracy, new participants"
MODEL_HEADS = {
    "model": "model",
    "accuracy": "accuracy",
    "accuracy_by_worker": NEW_PEOPLE,
    "log_loss": "log loss",
    "calibration_error": "calibration error",
    "ceiling": "inter-rater agreement",
    "ceiling_at_most": "noise ceiling, at most",
    "seconds": "CPU seconds",
}
ACCURACY_NOTES = (
    "Accuracy: share of held-out comparisons predicted correctly. Log loss: nats per comparison, 0.693 at chance; less "
    "is better. Calibration error: mean difference between stated probabilities and observed frequencies. The test "
    "set is never used to select a setting.",
)


def models(material: Material) -> Section:
    """The best model in a sentence, all of them in a table."""
    rows = material.facts.models
    if not rows:
        return Section(
            ACCURACY,
            "No model has been fitted yet, or there are too few answers for a test set.",
            notes=(f"Fit one with: stream-engine refit --state {material.facts.commands.state} embedding",),
        )
    columns = {head: [row.get(name) for row in rows] for name, head in MODEL_HEADS.items()}
    notes = [*ACCURACY_NOTES, f"{explained(str(row['model']) for row in rows)}."]
    if not any(value is not None for value in columns[NEW_PEOPLE]):
        del columns[NEW_PEOPLE]
        notes.append(f"Accuracy for new participants needs at least {PEOPLE} held-out participants.")
    says = sentences(material.findings, "accuracy") or material.findings["accuracy"][0].text
    return Section(ACCURACY, says, (), (Table("models", columns),), tuple(notes))


def agreement(material: Material) -> Section:
    """Agreement in sentences, and its figures in a table."""
    found = material.findings
    both = (*found["agreement"], *found["participants"])
    says = " ".join(filter(None, (sentences(found, "agreement"), sentences(found, "participants"))))
    gaps = tuple(each.text for each in both if each.level == GAP)
    notes = tuple(
        f"To list them: {each.command}" for each in found["participants"] if each.command and each.level != GAP
    )
    ceiling = material.facts.ceiling
    tables: tuple[Table, ...] = ()
    if ceiling:
        rows = {
            "with": ["other participants", "themselves", "noise ceiling, at most"],
            "share": [figure(ceiling, name) for name in ("others", "themselves", "at_most")],
            "comparisons": [_whole(figure(ceiling, name)) for name in ("answers", "own_answers")] + [None],
        }
        tables = (Table("agreement", rows),)
    return Section("Agreement", says or "No data yet.", (), tables, gaps + (() if material.workers else notes))


def _whole(n: float | None) -> int | None:
    return None if n is None else int(n)


def read(material: Material) -> Section:
    """How many events of which kinds; tables of what was counted and of reasons to reject."""
    summary = material.summary
    rejected = sum(summary["rejected"].values())
    says = sentences(material.findings, "data")
    if not summary["events"] and not rejected:
        return Section("Data", says)
    counts = {
        "answers read": summary["events"],
        "rejected": rejected,
        "filtered": summary["filtered"],
        "answers without a comparison": summary["empty"],
        "comparisons": summary["comparisons"],
        "comparisons of three objects": summary["triplets"],
        "comparisons of four objects": summary["quadruplets"],
        "distinct questions (anchor and two objects)": summary["unique_triplets"] - summary["contradicting_pairs"],
        "distinct outcomes of these": summary["unique_triplets"],
        "objects": summary["objects"],
        "objects with a label": summary["labelled_objects"],
    }
    tables = [Table("read", {"what": list(counts), "number": list(counts.values())}, folded=True)]
    if rejected:
        reasons = summary["rejected"]
        tables.append(Table("rejected", {"reason": list(reasons), "events": list(reasons.values())}))
    first = material.facts.commands.first
    notes = tuple(
        f"To see the rejected events: {first}{each.command}" for each in material.findings["data"] if each.command
    )
    return Section("Data", says, (), tuple(tables), notes)


ENOUGH = 10  # answers about each object, below which any question about it helps
SUGGESTED = 10
LARGEST = 10_000  # objects, above which questions are left to `ask`: they take a while
NEXT = "What to ask next"


def what_next(material: Material) -> Section:
    """One piece of advice, the questions, and the command for more."""
    answers = material.answers.answers
    if len(answers) < 3:
        return Section(NEXT, "Questions need at least three objects.")
    commands = material.facts.commands
    says, note = _advice(material), f"{commands.first}stream-engine ask --state {commands.state} --n 100"
    if len(answers) > LARGEST:
        return Section(NEXT, says, notes=(note,))
    try:
        known = known_from(material.snapshot, material.artifact("embedding"))
        left = asking.questions_left(known)
        if not left:
            return Section(NEXT, "Every question about three objects has been answered.")
        asked = asking.questions(known, min(SUGGESTED, left))
    except asking.CannotAsk as error:
        return Section(NEXT, says, notes=(str(error), note))
    anchor, left_one, right_one = ([material.names[i] for i in column] for column in asked.rows.T.tolist())
    columns = {"anchor": anchor, "left": left_one, "right": right_one, "chosen by": asked.sampler.tolist()}
    about = "Which of the two is more like the anchor? Sorted by priority."
    return Section(NEXT, says, (), (Table("questions", columns, about=about),), (note,))


def _advice(material: Material) -> str:
    answers = material.answers.answers
    if not material.by_object:
        return "Questions about the objects with the fewest comparisons come first."
    if thin := int((answers < ENOUGH).sum()):
        return f"{some(thin, 'object has', 'objects have')} fewer than {ENOUGH} comparisons: ask about these first."
    return (
        f"Each of the {len(answers):,} objects has at least {ENOUGH} comparisons. The questions balance the number of "
        "comparisons per object and per pair of objects (strategy coverage, without a model)."
    )


SHOWN = 20
CONFLICTS = "Conflicting answers"


def contradictions(material: Material) -> Section:
    """How many questions have conflicting answers, and which most; what the guard kept."""
    summary = material.summary
    if not summary["comparisons"]:
        return Section(CONFLICTS, "No comparison has been counted yet.")
    conflicts = [each.text for each in material.findings["agreement"] if each.what == "conflicting_answers"]
    if not summary["triplets"]:
        conflicts = ["All comparisons are of four objects; their conflicting answers are not counted."]
    says = " ".join([*conflicts, sentences(material.findings, "order")]).strip()
    tables = []
    if summary["contradicting_pairs"]:
        tables.append(_both_ways(material))
    guard = {verdict: n for verdict, n in summary["guard"].items() if material.snapshot.settings["guard"]}
    if guard:
        tables.append(Table("guard", {"verdict": list(guard), "comparisons": list(guard.values())}, folded=True))
    return Section(CONFLICTS + (" and the partial order" if guard else ""), says, (), tuple(tables))


def _both_ways(material: Material) -> Table:
    columns = triplet_columns(material.snapshot)
    smaller = np.minimum(columns.n_lo, columns.n_hi)
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
            "answers": np.maximum(columns.n_lo, columns.n_hi)[most].tolist(),
            "opposite answers": smaller[most].tolist(),
        },
        about=f"The {SHOWN} questions with the most conflicting answers. In a tie there is no majority.",
    )
