"""Has the world changed? A detector on a stream of wrong (1) and right (0) predictions that speaks of worsening only."""

from river import drift

SIGNALS = ("loss", "contradictions")


class Worsening:
    """ADWIN (Bifet & Gavalda 2007) made one-sided: a window of recent values that is cut where its older and newer part
    differ in mean with confidence 1 - `delta`. A cut after which the mean is higher is an alarm; after one that lowers it
    (what was learned helps) the window is merely shorter. O(log window) a value; half a microsecond.

    >>> watch = Worsening()
    >>> [sum(map(watch.update, values)) for values in ([0, 1] * 500, [0] * 1000, [0, 1] * 500)]
    [0, 0, 1]
    """

    def __init__(self, delta: float = 0.002):
        self._adwin = drift.ADWIN(delta=delta)

    def update(self, value: float) -> bool:
        """Take in one value; is it an alarm?"""
        before = self._adwin.estimation
        self._adwin.update(value)
        return bool(self._adwin.drift_detected and self._adwin.estimation > before)

    @property
    def level(self) -> float:
        """The mean of the window: the present share of wrong predictions."""
        return self._adwin.estimation
