"""Rigorous upper bounds on both SDPs from any nonnegative matrix N. O(n^3)."""

from collections.abc import Iterator

import numpy as np
from scipy.linalg import LinAlgError, cholesky

# Every feasible X is doubly stochastic and psd, so X 1 = 1 and 0 <= PXP <= I in the psd order. With N >= 0,
# <W, X> <= <W + N, X>, and maximising the right side over 0 <= X <= I with X 1 = 1 gives
#
#     SDP-lambda <= 1'(W - lambda I + N)1 / n + sum_i max(0, lambda_i(P(W - lambda I + N)P))
#     SDP-k      <= 1'(W + N)1 / n           + sum_{i < k} lambda_i(P(W + N)P)            (the k - 1 largest)
#
# The bound holds for every N >= 0, however it was computed; N = 0 gives the spectral bound.
CHOLESKY_FROM = 1200  # objects from which a Cholesky factorisation is tried before all eigenvalues are computed
RITZ_STEPS = (2, 4, 8)  # products with A and A A after which it is tried
SHARES = (1 / 8, 1 / 4, 1 / 2)  # of the slack, for tau, each time
RITZ_VECTORS = 3  # for each of k eigenvalues


def upper_bound(A: np.ndarray, k: int | None, slack: float = 0.0, leading_basis: np.ndarray | None = None) -> float:
    """The bound for A = W - lambda I + N (k None) or A = W + N; A is overwritten.

    `leading_basis` (n, r): orthonormal vectors orthogonal to 1 that nearly span the leading eigenspace. With them and a
    `slack` (by how much the bound may be loose) a large A costs one Cholesky factorisation, not all its eigenvalues.

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
    if n >= CHOLESKY_FROM and leading_basis is not None and slack > 0:
        eigenvalue_bound = _by_cholesky(A, k, slack, leading_basis)
        if eigenvalue_bound is not None:
            return base + eigenvalue_bound
    A -= (2 * np.abs(A).max() * n + 1.0) / n  # the trivial pair (0, 1) goes below everything else
    values = np.linalg.eigvalsh(A)[1:]
    return base + float(np.maximum(values, 0).sum() if k is None else values[n - k :].sum())


def _by_cholesky(A: np.ndarray, k: int | None, slack: float, leading_basis: np.ndarray) -> float | None:
    """An upper bound on the eigenvalue sum of the centred A within `slack` of it, or None if there is none of this
    kind.

    For any tau: the k - 1 largest sum to at most (k - 1) tau + S(A - tau I), S the sum of positive eigenvalues on the
    complement of 1; and all sum to S(A - 0 I). S is subadditive: S(A - tau I) <= S(Q E Q') + S(A - tau I - Q E Q'),
    and the rest is at most n t once (tau + t) I - (A - Q E Q') is positive definite, which a Cholesky factorisation
    proves. Of k - 1 eigenvalues, Q E Q' moves those above the last one to it, and tau is above it by a share of the
    slack: room for the errors of Q, and for the many eigenvalues near it.
    """
    n = len(A)
    for (Q, T), share in zip(_ritz(A, leading_basis if k is None else leading_basis[:, : RITZ_VECTORS * k]), SHARES):
        if k is None:
            last, tau, rest = 0.0, 0.0, slack
        elif len(T) >= k - 1:
            last, rest = float(np.partition(T, -(k - 1))[-(k - 1)]), slack * min(SHARES)
            tau = last + slack * share / (k - 1)
        else:
            return None
        excess = np.maximum(T - last, 0.0)
        B = (Q * -excess) @ Q.T
        B += A
        B *= -1.0
        B += tau * -1.0 / n  # tau P = tau I - tau 1 1'/n
        B[np.diag_indices(n)] += tau + rest / n
        try:
            cholesky(B, lower=True, overwrite_a=True, check_finite=False)
        except LinAlgError:
            continue
        return float((0 if k is None else (k - 1) * tau) + excess.sum() + rest)
    return None


def _ritz(A: np.ndarray, leading_basis: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Ritz vectors and values of A on block Krylov spaces started from `leading_basis`, ever closer ones."""
    Q = leading_basis
    for step in range(1, RITZ_STEPS[-1] + 1):
        AQ = A @ Q
        AQ -= AQ.mean(axis=0)
        AAQ = A @ AQ
        AAQ -= AAQ.mean(axis=0)
        basis = np.linalg.qr(np.hstack([Q, AQ, AAQ]))[0]
        basis -= basis.mean(axis=0)
        values, turn = np.linalg.eigh(basis.T @ (A @ basis))
        Q, T = basis @ turn[:, -leading_basis.shape[1] :], values[-leading_basis.shape[1] :]
        if step in RITZ_STEPS:
            yield Q, T
