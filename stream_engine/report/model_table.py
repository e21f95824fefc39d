"""The table of models: how well each answers judgements that it never had, beside how far people agree."""

from stream_engine.exports.in_words import models_explained
from stream_engine.exports.models import PEOPLE, table
from stream_engine.report import Section, Table
from stream_engine.report.material import Material
from stream_engine.report.words import percent, some

FEW = 20  # held-out answers, below which a share of them says nothing
NEW_PEOPLE = "accuracy, new people"
HEADS = {
    "model": "model",
    "accuracy": "accuracy",
    "accuracy_by_worker": NEW_PEOPLE,
    "log_loss": "log loss",
    "calibration_error": "calibration error",
    "ceiling": "people agree",
    "ceiling_at_most": "at most",
    "seconds": "CPU seconds",
}


def section(material: Material) -> Section:
    """The best model in a sentence, all of them in a table."""
    rows = table(material.published)
    if not rows:
        return Section(
            "How well answers can be foretold",
            "No model has been fitted to these answers yet, or there are too few to hold any out.",
            notes=(f"Fit one with: stream-engine refit --state {material.directory} embedding",),
        )
    best = next((row for row in rows if row["accuracy"] is not None), None)
    artifact = material.artifact(best["model"]) if best else None
    held_out = int((artifact.report if artifact else {}).get("held_out_comparisons") or 0)
    columns = {head: [row.get(name) for row in rows] for name, head in HEADS.items()}
    notes = [*NOTES, f"{models_explained(str(row['model']) for row in rows)}."]
    if not any(value is not None for value in columns[NEW_PEOPLE]):
        del columns[NEW_PEOPLE]
        notes.append(f"Accuracy with people who were never heard is not told: that takes {PEOPLE} people held out.")
    tables = (Table("models", columns),)
    return Section("How well answers can be foretold", _says(best, held_out), (), tables, tuple(notes))


NOTES = (
    "Accuracy: the share of held-out comparisons that come as expected. Log loss: in nats an answer, .693 for a coin; "
    "smaller is better. Calibration error: how far stated probabilities are from what happens. What chose a setting is "
    "never what is reported.",
)


def _says(best: dict | None, held_out: int) -> str:
    if best is None:
        return "There are too few answers to hold any out, so how well a model does is not known."
    if best["standard_error"] is None and 0 < held_out < FEW:
        return (
            f"Too few answers to say: only {some(held_out, 'answer')} could be held out, of which the best model "
            f"({best['model'].replace('_', ' ')}) foretells {percent(best['accuracy'], 0)}."
        )
    error = best["standard_error"]
    sure = "" if error is None else f" (± {196 * error:.1f} %)"
    of = f"{held_out:,} answers" if held_out else "the answers of judgements"
    says = (
        f"The best model here ({best['model'].replace('_', ' ')}) foretells {percent(best['accuracy'])}{sure} of {of} "
        "that it never had; a coin would get 50 %"
    )
    most = best["ceiling_at_most"]
    if most is None:
        return says + "; how far people agree is not known."
    says += f". Since people differ, no model that answers alike for everybody is right in more than {percent(most)}"
    apart = most - best["accuracy"]
    return says + (": little is left to learn." if apart < 0.015 else f": at most {percent(apart)} are left to learn.")
