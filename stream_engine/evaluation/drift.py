"""Has the world changed? A detector on a stream of wrong (1) and right (0) predictions that speaks of worsening
only."""

from collections.abc import Iterable
from typing import Any

SIGNALS = ("loss", "contradictions")
_AS_RIVER = {"clock": 32, "max_buckets": 5, "min_window_length": 5, "grace_period": 10}  # the defaults of its ADWIN


class Worsening:
    """ADWIN (Bifet & Gavalda 2007) made one-sided: a window of recent values that is cut where its older and newer part
    differ in mean with confidence 1 - `delta`. A cut after which the mean is higher is an alarm; after one that lowers
    it (what was learned helps) the window is merely shorter. O(log window) a value; a fifth of a microsecond. Chosen
    among river's detectors (measurements, "Drift"): none notices sooner at as few false alarms.

    The compiled part of river's ADWIN is taken by itself: the package around it brings scikit-learn and scipy.stats
    along, a second of work in the midst of the first batches.

    >>> detector = Worsening()
    >>> [detector.update(values) for values in ([0, 1] * 500, [0] * 1000, [0, 1] * 500)]
    [False, False, True]
    """

    def __init__(self, delta: float = 0.2):
        self._delta = delta
        self.level = 0.0  # the mean of the window: the present share of wrong predictions
        self._window: Any = None  # river's; loaded when there is something to judge
        self._cut = False  # by the last value: like river's, it begins anew then

    def _new_window(self) -> Any:
        try:
            from river._river_rust.drift import AdaptiveWindowing
        except ImportError:  # another version of river keeps it elsewhere; ADWIN itself takes it from here
            from river.drift.adwin import AdaptiveWindowing
        return AdaptiveWindowing(delta=self._delta, **_AS_RIVER)

    def update(self, values: Iterable[float]) -> bool:
        """Take in values; is there an alarm among them?"""
        self._window = self._window or self._new_window()
        alarm, before = False, _mean(self._window)
        for value in values:
            if self._cut:
                self._window = self._new_window()
            self._cut = self._window.update(value)
            if self._cut:
                now = _mean(self._window)
                alarm |= now > before
                before = now
        self.level = _mean(self._window)
        return alarm


def _mean(window: Any) -> float:
    width = window.get_width()
    return window.get_total() / width if width else 0.0
