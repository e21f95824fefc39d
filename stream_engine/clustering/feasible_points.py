"""From an X that is psd with exact row sums and trace, but slightly negative entries, to a strictly feasible one."""

import numpy as np

# Two repairs, both of which keep X psd: mixing with a positive feasible matrix lifts all entries alike, at a cost of n
# times the lift; adding |x_ij| (e_i + e_j)(e_i + e_j)' cancels single outliers, at a cost of their sum. The cheapest
# combination is taken, so the loss in objective is far below n |min X|. O(n^2).
HALVINGS = (1, 2, 3, 4, 6, 8)  # lifts that are tried: the deepest entry halved so often


def feasible(X: np.ndarray, k: int | None) -> np.ndarray:
    """A feasible point of SDP-k, or of SDP-lambda for k None, near X; X itself when it has no negative entry.

    X (n, n) symmetric psd, X 1 = 1 and tr X = k up to rounding. Needs n >= 2 and 1 < k < n if k is given.

    >>> X = np.array([[.6, .5, -.1], [.5, .4, .1], [-.1, .1, 1.]])
    >>> Y = feasible(X, 2)
    >>> bool(Y.min() >= 0), np.round(Y.sum(axis=0), 12).tolist(), round(float(np.trace(Y)), 12)
    (True, [1.0, 1.0, 1.0], 2.0)
    """
    shortfall = np.maximum(-X, 0.0)
    deepest = shortfall.max()
    if deepest <= 0:
        return X
    lift, patch = _cheapest(shortfall, deepest, X)
    Y = _mix(X, k, lift)
    if patch is not None:
        Y = _patch(Y, patch, k)
    return np.maximum(Y, 0.0, out=Y)  # rounding below zero, of the order of 1e-17


def _cheapest(shortfall: np.ndarray, deepest: float, X: np.ndarray) -> tuple[float, np.ndarray | None]:
    """The lift of all entries and the patch of those below minus the lift that together cost least (to first order)."""
    n, trace_excess = len(X), max(float(np.trace(X)) - 1.0, 0.5)
    best: tuple[float, float, np.ndarray | None] = n * deepest, deepest, None
    for halvings in HALVINGS:
        lift = deepest * 2.0**-halvings
        patch = np.maximum(shortfall - lift, 0.0)
        rows = patch.sum(axis=1)
        loss = n * lift + rows.sum() / trace_excess + 2 * rows.max()
        if loss >= best[0]:  # the loss is convex in the lift, so it rises from here on
            break
        best = loss, lift, patch
    return best[1], best[2]


def _mix(X: np.ndarray, k: int | None, lift: float) -> np.ndarray:
    """(1 - t) X + t F with F positive and feasible, so that entries down to -lift become nonnegative."""
    n = len(X)
    flat, identity = (1.0, 0.0) if k is None else ((n - k) / (n - 1), (k - 1) / (n - 1))
    t = lift / (lift + flat / n)
    Y = (1 - t) * X
    Y += t * flat / n
    Y[np.diag_indices(n)] += t * identity
    return Y


def _patch(Y: np.ndarray, patch: np.ndarray, k: int | None) -> np.ndarray:
    """Y with each entry (i, j) raised by `patch`, and feasible again."""
    rows = patch.sum(axis=1)
    fill = 2 * rows.max() - 2 * rows  # a rank-one filler evens the row sums: psd, nonnegative, little trace
    Y += patch
    Y[np.diag_indices(len(Y))] += rows
    if fill.any():
        Y += np.outer(fill, fill / fill.sum())
    Y /= 1 + 2 * rows.max()
    return Y if k is None else _with_trace(Y, k)


def _with_trace(Y: np.ndarray, k: int) -> np.ndarray:
    """Y mixed with 1 1'/n (trace 1) or with I (trace n), so that its trace is k."""
    n, trace = len(Y), float(np.trace(Y))
    if trace > k:
        t = (trace - k) / (trace - 1)
        Y *= 1 - t
        Y += t / n
    else:
        t = (k - trace) / (n - trace)
        Y *= 1 - t
        Y[np.diag_indices(n)] += t
    return Y
