"""The graded answer about clusters: groups, separation, replication, and what positions within groups add.

One answer from all responses, without random seed. Groups: the number with the largest gain in clearness over continua,
and the partition (`clearness`). Separation: the share of continua of the same number of objects, dimension and
precision whose groups are less clear. Replication: `replication`. Graded structure: the log loss of answers, each
predicted without it, by the groups' centres less that by the objects' positions (`position_errors`).
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from stream_engine.clustering import borders, clearness, position_fits
from stream_engine.clustering.clearness import Candidates
from stream_engine.clustering.position_errors import design_effect, position_errors
from stream_engine.clustering.position_fits import Fit, Fits
from stream_engine.clustering.replication import replication
from stream_engine.clustering.sentence import CANNOT_TELL, CLEARLY_SEPARATED, GRADES, LEAST, NOT_SEPARABLE, SEPARATED
from stream_engine.data.answers import Answers
from stream_engine.embedding.questions import Questions, of_answers

CLEARLY, CLEAR = 0.99, 0.95  # shares of continua
EXAMINED_AGAIN = 12  # objects of a group at least, for groups within it
FITTED = 150_000  # different questions up to which the objects are embedded anew; given positions for more
VISIBLE = 12.0  # standard deviations between groups that must be seen where "not separable" is said
CHANCE = 3.0  # standard errors by which positions must predict better than chance
SAME = 1e-9  # share of the size of all positions below which they are alike


class CandidateGroups(NamedTuple):
    """Every number of groups that was examined."""

    k: np.ndarray  # (t,) int64
    clearness: np.ndarray  # (t,) standardised gain over continua


class Subgroup(NamedTuple):
    """The answer about the objects of one group."""

    group: int
    k: int
    grade: str
    labels: np.ndarray  # (m,) int32 over all objects, -1 outside the group


class ClusterAnswer(NamedTuple):
    """What the answers say about groups of m objects; NaN where something was not computed.

    Attributes
    ----------
    grade : str
        One of `GRADES`.
    reason : str
        Where the grade is "cannot tell": "few objects", "no positions", "chance" or "few answers". Beside another
        grade: "one dimension" or "".
    k : int or None
        The number of groups that are clearest; None where the answers determine no positions.
    labels : ndarray
        (m,) int32 partition into k groups, numbered by first appearance; -1: no group.
    clearer_than : float
        Share of continua, of as many objects, as many dimensions and the same precision, that are less clear.
    detection_limit : float
        Distance of nearest centres, in standard deviations within groups, at which groups would be "separated" with
        probability .8.
    replication, replication_low, replication_high : float
        Adjusted Rand index between two studies of this size: mean, and the interval of 95 %.
    gain, gain_se : float
        Held-out log loss, in nats an answer, of groups' centres less that of objects' positions; standard error.
    dimensions : int
        Of the positions in which the objects are partitioned.
    dimension_tied : int or None
        Number of dimensions whose less clear grade is stated instead.
    precision : float
        Share of the variance of the positions that is not error.
    tested : CandidateGroups
        Every number of groups that was examined.
    subgroups : tuple of Subgroup
        Of every group of 12 or more objects.
    stability : ndarray
        (m,) share of replicates that put an object into its group.
    second : ndarray
        (m,) int32, the group that an object is in most often besides its own; -1: none.
    answers : int
        Number of answers.
    """

    grade: str
    reason: str
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


def grade_clusters(answers: Answers, points: np.ndarray | None = None, tied: int | None = None) -> ClusterAnswer:
    """Groups of objects, how clearly they are separated, and how well they would replicate.

    Parameters
    ----------
    answers : Answers
        All answers about m objects, each with its unit: its response, or itself.
    points : ndarray, optional
        (m, d) positions on principal axes, which are used where there are more than `FITTED` different questions;
        otherwise the objects are embedded by STE in one to three dimensions.
    tied : int, optional
        A smaller number of dimensions that predicts as well as d: the less clear grade of both is stated.

    Returns
    -------
    ClusterAnswer
        The answer. It depends on the answers alone; their order and the numbers of objects change only rounding.

    Notes
    -----
    For k groups with centres c, log crowding of the borders and the elbow of the share of variance within (`borders`),
    each standardised with its mean and deviation in continua, are added; the largest gain over 2 to n / 3 groups (at
    most 40) is compared with that of continua (`clearness`). Above 99 % of them the groups are "clearly separated",
    above 95 % "separated". "Cannot tell" is said below where groups 12 standard deviations apart would be missed more
    often than one time in five.

    Cost: fits of O(q d) an iteration for q questions, once O(q d^2) for the errors, and O(n^2) for each replicate.

    References
    ----------
    Ward (1963); Gabriel & Sokal (1969); Silverman (1981), for gaps as evidence of groups; Pregibon (1981), for fits
    without one answer. The design is measured in docs/measurements.md, "Cluster grades".
    """
    asked = np.flatnonzero(np.bincount(answers.rows.ravel(), minlength=answers.n_objects))
    if len(asked) < LEAST:
        return _unknown(answers, "few objects", 0)
    about = answers.among(asked)
    own = None if points is None else points[asked]
    questions = of_answers(about)
    if own is None or len(questions.rows) <= FITTED:
        fits = position_fits.fitted(questions)
    else:
        fits = position_fits.given(questions, own)
    flat = fits.best.points.shape[1] == 1 or (own is not None and own.shape[1] == 1)
    best = fits.best
    if not (best.points.var(axis=0).sum() > SAME):
        return _unknown(answers, "no positions", best.points.shape[1])
    gain, error = _over_chance(fits)
    compared = fits.candidates()
    found = _judged(compared, fits)
    if gain < CHANCE * error:
        return _unknown(answers, "chance", best.points.shape[1])._replace(precision=best.precision)
    tied_to = None
    if tied is not None and fits.table == clearness.POSITIONS and 0 < tied < best.points.shape[1]:
        fewer = position_fits.given(questions, best.points[:, :tied])
        other = _judged(fewer.candidates(), fewer)
        if GRADES.index(other.grade) < GRADES.index(found.grade):
            found, tied_to, fits, best = other, tied, fewer, fewer.best
    labels = _partition(best, found.k)
    everywhere = np.full(answers.n_objects, -1, np.int32)
    everywhere[asked] = labels
    variance = best.errors.variance * design_effect(
        best.points, _workers_of(fits, about), best.lapse, best.errors.variance
    )
    again = replication(best.points, variance, labels)
    gained, gained_error = _within(fits.questions, best, labels)
    stability, second = np.zeros(answers.n_objects), np.full(answers.n_objects, -1, np.int32)
    stability[asked], second[asked] = again.stability, again.second
    return ClusterAnswer(
        grade=found.grade,
        reason="few answers" if found.grade == CANNOT_TELL else "one dimension" if flat else "",
        k=found.k,
        labels=everywhere,
        clearer_than=found.clearer_than,
        detection_limit=found.detection_limit,
        replication=again.ari,
        replication_low=again.low,
        replication_high=again.high,
        gain=gained,
        gain_se=gained_error,
        dimensions=best.points.shape[1],
        dimension_tied=tied_to,
        precision=best.precision,
        tested=found.tested,
        subgroups=_subgroups(best, labels, asked, answers.n_objects),
        stability=stability,
        second=second,
        answers=int(answers.times.sum()),
    )


class _Judged(NamedTuple):
    """The separation of the clearest groups."""

    grade: str
    k: int
    clearer_than: float
    detection_limit: float
    tested: CandidateGroups


def _judged(compared: Sequence[Candidates], fits: Fits | None = None, tests: int = 1) -> _Judged:
    """Of the clearest groups in some fits, or in a part of the positions; `tests`: how many such questions are asked at
    once."""
    anew = fits is not None and fits.table == clearness.FITS
    continua = clearness.surface(clearness.FITS if anew else clearness.POSITIONS)
    gains = clearness.gains(compared, continua)
    at, terms = int(gains.argmax()), clearness.terms_of_study(compared)
    share = clearness.clearer_than(float(gains[at]), terms, continua)
    answers = int(fits.questions.answers) if fits is not None and anew else 0
    limit = clearness.detection_limit(clearness.terms_of_power(compared, answers), continua)
    if 1 - share < (1 - CLEARLY) / tests:
        grade = CLEARLY_SEPARATED
    elif 1 - share < (1 - CLEAR) / tests:
        grade = SEPARATED
    else:
        grade = NOT_SEPARABLE if limit <= VISIBLE else CANNOT_TELL
    ks = compared[0].k
    return _Judged(grade, int(ks[at]), share, limit, CandidateGroups(ks, gains))


def _partition(best: Fit, k: int) -> np.ndarray:
    """(n,) int32 of the best fit, numbered by first appearance."""
    labels = borders.cuts(best.points, (k,))[0].labels
    _, first, inverse = np.unique(labels, return_index=True, return_inverse=True)
    return np.argsort(np.argsort(first))[inverse.reshape(-1)].astype(np.int32)


def _over_chance(fits: Fits) -> tuple[float, float]:
    """Held-out log loss of chance less that of the best fit, in nats an answer, and its standard error."""
    q, errors = fits.questions, fits.best.errors
    return _mean(np.log(2) - errors.near, np.log(2) - errors.far, q)


def _within(questions: Questions, best: Fit, labels: np.ndarray) -> tuple[float, float]:
    """Held-out log loss of groups' centres less that of positions, and its standard error."""
    k = int(labels.max()) + 1
    size = np.bincount(labels, minlength=k)[:, None]
    centres = np.stack([np.bincount(labels, column, k) for column in best.points.T], axis=1) / size
    tied = position_fits.centres(centres, questions, labels, best.lapse)
    own = questions._replace(rows=labels[questions.rows], n_objects=k)
    errors = position_errors(tied.points, own, tied.lapse, position_fits.RIDGE)
    return _mean(errors.near - best.errors.near, errors.far - best.errors.far, questions)


