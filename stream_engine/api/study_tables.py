"""Results of a study as tables: objects, questions, models, clusters, participants."""

from typing import Any

import numpy as np

from stream_engine.api.feeding import RejectedRow
from stream_engine.api.study_fits import Fits
from stream_engine.counts.worker_votes import names_of


class Tables(Fits):
    """The tables of a study."""

    def objects(self) -> Any:
        """All objects, in order of first appearance.

        Returns
        -------
        data frame, shape (n_objects, ...)
            Columns of the export `objects.csv`: object, answers, contradicted, agreement, and depending on the fits so
            far cluster, stability, x, y, the 95 % ellipse, nearest_1, nearest_2, nearest_3, label, predicted.
        """
        from stream_engine.exports.object_table import table

        return self._frame(table(self.published))

    def questions(self) -> Any:
        """All questions that were asked. You can pass the result to `read`.

        Returns
        -------
        data frame, shape (n_questions, ...)
            Columns of the export `questions.csv`: anchor, near (by the majority), far, the numbers of answers n_near
            and n_far, confidence in the majority, predicted (by AddS-3 from all other answers).
        """
        from stream_engine.exports import NothingToExport
        from stream_engine.exports.declarations import columns
        from stream_engine.exports.evidence import questions
        from stream_engine.exports.files import NameColumn

        try:
            arrays = questions(self.published)["questions"].arrays
        except NothingToExport:
            return self._frame({name: [] for name in columns("questions")})
        names = self.snapshot.objects
        ids = ("anchor", "near", "far")
        return self._frame({head: NameColumn(array, names) if head in ids else array for head, array in arrays.items()})

    def refused(self) -> Any:
        """Rejected events, at most 10,000.

        Returns
        -------
        data frame
            Columns where, reason (a code), message.
        """
        names = RejectedRow._fields
        return self._frame({name: [getattr(row, name) for row in self._refused] for name in names})

    def models(self) -> Any:
        """Prediction accuracy of all fitted models on held-out answers, best first. Fits the embedding.

        Returns
        -------
        data frame
            One row per model, with the columns of the export `models`: accuracy, inter-rater agreement, log loss, and
            others.
        """
        from stream_engine.exports.models import COLUMNS, table

        self._artifact("embedding")
        rows = table(self.published)
        return self._frame({name: [row.get(name) for row in rows] for name in ("model", *COLUMNS, "seconds")})

    def clusters(self, k: int | None = None) -> Any:
        """Groups of the objects, with their grade. Fits the embedding. `details("clusters")["note"]` says it in words.

        Parameters
        ----------
        k : int, optional
            Number of clusters of the semidefinite program (refit `sdp_clustering`), which has no grade; by default the
            groups of the refit `clusters`.

        Returns
        -------
        data frame, shape (n_objects, ...)
            Columns object and cluster (counted from 1, the largest first; missing: none). Without k, also stability
            (the share of replicates that assign the object to this group), second (the next most frequent
            group), between (whether it is between groups, by its stability), subgroup (if its group splits again), and
            the grade, the same in every row: "clearly separated", "separated", "not separable" (the groups are then
            parts), or "cannot tell".

        Raises
        ------
        ValueError
            If k is not a positive integer, or if the answers are not sufficient (`CannotRefit`).
        """
        from stream_engine.exports.clusters import cluster_answer, cluster_table

        k = count_of("clusters: k", k)
        artifact = self._artifact("clusters") if k is None else self._extra_artifact("sdp_clustering", k=k)
        answer = cluster_answer(self.published) if k is None else {}
        columns = cluster_table(artifact, list(self.snapshot.objects), answer)
        del columns["cluster_label"]
        for name in {"cluster", "second", "subgroup"} & columns.keys():
            columns[name] = np.ma.masked_less(columns[name], 0)
        if "stability" in columns:
            columns["stability"] = np.ma.masked_invalid(columns["stability"])
        return self._frame(columns)

    def workers(self) -> Any:
        """Agreement, accuracy and weight of each participant. Fits the reliability.

        Returns
        -------
        data frame, shape (n_workers, ...)
            Columns worker, events, agreed, disagreed, contradictions, accuracy, weight, response_time,
            under_300_ms, position_share, longest_run with their p-values, and others; lapse if the embedding was
            fitted.

        Raises
        ------
        ValueError
            If no answer names its participant.
        """
        from stream_engine.data.packed_names import unpack_names
        from stream_engine.exports.workers import workers

        if not self._workers_named():
            raise ValueError("workers: got answers without participants, expected a column worker; see columns={...}")
        self._artifact("reliability")
        columns = dict(workers(self.published)["workers"].tables["workers"])
        if (embedding := self.published.artifacts.get("embedding")) is not None and "utf8" in embedding.arrays:
            names = unpack_names(embedding.arrays["utf8"], embedding.arrays["offsets"])
            lapse = dict(zip(names, embedding.arrays["worker_lapse"].tolist()))
            columns["lapse"] = [lapse.get(worker) for worker in columns["worker"]]
        return self._frame(columns)

    def _workers_named(self) -> bool:
        votes = self.snapshot.section("worker_votes")
        return bool(votes) and any(names_of(votes))


def count_of(argument: str, number: Any) -> int | None:
    """A positive integer, or None. Raises ValueError."""
    if number is None:
        return None
    if not isinstance(number, int | np.integer) or isinstance(number, bool) or number < 1:
        raise ValueError(f"{argument}: got {number!r}, expected an integer from 1, or None")
    return int(number)
