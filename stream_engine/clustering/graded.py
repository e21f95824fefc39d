"""The graded answer about clusters from all responses, without random seed: groups, their separation, their
replication, and what positions within groups add."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from stream_engine.clustering import borders, clearness, position_fits
from stream_engine.clustering.clearness import Candidates
from stream_engine.clustering.position_errors import design_effect, position_errors
from stream_engine.clustering.position_fits import Fit, Fits
from stream_engine.clustering.replication import replication
from stream_engine.clustering.sentence import (
    CANNOT_TELL,
    CLEARLY_SEPARATED,
    GRADES,
    MIN_OBJECTS,
    NOT_SEPARABLE,
    SEPARATED,
    UNCERTAIN,
)
from stream_engine.data.answers import Answers
from stream_engine.embedding.questions import Questions, of_answers

# Groups: the number with the largest gain in clearness over continua, and the partition (`clearness`). Separation: the
# share of continua of the same number of objects, dimension and precision whose groups are less clear.
CLEARLY_SEPARATED_SHARE, SEPARATED_SHARE = 0.99, 0.95  # of continua
MAX_DETECTION_LIMIT = 12.0  # standard deviations between groups that would be detected if a grade is "not separable"


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
        Where the grade is "cannot tell": "few objects", "no positions", "uncertain positions" or "few answers". Beside
        another grade: "one dimension" or "".
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


MAX_EMBEDDED_QUESTIONS = 150_000  # different questions up to which the objects are embedded; for more: given positions
MIN_ERRORS_ABOVE_CHANCE = 3.0  # standard errors by which positions must predict better than chance
MIN_VARIANCE = 1e-9  # of positions that are not all alike


STAGES = 5  # of which `grade_clusters` reports the end, of all but the last


def grade_clusters(
    answers: Answers,
    points: np.ndarray | None = None,
    tied_dimensions: int | None = None,
    progress: Callable[[int, int], object] = lambda done, total: None,
) -> ClusterAnswer:
    """Groups of objects, how clearly they are separated, and how well they would replicate.

    Parameters
    ----------
    answers : Answers
        All answers about m objects, each with its unit: its response, or itself.
    points : ndarray, optional
        (m, d) positions on principal axes, which are used if there are more than `MAX_EMBEDDED_QUESTIONS` different
        questions; otherwise the objects are embedded by STE in one to three dimensions.
    tied_dimensions : int, optional
        A smaller number of dimensions that predicts as well as d: the less clear grade of both is stated.
    progress : callable
        Called with the number of stages done, and their total.

    Returns
    -------
    ClusterAnswer
        The answer. It depends on the answers alone; their order and the numbers of objects change only rounding.

    Notes
    -----
    For k groups with centres c, log crowding of the borders and the elbow of the share of variance within (`borders`),
    each standardised with its mean and deviation in continua, are added; the largest gain over 2 to n / 3 groups (at
    most 40) is compared with that of continua (`clearness`). Above 99 % of them the groups are "clearly separated",
    above 95 % "separated". The grade below is "cannot tell" if groups 12 standard deviations apart would be missed more
    often than one time in five, and "not separable" otherwise.

    Cost: fits of O(q d) an iteration for q questions, once O(q d^2) for the errors, and O(n^2) for each replicate.

    References
    ----------
    Ward (1963); Gabriel & Sokal (1969); Silverman (1981), for gaps as evidence of groups; Pregibon (1981), for fits
    without one answer. The design is measured in docs/measurements.md, "Cluster grades".
    """
    object_ids = np.flatnonzero(np.bincount(answers.rows.ravel(), minlength=answers.n_objects))
    if len(object_ids) < MIN_OBJECTS:
        return _cannot_tell(answers, "few objects", 0)
    asked_answers = answers.among(object_ids)
    own_points = None if points is None else points[object_ids]
    questions = of_answers(asked_answers)
    if own_points is None or len(questions.rows) <= MAX_EMBEDDED_QUESTIONS:
        fits = position_fits.fits_of_answers(questions)
    else:
        fits = position_fits.fits_of_positions(questions, own_points)
    is_line = fits.best.points.shape[1] == 1 or (own_points is not None and own_points.shape[1] == 1)
    best = fits.best
    if not (best.points.var(axis=0).sum() > MIN_VARIANCE):
        return _cannot_tell(answers, "no positions", best.points.shape[1])
    progress(1, STAGES)
    gain, error = _over_chance(fits)
    candidates = fits.candidates()
    separation = _separation(candidates, fits)
    if gain < MIN_ERRORS_ABOVE_CHANCE * error:
        return _cannot_tell(answers, UNCERTAIN, best.points.shape[1])._replace(precision=best.precision)
    tied_to = None
    if tied_dimensions is not None and fits.table == clearness.POSITIONS and 0 < tied_dimensions < best.points.shape[1]:
        fewer_fits = position_fits.fits_of_positions(questions, best.points[:, :tied_dimensions])
        separation_of_fewer = _separation(fewer_fits.candidates(), fewer_fits)
        if GRADES.index(separation_of_fewer.grade) < GRADES.index(separation.grade):
            separation, tied_to, fits, best = separation_of_fewer, tied_dimensions, fewer_fits, fewer_fits.best
    progress(2, STAGES)
    labels = _partition(best.points, separation.k)
    all_labels = np.full(answers.n_objects, -1, np.int32)
    all_labels[object_ids] = labels
    variance = best.errors.variance * design_effect(
        best.points, _workers_of(fits, asked_answers), best.lapse, best.errors.variance
    )
    progress(3, STAGES)
    replicates = replication(best.points, variance, labels)
    progress(4, STAGES)
    within_gain, within_gain_se = _gain_within(fits.questions, best, labels)
    stability, second = np.zeros(answers.n_objects), np.full(answers.n_objects, -1, np.int32)
    stability[object_ids], second[object_ids] = replicates.stability, replicates.second
    return ClusterAnswer(
        grade=separation.grade,
        reason="few answers" if separation.grade == CANNOT_TELL else "one dimension" if is_line else "",
        k=separation.k,
        labels=all_labels,
        clearer_than=separation.clearer_than,
        detection_limit=separation.detection_limit,
        replication=replicates.ari,
        replication_low=replicates.low,
        replication_high=replicates.high,
        gain=within_gain,
        gain_se=within_gain_se,
        dimensions=best.points.shape[1],
        dimension_tied=tied_to,
        precision=best.precision,
        tested=separation.tested,
        subgroups=_subgroups(fits, labels, object_ids, answers.n_objects),
        stability=stability,
        second=second,
        answers=int(answers.times.sum()),
    )


class _Separation(NamedTuple):
    """The clearest groups and how well they are separated."""

    grade: str
    k: int
    clearer_than: float
    detection_limit: float
    tested: CandidateGroups


def _separation(candidates: Sequence[Candidates], fits: Fits, tests: int = 1) -> _Separation:
    """The separation of the clearest groups in some fits, of all objects or of a part; `tests`: how many such answers
    are given at once (Bonferroni)."""
    continua = clearness.surface(fits.table)
    gains = clearness.gains(candidates, continua)
    clearest, terms = int(gains.argmax()), clearness.terms_of_study(candidates)
    share = clearness.clearer_than(float(gains[clearest]), terms, continua)
    share_of_objects = len(candidates[0].labels[0]) / len(fits.best.points)
    answers = int(fits.questions.answers * share_of_objects) if fits.table == clearness.FITS else 0
    limit = clearness.detection_limit(clearness.terms_of_power(candidates, answers), continua)
    if 1 - share < (1 - CLEARLY_SEPARATED_SHARE) / tests:
        grade = CLEARLY_SEPARATED
    elif 1 - share < (1 - SEPARATED_SHARE) / tests:
        grade = SEPARATED
    else:
        grade = NOT_SEPARABLE if limit <= MAX_DETECTION_LIMIT else CANNOT_TELL
    ks = candidates[0].k
    return _Separation(grade, int(ks[clearest]), share, limit, CandidateGroups(ks, gains))


def _partition(points: np.ndarray, k: int) -> np.ndarray:
    """(n,) int32 k groups of positions (n, d), numbered by first appearance."""
    labels = borders.cuts(points, (k,))[0].labels
    _, first, inverse = np.unique(labels, return_index=True, return_inverse=True)
    return np.argsort(np.argsort(first))[inverse.reshape(-1)].astype(np.int32)


def _over_chance(fits: Fits) -> tuple[float, float]:
    """Held-out log loss of chance less that of the best fit, in nats an answer, and its standard error."""
    q, errors = fits.questions, fits.best.errors
    return _mean(np.log(2) - errors.near, np.log(2) - errors.far, q)


def _gain_within(questions: Questions, best: Fit, labels: np.ndarray) -> tuple[float, float]:
    """Held-out log loss of groups' centres less that of positions (`position_errors`), and its standard error."""
    k = int(labels.max()) + 1
    size = np.bincount(labels, minlength=k)[:, None]
    centres = np.stack([np.bincount(labels, column, k) for column in best.points.T], axis=1) / size
    group_questions, place = position_fits.questions_of_groups(questions, labels, k)
    group_fit = position_fits.centres(centres, group_questions, best.lapse)
    errors = position_errors(group_fit.points, group_questions, group_fit.lapse, position_fits.RIDGE)
    return _mean(errors.near[place] - best.errors.near, errors.far[place] - best.errors.far, questions)


