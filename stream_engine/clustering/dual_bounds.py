"""Rigorous upper bounds on both SDPs from any nonnegative matrix N.

Every feasible X is doubly stochastic and psd, so X 1 = 1 and 0 <= PXP <= I in the psd order. With N >= 0,
<W, X> <= <W + N, X>, and maximising the right side over 0 <= X <= I with X 1 = 1 gives

    SDP-lambda <= 1'(W - lambda I + N)1 / n + sum_i max(0, lambda_i(P(W - lambda I + N)P))
    SDP-k      <= 1'(W + N)1 / n           + sum_{i < k} lambda_i(P(W + N)P)            (the k - 1 largest)

The bound holds for every N >= 0, however it was found; N = 0 gives the spectral bound. O(n^3).

From an X that is psd with exact row sums and trace but slightly negative entries, to a strictly feasible one.

Two repairs, both of which keep X psd: mixing with a positive feasible matrix lifts all entries alike, at a cost of n
times the lift; adding |x_ij| (e_i + e_j)(e_i + e_j)' cancels single outliers, at a cost of their sum. The cheapest
combination is taken, so the loss in objective is far below n |min X|. O(n^2).
"""

import numpy as np
from scipy.linalg import LinAlgError, cholesky

EXACT = 1200  # from here on a Cholesky factorisation is tried before all eigenvalues are computed


def upper_bound(A: np.ndarray, k: int | None, slack: float = 0.0, near: np.ndarray | None = None) -> float:
    """The bound for A = W - lambda I + N (k None) or A = W + N; A is overwritten.

    `near` (n, r): orthonormal vectors orthogonal to 1 that span about the leading eigenspace; with them and a `slack`
    (absolute looseness allowed) a large A costs one Cholesky factorisation instead of all its eigenvalues.

    >>> W = np.array([[0., 1.], [1., 0.]])
    >>> round(upper_bound(W - 0.5 * np.eye(2), None), 12), round(upper_bound(W.copy(), 2), 12)
    (0.5, 0.0)
    """
    n = len(A)
    base = float(A.sum()) / n
    mean = A.mean(axis=1)
    A -= mean[:, None]
    A -= mean - mean.mean()
    if k is not None and k <= 1:
        return base
    if n >= EXACT and near is not None and slack > 0:
        loose = _by_cholesky(A, k, slack, near)
        if loose is not None:
            return base + loose
    A -= (2 * np.abs(A).max() * n + 1.0) / n  # the trivial pair (0, 1) goes below everything else
    values = np.linalg.eigvalsh(A)[1:]
    return base + float(np.maximum(values, 0).sum() if k is None else values[n - k :].sum())


def _by_cholesky(A: np.ndarray, k: int | None, slack: float, near: np.ndarray) -> float | None:
    """An upper bound on the eigenvalue sum of the centred A within `slack` of it, or None when this way gives none.

    For any tau: the k - 1 largest sum to at most (k - 1) tau + S(A - tau I), S the sum of positive eigenvalues on the
    complement of 1. S is subadditive: S(A) <= S(Q T Q') + S(A - Q T Q'), and the rest is at most n t once
    t I - (A - Q T Q') is positive definite, which a Cholesky factorisation proves.
    """
    n = len(A)
    Q, T = _ritz(A, near)
    tau = 0.0 if k is None else float(np.partition(T, -(k - 1))[-(k - 1)]) if len(T) >= k - 1 else None
    if tau is None:
        return None
    above = np.maximum(T - tau, 0.0)
    t = slack / n
    B = (Q * -above) @ Q.T
    B += A
    B *= -1.0
    B += tau * -1.0 / n  # tau P = tau I - tau 1 1'/n
    B[np.diag_indices(n)] += tau + t
    try:
        cholesky(B, lower=True, overwrite_a=True, check_finite=False)
    except LinAlgError:
        return None
    return float((0 if k is None else (k - 1) * tau) + above.sum() + slack)


def _ritz(A: np.ndarray, near: np.ndarray, steps: int = 6) -> tuple[np.ndarray, np.ndarray]:
    """Ritz vectors and values of A on a block Krylov space started from `near`."""
    Q = near
    for _ in range(steps):
        one = A @ Q
        one -= one.mean(axis=0)
        two = A @ one
        two -= two.mean(axis=0)
        basis = np.linalg.qr(np.hstack([Q, one, two]))[0]
        basis -= basis.mean(axis=0)
        values, turn = np.linalg.eigh(basis.T @ (A @ basis))
        Q, T = basis @ turn[:, -near.shape[1] :], values[-near.shape[1] :]
    return Q, T


THRESHOLDS = (0, 1, 2, 3, 4, 6, 8)


def feasible(X: np.ndarray, k: int | None) -> np.ndarray:
    """A feasible point of SDP-k, or of SDP-lambda for k None, near X; X itself when it has no negative entry.

    X (n, n) symmetric psd, X 1 = 1 and tr X = k up to rounding. Needs n >= 2 and 1 < k < n if k is given.

    >>> X = np.array([[.6, .5, -.1], [.5, .4, .1], [-.1, .1, 1.]])
    >>> Y = feasible(X, 2)
    >>> bool(Y.min() >= 0), np.round(Y.sum(axis=0), 12).tolist(), round(float(np.trace(Y)), 12)
    (True, [1.0, 1.0, 1.0], 2.0)
    """
    below = np.maximum(-X, 0.0)
    deepest = below.max()
    if deepest <= 0:
        return X
    lift, patch = _cheapest(below, deepest, X)
    Y = _mixed(X, k, lift)
    if patch is not None:
        Y = _patched(Y, patch, k)
    return np.maximum(Y, 0.0, out=Y)  # rounding below zero, of the order of 1e-17


def _cheapest(below: np.ndarray, deepest: float, X: np.ndarray) -> tuple[float, np.ndarray | None]:
    """The lift for all entries and the patch for those deeper than it that together lose least (to first order)."""
    n, spread = len(X), max(float(np.trace(X)) - 1.0, 0.5)
    best: tuple[float, float, np.ndarray | None] = n * deepest, deepest, None
    for halvings in THRESHOLDS[1:]:
        lift = deepest * 2.0**-halvings
        patch = np.maximum(below - lift, 0.0)
        rows = patch.sum(axis=1)
        loss = n * lift + rows.sum() / spread + 2 * rows.max()
        if loss < best[0]:
            best = loss, lift, patch
    return best[1], best[2]


def _mixed(X: np.ndarray, k: int | None, lift: float) -> np.ndarray:
    """(1 - t) X + t F with F positive and feasible, so that entries down to -lift become nonnegative."""
    n = len(X)
    flat, identity = (1.0, 0.0) if k is None else ((n - k) / (n - 1), (k - 1) / (n - 1))
    t = lift / (lift + flat / n)
    Y = (1 - t) * X
    Y += t * flat / n
    Y[np.diag_indices(n)] += t * identity
    return Y


def _patched(Y: np.ndarray, patch: np.ndarray, k: int | None) -> np.ndarray:
    rows = patch.sum(axis=1)
    fill = 2 * rows.max() - 2 * rows  # a rank-one filler evens the row sums: psd, nonnegative, little trace
    Y += patch
    Y[np.diag_indices(len(Y))] += rows
    if fill.any():
        Y += np.outer(fill, fill / fill.sum())
    Y /= 1 + 2 * rows.max()
    return Y if k is None else _with_trace(Y, k)


def _with_trace(Y: np.ndarray, k: int) -> np.ndarray:
    """Mixed with 1 1'/n (trace 1) or with I (trace n), whichever brings the trace to k."""
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
