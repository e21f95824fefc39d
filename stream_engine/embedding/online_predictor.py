"""The online embedding as a predictor of a run, updated by each batch after that batch was predicted.

An observer: a crash may lose what it learned since the last snapshot, never a count. It takes over each fit that is
published (the artifact `embedding`), and at a snapshot becomes an artifact, from which the next run goes on.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from stream_engine.data.comparisons import Batch, Provenance, interleaved
from stream_engine.data.packed_names import Names, pack_names
from stream_engine.embedding.fit import KERNELS
from stream_engine.embedding.online import OnlineEmbedding, PublishedFit
from stream_engine.evaluation import Predictor
from stream_engine.state.artifact import Artifact, figure
from stream_engine.state.snapshot import Snapshot

KIND = "online_embedding"
Rows = tuple[np.ndarray, np.ndarray]  # (m, 4) int32 near and far pair; (m,) int32 row of the worker, 0: nobody
MARKS = 64  # snapshots whose place in the stream is remembered: a fit says of which one it was made


class ObserverState(NamedTuple):
    """What the observer had learned at a snapshot."""

    arrays: dict[str, np.ndarray]
    report: dict


class Online:
    """`learn` batches in order, `predictor` says what it expects, `take` goes on from a fit, `state` copies all."""

    def __init__(self, dimensions: int = 3, seed: int = 0):
        self._dimensions, self._seed = dimensions, seed
        self.model = OnlineEmbedding(dimensions, seed=seed)
        self._worker: dict[str, int] = {}  # name -> row of the lapses
        self._marks: dict[int, int] = {}  # sequence of a snapshot -> answers learned then
        self._fit_identity = -1, ""  # sequence and digest of the fit that was taken over

    def predictor(self) -> Predictor:
        """Log odds by the points as they are when asked, and the lapse of an unknown participant."""
        return Predictor(lambda rows: self.model.margins(rows))

    def learn(self, batches: Sequence[Batch]) -> None:
        """Batches in their order. O(comparisons)."""
        self.learn_rows([self.rows_of(batch) for batch in batches])

    def rows_of(self, batch: Batch) -> Rows:
        """The comparisons of a batch as the model takes them, each with the row of its worker; in the order of the
        stream, since rows are given to workers by their first answers."""
        return interleaved(batch), self._workers(batch)

    def learn_rows(self, parts: Sequence[Rows]) -> None:
        """Comparisons in their order. O(comparisons)."""
        if parts:
            rows, workers = zip(*parts, strict=True)
            self.model.learn(np.concatenate(rows), np.concatenate(workers))

    def _workers(self, batch: Batch) -> np.ndarray:
        """(m + q,) rows of the lapses, 0 where nobody is named."""
        provenance = batch.provenance
        if provenance is None:
            return np.zeros(len(batch.triplets) + len(batch.quadruplets), np.int32)
        row = self._rows(provenance)
        three, four = row[provenance.worker[provenance.of_triplet]], row[provenance.worker[provenance.of_quadruplet]]
        return np.insert(three, batch.quadruplet_at, four) if len(four) else three

    def _rows(self, provenance: Provenance) -> np.ndarray:
        """The row of each worker of a batch; the last one is nobody's. Rows are given in the order of first answers."""
        row, worker = np.zeros(len(provenance.workers) + 1, np.int32), provenance.worker[provenance.worker >= 0]
        first = np.unique(worker, return_index=True)[1]
        for number in worker[np.sort(first)].tolist():
            row[number] = self._worker.setdefault(provenance.workers[number], len(self._worker) + 1)
        return row

    def mark(self, snapshot: int) -> None:
        """All that was learned by now is in this snapshot, and no more."""
        self._marks[snapshot] = self.model.n_learned
        for old in sorted(self._marks)[:-MARKS]:
            del self._marks[old]

    def take(self, artifact: Artifact) -> bool:
        """Go on from a fit that was published, unless it was taken before, or is of a snapshot so long ago that not
        all answers since are there."""
        sequence, digest = artifact.sequence, artifact.digest
        if (sequence, digest) == self._fit_identity or sequence < self._fit_identity[0]:
            return False
        since = self._marks.get(sequence, None if self.model.n_learned else 0)
        fit = None if since is None else self._published_fit(artifact)
        if fit is None or not self.model.reset_to_fit(fit, since):  # type: ignore[arg-type]  # since is there with the fit
            return False
        self._fit_identity = sequence, digest
        return True

    def _published_fit(self, artifact: Artifact) -> PublishedFit | None:
        arrays, report = artifact.arrays, artifact.report
        alpha, ridge, answers = (figure(report, name) for name in ("alpha", "ridge", "answers"))
        if alpha is None or ridge is None or answers is None or arrays["X"].shape[1] < 1:
            return None
        rows = [
            self._worker.setdefault(name, len(self._worker) + 1) for name in Names(arrays["utf8"], arrays["offsets"])
        ]
        shrinkage = figure(report, "individual_differences", "shrinkage") if "worker_weights" in arrays else None
        weights = zip(rows, np.asarray(arrays["worker_weights"]), arrays["worker_group"]) if shrinkage else ()
        return PublishedFit(
            points=np.array(arrays["X"], np.float64),
            asked=np.array(arrays["asked"], bool),
            lapse=float(arrays["lapse"]),
            worker_lapse=dict(zip(rows, np.asarray(arrays["worker_lapse"]).tolist(), strict=True)),
            alpha=alpha,
            ridge=ridge,
            scale=figure(report, "scale") or 1.0,
            answers=answers,
            weights={row: own for row, own, group in weights if group >= 0},
            shrinkage=shrinkage or 0.0,
            weighted_scale=figure(report, "individual_differences", "scale") or 1.0,
        )

    def state(self) -> ObserverState | None:
        """A copy of what it knows; None before anything."""
        model = self.model
        if not model.n_learned and self._fit_identity[0] < 0:
            return None
        marks = np.array(list(self._marks.items()), np.int64).reshape(-1, 2)
        arrays = {**model.state(), "marks": marks, **pack_names(list(self._worker))}
        alpha = float(model.setting[0])
        report = {
            "objects": int((model.answers > 0).sum()),
            "d": model.points.shape[1],
            "kernel": KERNELS[alpha > 0],
            "alpha": alpha,
            "lapse": float(model.lapse[0]),
            "scale": model.scale,
            "learned": model.n_learned,
            "fit_of_snapshot": self._fit_identity[0] if self._fit_identity[0] >= 0 else None,
            "fit": self._fit_identity[1],
        }
        return ObserverState(arrays, report)

    def artifact(self, state: ObserverState, snapshot: Snapshot, accuracy: float | None) -> Artifact:
        """The state at a snapshot that is published by now."""
        report = state.report | {"live_accuracy": accuracy}
        params = {"dimensions": self._dimensions}
        return Artifact(KIND, snapshot.digest, snapshot.sequence, params, self._seed, state.arrays, report)

    def resume(self, artifact: Artifact) -> None:
        """Go on from an artifact, whatever made it: the same answers then give the same."""
        arrays: Mapping[str, np.ndarray] = artifact.arrays
        self.model.resume(arrays)
        self._worker = {name: row for row, name in enumerate(Names(arrays["utf8"], arrays["offsets"]), start=1)}
        self._marks = dict(np.asarray(arrays["marks"]).tolist())
        sequence = figure(artifact.report, "fit_of_snapshot")
        self._fit_identity = (-1, "") if sequence is None else (int(sequence), str(artifact.report.get("fit", "")))
