"""Has the world changed? A detector on a stream of wrong (1) and right (0) predictions that speaks of worsening
only."""

from collections.abc import Iterable
from functools import cached_property
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from river import drift

SIGNALS = ("loss", "contradictions")


class Worsening:
    """ADWIN (Bifet & Gavalda 2007) made one-sided: a window of recent values that is cut where its older and newer part
    differ in mean with confidence 1 - `delta`. A cut after which the mean is higher is an alarm; after one that lowers
    it (what was learned helps) the window is merely shorter. O(log window) a value; half a microsecond. Chosen among
    river's detectors by `tests/benchmarks/planted_drift.py`: none notices sooner at as few false alarms.

    >>> detector = Worsening()
    >>> [detector.update(values) for values in ([0, 1] * 500, [0] * 1000, [0, 1] * 500)]
    [False, False, True]
    """

    def __init__(self, delta: float = 0.2):
        self._delta = delta
        self.level = 0.0  # the mean of the window: the present share of wrong predictions

    @cached_property
    def _adwin(self) -> "drift.ADWIN":
        from river import drift  # brings scikit-learn and scipy.stats along: not before the first batch is learned

        return drift.ADWIN(delta=self._delta)

    def update(self, values: Iterable[float]) -> bool:
        """Take in values; is there an alarm among them?"""
        adwin, alarm = self._adwin, False
        before = adwin.estimation
        for value in values:
            adwin.update(value)
            if adwin.drift_detected:
                alarm |= adwin.estimation > before
                before = adwin.estimation
        self.level = adwin.estimation
        return alarm
