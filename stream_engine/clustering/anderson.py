"""Guarded Anderson acceleration of a fixed-point map T (type II, Walker & Ni 2011)."""

import numpy as np

HISTORY = 8  # images that are remembered; memory 2 HISTORY n^2 floats
REGULARISATION = 1e-5  # share of the mean squared residual; rounding to float32 is 1e-7


class Anderson:
    """The last images of the map, from which an accelerated point is proposed: the combination of images whose
    residuals combine to the smallest norm.

    Invariant: `images[s]` = T(v) and `residuals[s]` = T(v) - v for the same v, `products` their Gram matrix.
    """

    # A residual that more than doubles after a jump empties the history. The history is float32: it only proposes a
    # point, and the map itself corrects the rounding. Its Gram matrix is regularised by far more than that rounding;
    # otherwise the weights may follow it, and V drifts along directions in which the residual is flat.

    def __init__(self, size: int):
        self.images = np.empty((0, 0), np.float32)
        self.residuals = np.empty((0, 0), np.float32)
        self.size = size
        self.forget()

    def forget(self) -> None:
        """Start a new history."""
        self.count, self.at, self.squares = 0, 0, np.inf
        self.products = np.zeros((HISTORY, HISTORY))

    def offer(self, v: np.ndarray, image: np.ndarray, squares: float, jump: bool) -> None:
        """Remember image = T(v); with `jump`, overwrite `image` by the accelerated point if there is a good one."""
        if squares > 4 * self.squares:
            self.forget()
        if not len(self.images):
            self.images = np.empty((HISTORY, self.size), np.float32)
            self.residuals = np.empty((HISTORY, self.size), np.float32)
        at = self.at
        self.images[at] = image.ravel()
        np.subtract(self.images[at], v.ravel(), out=self.residuals[at])
        self.count = min(self.count + 1, HISTORY)
        self.at = (at + 1) % HISTORY
        row = self.residuals[: self.count] @ self.residuals[at]
        self.products[at, : self.count] = self.products[: self.count, at] = row
        if jump and self.count >= 3:
            self._jump(image, squares)

    def _jump(self, image: np.ndarray, squares: float) -> None:
        """Overwrite `image` by the combination of images, unless its weights are far from a mean."""
        gram = self.products[: self.count, : self.count]
        gram = gram + REGULARISATION * np.trace(gram) / self.count * np.eye(self.count)
        weights = np.linalg.solve(gram, np.ones(self.count))
        weights /= weights.sum()
        if np.isfinite(weights).all() and np.abs(weights).sum() < 1e4:
            # the latest image stays exact in float64; the others enter as float32 products, equal for (i, j) and (j, i)
            weights[(self.at - 1) % HISTORY] -= 1.0
            for weight, image_row in zip(weights.tolist(), self.images):
                image += (weight * image_row).reshape(image.shape)
            self.squares = squares
