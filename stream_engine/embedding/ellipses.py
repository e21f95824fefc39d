"""Uncertainty of the coordinates: covariances of the points by Laplace's approximation, in the frame the points are
given in.

The Fisher information of the answers about the coordinates x = vec(X), with the ridge as the prior x ~ N(0, 1 / (2
ridge)) and the lapses integrated out, is

    H = sum_q a_q g_q g_q' + 2 ridge I - C V^-1 C',        g_q = dDelta_q / dx,  s = sigma(Delta_q),
    a_q = f_q u_q^2,  C[:, w] = sum_{q of w} f_q u_q v_q g_q,  V[w, w] = sum_{q of w} f_q v_q^2 + prior,
    u = (1 - lapse) s (1 - s) = dp/dDelta,  v = 1/2 - s = dp/dlapse,  f = answers / (p (1 - p)).

Answers tell only distances: moving and turning all points together, the gauge, is in the kernel of the information. G
is an orthonormal basis of it at X, and the covariance is P H^-1 P, P = I - G G': how points spread that are aligned to
X by Procrustes. How large all distances are is told by how noisy answers are; the doubt about it is in the covariance.
Answers of one judgement hang together and say less than as many by themselves: with e_t the slope of answer t at the
answer given, the covariance is multiplied by the design effect (Kish 1965; Huber's sandwich of 1967 as one number)

    max(1, tr(H^-1 sum_u (sum_{t in u} e_t)(...)') / tr(H^-1 sum_t e_t e_t')),      u the units.
"""

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.sparse import csr_array

from stream_engine.data.answers import Answers
from stream_engine.data.compiled import njit, read_only
from stream_engine.embedding.fit import Embedding
from stream_engine.embedding.individual import weighted_margins
from stream_engine.embedding.lapse_prior import PRIOR, guesses
from stream_engine.embedding.questions import asked_about, of_answers
from stream_engine.evaluation.answer_probabilities import margins

MAX_COORDINATES = 2500  # coordinates n d up to which covariances are computed: 16 (n d)^2 bytes, O((n d)^3)
LEVEL = 0.95
SIGNS = (-1.0, 1.0, 1.0, -1.0)  # of dDelta / dx in the places of i, j, k, l


