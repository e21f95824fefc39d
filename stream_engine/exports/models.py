"""models: one row a model, how well it answers questions about judgements that it never had, and beside what ceiling.

Artifacts that say so have a row, and beside them stands what counts alone tell of the same judgements
(`evaluation.probability`): AddS, k1, k2, the majority of the answers to the same question, a coin. The best comes
first: the one with the least log loss, then those that say none.
"""

from collections.abc import Mapping, Sequence
from math import hypot
from statistics import NormalDist
from types import MappingProxyType
from typing import Any

import numpy as np

from stream_engine.exports import Content, NothingToExport
from stream_engine.state.artifact import Artifact, figure, is_of_subset
from stream_engine.state.published import Published
from stream_engine.state.snapshot import Snapshot

COLUMNS = {  # column -> where it stands in a report
    "accuracy": ("accuracy",),
    "standard_error": ("standard_error",),
    "accuracy_by_worker": ("by_worker", "accuracy"),
    "standard_error_by_worker": ("by_worker", "standard_error"),
    "workers": ("by_worker", "clusters"),
    "comparisons": ("held_out_comparisons",),
    "log_loss": ("log_loss",),
    "calibration_error": ("calibration_error",),
    "ceiling": ("ceiling", "others"),
    "ceiling_at_most": ("ceiling", "at_most"),
}


MIN_NEW_PARTICIPANTS = 5  # never heard, below which their accuracy is no figure
COUNTS = {"adds3", "adds4", "k1", "k2", "majority", "chance"}  # as `evaluation.probability` calls them
BASELINES = ("majority", "chance")
MIN_HELD_OUT = 20  # held-out comparisons, below which a share of them says nothing
CHANCE_TEST_LEVEL = 0.01  # one-sided, over all models together; what is said of map and clusters depends on it
COUNTS_TOLD = "counts_told"  # DIR/counts_told.json, see `counts_told`


def models(published: Published) -> dict[str, Content]:
    """A row a model. Raises `NothingToExport`."""
    rows = table(published)
    if not rows:
        raise NothingToExport("no evaluated model in this state; run `stream-engine refit --state DIR kernel_learning`")
    names = [row["model"] for row in rows]
    columns = {name: [row[name] for row in rows] for name in (*COLUMNS, "seconds")}
    figures = {name: np.array([np.nan if v is None else v for v in values]) for name, values in columns.items()}
    return {"models": Content({"model": np.array(names)} | figures, {"models": {"model": names, **columns}})}


def table(published: Published, noted: Mapping[str, Any] = MappingProxyType({})) -> list[dict[str, Any]]:
    """The rows of `models`, None where a figure is not known; empty where no model says anything. About a CPU-second
    where counts are few enough for theirs, unless `noted` (what `counts_told` gave) is about the snapshot of one of
    the artifacts."""
    rows = _of_artifacts(published)
    for name, report in _by_counts(published, noted).items():
        rows.append({"model": name, **_figures(report), "seconds": None})
    return sorted(rows, key=lambda row: (row["log_loss"] is None, row["log_loss"] or 0.0, row["model"]))


def _of_artifacts(published: Published) -> list[dict[str, Any]]:
    return [
        {"model": kind, **_figures(artifact.report), "seconds": published.seconds.get(kind)}
        for kind, artifact in sorted(published.artifacts.items())
        if "held_out" in artifact.report and "log_loss" in artifact.report
    ]


def reported(rows: Sequence[dict[str, Any]], artifacts: Mapping[str, Artifact]) -> dict[str, Any] | None:
    """The row of the model that is reported, see `report.findings.facts`."""
    tested = [row for row in rows if row["accuracy"] is not None and row["model"] not in BASELINES]
    of_subset = {kind for kind, artifact in artifacts.items() if is_of_subset(artifact)}
    tested = [row for row in tested if row["model"] not in of_subset] or tested
    embedding = next((row for row in tested if row["model"] == "embedding"), None)
    if embedding is None or embedding["standard_error"] is None:
        return tested[0] if tested else None
    z = NormalDist().inv_cdf(1.0 - CHANCE_TEST_LEVEL / len(tested))

    def better(row: dict[str, Any]) -> bool:
        return row["accuracy"] - embedding["accuracy"] > z * hypot(
            row["standard_error"] or 1.0, embedding["standard_error"]
        )

    return next((row for row in tested if better(row)), embedding)


