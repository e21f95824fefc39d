"""What `sdp_clustering` was asked and found, and the artifact that says so."""

from typing import Any, NamedTuple

import numpy as np

from stream_engine.clustering import label_matching, similarity_of_snapshot, warm_start
from stream_engine.clustering.admm import State
from stream_engine.clustering.cascade import Solution
from stream_engine.clustering.similarity_of_snapshot import SimilarityInput
from stream_engine.clustering.spur import Choice
from stream_engine.clustering.stability import Replicates
from stream_engine.refits.cluster_verdict import Verdict
from stream_engine.state.artifact import Artifact, plain_params
from stream_engine.state.snapshot import Snapshot

KIND = "sdp_clustering"
WARM_UP_TO = 1000  # objects, of which the solver's state is kept for the next refit (4 n^2 bytes)


class Task(NamedTuple):
    """What is clustered: a snapshot's objects `ids`, in an order that does not depend on their numbers, by
    `similarity`."""

    snapshot: Snapshot
    params: Any  # `sdp_clustering.Params`
    seed: int
    similarity: SimilarityInput
    ids: np.ndarray

    def restricted(self, W):
        """A similarity of all objects among those that are clustered."""
        return similarity_of_snapshot.restricted(W, self.ids)


class Answer(NamedTuple):
    """What was solved, over the clustered objects in canonical order."""

    solution: Solution
    k: int
    lam: float | None
    choice: Choice | None  # SPUR's, which chose k unless the test did
    k_by: str  # "given", "lam", "test" or "spur"
    states: dict[int, State]  # by k, 0: SDP-lambda


class Clustering(NamedTuple):
    """What goes into the artifact."""

    answer: Answer
    labels: np.ndarray
    verdict: Verdict
    stable: Replicates | None  # over the clustered objects in canonical order


def of_nothing(task: Task) -> Artifact:
    """The artifact when no object is similar to another: every label -1."""
    n = len(task.snapshot.objects)
    arrays = {
        "labels": np.full(n, -1, np.int32),
        "k": np.array(0),
        "lam": np.array(np.nan),
        "objective": np.array(0.0),
        "upper_bound": np.array(0.0),
        "gap": np.array(0.0),
        "criterion": np.empty(0),
        "criterion_k": np.empty(0, np.int64),
        "criterion_converged": np.empty(0, bool),
        "residuals": np.zeros(4),
    }
    report = {
        "objects": n,
        "clustered": 0,
        "comparisons": task.similarity.comparisons,
        "k": 0,
        "note": "the comparisons of every object cancel: no object is clustered",
    }
    return _artifact_of(task, arrays, report)


def _artifact_of(task: Task, arrays: dict[str, np.ndarray], report: dict[str, Any]) -> Artifact:
    params = plain_params(task.params)
    return Artifact(KIND, task.snapshot.digest, task.snapshot.sequence, params, task.seed, arrays, report)


def of_found(task: Task, previous: Artifact | None, found: Clustering) -> Artifact:
    """The artifact of what was found."""
    answer, said = found.answer, found.verdict
    solution, choice, ids = answer.solution, answer.choice, task.ids
    labels, ari = label_matching.continued(found.labels, previous)
    tried = np.array([answer.k]) if choice is None else choice.tried
    criterion = np.array([solution.criterion(answer.k)]) if choice is None else choice.criterion
    converged = np.array([solution.certified]) if choice is None else choice.converged
    kept = warm_start.arrays(answer.states, ids) if len(ids) <= WARM_UP_TO else {}
    arrays = {
        "labels": labels,
        "k": np.array(answer.k),
        "lam": np.array(np.nan if answer.lam is None else answer.lam),
        "objective": np.array(solution.objective),
        "upper_bound": np.array(solution.upper_bound),
        "gap": np.array(solution.gap),
        "criterion": criterion,
        "criterion_k": tried.astype(np.int64),
        "criterion_converged": converged,
        "residuals": np.array(solution.residuals),
        **said.arrays(),
        **_stable(found, ids, labels),
        **kept,
    }
    report = {**said.report(), **_report(task, answer, labels, tried, criterion, converged)}
    report["note"] = report.get("note") or _note(task, found, answer)
    report["stability"] = None
    if (stable := found.stable) is not None:
        own = stable.stability
        report["stability"] = {
            "mean": float(own.mean()),
            "ari": float(stable.agreement.mean()),
            "between": int(stable.between.sum()),
        }
    report["ari_to_previous"] = ari
    report["warm_bytes"] = int(sum(array.nbytes for array in kept.values()))
    return _artifact_of(task, arrays, report)


