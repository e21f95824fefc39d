"""Prediction accuracy: the best model in a sentence, all models in a table."""

from stream_engine.evaluation.cross_fit import HALF_WIDTH
from stream_engine.exports.models import MIN_NEW_PARTICIPANTS
from stream_engine.report import Section, Table
from stream_engine.report.findings import sentences
from stream_engine.report.findings.models import explained
from stream_engine.report.material import Material

TITLE = "Prediction accuracy"
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
COLUMNS = (
    "Accuracy: share of held-out comparisons predicted correctly; no prediction counts half. Log loss: nats per "
    "comparison, 0.693 at chance; less is better. Calibration error: mean difference between stated probabilities and "
    "observed frequencies. The test set is never used to select a setting."
)
NOT_ALL = (
    " Not all comparisons were held out: where there are many, folds are held out one after another only until the "
    f"95 % interval of the accuracy cannot be wider than ± {100 * HALF_WIDTH:.0f} points, and questions that a model "
    "selected may be left out."
)


def section(material: Material) -> Section:
    """The best model in a sentence, all of them in a table."""
    rows = material.facts.models
    if not rows:
        return Section(
            TITLE,
            "No model has been fitted yet, or there are too few answers for a test set.",
            notes=(material.facts.commands.how_to_fit("embedding"),),
        )
    columns = {head: [row.get(name) for row in rows] for name, head in MODEL_HEADS.items()}
    columns = {head: column for head, column in columns.items() if any(value is not None for value in column)}
    is_part = 0 < material.facts.held_out < material.summary["comparisons"]
    about, notes = f"{COLUMNS}{NOT_ALL if is_part else ''} Models: {explained(str(row['model']) for row in rows)}.", []
    if NEW_PEOPLE not in columns:
        notes.append(f"Accuracy for new participants needs at least {MIN_NEW_PARTICIPANTS} held-out participants.")
    says = sentences(material.findings, "accuracy") or material.findings["accuracy"][0].text
    return Section(TITLE, says, (), (Table("models", columns, about=about),), tuple(notes))
