"""What a model's artifact says of answers that it never had, in its report: names, and what they may be.

accuracy, standard_error, log_loss (nats an answer), calibration_error, and the same by_worker and by_question; the
ceiling with `others`, how far people agree, and `at_most`, what no model can surpass. Where nothing was held out all
of these are None.
"""

from collections.abc import Mapping
from typing import Any

from stream_engine.data.container import Corrupt

SHARES = ("accuracy", "error", "standard_error", "calibration_error", "others", "themselves", "at_most")
FIGURES = (*SHARES, "log_loss")
WITHIN = ("by_worker", "by_question", "ceiling")


def check_figures(report: Mapping[str, Any], where: str = "report") -> None:
    """Raise `Corrupt` unless what is said of held-out answers is in numbers that it can be; absent ones are fine."""
    for name in FIGURES:
        value, most = report.get(name), 1.0 if name in SHARES else float("inf")
        if value is not None and not (type(value) in (int, float) and 0 <= value <= most):
            raise Corrupt(f"{where}.{name}: got {str(value)[:40]}, expected a number from 0 to {most:g}, or none")
    for name in WITHIN if where == "report" else ():
        inner = report.get(name)
        if inner is None:
            continue
        if not isinstance(inner, Mapping):
            raise Corrupt(f"{where}.{name}: got {str(inner)[:40]}, expected figures, or none")
        check_figures(inner, f"{where}.{name}")


def figure(report: Mapping[str, Any], *path: str) -> float | None:
    """A figure of a report by its path, None where it is not said.

    >>> figure({"accuracy": 0.8, "by_worker": None}, "accuracy"), figure({"by_worker": None}, "by_worker", "accuracy")
    (0.8, None)
    """
    value: Any = report
    for name in path:
        value = value.get(name) if isinstance(value, Mapping) else None
    return float(value) if type(value) in (int, float) else None
