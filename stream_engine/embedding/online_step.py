"""The compiled pass of an embedding that follows a stream: one step an answer, in order, and replays of earlier ones.

An answer pulls the objects that it names down the slope g of its own - log p (`gradient`), and an answer's share of the
ridge draws each to 0. With m answers about the object so far,

    x <- (x - s g) / (1 + 2 s ridge / m),   s = rate / h,   h = FLOOR + sum of all answers' |g|^2 / d

h is the Fisher information that they give, as in the natural gradient (Amari 1998, sec. 3; a number an object instead
of a matrix). The ridge is a proximal step (Parikh & Boyd 2014, sec. 4.2): no ridge, however large, throws x across 0,
also while h is small. The places that are used are the running mean of those stepped to (Polyak & Juditsky 1992), since
steps as long as these scatter; it goes over the longer, the more answers are replayed for each one that comes.

A lapse is the share of a worker's answers that were a coin's: each answer adds the probability (lapse / 2) / p that it
was one (the E step; Cappe & Moulines 2009, sec. 2.2, an online EM), fading after `MEMORY` answers. A new worker begins
at the lapse of all, worth `WORTH` answers.

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

SEEN, DRAWN, EARLIER, KNOWN = range(4)  # of `numbers`
FLOOR = 0.5  # of h: the first steps are about as long as their slopes
FRESH, AGAIN = 2.0, 1.0  # the rates of an answer that comes, and of one that is replayed
MOST, BUDGET = 100.0, 1e6  # replays for each answer that comes: so many, later budget / answers
WORTH, MEMORY = 20.0, 1000.0
LEAST_LAPSE, MOST_LAPSE = 1e-4, 0.99
WINDOW, LONGER = 0.5, 0.12  # steps of an object that `mean` goes over, in units of its answers; more for each replay
LARGEST = 1e4  # coordinates stay within
STEEPEST = 500.0  # |Delta| beyond which the likelihood no longer changes
FIRST = 16  # answers about a new object by which it is put elsewhere, at half of them and at all
PLACES = 32  # that are tried
LEAST_WEIGHT, MOST_WEIGHT = 1e-3, 1e3
_GAMMA = np.uint64(GOLDEN_GAMMA)


@njit(cache=True, nogil=True, inline="always", fastmath=True)
def _slopes(points, weights, who, i, j, k, l, alpha, lapse, slope, size):
    """Fill slope (4, d) of the objects i, j, l, k and size (4,) of its squares, slope[4] of the log weights of `who`,
    a row of `weights` (1 where there is none); gives the probability of the answer. Where k is i, the first row is all
    of i's."""
    d = points.shape[1]
    who = who if who < len(weights) else 0
    near = far = 0.0
    for c in range(d):
        u, v = points[i, c] - points[j, c], points[k, c] - points[l, c]
        near += weights[who, c] * u * u
        far += weights[who, c] * v * v
    delta, a, b = far - near, 1.0, 1.0
    if alpha > 0.0:
        delta = 0.5 * (alpha + 1.0) * np.log((alpha + far) / (alpha + near))
        a, b = 0.5 * (alpha + 1.0) / (alpha + near), 0.5 * (alpha + 1.0) / (alpha + far)
    share = 1.0 / (1.0 + np.exp(-min(max(delta, -STEEPEST), STEEPEST)))
    p = max(0.5 * lapse + (1.0 - lapse) * share, 1e-12)
    push = 2.0 * (1.0 - lapse) * share * (1.0 - share) / p
    a, b = a * push, b * push
    same = 1.0 if k == i else 0.0
    size[0] = size[1] = size[2] = size[3] = 0.0
    for c in range(d):
        u, v = a * (points[i, c] - points[j, c]), b * (points[k, c] - points[l, c])
        slope[4, c] = 0.5 * weights[who, c] * (u * (points[i, c] - points[j, c]) - v * (points[k, c] - points[l, c]))
        u, v = weights[who, c] * u, weights[who, c] * v
        slope[0, c] = u - same * v
        slope[1, c] = -u
        slope[2, c] = v
        slope[3, c] = -v
        for at in range(4):
            size[at] += slope[at, c] * slope[at, c]
    return p


