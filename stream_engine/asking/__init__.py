"""What to ask next: `stream-engine ask`. From a published snapshot to questions that the next answers should settle.

A question is a row (anchor, b, c): is b or c nearer to the anchor? One strategy, one file: `ask(known, n, rng)` returns
(n, 3) int32 distinct questions that the snapshot has no answer to, the one to ask first in the first row. Registered
here. Pure: the same snapshot, kernel artifact, names and seed give the same questions; nothing is remembered.
"""

from importlib import import_module

import numpy as np

from stream_engine.asking.known import CannotAsk, Known, check_room

STRATEGIES = {
    "random": "stream_engine.asking.at_random",
    "uncertainty": "stream_engine.asking.uncertainty",
    "information-gain": "stream_engine.asking.information_gain",
    "landmark": "stream_engine.asking.landmark",
    "coverage": "stream_engine.asking.coverage",
}
DEFAULT = "information-gain"

__all__ = ["DEFAULT", "STRATEGIES", "CannotAsk", "Known", "questions"]


def questions(known: Known, n: int, strategy: str = DEFAULT, seed: int = 0) -> np.ndarray:
    """(n, 3) int32 rows anchor, b, c, most wanted first; b and c in random order, so that sides say nothing.

    Raises `CannotAsk`: fewer than 3 objects, an unknown strategy, or more questions than are left.
    """
    if strategy not in STRATEGIES:
        raise CannotAsk(f"ask: got strategy {strategy!r}, expected one of {', '.join(STRATEGIES)}")
    check_room(known, n)
    rng = np.random.default_rng(seed)
    rows = np.array(import_module(STRATEGIES[strategy]).ask(known, n, rng), np.int32)
    swap = rng.random(len(rows)) < 0.5
    rows[swap, 1:] = rows[swap, 2:0:-1]
    return rows
