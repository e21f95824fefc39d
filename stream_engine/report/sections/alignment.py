"""Your features: how well each set predicts the answers, as it is and after learning; what is left; where it fails."""

from typing import Any

import numpy as np

from stream_engine.data.numbers_in_words import amount
from stream_engine.data.packed_names import unpack_names
from stream_engine.exports.alignment import (
    as_is_row,
    best_row,
    ceiling_of,
    left_of,
    object_tables,
    table,
    too_good,
)
from stream_engine.report import Section, Table
from stream_engine.report.drawings import Axis, Curve, Drawing, Points, Rules
from stream_engine.report.findings.words import percent
from stream_engine.report.material import Material
from stream_engine.state.artifact import Artifact, figure

TITLE = "Your features"
MAX_LISTED = 12  # objects and questions that are listed
STEPS = ("as it is", "weights", "linear map", "weights on new objects", "linear map on new objects")
CAPTION = "Accuracy of each set: as it is, with weights, with a linear map; hollow: weights and map on new objects"
ABOUT = (
    "As it is: cosine, Euclidean distance, dot product. Weights, linear map: learned, tested on held-out responses. By "
    "object: tested on objects that were not learned from. Left: share of the gap to the noise ceiling that the map of "
    "the answers alone closes."
)
OBJECTS = "Objects on which the best row is right least often. Agreement: with most others who answered the same."
PARTICIPANTS = "Share of the answers of each participant that each set predicts as it is."
FAILING = "People agree about objects at the top; features do not predict those at the left"
QUESTIONS = "Questions with a clear majority that the best row does not predict, the least likely answers first."


def section(material: Material) -> Section | None:
    """What each set predicts; None without the refit."""
    artifact = material.artifact("alignment")
    if artifact is None:
        return None
    rows, names = artifact.report["rows"], material.names
    columns = {head.replace("_", " "): values for head, values in table(material.published).items()}
    failing = object_tables(artifact, names)
    number = {name: i for i, name in enumerate(names)}
    tables = [Table("alignment", columns, about=ABOUT)]
    for name, head, about in (("alignment_objects", "object", OBJECTS), ("alignment_questions", "near_i", QUESTIONS)):
        shown = {key.replace("_", " "): _plain(values[:MAX_LISTED]) for key, values in failing[name].items()}
        if ids := [number[name] for name in failing[name][head][:MAX_LISTED]]:
            tables.append(Table(name, shown, np.array(ids), about))
    if material.workers and len(artifact.arrays["participant_answers"]):
        tables.append(_participants(artifact))
    says, caution = _says(material, artifact, rows)
    others = {row["transform"]: row["accuracy"] for row in _reference_rows(material)}
    drawing = _drawing(rows, [feature_set["name"] for feature_set in artifact.report["sets"]], others)
    drawings = (drawing, failing_objects(failing["alignment_objects"], number, best_row(rows)))
    notes = (*_notes(artifact), *_of_groups(material, artifact))
    if not material.facts.connected:
        notes += (f"The objects fall into sets that {material.facts.apart}: all figures hold within sets only.",)
    return Section(TITLE, says, tuple(filter(None, drawings)), tuple(tables), notes, caution)


def _reference_rows(material: Material) -> list[dict[str, Any]]:
    """Chance, the noise ceiling and the map."""
    columns = table(material.published)
    return [
        {"transform": transform, "accuracy": accuracy}
        for name, transform, accuracy in zip(*(columns[head] for head in ("set", "transform", "accuracy")))
        if not name
    ]


def _participants(artifact: Artifact) -> Table:
    """The accuracy of each set, as it is, on the answers of each participant."""
    arrays, sets = artifact.arrays, [feature_set["set"] for feature_set in artifact.report["predicts"]["sets"]]
    columns: dict[str, Any] = {
        "participant": list(unpack_names(arrays["participant_utf8"], arrays["participant_offsets"])),
        "answers": arrays["participant_answers"].astype(int).tolist(),
    }
    columns |= {name: shares.tolist() for name, shares in zip(sets, arrays["participant_accuracy"].T)}
    return Table("alignment_participants", columns, about=PARTICIPANTS)


def failing_objects(table: dict[str, Any], number: dict[str, int], best: dict[str, Any]) -> Drawing | None:
    """Where the best row fails although people agree; None where nobody answered what another one did."""
    with_agreement = np.flatnonzero(np.isfinite(table["agreement"]))
    if not len(with_agreement):
        return None
    x, y = 100 * table["accuracy"][with_agreement], 100 * table["agreement"][with_agreement]
    names = [table["object"][i] for i in with_agreement.tolist()]
    ids = np.array([number[name] for name in names])
    gap = np.argsort(x - y, kind="stable")[:3]
    about = f"Furthest to the upper left: {', '.join(names[i] for i in gap.tolist())}."
    return Drawing(
        "alignment_objects",
        FAILING,
        about,
        Axis(f"answers about the object that {_named(best)} predicts (%)"),
        Axis("agreement of people (%)"),
        (Points(x, y, ids, tuple(names), np.full(len(ids), -1)),),
        zooms=True,
    )


def _of_groups(material: Material, artifact: Artifact) -> tuple[str, ...]:
    """How well each set predicts each group of participants, where the embedding has several."""
    embedding, arrays = material.artifact("embedding"), artifact.arrays
    if embedding is None or "worker_group" not in embedding.arrays or not len(arrays["participant_answers"]):
        return ()
    people = unpack_names(embedding.arrays["utf8"], embedding.arrays["offsets"])
    group = dict(zip(people, embedding.arrays["worker_group"].tolist()))
    names = unpack_names(arrays["participant_utf8"], arrays["participant_offsets"])
    of, answers = np.array([group.get(name, -1) for name in names]), arrays["participant_answers"]
    sets = [feature_set["set"] for feature_set in artifact.report["predicts"]["sets"]]
    lines = []
    for number in range(int(of.max()) + 1 if of.max() > 0 else 0):
        shares = (
            answers[of == number] @ arrays["participant_accuracy"][of == number] / max(answers[of == number].sum(), 1)
        )
        shares_text = ", ".join(f"{name} {percent(share)}" for name, share in zip(sets, shares.tolist()))
        lines.append(f"group {number + 1} ({amount(int((of == number).sum()), 'participant')}): {shares_text}")
    return (f"By group of participants, as it is: {'; '.join(lines)}.",) if lines else ()


