"""The graded answer about clusters: groups, their separation, their replication, and what positions within them add."""

from typing import NamedTuple

import numpy as np

from stream_engine.clustering import borders
from stream_engine.embedding.fit import fit
from stream_engine.embedding.held_out import Answers
from stream_engine.embedding.questions import asked_about

CLEARLY_SEPARATED, SEPARATED = "clearly separated", "separated"
NOT_SEPARABLE, CANNOT_TELL = "not separable", "cannot tell"
GRADES = (CANNOT_TELL, NOT_SEPARABLE, SEPARATED, CLEARLY_SEPARATED)
LEAST = 8  # objects
RIDGE = 0.1


class CandidateGroups(NamedTuple):
    """Every number of groups that was examined."""

    k: np.ndarray  # (t,) int64
    clearness: np.ndarray  # (t,) of the groups: the statistic


class Subgroup(NamedTuple):
    """The answer about the objects of one group."""

    group: int
    k: int
    grade: str
    labels: np.ndarray  # (m,) int32 over all objects, -1 outside the group


class ClusterAnswer(NamedTuple):
    """What the answers say about groups of m objects."""

    grade: str  # one of `GRADES`
    reason: str  # a code, where the grade is "cannot tell" or the input special
    k: int | None
    labels: np.ndarray
    clearer_than: float
    detection_limit: float
    replication: float
    replication_low: float
    replication_high: float
    gain: float
    gain_se: float
    dimensions: int
    dimension_tied: int | None
    precision: float
    tested: CandidateGroups
    subgroups: tuple[Subgroup, ...]
    stability: np.ndarray
    second: np.ndarray
    answers: int


def grade_clusters(answers: Answers, points: np.ndarray | None = None) -> ClusterAnswer:
    """The answer about the objects 0 .. m - 1 of `answers`, whose positions `points` (m, d) are, if they are known."""
    nan, m = float("nan"), answers.n_objects
    nobody = np.full(m, -1, np.int32)
    nothing = CandidateGroups(np.empty(0, np.int64), np.empty(0))
    given = int(answers.times.sum())
    empty = ClusterAnswer(
        CANNOT_TELL, "few objects", None, nobody, nan, nan, nan, nan, nan, nan, nan, 0, None, nan, nothing, (),
        np.zeros(m), nobody, given,
    )  # fmt: skip
    if m < LEAST:
        return empty
    if points is None:
        points = fit(answers.questions(), 2, RIDGE).points
    asked = np.flatnonzero(asked_about(answers.questions()))
    empty = empty._replace(dimensions=points.shape[1])
    if len(asked) < LEAST or not points[asked].any():
        return empty._replace(reason="no positions")
    ks = tuple(range(2, max(len(asked) // 3, 2) + 1))
    cuts = borders.cuts(points[asked], (*ks, ks[-1] + 1))
    clearness = -borders.looseness(cuts)
    at = int(clearness.argmax())
    labels = nobody.copy()
    labels[asked] = cuts[at].labels
    return empty._replace(
        grade=NOT_SEPARABLE, reason="", k=ks[at], labels=labels, tested=CandidateGroups(np.array(ks), clearness)
    )
