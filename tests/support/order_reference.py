"""What follows from an order, by a closure of whole matrices."""

import numpy as np


def closure(rows: np.ndarray, n: int) -> np.ndarray:
    """(n^2, n^2) bool over codes lo * n + hi: what a path of one comparison or more leads to."""
    reach = np.zeros((n * n, n * n), bool)
    for i, j, k, l in np.sort(np.asarray(rows).reshape(-1, 2, 2), axis=2).reshape(-1, 4).tolist():
        reach[i * n + j, k * n + l] = True
    for _ in range(2 * n):
        reach |= (reach.astype(np.uint8) @ reach.astype(np.uint8)) > 0
    return reach


def slow(rows: np.ndarray, n: int) -> dict[tuple[int, int, int], int]:
    """Every question a, b < c: 1, -1 or 0 by Definition 1, straight from the closure."""
    reach, code = closure(rows, n), lambda a, b: min(a, b) * n + max(a, b)
    out = {}
    for a in range(n):
        for b in range(n):
            for c in range(b + 1, n):
                if a not in (b, c):
                    near, far = code(a, b), code(a, c)
                    out[a, b, c] = int(reach[near, far]) - int(reach[far, near])
    return out
