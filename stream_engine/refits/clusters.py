"""Are there clusters, and how many? One graded answer (`clustering.graded`; docs/design/clustering.md).

With many different questions, positions are those of the embedding of the same snapshot, which a run, the command
`refit` and a study fit first; with few, objects are embedded here (`clustering.graded.MAX_EMBEDDED_QUESTIONS`).
Nothing is drawn at random, and labels keep their meaning from one snapshot to the next.
"""

from typing import Any

import msgspec
import numpy as np
from threadpoolctl import threadpool_limits

from stream_engine.clustering import MIN_CORE_STABILITY, stability
from stream_engine.clustering.graded import ClusterAnswer, grade_clusters
from stream_engine.clustering.sentence import ALL_ALIKE, MIN_OBJECTS, UNCONNECTED, are_separated, sentence
from stream_engine.data.answers import Answers
from stream_engine.embedding.questions import of_rows
from stream_engine.evaluation.answers import answers_of
from stream_engine.evaluation.connection import components
from stream_engine.evaluation.responses import PUBLISHED_SEED
from stream_engine.exports.object_places import numbers
from stream_engine.refits import CannotRefit, Progress, embedding, next_step, no_progress
from stream_engine.refits.embedding_models import without_rare_participants
from stream_engine.state.artifact import Artifact, figure, plain_params
from stream_engine.state.artifact_schemas import CLUSTERS
from stream_engine.state.snapshot import Snapshot

KIND = "clusters"
AXES = CLUSTERS.axes
REQUIRED = CLUSTERS.required