def _stable(found: Clustering, ids: np.ndarray, labels: np.ndarray) -> dict[str, np.ndarray]:
    """The arrays of the halves, over all objects, with the numbers that clusters have in `labels`."""
    if found.stable is None:
        return {}
    n, stable = len(labels), found.stable
    number = np.full(int(stable.labels.max()) + 2, -1, np.int32)  # the last: no cluster
    number[stable.labels] = labels[ids]
    of_object, second, together = np.zeros(n), np.full(n, -1, np.int32), np.zeros((n, n), np.float32)
    of_object[ids], second[ids], together[np.ix_(ids, ids)] = stable.stability, number[stable.second], stable.together
    return {"stability": of_object, "second": second, "together": together, "stability_ari": stable.agreement}


def _note(task: Task, found: Clustering, answer: Answer) -> str:
    """The note about clusters."""
    said = found.verdict
    parts = [said.note]
    if said.clusters and answer.k_by != "test":
        parts.append(
            f"the partition has {answer.k}, as requested"
            if answer.k_by == "given"
            else f"the partition has {answer.k}, by {answer.k_by}"
        )
    if said.clusters and said.k_replicates:
        low, high = np.quantile([*said.k_replicates, said.k], [0.05, 0.95], method="nearest").tolist()
        if low < high:
            parts.append(f"random halves of the responses give {low} to {high}")
        assert found.stable is not None
        if between := int(found.stable.between.sum()):
            parts.append(f"{between} {'object lies' if between == 1 else 'objects lie'} between clusters")
    return "; ".join(parts)


def _report(
    task: Task, answer: Answer, labels: np.ndarray, tried: np.ndarray, criterion: np.ndarray, converged: np.ndarray
) -> dict[str, Any]:
    solution, choice = answer.solution, answer.choice
    clusters, sizes = np.unique(labels[labels >= 0], return_counts=True)
    return {
        "objects": len(labels),
        "clustered": len(task.ids),
        "comparisons": task.similarity.comparisons,
        "k": answer.k,
        "k_by": answer.k_by,
        "spur_k": None if choice is None else choice.k,
        "sizes": {str(number): int(size) for number, size in zip(clusters, sizes)},
        "criterion": {str(k): round(float(c), 6) for k, c in zip(tried, criterion)},
        "criterion_not_converged": tried[~converged].tolist(),
        "margin": None if choice is None else choice.margin,
        "objective": solution.objective,
        "upper_bound": solution.upper_bound,
        "gap": solution.gap,
        "solved": solution.solved,
        "certified": solution.certified,
        "certified_by": solution.certified_by,
        "residuals": solution.residuals._asdict(),
        "trace": solution.trace,
        "lam": answer.lam,
        "iterations": solution.iterations if choice is None else choice.iterations,
        **_evidence(task, choice, answer.k_by),
    }


def _evidence(task: Task, choice: Choice | None, k_by: str) -> dict[str, Any]:
    """What was seen before anything was solved, and a line about it where that was no clusters."""
    if choice is None or choice.evidence is None:
        return {}
    seen = choice.evidence
    figures = {"eigenvalues": [round(float(value), 4) for value in seen.eigenvalues[:8]], "edge": round(seen.edge, 4)}
    if not choice.nothing_seen or k_by == "test":
        return {"evidence": {**figures, "most_clusters": seen.k}}
    n, comparisons = len(task.ids), task.similarity.comparisons
    return {
        "evidence": {**figures, "most_clusters": 1},
        "note": f"too little evidence of clusters: {comparisons:,} comparisons about {n:,} objects "
        f"({comparisons / n:.1f} per object) show no more structure than random answers (eigenvalue "
        f"{seen.eigenvalues[0]:.4g}, edge {seen.edge:.4g}); no program was solved, so there is no certificate; "
        "collect more comparisons, or set k",
    }
