"""A neighbour layout in the plane (t-SNE; van der Maaten & Hinton 2008).

The gradient is the exact one. Up to a few thousand points it takes a processor less than a tree that approximates it.
Exaggeration, momentum, gains and the rules for stopping are those of scikit-learn's `TSNE`.
"""

import numpy as np

from stream_engine.data.compiled import njit

EXAGGERATION = 12.0
PATIENCE = 300  # iterations without progress, after which it ends
PHASES = ((EXAGGERATION, 0.5, 250), (1.0, 0.8, 750))  # exaggeration, momentum, most iterations
CHECK_EVERY = 50
MIN_SLOPE = 1e-7
ENTROPY_TOLERANCE, BISECTIONS = 1e-5, 100


def neighbour_layout(points: np.ndarray, perplexity: float, start: np.ndarray) -> np.ndarray:
    """Positions that keep who is near whom.

    Parameters
    ----------
    points : (n, d) array
        The points; they may coincide.
    perplexity : float
        Effective number of neighbours of a point, less than n - 1.
    start : (n, 2) array
        Positions to begin with.

    Returns
    -------
    (n, 2) array
        A local minimum of the Kullback-Leibler divergence sum p_ij log(p_ij / q_ij), where q_ij is proportional to
        1 / (1 + |y_i - y_j|^2). O(n^2) an iteration, of which there are at most 1,000; 8 n^2 bytes.
    """
    joint = _joint(squared_distances(points), np.log(perplexity)).astype(np.float32)
    positions = np.array(start, float)
    rate = max(len(points) / EXAGGERATION / 4.0, 50.0)
    for exaggeration, momentum, max_iterations in PHASES:
        positions = _descend(positions, joint, exaggeration, momentum, rate, max_iterations)
    return positions


def squared_distances(points: np.ndarray) -> np.ndarray:
    """(n, n) squared distances of (n, d) points."""
    out = np.zeros((len(points), len(points)))
    for axis in np.asarray(points, float).T:
        out += (axis[:, None] - axis) ** 2
    return out


@njit(cache=True, nogil=True)
def _joint(distances, entropy):
    """(n, n) probabilities p_ij that sum to 1: those of j as a neighbour of i, by a normal density whose width gives
    every i this entropy, and those of i as one of j, on average."""
    n = len(distances)
    one_way = np.zeros((n, n))
    for i in range(n):
        nearest = np.inf  # distances beyond the nearest: the same probabilities, and never all of them 0
        for j in range(n):
            if j != i:
                nearest = min(nearest, distances[i, j])
        precision, low, high = 1.0, 0.0, np.inf
        for _ in range(BISECTIONS):
            total, weighted = 0.0, 0.0
            for j in range(n):
                if j != i:
                    weight = np.exp(-(distances[i, j] - nearest) * precision)
                    one_way[i, j] = weight
                    total += weight
                    weighted += weight * (distances[i, j] - nearest)
            entropy_now = np.log(total) + precision * weighted / total
            for j in range(n):
                one_way[i, j] /= total
            if abs(entropy_now - entropy) <= ENTROPY_TOLERANCE:
                break
            if entropy_now > entropy:
                low = precision
                precision = 2.0 * precision if high == np.inf else 0.5 * (precision + high)
            else:
                high = precision
                precision = 0.5 * (precision + low)
    return (one_way + one_way.T) / (2.0 * n)


@njit(cache=True, nogil=True, fastmath=True)
def _forces(x, y, joint, out):
    """Fill (4, n) `out` with the sums over j of p q (x_i - x_j), p q (y_i - y_j), q^2 (x_i - x_j) and q^2 (y_i - y_j);
    returns the sum of q over all pairs, where q is 1 / (1 + the squared distance). All of it float32, and divided as
    numpy does, without asking for 0: so the processor takes many j at a time."""
    n, whole, one, zero = len(x), 0.0, np.float32(1.0), np.float32(0.0)
    for i in range(n):
        pull_x, pull_y, push_x, push_y, near = zero, zero, zero, zero, zero
        for j in range(n):
            dx, dy = x[i] - x[j], y[i] - y[j]
            q = np.divide(one, one + dx * dx + dy * dy)
            near += q
            pull_x += joint[i, j] * q * dx
            pull_y += joint[i, j] * q * dy
            push_x += q * q * dx
            push_y += q * q * dy
        out[0, i], out[1, i], out[2, i], out[3, i] = pull_x, pull_y, push_x, push_y
        whole += float(near) - 1.0
    return whole


def slopes(positions: np.ndarray, joint: np.ndarray, exaggeration: float = 1.0) -> np.ndarray:
    """(n, 2): the gradient of the divergence, the p_ij being exaggerated."""
    out = np.empty((4, len(positions)))
    x, y = np.ascontiguousarray(positions.T, np.float32)
    whole = _forces(x, y, joint, out)
    return 4.0 * (exaggeration * out[:2] - out[2:] / whole).T


def divergence(positions: np.ndarray, joint: np.ndarray) -> float:
    """What is minimised, without the sum of p_ij log(p_ij), which is the same for all positions."""
    distances = squared_distances(positions)
    whole = (1.0 / (1.0 + distances)).sum() - len(positions)
    return float(np.vdot(joint, np.log1p(distances)) + np.log(whole))


def _descend(
    positions: np.ndarray, joint: np.ndarray, exaggeration: float, momentum: float, rate: float, max_iterations: int
) -> np.ndarray:
    """After gradient descent with momentum and a gain for every coordinate."""
    step, gains = np.zeros(positions.shape), np.ones(positions.shape)
    best, best_at = np.inf, 0
    for iteration in range(max_iterations):
        slope = slopes(positions, joint, exaggeration)
        gains = np.maximum(np.where(step * slope < 0.0, gains + 0.2, gains * 0.8), 0.01)
        step = momentum * step - rate * gains * slope
        positions = positions + step
        if (iteration + 1) % CHECK_EVERY == 0:
            value = divergence(positions, joint)
            if value < best:
                best, best_at = value, iteration
            if iteration - best_at > PATIENCE or np.linalg.norm(gains * slope) <= MIN_SLOPE:
                break
    return positions