class Params(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """There are no parameters: the answer about a study does not depend on choices."""


def refit(
    snapshot: Snapshot,
    params: Params,
    seed: int,
    previous: Artifact | None = None,
    progress: Progress = no_progress,
    *,
    needed: Artifact | None = None,
) -> Artifact:
    """Grade the groups of a snapshot's objects.

    Parameters
    ----------
    snapshot : Snapshot
        The counts.
    params : Params
        There are none.
    seed : int
        Not used: nothing is drawn at random.
    previous : Artifact, optional
        The previous artifact of this refit, whose groups keep their numbers.
    progress : callable
        Called with the number of steps done, their total, and figures.
    needed : Artifact, optional
        The embedding of this snapshot; fitted with its defaults if it is not given.

    Returns
    -------
    Artifact
        Arrays: `labels` (n,) int32, -1 without a group; `k`, 0 without groups; `stability` (n,), the share of
        replicates that assign an object to its group, `second` (n,) int32, the next most frequent group (-1:
        none); `subgroup` (n,) int32 within a group that splits again, -1 elsewhere; `clearer_than`, the share of
        continua whose groups are less clear; `detection_limit`, the separation that four of five simulated studies
        detect, in standard deviations within groups; `replication` (3,), the expected adjusted Rand index and its
        interval; `gain` (2,), what positions add to groups in held-out log loss, and its standard error; `tested_k` and
        `tested_clearness` of every number of groups. NaN: not computed.

    Raises
    ------
    CannotRefit
        If the snapshot has no comparisons that an embedding can be fitted to.
    """
    with threadpool_limits(1):
        answers = _answers(snapshot)
        if not len(answers.rows):
            raise CannotRefit(
                f"{KIND}: got 0 comparisons of {len(snapshot.objects)} objects; expected at least one, next: "
                + next_step(snapshot.counters["comparisons"], "triplet_counts (or judgements, quadruplet_counts)")
            )
        if needed is None:
            needed = embedding.refit(snapshot, embedding.Params(), seed, progress=progress, evaluate=False)
        ids = np.unique(answers.rows)
        ids = ids[ids < len(needed.arrays["X"])]
        answers = answers.among(ids)
        sets = components(snapshot)
        n_dimensions = needed.arrays["X"].shape[1]
        if sets is not None and sets.max(initial=0) > 0:
            answer = _ungrouped(answers, UNCONNECTED, n_dimensions)
        elif len(ids) >= MIN_OBJECTS and _cancel(answers):
            answer = _ungrouped(answers, ALL_ALIKE, n_dimensions)
        else:
            tied = figure(needed.report, "dimensions_tied")
            points = np.asarray(needed.arrays["X"][ids], np.float64)
            answer = grade_clusters(answers, points, None if tied is None else int(tied), progress)
    progress(1, 1, clearer_than=None if np.isnan(answer.clearer_than) else answer.clearer_than)
    return _artifact(snapshot, params, seed, previous, ids, answer, needed)


def _answers(snapshot: Snapshot) -> Answers:
    """All answers; those of participants with few of them name no participant, as in the embedding."""
    return without_rare_participants(answers_of(snapshot, PUBLISHED_SEED)[1])


def _cancel(answers: Answers) -> bool:
    """Whether every question was answered equally often each way: then all objects are alike, and each is in as many
    near pairs as far ones."""
    times = np.repeat(answers.times, 2)
    near, far = (np.bincount(pair.ravel(), times, answers.n_objects) for pair in np.hsplit(answers.rows, 2))
    if (near != far).any():
        return False
    questions = of_rows(answers.rows, answers.n_objects, answers.times)
    return bool((questions.near == questions.far).all())


def _ungrouped(answers: Answers, reason: str, n_dimensions: int) -> ClusterAnswer:
    """The answer without groups, and its reason."""
    answer = grade_clusters(
        answers.of(np.zeros(len(answers.rows), bool))._replace(n_objects=0), np.empty((0, n_dimensions))
    )
    m = answers.n_objects
    no_group = np.full(m, -1, np.int32)
    return answer._replace(
        reason=reason, labels=no_group, second=no_group, stability=np.zeros(m), answers=int(answers.times.sum())
    )


def _artifact(
    snapshot: Snapshot,
    params: Params,
    seed: int,
    previous: Artifact | None,
    ids: np.ndarray,
    answer: ClusterAnswer,
    needed: Artifact,
) -> Artifact:
    n = len(snapshot.objects)
    labels = np.full(n, -1, np.int32)
    labels[ids] = answer.labels
    labels, ari = stability.keep_numbers(labels, previous)
    group_numbers = numbers(labels)
    subgroup, splits = _subgroups(ids, answer, group_numbers)
    stability_of_object = np.zeros(n)
    stability_of_object[ids] = answer.stability
    # the mean may lie outside of the quantiles where few replications differ
    low, high = min(answer.replication_low, answer.replication), max(answer.replication_high, answer.replication)
    arrays = {
        "labels": labels,
        "k": np.array(answer.k or 0),
        "stability": stability_of_object,
        "second": _second(labels, ids, answer),
        "subgroup": subgroup,
        "clearer_than": np.array(answer.clearer_than),
        "detection_limit": np.array(answer.detection_limit),
        "replication": np.array([answer.replication, low, high]),
        "gain": np.array([answer.gain, answer.gain_se]),
        "tested_k": np.asarray(answer.tested.k, np.int64),
        "tested_clearness": np.asarray(answer.tested.clearness, np.float64),
    }
    is_between = (labels >= 0) & (stability_of_object < MIN_CORE_STABILITY)
    figures = ("clearer_than", "detection_limit", "gain", "gain_se")
    report: dict[str, Any] = {
        "grade": answer.grade,
        "reason": answer.reason,
        "k": answer.k,
        "objects": len(ids),
        "answers": answer.answers,
        "sizes": np.bincount(group_numbers[group_numbers >= 1], minlength=1)[1:].tolist(),
        "alone": [snapshot.objects[i] for i in _alone(labels).tolist()],
        "between": int(is_between.sum()) if answer.stability.any() else None,
        "subgroups": splits,
        **{name: _finite_or_none(getattr(answer, name)) for name in figures},
        "replication": {
            "ari": _finite_or_none(answer.replication),
            "low": _finite_or_none(low),
            "high": _finite_or_none(high),
        },
        "dimensions": answer.dimensions,
        "dimension_tied": answer.dimension_tied,
        "precision": _finite_or_none(answer.precision),
        "embedding": {"params": dict(needed.params), "snapshot": needed.sequence},
        "ari_to_previous": ari,
    }
    report["note"] = sentence(report)
    return Artifact(KIND, snapshot.digest, snapshot.sequence, plain_params(params), seed, arrays, report)


def _alone(labels: np.ndarray) -> np.ndarray:
    """The objects that are the only one of their group."""
    group, first, sizes = np.unique(labels, return_index=True, return_counts=True)
    return np.sort(first[(sizes == 1) & (group >= 0)])


def _second(labels: np.ndarray, ids: np.ndarray, answer: ClusterAnswer) -> np.ndarray:
    """(n,) the next most frequent group of each object, by the published labels; -1 without one."""
    label_of = np.full(int(answer.labels.max(initial=-1)) + 2, -1, np.int32)  # the last: no group
    label_of[answer.labels] = labels[ids]
    label_of[-1] = -1
    second = np.full(len(labels), -1, np.int32)
    second[ids] = label_of[answer.second]
    return second


def _subgroups(
    ids: np.ndarray, answer: ClusterAnswer, group_numbers: np.ndarray
) -> tuple[np.ndarray, list[dict[str, Any]]]:
    """`((n,) the subgroup of each object, -1 without one, the tested groups for the report)`."""
    subgroup, splits = np.full(len(group_numbers), -1, np.int32), []
    for split in answer.subgroups:
        members = ids[split.labels >= 0]
        splits.append({"group": int(group_numbers[members[0]]), "k": split.k, "grade": split.grade})
        if are_separated(splits[-1]):
            subgroup[members] = split.labels[split.labels >= 0]
    return subgroup, splits


def _finite_or_none(value: float) -> float | None:
    """A figure of a report; None if it was not computed."""
    return float(value) if np.isfinite(value) else None
