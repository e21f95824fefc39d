"""models: one row a model, how well it answers questions about judgements that it never had, and beside what ceiling.

Artifacts that say so have a row, and beside them stands what counts alone tell of the same judgements
(`prediction.count_figures`): AddS, k1, k2, the majority of the answers to the same question, a coin. The best comes
first: the one with the least log loss, then those that say none.
"""

from typing import Any

import numpy as np

from stream_engine.exports import Content, NothingToExport
from stream_engine.state.artifact_figures import figure
from stream_engine.state.published import Published

COLUMNS = {  # column -> where it stands in a report
    "accuracy": ("accuracy",),
    "standard_error": ("standard_error",),
    "accuracy_by_worker": ("by_worker", "accuracy"),
    "standard_error_by_worker": ("by_worker", "standard_error"),
    "workers": ("by_worker", "clusters"),
    "log_loss": ("log_loss",),
    "calibration_error": ("calibration_error",),
    "ceiling": ("ceiling", "others"),
    "ceiling_at_most": ("ceiling", "at_most"),
}


def models(published: Published) -> dict[str, Content]:
    """model, accuracy, accuracy_by_worker (on that many workers that it never heard), their standard errors (empty:
    unknown, of fewer than five judgements or workers), log_loss (nats an answer), calibration_error, ceiling (how often
    an answer is that of most others), ceiling_at_most (no model that answers alike for everybody is right more often:
    `statistics.held_out.Ceiling`), seconds (CPU, of the refit; counts need none)."""
    rows = table(published)
    if not rows:
        raise NothingToExport(
            "no model that says how well it predicts in this state; `stream-engine refit --state DIR kernel_learning` "
            "makes one"
        )
    names = [row["model"] for row in rows]
    columns = {name: [row[name] for row in rows] for name in (*COLUMNS, "seconds")}
    figures = {name: np.array([np.nan if v is None else v for v in values]) for name, values in columns.items()}
    return {"models": Content({"model": np.array(names)} | figures, {"models": {"model": names, **columns}})}


def table(published: Published) -> list[dict[str, Any]]:
    """The rows of `models`, None where a figure is not known; empty where no model says anything. About a CPU-second
    where counts are few enough for theirs."""
    from stream_engine.prediction.count_figures import of_counts  # loads the compiler

    rows = []
    for kind, artifact in sorted(published.artifacts.items()):
        if "held_out" in artifact.report and "log_loss" in artifact.report:
            figures = {name: figure(artifact.report, *path) for name, path in COLUMNS.items()}
            rows.append({"model": kind, **figures, "seconds": published.seconds.get(kind)})
    for name, told in of_counts(published.snapshot, _seed(published)).items():
        report = told.report()
        figures = {name: figure(report, *path) for name, path in COLUMNS.items()}
        rows.append({"model": name, **figures, "seconds": None})
    return sorted(rows, key=lambda row: (row["log_loss"] is None, row["log_loss"] or 0.0, row["model"]))


def left_out(published: Published) -> str | None:
    """Which rows are missing because they would cost too much, in words."""
    from stream_engine.prediction.count_figures import too_many

    return too_many(published.snapshot)


def _seed(published: Published) -> int:
    """That of the refits: whom they report on. 0 where none does."""
    said = [artifact for artifact in published.artifacts.values() if "held_out" in artifact.report]
    return max((artifact.seed for artifact in said), key=[a.seed for a in said].count, default=0)