def _mean(near: np.ndarray, far: np.ndarray, questions: Questions) -> tuple[float, float]:
    """Of values of both answers to each question, over the answers; and its standard error."""
    count = questions.answers
    mean = float(questions.near @ near + questions.far @ far) / count
    scatter = float(questions.near @ (near - mean) ** 2 + questions.far @ (far - mean) ** 2)
    return mean, float(np.sqrt(scatter)) / count


def _subgroups(best: Fit, labels: np.ndarray, asked: np.ndarray, m: int) -> tuple[Subgroup, ...]:
    """Groups within each group of `EXAMINED_AGAIN` objects, on their positions."""
    large = [group for group in range(int(labels.max()) + 1) if (labels == group).sum() >= EXAMINED_AGAIN]
    made = []
    for group in large:
        inside = np.flatnonzero(labels == group)
        points = best.points[inside]
        precise = clearness.precision(points, best.errors.variance[inside])
        compared = [clearness.candidates(points, precise)]
        found = _judged(compared, tests=len(large))
        everywhere = np.full(m, -1, np.int32)
        everywhere[asked[inside]] = compared[0].labels[found.k - 2]
        made.append(Subgroup(group, found.k, found.grade, everywhere))
    return tuple(made)


def _workers_of(fits: Fits, answers: Answers) -> Answers:
    """The answers, by nobody in particular where the fits know no workers."""
    return answers if len(fits.best.lapse) > 1 else answers._replace(participant=np.full_like(answers.participant, -1))


def _unknown(answers: Answers, reason: str, dimensions: int) -> ClusterAnswer:
    """No groups, and why."""
    nan, m = float("nan"), answers.n_objects
    nobody = np.full(m, -1, np.int32)
    return ClusterAnswer(
        grade=CANNOT_TELL,
        reason=reason,
        k=None,
        labels=nobody,
        clearer_than=nan,
        detection_limit=nan,
        replication=nan,
        replication_low=nan,
        replication_high=nan,
        gain=nan,
        gain_se=nan,
        dimensions=dimensions,
        dimension_tied=None,
        precision=nan,
        tested=CandidateGroups(np.empty(0, np.int64), np.empty(0)),
        subgroups=(),
        stability=np.zeros(m),
        second=nobody,
        answers=int(answers.times.sum()),
    )
