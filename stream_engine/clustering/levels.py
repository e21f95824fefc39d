"""The criterion of every number of clusters, its peaks, and how far the partition at each peak comes back.

SPUR keeps the first k that is good enough, or the best one: where clusters lie in groups, that is often the coarsest
level. The others are peaks of the criterion too: k with a larger one than k - 1 and k + 1 have.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from stream_engine.clustering import partition
from stream_engine.clustering.cascade import Solution
from stream_engine.clustering.spur import Choice
from stream_engine.clustering.stability import stability

BEYOND = 2  # numbers of clusters above those that SPUR tried
AT_LEAST = 6  # the largest number of clusters that is looked at
REPLICATES = 10
UNSEEN = -1.0  # the agreement where it was not computed


class Levels(NamedTuple):
    """Arrays over the numbers of clusters that were looked at."""

    k: np.ndarray  # (t,) int64, rising
    criterion: np.ndarray  # (t,)
    peak: np.ndarray  # (t,) bool
    ari: (
        np.ndarray
    )  # (t,) agreement of the partition with those of resampled comparisons; -1 where that was not looked at

    def arrays(self) -> dict[str, np.ndarray]:
        """For an artifact."""
        return {f"level_{name}": array for name, array in self._asdict().items()}

    def report(self) -> dict[str, dict[str, float | None]]:
        """The peaks, for an artifact's report: k -> its criterion and agreement."""
        return {
            str(k): {"criterion": round(float(c), 4), "ari": None if ari == UNSEEN else round(float(ari), 4)}
            for k, c, peak, ari in zip(self.k, self.criterion, self.peak, self.ari)
            if peak
        }

    def finer(self, k: int) -> str:
        """A phrase about the peaks above k; empty where there is none."""
        above = [(at, each) for at, each in self.report().items() if int(at) > k]
        return ", ".join(
            f"{at} groups (criterion {each['criterion']:.2f}"
            + ("" if each["ari"] is None else f", found again with an agreement of {each['ari']:.2f}")
            + ")"
            for at, each in above
        )


def levels(
    W,
    choice: Choice,
    solve_sdp: Callable[..., Solution],
    resampled: Callable[[np.random.Generator], np.ndarray | None],
    further: bool,
    seed: int,
) -> Levels:
    """What SPUR tried, and where `further` is asked for also the k up to `BEYOND` above, at least up to `AT_LEAST`;
    `solve_sdp(k=)` solves SDP-k of W. A handful of solves, and `REPLICATES` spectral partitions a peak."""
    criterion = dict(zip(choice.tried.tolist(), choice.criterion.tolist()))
    found = {choice.k: choice.solution}
    if further:
        most = min(max(AT_LEAST, max(criterion) + BEYOND), W.shape[0] // 3)
        for k in range(2, most + 1):
            if k not in criterion:
                found[k] = solve_sdp(k=k)
                criterion[k] = found[k].criterion(k)
    ks = np.array(sorted(criterion), np.int64)
    values = np.array([criterion[k] for k in ks.tolist()])
    top = peaks(ks, values)
    ari = np.full(len(ks), UNSEEN)
    for at in np.flatnonzero(top) if further else ():
        ari[at] = _found_again(W, int(ks[at]), found, resampled, seed)
    return Levels(ks, values, top, ari)


def peaks(k: np.ndarray, criterion: np.ndarray) -> np.ndarray:
    """(t,) bool: k >= 2 with a larger criterion than the next lower and the next higher k that were looked at. The last
    k is none: it might rise further; a single one is.

    >>> peaks(np.arange(2, 8), np.array([0.9, 0.8, 0.85, 0.85, 0.6, 0.7])).tolist()
    [True, False, True, False, False, False]
    """
    if len(k) == 1:
        return k >= 2
    before = np.append(-np.inf, criterion[:-1])
    return (criterion > before) & np.append(criterion[:-1] >= criterion[1:], False) & (k >= 2)


def _found_again(W, k: int, found: dict[int, Solution], resampled, seed: int) -> float:
    """The mean adjusted Rand index between the partition into k clusters and those of resampled comparisons."""
    labels = found[k].labels if k in found else None
    if labels is None:
        labels = partition.refined(W, partition.spectral_partition(W, k, seed))
    again = stability(resampled, partition.compact(labels), REPLICATES, seed)
    return UNSEEN if again is None else float(again.ari.mean())
