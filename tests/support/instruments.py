"""Instruments of a run, by name and labels, and which of them tests have driven."""

import pytest

from stream_engine.service.metrics import Metrics

PREFIX = "stream_engine_"
ON_KAFKA = {"lag_seconds", "empty_values_total", "history_total did=offsets lost"}


class Driven:
    """What was driven and found right: names of samples with their labels."""

    def __init__(self) -> None:
        self.right: set[str] = set()

    def value(self, metrics: Metrics, name: str, **labels: str) -> float | None:
        return metrics.registry.get_sample_value(PREFIX + name, labels)

    def check(self, metrics: Metrics, expected, name: str, **labels: str) -> None:
        """The sample is `expected`: a number, or what it must satisfy."""
        found = self.value(metrics, name, **labels)
        good = found is not None and (expected(found) if callable(expected) else found == pytest.approx(expected))
        assert good, (name, labels, found, expected)
        self.right.add(named(name, labels))


def named(name: str, labels: dict[str, str]) -> str:
    return " ".join([name, *(f"{key}={value}" for key, value in sorted(labels.items()))])
