"""The compiled update of the online embedding: one gradient step an answer, in order, and replays of earlier ones.

An answer pulls the objects that it names down the slope g of its own - log p (`gradient`), and an answer's share of the
ridge draws each to 0. With m answers about the object so far,

    x <- (x - s g) / (1 + 2 s ridge / m),   s = rate / h,   h = FLOOR + sum of all answers' |g|^2 / d

h is the Fisher information that they give, as in the natural gradient (Amari 1998, sec. 3; a number an object instead
of a matrix). The ridge is a proximal step (Parikh & Boyd 2014, sec. 4.2): no ridge, however large, throws x across 0,
also while h is small. The places that are used are the running mean of those stepped to (Polyak & Juditsky 1992), since
steps as long as these scatter; it goes over the longer, the more answers are replayed for each one that comes.

A lapse rate is the share of a worker's answers that are guesses: each answer adds the probability (lapse / 2) / p that
it is one (the E step; Cappe & Moulines 2009, sec. 2.2, an online EM), fading after `MEMORY` answers. A new worker
begins at the lapse of all, worth `PRIOR_ANSWERS` answers.

Participants with weights on the axes (`individual`) see w u, w v instead of u, v. After each new answer, their log
weights follow its slope g_k, a number an axis,

    log w_k <- log w_k - g_k / h_k,   h_k <- h_k + g_k^2 p / (1 - p),   h_k = 2 shrinkage at first

which is one step of Newton's method for the posterior around the group's weights, with the expected information of the
answer (a Kalman filter with a diagonal covariance; Ollivier 2018, sec. 2).

A new object begins beside the one that it was said to be near. One that came late is put where its first answers are
likeliest: few dimensions have poor minima, and a step cannot leave them.
"""

import numpy as np

from stream_engine.data.compiled import njit
from stream_engine.data.hashing import GOLDEN_GAMMA, mix64

LEARNED, DRAWN, EARLIER, KNOWN = range(4)  # of `numbers`
FLOOR = 0.5  # of h: the first steps are about as long as their slopes
NEW_RATE, REPLAY_RATE = 2.0, 1.0  # the rates of an answer that comes, and of one that is replayed
MAX_REPLAYS, BUDGET = 100.0, 1e6  # replays for each answer that comes: so many, later budget / answers
PRIOR_ANSWERS, MEMORY = 20.0, 1000.0
MIN_LAPSE, MAX_LAPSE = 1e-4, 0.99
# Steps of an object that `mean` goes over, in units of its answers; more for each replay.
WINDOW, WINDOW_PER_REPLAY = 0.5, 0.12
MAX_COORDINATE = 1e4  # coordinates stay within
MAX_DELTA = 500.0  # |Delta| beyond which the likelihood no longer changes
N_FIRST = 16  # answers about a new object by which it is put elsewhere, at half of them and at all
N_PLACES = 32  # that are tried
MIN_WEIGHT, MAX_WEIGHT = 1e-3, 1e3
_GAMMA = np.uint64(GOLDEN_GAMMA)


@njit(cache=True, nogil=True, inline="always", fastmath=True)
def _slopes(points, weights, w, i, j, k, l, alpha, lapse, slope, size):
    """Fill slope (4, d) of the objects i, j, l, k and size (4,) of its squares, slope[4] of the log weights of `w`,
    a row of `weights` (1 where there is none); gives the probability of the answer. Where k is i, the first row is all
    of i's."""
    d = points.shape[1]
    w = w if w < len(weights) else 0
    near = far = 0.0
    for c in range(d):
        u, v = points[i, c] - points[j, c], points[k, c] - points[l, c]
        near += weights[w, c] * u * u
        far += weights[w, c] * v * v
    delta, a, b = far - near, 1.0, 1.0
    if alpha > 0.0:
        delta = 0.5 * (alpha + 1.0) * np.log((alpha + far) / (alpha + near))
        a, b = 0.5 * (alpha + 1.0) / (alpha + near), 0.5 * (alpha + 1.0) / (alpha + far)
    share = 1.0 / (1.0 + np.exp(-min(max(delta, -MAX_DELTA), MAX_DELTA)))
    p = max(0.5 * lapse + (1.0 - lapse) * share, 1e-12)
    push = 2.0 * (1.0 - lapse) * share * (1.0 - share) / p
    a, b = a * push, b * push
    same = 1.0 if k == i else 0.0
    size[0] = size[1] = size[2] = size[3] = 0.0
    for c in range(d):
        u, v = a * (points[i, c] - points[j, c]), b * (points[k, c] - points[l, c])
        slope[4, c] = 0.5 * weights[w, c] * (u * (points[i, c] - points[j, c]) - v * (points[k, c] - points[l, c]))
        u, v = weights[w, c] * u, weights[w, c] * v
        slope[0, c] = u - same * v
        slope[1, c] = -u
        slope[2, c] = v
        slope[3, c] = -v
        for at in range(4):
            size[at] += slope[at, c] * slope[at, c]
    return p