def beats_chance(
    rows: Sequence[dict[str, Any]], artifacts: Mapping[str, Artifact], further_tests: int = 0
) -> bool | None:
    """Whether the reported model predicts better than chance, see `report.findings.facts`; `further_tests`: of models
    that have no row."""
    best = reported(rows, artifacts)
    if best is None or best["standard_error"] is None or 0 < (best["comparisons"] or 0) < MIN_HELD_OUT:
        return None
    tests = further_tests + sum(row["standard_error"] is not None for row in rows if row["model"] not in BASELINES)
    return best["accuracy"] - NormalDist().inv_cdf(1.0 - CHANCE_TEST_LEVEL / tests) * best["standard_error"] > 0.5


def best_above_chance(rows: Sequence[dict[str, Any]], artifacts: Mapping[str, Artifact]) -> dict[str, Any] | None:
    """The first row whose model predicts better than chance, by the bound of `beats_chance`; None where none does."""
    models = [row for row in rows if row["standard_error"] is not None and row["model"] not in BASELINES]
    return next((row for row in models if beats_chance([row], artifacts, len(models) - 1)), None)


BASELINE_ERRORS = 1.96  # standard errors of the difference from which a baseline predicts better than every model


def better_baseline(rows: Sequence[dict[str, Any]]) -> dict[str, Any] | None:
    """The row of a baseline that predicts better than chance and than every model; None where none does."""
    models = [row for row in rows if row["accuracy"] is not None and row["model"] not in BASELINES]
    for row in rows:
        error = row["standard_error"]
        if row["model"] not in BASELINES or error is None or (row["comparisons"] or 0) < MIN_HELD_OUT:
            continue
        errors = [(model["accuracy"], hypot(model["standard_error"] or 0.0, error)) for model in models]
        if all(row["accuracy"] - BASELINE_ERRORS * both > accuracy for accuracy, both in [*errors, (0.5, error)]):
            return row
    return None


def any_beats_chance(published: Published) -> bool | None:
    """`beats_chance` of the whole table, which is not made where the embedding is clearly above chance."""
    embedding = [row for row in _of_artifacts(published) if row["model"] == "embedding"]
    if beats_chance(embedding, published.artifacts, len(published.artifacts) + len(COUNTS)):
        return True  # in the whole table, too, where there are fewer tests
    return beats_chance(table(published), published.artifacts)


def _figures(report: Mapping[str, Any]) -> dict[str, Any]:
    """The columns of a report; without the accuracy by worker where it would be that of a few people, by luck."""
    figures = {name: figure(report, *path) for name, path in COLUMNS.items()}
    return figures if (figures["workers"] or 0) >= MIN_NEW_PARTICIPANTS else {**figures, "accuracy_by_worker": None}


def counts_told(snapshot: Snapshot, seed: int) -> dict[str, Any]:
    """What counts alone tell of a snapshot, as JSON takes it: so that who only looks need not make it again."""
    from stream_engine.evaluation.count_models import count_figures, too_large  # loads the compiler

    reports = {name: figures.report() for name, figures in count_figures(snapshot, seed).items()}
    about = {
        "snapshot": snapshot.sequence,
        "digest": snapshot.digest,
        "comparisons": snapshot.counters["comparisons"],  # fewer where participants are excluded
        "seed": seed,
    }
    return {**about, "left_out": too_large(snapshot), "models": reports}


def _by_counts(published: Published, noted: Mapping[str, Any]) -> Mapping[str, Any]:
    """The report of each model that is counts alone, by name."""
    models = noted.get("models")
    if isinstance(models, Mapping) and set(models) <= COUNTS and fits(published, noted):
        return models
    return counts_told(published.snapshot, _seed(published))["models"]


def fits(published: Published, noted: Mapping[str, Any]) -> bool:
    """Whether what was noted is about the answers that the artifacts report on."""
    comparisons = published.snapshot.counters["comparisons"]
    excluded = list(published.excluded)  # others may have given as many answers
    if noted.get("comparisons", comparisons) != comparisons or noted.get("excluded", excluded) != excluded:
        return False
    of = {artifact.sequence for artifact in published.artifacts.values() if "held_out" in artifact.report}
    return noted.get("snapshot") in of and noted.get("seed") == _seed(published)


def left_out(published: Published) -> str | None:
    """Which rows are missing because they would cost too much, in words."""
    from stream_engine.evaluation.count_models import too_large

    return too_large(published.snapshot)


def _seed(published: Published) -> int:
    """That of the refits: whom they report on. 0 where none does."""
    artifacts = [artifact for artifact in published.artifacts.values() if "held_out" in artifact.report]
    return max((artifact.seed for artifact in artifacts), key=[a.seed for a in artifacts].count, default=0)
