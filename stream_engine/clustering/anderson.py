"""Anderson acceleration of a fixed-point map (type II, Walker & Ni 2011), guarded.

The accelerated point is the combination of the last images whose residuals combine to the smallest norm. A residual
that more than doubles after such a jump throws the history away. History is kept in float32: it only proposes a point,
and the map itself corrects what rounding did. Its Gram matrix is regularised by far more than that rounding: else the
weights may follow it, and V drifts along directions in which the residual is flat. Memory 2 m n^2 floats for memory m.
"""

import numpy as np

MEMORY = 8
REGULARISED = 1e-5  # of the mean squared residual; float32 has 1e-7


class Anderson:
    """Invariant: `images[s]` = T(v) and `residuals[s]` = T(v) - v for the same v, `products` their Gram matrix."""

    def __init__(self, size: int):
        self.images = np.empty((0, 0), np.float32)
        self.residuals = np.empty((0, 0), np.float32)
        self.size = size
        self.forget()

    def forget(self) -> None:
        """Start a new history."""
        self.count, self.at, self.squares = 0, 0, np.inf
        self.products = np.zeros((MEMORY, MEMORY))

    def offer(self, v: np.ndarray, image: np.ndarray, squares: float, jump: bool) -> None:
        """Take note of image = T(v); with `jump`, overwrite it by the accelerated point when there is a good one."""
        if squares > 4 * self.squares:
            self.forget()
        if not len(self.images):
            self.images = np.empty((MEMORY, self.size), np.float32)
            self.residuals = np.empty((MEMORY, self.size), np.float32)
        at = self.at
        self.images[at] = image.ravel()
        np.subtract(self.images[at], v.ravel(), out=self.residuals[at])
        self.count = min(self.count + 1, MEMORY)
        self.at = (at + 1) % MEMORY
        row = self.residuals[: self.count] @ self.residuals[at]
        self.products[at, : self.count] = self.products[: self.count, at] = row
        if jump and self.count >= 3:
            self._jump(image, squares)

    def _jump(self, image: np.ndarray, squares: float) -> None:
        gram = self.products[: self.count, : self.count]
        gram = gram + REGULARISED * np.trace(gram) / self.count * np.eye(self.count)
        weights = np.linalg.solve(gram, np.ones(self.count))
        weights /= weights.sum()
        if np.isfinite(weights).all() and np.abs(weights).sum() < 1e4:
            # the latest image stays exact in float64; the rest enters as float32 differences
            newest = (self.at - 1) % MEMORY
            shift = weights @ self.images[: self.count] - self.images[newest]
            image += shift.reshape(image.shape)
            self.squares = squares