def _mean(near: np.ndarray, far: np.ndarray, questions: Questions) -> tuple[float, float]:
    """The mean, over answers, of values of both answers to each question; and its standard error."""
    count = questions.answers
    mean = float(questions.near @ near + questions.far @ far) / count
    scatter = float(questions.near @ (near - mean) ** 2 + questions.far @ (far - mean) ** 2)
    return mean, float(np.sqrt(scatter)) / count


MIN_SPLIT_SIZE = 12  # objects of a group that is examined for groups within it


def _subgroups(fits: Fits, labels: np.ndarray, object_ids: np.ndarray, m: int) -> tuple[Subgroup, ...]:
    """Groups within each group of at least `MIN_SPLIT_SIZE` objects, in the fits in which the groups are looked for:
    the table of these knows that fitted positions clump, in particular on a line."""
    large = [group for group in range(int(labels.max()) + 1) if (labels == group).sum() >= MIN_SPLIT_SIZE]
    subgroups = []
    for group in large:
        members = np.flatnonzero(labels == group)
        candidates = [_candidates_among(members, fit, fits) for fit in fits.averaged_fits]
        separation = _separation(candidates, fits, tests=len(large))
        all_labels = np.full(m, -1, np.int32)
        all_labels[object_ids[members]] = _partition(fits.best.points[members], separation.k)
        subgroups.append(Subgroup(group, separation.k, separation.grade, all_labels))
    return tuple(subgroups)


def _candidates_among(members: np.ndarray, fit: Fit, fits: Fits) -> Candidates:
    """Every number of groups of the objects `members` (m,) in one fit to all answers."""
    points, variance = fit.points[members], fit.errors.variance[members]
    return clearness.candidates(points, clearness.precision(points, variance), -fit.log_loss * fits.questions.answers)


def _workers_of(fits: Fits, answers: Answers) -> Answers:
    """The answers; without their participants if the fits have one lapse rate for all."""
    return answers if len(fits.best.lapse) > 1 else answers._replace(participant=np.full_like(answers.participant, -1))


def _cannot_tell(answers: Answers, reason: str, dimensions: int) -> ClusterAnswer:
    """The answer "cannot tell", with its reason."""
    nan, m = float("nan"), answers.n_objects
    no_group = np.full(m, -1, np.int32)
    return ClusterAnswer(
        grade=CANNOT_TELL,
        reason=reason,
        k=None,
        labels=no_group,
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
        second=no_group,
        answers=int(answers.times.sum()),
    )
