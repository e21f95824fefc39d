"""A kernel that learns between snapshots: `OnlineKernel` behind the predictors, fed each batch after it was predicted.

An observer: a crash may lose what it learned since the last snapshot, never a count. A comparison costs at most `MOST`
steps while the stream is short, then BUDGET / seen, never less than `LEAST`: a million comparisons get three million
steps of O(rank + kernels), a hundred million get 16. Triplets only. At a snapshot it becomes an artifact, from which
the next run goes on.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from stream_engine.kernel_learning import auxiliary_kernels
from stream_engine.kernel_learning.auxiliary_kernels import BadKernel, KernelSpec
from stream_engine.kernel_learning.online_kernel import KIND, OnlineKernel
from stream_engine.prediction import Predictor
from stream_engine.state.artifact import Artifact
from stream_engine.state.snapshot import Snapshot

MOST, LEAST, BUDGET = 64.0, 1 / 8, 500_000
GROWTH = 8  # with kernels: room is made when the new objects are one in so many; comparisons that name them are skipped
DENSE = 1000  # objects up to which the artifact holds K beside L and mu


class Kept(NamedTuple):
    """What the observer knew at a snapshot."""

    arrays: dict[str, np.ndarray]
    report: dict


class Online:
    """`learn` batches in order, `predictor` says what it expects, `kept` copies what it knows."""

    def __init__(self, specs: Mapping[str, KernelSpec], rank: int = 20, loss: str = "ste", seed: int = 0):
        self._specs, self._rank, self._loss, self._seed = dict(specs), rank, loss, seed
        self._kernels: list[np.ndarray] = []
        self.model: OnlineKernel | None = None
        self.skipped = 0
        self.problem = ""  # why there is no model yet, or why it does not grow: one line

    @property
    def objects(self) -> int:
        """How many objects it knows."""
        return 0 if self.model is None else len(self.model.factor)

    def predictor(self) -> Predictor:
        """Margins d(far pair) - d(near pair) of the kernel as it is when asked."""

        def margins(rows: np.ndarray) -> np.ndarray:
            margin, inside = np.full(len(rows), np.nan), (rows < self.objects).all(axis=1)
            if self.model is not None and inside.any():
                margin[inside] = -self.model.excess(rows[inside])
            return margin

        return Predictor(margins)

    def learn(self, triplets: np.ndarray, objects: Sequence[str]) -> None:
        """One batch of (m, 3) triplets over `objects`."""
        missing = len(objects) - self.objects
        if missing and (not self._specs or missing * GROWTH >= self.objects):
            self.grow(objects)
        of_known = triplets[(triplets < self.objects).all(axis=1)]
        self.skipped += len(triplets) - len(of_known)
        if self.model is not None and len(of_known):
            self.model.learn(of_known, steps(self.model.seen, len(of_known)))

    def grow(self, objects: Sequence[str]) -> None:
        """Make room for all `objects`; auxiliary kernels are read again, and their files may know nothing of them
        yet."""
        if len(objects) <= max(self.objects, 2):
            return
        try:
            kernels = auxiliary_kernels.load(self._specs, objects).kernels
        except (BadKernel, OSError) as error:
            self.problem = str(error)
            return
        self._kernels, self.problem = kernels, ""
        if self.model is None:
            self.model = OnlineKernel(len(objects), self._rank, kernels, loss=self._loss, seed=self._seed)
        else:
            self.model.grow(len(objects), kernels)

    def kept(self) -> Kept | None:
        """A copy of what it knows: L, mu, sums of its step lengths, K for up to `DENSE` objects. None before any."""
        model = self.model
        if model is None:
            return None
        arrays = {"L": model.factor.copy(), "mu": model.mu, **model.sums(), "seen": np.array(model.seen)}
        if len(model.factor) <= DENSE:
            arrays["K"] = model.gram(self._kernels)
        report = {
            "objects": self.objects,
            "rank": self._rank,
            "loss": self._loss,
            "learned": model.seen,
            "skipped": self.skipped,
            "mu": dict(zip(self._specs, model.mu.tolist(), strict=True)),
        }
        return Kept(arrays, report)

    def artifact(self, kept: Kept, snapshot: Snapshot, accuracy: float | None) -> Artifact:
        """What was kept at a snapshot that is published by now."""
        report = kept.report | {"live_accuracy": accuracy}
        params = {"rank": self._rank, "loss": self._loss, "kernels": list(self._specs)}
        return Artifact(KIND, snapshot.digest, snapshot.sequence, params, self._seed, kept.arrays, report)

    def resume(self, artifact: Artifact, objects: Sequence[str]) -> bool:
        """Go on from an artifact of the same rank, loss and kernels; whether it was one. The reservoir starts empty."""
        mine = {"rank": self._rank, "loss": self._loss, "kernels": list(self._specs)}
        n = len(artifact.arrays["L"])
        if any(artifact.params[name] != value for name, value in mine.items()) or n > len(objects):
            return False
        self.grow(objects[:n])
        if self.model is not None:
            self.model.resume(artifact.arrays)
        return self.model is not None


def steps(seen: int, m: int) -> int:
    """How many steps m comparisons get after `seen` earlier ones: the same in all, whatever the batches.

    >>> steps(0, 100), steps(1_000_000, 100), steps(100_000_000, 100)
    (6400, 50, 12)
    """
    return max(1, round(_spent(seen + m) - _spent(seen)))


def _spent(seen: float) -> float:
    """Steps on the first `seen` comparisons: the integral of BUDGET / x, held between LEAST and MOST."""
    first, last = BUDGET / MOST, BUDGET / LEAST
    between = BUDGET * np.log(min(max(seen, first), last) / first)
    return MOST * min(seen, first) + between + LEAST * max(0.0, seen - last)