@njit(cache=True, nogil=True, inline="always", fastmath=True)
def _inform(sums, who, slope, p):
    """Add the information of an answer, with their slope in slope[4], about the log weights of `who`."""
    for c in range(sums.shape[1]):
        sums[who, c] += slope[4, c] * slope[4, c] * p / max(1.0 - p, 1e-12)


@njit(cache=True, nogil=True, inline="always", fastmath=True)
def _weigh(weights, sums, who, slope, p):
    """The weights of a participant after an answer with this probability."""
    _inform(sums, who, slope, p)
    for c in range(weights.shape[1]):
        weight = weights[who, c] * np.exp(-min(max(slope[4, c] / sums[who, c], -1.0), 1.0))
        weights[who, c] = min(max(weight, LEAST_WEIGHT), MOST_WEIGHT)


@njit(cache=True, nogil=True, inline="always", fastmath=True)
def _move(points, mean, squares, answers, row, slope, at, size, ridge, window, rate, fresh):
    """One object down its slope and towards 0, and the mean of its places after it."""
    h = squares[row] + size[at] / points.shape[1]
    if fresh:
        squares[row] = h
    step, share = rate / h, 1.0 / (1.0 + window * answers[row])
    shrunk = 1.0 / (1.0 + 2.0 * step * ridge / max(answers[row], 1.0))
    for c in range(points.shape[1]):
        points[row, c] = min(max(shrunk * (points[row, c] - step * slope[at, c]), -LARGEST), LARGEST)
        mean[row, c] += share * (points[row, c] - mean[row, c])


@njit(cache=True, nogil=True, inline="always", fastmath=True)
def _step(
    points, mean, squares, answers, weights, who, i, j, k, l, alpha, ridge, window, lapse, slope, size, rate, fresh
):
    """All objects of an answer at once; gives its probability."""
    p = _slopes(points, weights, who, i, j, k, l, alpha, lapse, slope, size)
    _move(points, mean, squares, answers, i, slope, 0, size, ridge, window, rate, fresh)
    _move(points, mean, squares, answers, j, slope, 1, size, ridge, window, rate, fresh)
    _move(points, mean, squares, answers, l, slope, 2, size, ridge, window, rate, fresh)
    if k != i:
        _move(points, mean, squares, answers, k, slope, 3, size, ridge, window, rate, fresh)
    return p


@njit(cache=True, nogil=True, inline="always", fastmath=True)
def _lapse(coins, who):
    """The lapse of a worker; of one who answers for the first time that of all."""
    if coins[who, 1] == 0.0:
        coins[who, 1] = WORTH
        coins[who, 0] = WORTH * coins[0, 0] / coins[0, 1]
    return min(max(coins[who, 0] / coins[who, 1], LEAST_LAPSE), MOST_LAPSE)


@njit(cache=True, nogil=True, inline="always", fastmath=True)
def _count(coins, who, coin):
    """One more answer of a worker, a coin's with this probability."""
    coins[who, 0] += coin
    coins[who, 1] += 1.0
    if coins[who, 1] > MEMORY:
        coins[who, 0] *= MEMORY / coins[who, 1]
        coins[who, 1] = MEMORY


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
def _loss_at(mean, first, ring, x, y, count, seen, alpha):
    """Of the first answers about x that are in the ring, were x where y is; without lapses' share a half."""
    total = 0.0
    for t in range(count):
        number = first[x, t]
        if number < seen - len(ring) or number < 0 or number >= seen:
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
        total -= np.log(0.05 + 0.9 / (1.0 + np.exp(-min(max(delta, -STEEPEST), STEEPEST))))
    return total


@njit(cache=True, nogil=True, inline="always", fastmath=True)
def _replace(points, mean, squares, answers, first, ring, x, seen, known, alpha):
    """Put a new object at the one of PLACES others' places that makes its first answers likeliest, if that is better
    than where it is: the way there may be uphill."""
    count = int(answers[x])
    best, least = x, _loss_at(mean, first, ring, x, x, count, seen, alpha)
    for t in range(PLACES):
        y = np.int64(mix64(np.uint64(seen * PLACES + t + 1) * _GAMMA) % np.uint64(known))
        if answers[y] <= FIRST:
            continue
        loss = _loss_at(mean, first, ring, x, y, count, seen, alpha)
        if loss < least:
            best, least = y, loss
    if best != x:
        squares[x] = FLOOR
        for c in range(points.shape[1]):
            points[x, c] = mean[x, c] = mean[best, c]


