"""Questions that span sets of objects that were never compared with each other, or by few questions: they come before
those of any strategy."""

import numpy as np

from stream_engine.asking.knowledge import Knowledge, unanswered
from stream_engine.evaluation.weak_joins import MIN_QUESTIONS

ACROSS = "across"  # the sampler's name
ENOUGH = 3 * MIN_QUESTIONS  # questions about a set and others, which wait for answers
MAX_CANDIDATES = 50_000


def ask(knowledge: Knowledge, n: int, rng: np.random.Generator) -> np.ndarray:
    """(m, 3) int32, at most n: random questions about each set but the largest with another one; fewer where enough of
    them wait for an answer. None about sets with fewer than `MIN_QUESTIONS` of their own, as at the beginning of a
    study: strategies join these. O(K + `MAX_CANDIDATES`)."""
    sets, objects, code = knowledge.sets, len(knowledge.names), knowledge.pending
    if sets is None:
        return np.empty((0, 3), np.int32)
    asked_about = sets[knowledge.columns.anchor]
    is_large = np.bincount(asked_about[asked_about >= 0], minlength=int(sets.max()) + 1) >= MIN_QUESTIONS
    if is_large.sum() < 2:
        return np.empty((0, 3), np.int32)
    set_of = np.full(objects, -1)
    set_of[: len(sets)] = np.where((sets >= 0) & is_large[sets], sets, -1)
    waiting = set_of[np.stack([code // objects // objects, code // objects % objects, code % objects], axis=1)]
    rows = unanswered(knowledge, MAX_CANDIDATES, rng)
    of, chosen = set_of[rows], np.zeros(len(rows), bool)
    for number in np.flatnonzero(is_large)[1:].tolist():
        missing = ENOUGH - int(_spans(waiting, number).sum()) - int(_spans(of[chosen], number).sum())
        missing = min(missing, n - int(chosen.sum()))
        chosen[np.flatnonzero(_spans(of, number) & ~chosen)[: max(missing, 0)]] = True
    return rows[chosen]


def _spans(of: np.ndarray, number: int) -> np.ndarray:
    """(m,) bool: whether questions about objects of the sets `of` (m, 3) are about that set and another one."""
    return (of == number).any(axis=1) & ((of != number) & (of >= 0)).any(axis=1)