@njit(cache=True, nogil=True, inline="always", fastmath=True)
def _inform(sums, w, slope, p):
    """Add the information of an answer, with their slope in slope[4], about the log weights of `w`."""
    for c in range(sums.shape[1]):
        sums[w, c] += slope[4, c] * slope[4, c] * p / max(1.0 - p, 1e-12)


@njit(cache=True, nogil=True, inline="always", fastmath=True)
def _weigh(weights, sums, w, slope, p):
    """The weights of a participant after an answer with this probability."""
    _inform(sums, w, slope, p)
    for c in range(weights.shape[1]):
        weight = weights[w, c] * np.exp(-min(max(slope[4, c] / sums[w, c], -1.0), 1.0))
        weights[w, c] = min(max(weight, MIN_WEIGHT), MAX_WEIGHT)


@njit(cache=True, nogil=True, inline="always", fastmath=True)
def _move(points, mean, squares, answers, row, slope, at, size, ridge, window, rate, fresh):
    """One object down its slope and towards 0, and the mean of its places after it."""
    h = squares[row] + size[at] / points.shape[1]
    if fresh:
        squares[row] = h
    step, share = rate / h, 1.0 / (1.0 + window * answers[row])
    shrinkage = 1.0 / (1.0 + 2.0 * step * ridge / max(answers[row], 1.0))
    for c in range(points.shape[1]):
        points[row, c] = min(max(shrinkage * (points[row, c] - step * slope[at, c]), -MAX_COORDINATE), MAX_COORDINATE)
        mean[row, c] += share * (points[row, c] - mean[row, c])


@njit(cache=True, nogil=True, inline="always", fastmath=True)
def _step(
    points, mean, squares, answers, weights, w, i, j, k, l, alpha, ridge, window, lapse, slope, size, rate, fresh
):
    """All objects of an answer at once; gives its probability."""
    p = _slopes(points, weights, w, i, j, k, l, alpha, lapse, slope, size)
    _move(points, mean, squares, answers, i, slope, 0, size, ridge, window, rate, fresh)
    _move(points, mean, squares, answers, j, slope, 1, size, ridge, window, rate, fresh)
    _move(points, mean, squares, answers, l, slope, 2, size, ridge, window, rate, fresh)
    if k != i:
        _move(points, mean, squares, answers, k, slope, 3, size, ridge, window, rate, fresh)
    return p


@njit(cache=True, nogil=True, inline="always", fastmath=True)
def _lapse(lapse_counts, w):
    """The lapse of a worker; of one who answers for the first time that of all."""
    if lapse_counts[w, 1] == 0.0:
        lapse_counts[w, 1] = PRIOR_ANSWERS
        lapse_counts[w, 0] = PRIOR_ANSWERS * lapse_counts[0, 0] / lapse_counts[0, 1]
    return min(max(lapse_counts[w, 0] / lapse_counts[w, 1], MIN_LAPSE), MAX_LAPSE)


@njit(cache=True, nogil=True, inline="always", fastmath=True)
def _count(lapse_counts, w, p_lapse):
    """One more answer of a worker, a guess with this probability."""
    lapse_counts[w, 0] += p_lapse
    lapse_counts[w, 1] += 1.0
    if lapse_counts[w, 1] > MEMORY:
        lapse_counts[w, 0] *= MEMORY / lapse_counts[w, 1]
        lapse_counts[w, 1] = MEMORY