def _plain(values: Any) -> list[Any]:
    return values if isinstance(values, list) else values.tolist()


def _says(material: Material, artifact: Artifact, rows: list[dict[str, Any]]) -> tuple[str, bool]:
    """What was left out, the best set as it is and on new objects, what is left; and whether a set is suspicious."""
    report, says, suspect = artifact.report, "", too_good(artifact.report)
    if suspect:
        says = f"{suspect} predicts more than people agree with each other: was it made from these answers? "
    if n_without := int(figure(report, "without_features") or 0):
        of = f"of {amount(report['objects'], 'object')}"
        says += amount(report["objects"] - report["with_features"], f"{of} has", f"{of} have")
        says += f" no features in every set; {amount(n_without, 'comparison is', 'comparisons are')} left out. "
    says += f"As it is, {_named(best := as_is_row(rows))} predicts the answers best: {_interval(best)}; chance 50 %."
    if tested := [row for row in rows if figure(row, "by_object", "accuracy") is not None]:
        best = max(tested, key=lambda row: row["by_object"]["accuracy"])
        says += f" On objects that were not learned from, {_named(best)} is best: {_interval(best['by_object'])}."
    ceiling, best, embedding = ceiling_of(report), best_row(rows), material.artifact("embedding")
    map_accuracy = figure(embedding.report, "accuracy") if embedding else None
    if ceiling is not None:
        says += f" The noise ceiling is {percent(ceiling)}."
    if map_accuracy is not None and ceiling is not None:
        share = left_of(best["accuracy"], map_accuracy, ceiling)
        says += f" The map of the answers alone predicts {percent(map_accuracy)}"
        says += f": it closes {percent(share, 0)} of the gap between {_named(best)} and the ceiling." if share else "."
    return says, bool(suspect)


def _named(row: dict[str, Any]) -> str:
    return f"{row['set']} ({row['transform']})"


def _interval(row: dict[str, Any]) -> str:
    low, high = figure(row, "low"), figure(row, "high")
    bounds = "" if low is None or high is None else f" (95 % CI {100 * low:.1f} to {100 * high:.1f})"
    return percent(row["accuracy"]) + bounds


def _notes(artifact: Artifact) -> tuple[str, ...]:
    """What else was found about the sets, and for whom."""
    notes, report = [], artifact.report
    if constant := [feature_set for feature_set in report["sets"] if feature_set["constant_dimensions"]]:
        counts = ", ".join(f"{feature_set['name']} {feature_set['constant_dimensions']:,}" for feature_set in constant)
        notes.append(f"Constant dimensions, left out: {counts}.")
    if others := [feature_set["name"] for feature_set in report["sets"] if feature_set["joined_by"] != "name"]:
        notes.append(f"Joined by the name without folder and suffix: {', '.join(others)}.")
    if chosen := int(report["chosen_by_model"]):
        notes.append(f"{amount(chosen, 'answer')} to questions that a model chose are learned from, but not tested.")
    accuracy, answers = (np.asarray(artifact.arrays[f"participant_{name}"]) for name in ("accuracy", "answers"))
    if len(answers) > 1:
        first = [feature_set["set"] for feature_set in report["predicts"]["sets"]]
        spread = ", ".join(
            f"{name} {percent(low, 0)} to {percent(high, 0)}"
            for name, low, high in zip(first, *np.quantile(accuracy, (0.1, 0.9), axis=0))
        )
        notes.append(f"Of {amount(len(answers), 'participant')}, the middle 80 % are predicted: {spread}.")
    return tuple(notes)


def _drawing(rows: list[dict[str, Any]], sets: list[str], rules: dict[str, float]) -> Drawing:
    """Of each set the accuracy step by step of learning, with intervals; hollow: on new objects."""
    marks: list[Any] = []
    for number, name in enumerate(sets):
        mine = [row for row in rows if row["set"] == name]
        learned = {row["transform"]: row for row in mine}
        steps = [as_is_row(mine), *(learned.get(kind) for kind in ("weights", "linear map"))]
        steps += [row and row["by_object"] for row in steps[1:]]
        for step, row in enumerate(steps):
            if row:
                x, hollow = np.array([number + 0.15 * (step - 2)]), np.array([step > 2])
                y, low, high = (np.array([_figure(row, key)]) for key in ("accuracy", "low", "high"))
                marks.append(Curve(x, y, f"{name}, {STEPS[step]}", np.stack([y - low, high - y]), hollow=hollow))
    about = f"Accuracy: {', '.join(f'{mark.name} {mark.y[0]:.3f}' for mark in marks)}."
    marks.append(Rules(tuple(rules.values()), tuple(rules)))
    x_axis = Axis("", -0.6, len(sets) - 0.4, tuple((float(at), name) for at, name in enumerate(sets)))
    y_axis = Axis("share of answers predicted")
    return Drawing("alignment", CAPTION, about, x_axis, y_axis, tuple(marks))


def _figure(row: dict[str, Any] | None, key: str) -> float:
    """A figure; the accuracy itself for an end of an interval that is not known."""
    value = figure(row or {}, key)
    return row["accuracy"] if row and value is None else value or 0.0
