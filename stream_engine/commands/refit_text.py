"""What a refit found, in plain words; `--json` has every figure by name."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from stream_engine.report.findings.words import count, percent


class Figure(NamedTuple):
    """A figure of a report: its path, what it is, and how it is written; `error`: the name of its standard error."""

    path: str
    text: str
    write: Callable[[Any], str]
    error: str = ""


def _number(value: float) -> str:
    return f"{value:.3g}"


def _list(write: Callable[[Any], str]) -> Callable[[Any], str]:
    return lambda values: ", ".join(map(write, values)) if isinstance(values, list) else write(values)


FIGURES = (
    Figure("note", "result", str),
    Figure("objects", "objects", count),
    Figure("with_features", "objects with features", count),
    Figure("clustered", "objects in clusters", count),
    Figure("labelled", "objects with a label", count),
    Figure("leaves", "objects in the tree", count),
    Figure("workers", "participants", count),
    Figure("excluded.participants", "participants excluded", _list(str)),
    Figure("answers", "answers", count),
    Figure("responses", "responses", count),
    Figure("comparisons", "comparisons", count),
    Figure("triplets", "distinct comparisons of three objects", count),
    Figure("d", "dimensions of the map", count),
    Figure("dimensions", "dimensions", count),
    Figure("reproducible", "dimensions that another fit finds again", count),
    Figure("explained", "share of the map's variance along each dimension", _list(percent)),
    Figure("k", "clusters", count),
    Figure("sizes", "objects in each cluster", _list(count)),
    Figure("grade", "separation of the clusters", str),
    Figure("ari_to_previous", "agreement with the previous clusters (adjusted Rand index, 1: the same)", _number),
    Figure("method", "linkage of the tree", str),
    Figure("share_of_bound", "revenue of the tree, as a share of its upper bound (higher is better)", percent),
    Figure("guessing", "participants whose answers are near chance level (estimated accuracy below 55 %)", count),
    Figure("accuracy_10_50_90", "accuracy of participants (10th percentile, median, 90th)", _list(percent)),
    Figure(
        "agreement_with_others", "answers that agree with the majority of the other participants, without ties", percent
    ),
    Figure("repeats", "questions that a participant answered again", count),
    Figure("contradictions_with_self", "of these, answers that contradict the participant's own", count),
    Figure("catch_trials", "catch trials", count),
    Figure("catch_trials_failed", "catch trials failed", count),
    Figure(
        "predictor_agreement", "answers that other participants' answers predict", percent, "predictor_agreement_error"
    ),
    Figure("accuracy", "accuracy on held-out data", percent, "standard_error"),
    Figure("held_out.accuracy", "accuracy on held-out objects", percent, "held_out.standard_error"),
    Figure("held_out.majority_class_accuracy", "accuracy of always naming the most frequent label", percent),
    Figure("by_worker.accuracy", "accuracy for new participants", percent, "by_worker.standard_error"),
    Figure("ceiling.at_most", "noise ceiling (highest accuracy without individual differences)", percent),
    Figure("log_loss", "log loss on held-out data (nats per answer, lower is better)", _number),
    Figure("calibration_error", "calibration error (predicted against observed shares)", percent),
    Figure("lapse", "lapse rate (answers that do not depend on the objects)", percent),
    Figure("individual_differences.verdict", "individual differences", str),
    Figure("abstained", "objects without a predicted label", percent),
    Figure("abstention_rate", "objects without a predicted label", percent),
    Figure("satisfied", "comparisons that the fit reproduces", percent),
)


def plain_figures(report: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """What each known figure of a report is, and its value; what is not known is left out.

    >>> dict(plain_figures({"accuracy": 0.8, "standard_error": 0.01, "slope": 3.0, "workers": None}))
    {'accuracy on held-out data': '80.0 % (95 % CI ± 2.0 %)'}
    """
    for figure in FIGURES:
        value, error = _at(report, figure.path), _at(report, figure.error) if figure.error else None
        if value is None or value == []:
            continue
        try:
            interval = "" if error is None else f" (95 % CI ± {percent(1.96 * error)})"
            yield figure.text, f"{figure.write(value)}{interval}"
        except (TypeError, ValueError):  # of a report that somebody changed
            continue


def _at(report: Any, path: str) -> Any:
    for name in path.split("."):
        report = report.get(name) if isinstance(report, Mapping) else None
    return report