@njit(cache=True, nogil=True, inline="always", fastmath=True)
def _place(points, mean, answers, i, j, k, l):
    """Put a new object beside the one that it was said to be near."""
    if answers[j] == 0.0 and answers[i] > 0.0:
        for c in range(points.shape[1]):
            points[j, c] += points[i, c]
            mean[j, c] = points[j, c]
    elif answers[i] == 0.0 and answers[j] > 0.0:
        for c in range(points.shape[1]):
            points[i, c] += points[j, c]
            mean[i, c] = points[i, c]
    answers[i] += 1.0
    answers[j] += 1.0
    answers[l] += 1.0
    if k != i:
        answers[k] += 1.0


@njit(cache=True, nogil=True, inline="always", fastmath=True)
def _loss_at(mean, first, ring, x, y, count, n_learned, alpha):
    """Of the first answers about x that are in the ring, were x where y is; without lapses' share a half."""
    total = 0.0
    for t in range(count):
        number = first[x, t]
        if number < n_learned - len(ring) or number < 0 or number >= n_learned:
            continue
        at = number % len(ring)
        near = far = 0.0
        i, j, k, l = ring[at, 0], ring[at, 1], ring[at, 2], ring[at, 3]
        i, j, k, l = y if i == x else i, y if j == x else j, y if k == x else k, y if l == x else l
        for c in range(mean.shape[1]):
            u, v = mean[i, c] - mean[j, c], mean[k, c] - mean[l, c]
            near += u * u
            far += v * v
        delta = far - near
        if alpha > 0.0:
            delta = 0.5 * (alpha + 1.0) * np.log((alpha + far) / (alpha + near))
        total -= np.log(0.05 + 0.9 / (1.0 + np.exp(-min(max(delta, -MAX_DELTA), MAX_DELTA))))
    return total


@njit(cache=True, nogil=True, inline="always", fastmath=True)
def _replace(points, mean, squares, answers, first, ring, x, n_learned, n_known, alpha):
    """Put a new object at the one of N_PLACES others' places that makes its first answers likeliest, if that is better
    than where it is: the way there may be uphill."""
    count = int(answers[x])
    best, smallest = x, _loss_at(mean, first, ring, x, x, count, n_learned, alpha)
    for t in range(N_PLACES):
        y = np.int64(mix64(np.uint64(n_learned * N_PLACES + t + 1) * _GAMMA) % np.uint64(n_known))
        if answers[y] <= N_FIRST:
            continue
        loss = _loss_at(mean, first, ring, x, y, count, n_learned, alpha)
        if loss < smallest:
            best, smallest = y, loss
    if best != x:
        squares[x] = FLOOR
        for c in range(points.shape[1]):
            points[x, c] = mean[x, c] = mean[best, c]


@njit(cache=True, nogil=True, inline="always", fastmath=True)
def _replace_late(points, mean, squares, answers, first, ring, row, numbers, alpha):
    """Note the number of this answer for the objects of a row that have few; put those elsewhere that came late."""
    for side in range(4):
        x = row[side]
        if answers[x] > N_FIRST or (side == 2 and row[2] == row[0]):
            continue
        count = int(answers[x])
        first[x, count - 1] = numbers[LEARNED] - 1
        # fewer answers than a quarter of the others'
        late = 4 * count * numbers[KNOWN] < 3 * (numbers[LEARNED] + numbers[EARLIER])
        if late and (count == N_FIRST or 2 * count == N_FIRST):
            _replace(points, mean, squares, answers, first, ring, x, numbers[LEARNED], numbers[KNOWN], alpha)