def covariances(
    fit: Embedding, answers: Answers, fixed_lapse: bool = False, weights: np.ndarray | None = None
) -> np.ndarray | None:
    """(n, d, d) float64 covariance of each place; None above `MAX_COORDINATES` coordinates. `answers` are those of
    `fit`, with their units; `weights` (n_workers, d) of participants on the axes count as known. Objects never
    asked about have the prior's, I / (2 ridge). O((n d)^3 + m d^2).
    """
    n, d = fit.points.shape
    if n * d > MAX_COORDINATES:
        return None
    questions = of_answers(answers)
    out = np.tile(np.eye(d) / (2 * fit.ridge), (n, 1, 1))
    has_answers = asked_about(questions)
    if not has_answers.any():
        return out
    own = np.repeat(has_answers, d)
    times, own_weight = questions.near + questions.far, None if weights is None else weights[questions.worker]
    (near, far), f, u, v = _parts(fit, questions.rows, times, fit.lapse[questions.worker], own_weight)
    information = _weighted_sum(questions.rows, near, far, f * u**2, n)[np.ix_(own, own)]
    information += 2 * fit.ridge * np.eye(len(information))
    if not fixed_lapse:
        cross = np.zeros((len(fit.lapse), n, d))
        _add_slopes(
            read_only(questions.rows, np.int32), np.stack([near, far], axis=1), f * u * v, questions.worker, cross
        )
        of_lapses = np.bincount(questions.worker, f * v**2, len(fit.lapse))
        information -= _of_lapses(cross.reshape(len(fit.lapse), -1)[:, own], of_lapses, fit.lapse, fit.guessers)
    gauge = gauge_of(fit.points[has_answers])
    inverse = cho_solve(cho_factor(information), np.eye(len(information)))
    inverse -= gauge @ (gauge.T @ inverse)
    inverse -= (inverse @ gauge) @ gauge.T
    blocks = inverse.reshape(len(gauge) // d, d, len(gauge) // d, d)
    blocks *= _design_effect(fit, answers, blocks, has_answers, weights)
    out[has_answers] = np.einsum("iaib->iab", blocks)
    return out


def gauge_of(points: np.ndarray) -> np.ndarray:
    """(n d, g) orthonormal directions in which all distances stay: d translations, d (d - 1) / 2 rotations, fewer where
    points coincide.

    >>> gauge_of(np.array([[0.0, 0.0], [1.0, 0.0]])).shape
    (4, 3)
    """
    n, d = points.shape
    middle = points - points.mean(axis=0)
    moves = [np.tile(axis, (n, 1)) for axis in np.eye(d)]
    for a in range(d):
        for b in range(a):
            rotation = np.zeros((n, d))
            rotation[:, a], rotation[:, b] = -middle[:, b], middle[:, a]
            moves.append(rotation)
    vectors, sizes, _ = np.linalg.svd(np.stack([move.ravel() for move in moves], axis=1), full_matrices=False)
    return vectors[:, sizes > 1e-9 * sizes[0]]


def radius(d: int, level: float = LEVEL) -> float:
    """r such that (x - X_i)' covariance_i^-1 (x - X_i) <= r^2 holds the true place with probability `level`.

    >>> round(radius(1), 2), round(radius(2), 2)
    (1.96, 2.45)
    """
    from scipy.special import chdtri

    return float(np.sqrt(chdtri(d, 1.0 - level)))


def _parts(fit: Embedding, rows: np.ndarray, times: np.ndarray, lapse: np.ndarray, weight: np.ndarray | None = None):
    """`_gaps`, and f, u, v of the formulas; `weight` (m, d) of the axes for who answered."""
    share = _shares(fit, rows, weight)
    p = np.clip(lapse / 2 + (1 - lapse) * share, 1e-12, 1 - 1e-12)
    return _gaps(fit, rows, weight), times / (p * (1 - p)), (1 - lapse) * share * (1 - share), 0.5 - share


def _gaps(fit: Embedding, rows: np.ndarray, weight: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
    """(m, d) -dDelta/dx_i and dDelta/dx_k of each answer; those in x_j and x_l are the opposite."""
    i, j, k, l = rows.T
    near, far = 2 * (fit.points[i] - fit.points[j]), 2 * (fit.points[k] - fit.points[l])
    for gap in (near, far):
        size = (gap**2 if weight is None else weight * gap**2).sum(axis=1, keepdims=True) / 4
        if weight is not None:
            gap *= weight
        if fit.alpha:
            gap *= 0.5 * (fit.alpha + 1) / (fit.alpha + size)
    return near, far


def sparse_scores(rows: np.ndarray, near: np.ndarray, far: np.ndarray, n: int) -> csr_array:
    """(m, n d) slopes of answers in the coordinates, of `_gaps` or `score_gaps`."""
    m, d = near.shape
    values = np.stack([-near, near, far, -far], axis=1)
    columns = rows[:, :, None] * d + np.arange(d)
    return csr_array((values.ravel(), columns.ravel(), np.arange(m + 1) * 4 * d), shape=(m, n * d))


def _weighted_sum(rows: np.ndarray, near: np.ndarray, far: np.ndarray, weight: np.ndarray, n: int) -> np.ndarray:
    """(n d, n d) sum of weight g g', g of `sparse_scores`. O(m d^2)."""
    d = near.shape[1]
    blocks = np.zeros((n, n, d, d))
    gaps = np.stack([near, far], axis=1)
    _add_blocks(read_only(rows, np.int32), read_only(gaps), read_only(weight, np.float64), blocks)
    low, high = np.tril_indices(n, -1)
    blocks[low, high] = blocks[high, low].transpose(0, 2, 1)
    return blocks.transpose(0, 2, 1, 3).reshape(n * d, n * d)


@njit(cache=True, nogil=True)
def _objects_of(rows, gaps, members, slopes):
    """The different objects of an answer, `members`, with its slope in each, `slopes` (4, d); gives their number."""
    n_members = 0
    for one in range(4):
        at = 0
        while at < n_members and members[at] != rows[one]:
            at += 1
        if at == n_members:
            members[at] = rows[one]
            slopes[at] = 0.0
            n_members += 1
        for a in range(slopes.shape[1]):
            slopes[at, a] += SIGNS[one] * gaps[one // 2, a]
    return n_members


@njit(cache=True, nogil=True)
def _add_blocks(rows, gaps, weight, blocks):
    """Add weight g g' of each answer to the blocks (n, n, d, d) of objects x <= y."""
    d = gaps.shape[2]
    members, slopes = np.empty(4, np.int64), np.empty((4, d))
    for answer in range(len(rows)):
        n_members = _objects_of(rows[answer], gaps[answer], members, slopes)
        for one in range(n_members):
            for other in range(n_members):
                if members[one] <= members[other]:
                    block = blocks[members[one], members[other]]
                    for a in range(d):
                        scaled = weight[answer] * slopes[one, a]
                        for b in range(d):
                            block[a, b] += scaled * slopes[other, b]


@njit(cache=True, nogil=True)
def _add_slopes(rows, gaps, weight, worker, sums):
    """Add weight g of each answer to the sums (w, n, d) of its worker."""
    for answer in range(len(rows)):
        for one in range(4):
            for a in range(gaps.shape[2]):
                sums[worker[answer], rows[answer, one], a] += weight[answer] * SIGNS[one] * gaps[answer, one // 2, a]


def _of_lapses(cross: np.ndarray, of_lapses: np.ndarray, lapse: np.ndarray, guessers: float) -> np.ndarray:
    """C V^-1 C', what not knowing the lapses takes, from C' (w, n d) and the answers' part of V (w,); each worker's
    prior is that of who they seem to be."""
    p_guesser = guesses(lapse, guessers)
    a, b = PRIOR[0] * (1 - p_guesser) + PRIOR[1] * p_guesser, PRIOR[1] * (1 - p_guesser) + PRIOR[0] * p_guesser
    own = of_lapses + (a / lapse + b / (1 - lapse)) / (lapse * (1 - lapse))
    return (cross.T / own) @ cross


def _shares(fit: Embedding, rows: np.ndarray, weight: np.ndarray | None) -> np.ndarray:
    """(m,) sigma(Delta)."""
    if weight is None:
        delta = margins(fit.points, rows, fit.alpha)
    else:
        delta = weighted_margins(fit.points, weight, rows, np.arange(len(rows)), fit.alpha)
    return 1.0 / (1.0 + np.exp(-np.clip(delta, -500, 500)))


def score_gaps(fit: Embedding, answers: Answers, weights: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
    """(m, d) each: minus the slope of log p of each answer in x_i, and that in x_k; those in x_j and x_l are the
    opposite."""
    lapse, weight = fit.lapse[answers.participant + 1], None if weights is None else weights[answers.participant + 1]
    share = _shares(fit, answers.rows, weight)
    slope = (1 - lapse) * share * (1 - share) / (lapse / 2 + (1 - lapse) * share)
    near, far = _gaps(fit, answers.rows, weight)
    return near * slope[:, None], far * slope[:, None]


def _design_effect(
    fit: Embedding, answers: Answers, inverse: np.ndarray, has_answers: np.ndarray, weights: np.ndarray | None
) -> float:
    """How much more the sums of units scatter than answers by themselves would; `inverse` (k, d, k, d) of the objects
    that have answers."""
    order = np.argsort(answers.response, kind="stable")
    first = np.append(np.unique(answers.response[order], return_index=True)[1], len(order))
    place = np.cumsum(has_answers) - 1
    gaps = np.stack(score_gaps(fit, answers, weights), axis=1)[order]
    rows, times = read_only(place[answers.rows[order]], np.int64), answers.times[order].astype(float)
    inverse = read_only(inverse)
    of_units = _sum_of_squares(read_only(first, np.int64), rows, gaps, times, inverse)
    of_single = _sum_of_squares(read_only(np.arange(len(order) + 1)), rows, gaps, np.sqrt(times), inverse)
    return max(1.0, of_units / of_single) if of_single > 0 else 1.0


@njit(cache=True, nogil=True)
def _sum_of_squares(first, rows, gaps, times, inverse):
    """Sum of s' inverse s over units, the rows from first[u] on; s is the sum of their slopes."""
    k, d = inverse.shape[:2]
    sums, members, seen = np.zeros((k, d)), np.empty(k, np.int64), np.zeros(k, np.bool_)
    of_answer, slopes = np.empty(4, np.int64), np.empty((4, d))
    total = 0.0
    for unit in range(len(first) - 1):
        n_members = 0
        for answer in range(first[unit], first[unit + 1]):
            for one in range(_objects_of(rows[answer], gaps[answer], of_answer, slopes)):
                member = of_answer[one]
                if not seen[member]:
                    seen[member] = True
                    members[n_members] = member
                    n_members += 1
                for a in range(d):
                    sums[member, a] += times[answer] * slopes[one, a]
        for x in range(n_members):
            for y in range(x + 1):
                both = 1.0 if x == y else 2.0  # the inverse is symmetric
                for a in range(d):
                    product = 0.0
                    for b in range(d):
                        product += inverse[members[x], a, members[y], b] * sums[members[y], b]
                    total += both * sums[members[x], a] * product
        for x in members[:n_members]:
            seen[x] = False
            sums[x] = 0.0
    return total
