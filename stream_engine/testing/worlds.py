"""Made-up answers for examples: judges look at points, and say which of two lies nearer to a third."""

import numpy as np


def answers(points: np.ndarray, n: int, *, wrong: float = 0.1, seed: int = 0) -> np.ndarray:
    """(n, 3) triplets anchor, near, far of random questions about the rows of `points`, a share `wrong` turned round.

    >>> answers(np.array([[0.0], [1.0], [5.0]]), 2, wrong=0).tolist()
    [[2, 1, 0], [0, 1, 2]]
    """
    rng = np.random.default_rng(seed)
    triplets = rng.random((n, len(points))).argpartition(2, axis=1)[:, :3]
    return answered(points, rng.permuted(triplets, axis=1), wrong=wrong, rng=rng)


def answered(points: np.ndarray, questions: np.ndarray, *, wrong: float, rng: np.random.Generator) -> np.ndarray:
    """Questions (n, 3), anchor and two others, with the nearer one second but for a share `wrong`."""
    anchor, left, right = questions.T
    far = np.linalg.norm(points[anchor] - points[left], axis=1) > np.linalg.norm(points[anchor] - points[right], axis=1)
    turned = far ^ (rng.random(len(questions)) < wrong)
    return np.where(turned[:, None], questions[:, [0, 2, 1]], questions)


def right(p: object) -> float:
    """How many in 100 questions, each with the right answer first, are answered rightly by the probabilities `p`; one
    half for those of which nothing is known (missing).

    >>> right([0.9, 0.2, None])
    50.0
    """
    known = np.nan_to_num(np.array(p, float), nan=0.5)
    return float(100 * ((known > 0.5) + 0.5 * (known == 0.5)).mean())