@njit(cache=True, nogil=True, fastmath=True)
def follow(
    rows,
    worker,
    points,
    mean,
    squares,
    answers,
    first,
    lapse_counts,
    weights,
    sums,
    ring,
    ring_worker,
    numbers,
    debt,
    setting,
):
    """Learn (m, 4) int32 answers of `worker` (m,), rows of `lapse_counts`, in order, changing all else in place.

    points (n, d) and their `mean`, squares (n,), answers (n,): sums of h and how many answers; first (n, N_FIRST):
    numbers of an object's first answers; lapse_counts (w, 2): lapses and answers of all (row 0) and of each worker;
    weights (w, d) and sums (w, d) of their h, (1, d) of ones where nobody has any; ring (R, 4), ring_worker (R,): the
    last answers; numbers: LEARNED answers, DRAWN replays, EARLIER answers that a fit knew and that never came here,
    objects KNOWN; debt (1,): replays that are due; setting: alpha, ridge, noise: the ridge is
    ridge + noise sqrt(3 m / n). What is replayed is drawn from all that is known, and passed over where it is not here,
    so that what is here does not count for it. It depends on LEARNED and DRAWN alone, so the same answers give the
    same, in whatever blocks. O(m d (1 + replays)).
    """
    d, room, alpha = points.shape[1], len(ring), setting[0]
    slope, size = np.empty((5, d)), np.empty(4)
    for t in range(len(rows)):
        i, j, k, l = rows[t, 0], rows[t, 1], rows[t, 2], rows[t, 3]
        numbers[KNOWN] = max(numbers[KNOWN], i + 1, j + 1, k + 1, l + 1)
        _place(points, mean, answers, i, j, k, l)
        place, w = numbers[LEARNED] % room, worker[t]
        ring[place, 0], ring[place, 1], ring[place, 2], ring[place, 3] = i, j, k, l
        ring_worker[place] = w
        numbers[LEARNED] += 1
        all_answers = numbers[LEARNED] + numbers[EARLIER]
        _replace_late(points, mean, squares, answers, first, ring, rows[t], numbers, alpha)
        ridge = setting[1] + setting[2] * np.sqrt(3.0 * all_answers / numbers[KNOWN])
        lapse = _lapse(lapse_counts, w)
        replays = min(MAX_REPLAYS, BUDGET / all_answers)
        window = WINDOW + WINDOW_PER_REPLAY * replays
        p = _step(points, mean, squares, answers, weights, w, i, j, k, l, alpha, ridge, window, lapse,
                  slope, size, NEW_RATE, True)  # fmt: skip
        p_lapse = 0.5 * lapse / p
        if 0 < w < len(weights):
            _weigh(weights, sums, w, slope, p)
        _count(lapse_counts, w, p_lapse)
        if w != 0:
            _count(lapse_counts, 0, p_lapse)
        debt[0] += replays
        ring_size = min(numbers[LEARNED], room)
        while debt[0] >= 1.0:
            debt[0] -= 1.0
            numbers[DRAWN] += 1
            at = np.int64(mix64(np.uint64(numbers[DRAWN]) * _GAMMA) % np.uint64(all_answers))
            if at >= ring_size:
                continue
            i, j, k, l = ring[at, 0], ring[at, 1], ring[at, 2], ring[at, 3]
            w = ring_worker[at]
            lapse = _lapse(lapse_counts, w)
            _step(points, mean, squares, answers, weights, w, i, j, k, l, alpha, ridge, window, lapse,
                  slope, size, REPLAY_RATE, False)  # fmt: skip


@njit(cache=True, nogil=True, fastmath=True)
def information(rows, worker, lapse, points, weights, own, alpha, sums, times):
    """Add to sums (n,) the squared slopes of (m, 4) rows, by coordinate, and to times (n,) how many there are; to own
    (w, d) the information about the log weights of `worker` (m,), rows of `weights` (w, d); `lapse` (m,). O(m d)."""
    d = points.shape[1]
    slope, size = np.empty((5, d)), np.empty(4)
    for t in range(len(rows)):
        i, j, k, l = rows[t, 0], rows[t, 1], rows[t, 2], rows[t, 3]
        p = _slopes(points, weights, worker[t], i, j, k, l, alpha, lapse[t], slope, size)
        if 0 < worker[t] < len(weights):
            _inform(own, worker[t], slope, p)
        sums[i] += size[0] / d
        sums[j] += size[1] / d
        sums[l] += size[2] / d
        times[i] += 1.0
        times[j] += 1.0
        times[l] += 1.0
        if k != i:
            sums[k] += size[3] / d
            times[k] += 1.0
