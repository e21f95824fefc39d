"""Questions at random: uniform among those without an answer, so the answers are an unbiased sample."""

import numpy as np

from stream_engine.asking.knowledge import Knowledge, unanswered


def ask(knowledge: Knowledge, n: int, rng: np.random.Generator) -> np.ndarray:
    """(n, 3) int32. O(n), or O(objects^3) for few objects."""
    return unanswered(knowledge, n, rng)