@njit(cache=True, nogil=True, fastmath=True)
def follow(
    rows,
    worker,
    points,
    mean,
    squares,
    answers,
    first,
    coins,
    weights,
    sums,
    ring,
    ring_worker,
    numbers,
    owed,
    setting,
):
    """Learn (m, 4) int32 answers of `worker` (m,), rows of `coins`, in order, changing all else in place.

    points (n, d) and their `mean`, squares (n,), answers (n,): sums of h and how many answers; first (n, FIRST):
    numbers of an object's first answers; coins (w, 2): of all (row 0) and of each worker, coins' answers and answers;
    weights (w, d) and sums (w, d) of their h, (1, d) of ones where nobody has any; ring (R, 4), ring_worker (R,): the
    last answers; numbers: SEEN answers, DRAWN replays, EARLIER answers that a fit knew and that never came here,
    objects KNOWN; owed (1,): of a replay; setting: alpha, ridge, noise: the ridge is
    ridge + noise sqrt(3 m / n). What is replayed is drawn from all that is known, and passed over where it is not here,
    so that what is here does not count for it. It depends on SEEN and DRAWN alone, so the same answers give the same,
    in whatever blocks. O(m d (1 + replays)).
    """
    d, room = points.shape[1], len(ring)
    slope, size = np.empty((5, d)), np.empty(4)
    for t in range(len(rows)):
        i, j, k, l = rows[t, 0], rows[t, 1], rows[t, 2], rows[t, 3]
        numbers[KNOWN] = max(numbers[KNOWN], i + 1, j + 1, k + 1, l + 1)
        _place(points, mean, answers, i, j, k, l)
        place, who = numbers[SEEN] % room, worker[t]
        ring[place, 0], ring[place, 1], ring[place, 2], ring[place, 3] = i, j, k, l
        ring_worker[place] = who
        numbers[SEEN] += 1
        all_answers = numbers[SEEN] + numbers[EARLIER]
        for side in range(4):
            x = rows[t, side]
            if answers[x] > FIRST or (side == 2 and k == i):
                continue
            count = int(answers[x])
            first[x, count - 1] = numbers[SEEN] - 1
            late = 4 * count * numbers[KNOWN] < 3 * all_answers  # fewer answers than a quarter of the others'
            if late and (count == FIRST or 2 * count == FIRST):
                _replace(points, mean, squares, answers, first, ring, x, numbers[SEEN], numbers[KNOWN], setting[0])
        ridge = setting[1] + setting[2] * np.sqrt(3.0 * all_answers / numbers[KNOWN])
        lapse = _lapse(coins, who)
        replays = min(MOST, BUDGET / all_answers)
        window = WINDOW + LONGER * replays
        p = _step(
            points,
            mean,
            squares,
            answers,
            weights,
            who,
            i,
            j,
            k,
            l,
            setting[0],
            ridge,
            window,
            lapse,
            slope,
            size,
            FRESH,
            True,
        )
        coin = 0.5 * lapse / p
        if 0 < who < len(weights):
            _weigh(weights, sums, who, slope, p)
        _count(coins, who, coin)
        if who != 0:
            _count(coins, 0, coin)
        owed[0] += replays
        held = min(numbers[SEEN], room)
        while owed[0] >= 1.0:
            owed[0] -= 1.0
            numbers[DRAWN] += 1
            at = np.int64(mix64(np.uint64(numbers[DRAWN]) * _GAMMA) % np.uint64(all_answers))
            if at >= held:
                continue
            i, j, k, l = ring[at, 0], ring[at, 1], ring[at, 2], ring[at, 3]
            who = ring_worker[at]
            lapse = _lapse(coins, who)
            _step(
                points,
                mean,
                squares,
                answers,
                weights,
                who,
                i,
                j,
                k,
                l,
                setting[0],
                ridge,
                window,
                lapse,
                slope,
                size,
                AGAIN,
                False,
            )


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
