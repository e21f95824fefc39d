"""Are there clusters, and how many? One graded answer (`clustering.graded`; docs/design/clustering.md).

Of many different questions, the positions are those of the embedding of the same snapshot, which a run, the command
`refit` and a study fit first (`refits.NEEDED`); of fewer, objects are embedded anew (`clustering.graded.FITTED`). No
step draws at random, and the embedding's setting does not depend on the seed, so that the answer does not either.
Labels keep their meaning from one snapshot to the next.
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
from stream_engine.exports.object_places import numbers
from stream_engine.refits import CannotRefit, Progress, embedding, next_step, no_progress
from stream_engine.state.artifact import Artifact, figure, plain_params
from stream_engine.state.artifact_schemas import CLUSTERS
from stream_engine.state.snapshot import Snapshot

KIND = "clusters"
AXES = CLUSTERS.axes
REQUIRED = CLUSTERS.required


class Params(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """There are no parameters: what is said of a study is no matter of choice."""


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
        continua whose groups are less clear; `detection_limit`, the smallest separation that would be detected, in
        standard deviations within groups; `replication` (3,), the expected adjusted Rand index and its interval;
        `gain` (2,), what positions add to groups in held-out log loss, and its standard error; `tested_k` and
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
        d = needed.arrays["X"].shape[1]
        if sets is not None and sets.max(initial=0) > 0:
            made = _unknown(answers, UNCONNECTED, d)
        elif len(ids) >= MIN_OBJECTS and _cancel(answers):
            made = _unknown(answers, ALL_ALIKE, d)
        else:
            tied = figure(needed.report, "dimensions_tied")
            points = np.asarray(needed.arrays["X"][ids], np.float64)
            made = grade_clusters(answers, points, None if tied is None else int(tied))
    progress(1, 1, clearer_than=None if np.isnan(made.clearer_than) else made.clearer_than)
    return _artifact(snapshot, params, seed, previous, ids, made, needed)


def _answers(snapshot: Snapshot) -> Answers:
    """All answers; participants with few of them are nobody in particular, as for the embedding."""
    return embedding.without_rare_participants(answers_of(snapshot, embedding.SPLIT)[1])


def _cancel(answers: Answers) -> bool:
    """Whether every question was answered as often each way: then all objects are alike."""
    asked = of_rows(answers.rows, answers.n_objects, answers.times)
    return bool((asked.near == asked.far).all())


def _unknown(answers: Answers, reason: str, d: int) -> ClusterAnswer:
    """No groups, and why."""
    nothing = grade_clusters(answers.of(np.zeros(len(answers.rows), bool))._replace(n_objects=0), np.empty((0, d)))
    m = answers.n_objects
    nobody = np.full(m, -1, np.int32)
    return nothing._replace(
        reason=reason, labels=nobody, second=nobody, stability=np.zeros(m), answers=int(answers.times.sum())
    )


def _artifact(
    snapshot: Snapshot,
    params: Params,
    seed: int,
    previous: Artifact | None,
    ids: np.ndarray,
    made: ClusterAnswer,
    needed: Artifact,
) -> Artifact:
    n = len(snapshot.objects)
    own, second, subgroup = (np.full(n, -1, np.int32) for _ in range(3))
    own[ids] = made.labels
    labels, ari = stability.keep_numbers(own, previous)
    number = np.full(int(made.labels.max(initial=-1)) + 2, -1, np.int32)  # the last: no group
    number[made.labels] = labels[ids]
    number[-1] = -1
    second[ids] = number[made.second]
    of_object = np.zeros(n)
    of_object[ids] = made.stability
    splits = []
    called = numbers(labels)
    for each in made.subgroups:
        inside = ids[each.labels >= 0]
        splits.append({"group": int(called[inside[0]]), "k": each.k, "grade": each.grade})
        if are_separated(splits[-1]):
            subgroup[inside] = each.labels[each.labels >= 0]
    arrays = {
        "labels": labels,
        "k": np.array(made.k or 0),
        "stability": of_object,
        "second": second,
        "subgroup": subgroup,
        "clearer_than": np.array(made.clearer_than),
        "detection_limit": np.array(made.detection_limit),
        "replication": np.array([made.replication, made.replication_low, made.replication_high]),
        "gain": np.array([made.gain, made.gain_se]),
        "tested_k": np.asarray(made.tested.k, np.int64),
        "tested_clearness": np.asarray(made.tested.clearness, np.float64),
    }
    sizes = np.bincount(called[called >= 1], minlength=1)[1:]
    report: dict[str, Any] = {
        "grade": made.grade,
        "reason": made.reason,
        "k": made.k,
        "objects": len(ids),
        "answers": made.answers,
        "sizes": sizes.tolist(),
        "between": int(((labels >= 0) & (of_object < MIN_CORE_STABILITY)).sum()) if made.stability.any() else None,
        "subgroups": splits,
        **{name: _known(getattr(made, name)) for name in ("clearer_than", "detection_limit", "gain", "gain_se")},
        "replication": {
            "ari": _known(made.replication),
            "low": _known(made.replication_low),
            "high": _known(made.replication_high),
        },
        "dimensions": made.dimensions,
        "dimension_tied": made.dimension_tied,
        "precision": _known(made.precision),
        "embedding": {"params": dict(needed.params), "snapshot": needed.sequence},
        "ari_to_previous": ari,
    }
    report["note"] = sentence(report)
    return Artifact(KIND, snapshot.digest, snapshot.sequence, plain_params(params), seed, arrays, report)


def _known(value: float) -> float | None:
    """A figure of a report, None where it was not computed."""
    return float(value) if np.isfinite(value) else None
