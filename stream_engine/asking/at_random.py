"""Questions at random: uniform among those without an answer. The floor that every other strategy must beat, and the
one whose answers are an unbiased sample of what people think.
"""

import numpy as np

from stream_engine.asking.known import Knowledge, unanswered


def ask(known: Knowledge, n: int, rng: np.random.Generator) -> np.ndarray:
    """(n, 3) int32. O(n), or O(objects^3) for few objects."""
    return unanswered(known, n, rng)
