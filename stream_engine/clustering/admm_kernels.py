"""The elementwise passes of the ADMM over (n, n) matrices, fused so that each touches memory once."""

import numpy as np

from stream_engine.data.compiled import njit


@njit(cache=True)
def target(V, C, scale, out):
    """out = |V| + scale C; returns its row means."""
    n = V.shape[0]
    means = np.empty(n)
    for i in range(n):
        total = 0.0
        for j in range(n):
            value = abs(V[i, j]) + scale * C[i, j]
            out[i, j] = value
            total += value
        means[i] = total / n
    return means


@njit(cache=True)
def reflected(V, X, flat, alpha, out):
    """out = V + alpha (X + flat - max(V, 0)); returns |X + flat - max(V, 0)|_F^2, least X + flat."""
    n = V.shape[0]
    squares, least = 0.0, np.inf
    for i in range(n):
        part = 0.0
        for j in range(n):
            x = X[i, j] + flat
            v = V[i, j]
            r = x - v if v > 0.0 else x
            least = min(least, x)
            part += r * r
            out[i, j] = v + alpha * r
        squares += part
    return squares, least


@njit(cache=True)
def with_multiplier(V, C, rho, out):
    """out = C + N with N = rho max(-V, 0)."""
    n = V.shape[0]
    for i in range(n):
        for j in range(n):
            v = V[i, j]
            out[i, j] = C[i, j] - rho * v if v < 0.0 else C[i, j]


@njit(cache=True)
def rescaled(V, factor):
    """The negative part of V times `factor`, in place."""
    n = V.shape[0]
    for i in range(n):
        for j in range(n):
            if V[i, j] < 0.0:
                V[i, j] *= factor
