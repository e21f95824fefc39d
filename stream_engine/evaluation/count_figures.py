"""How well counts alone answer judgements that they did not have: what a model has to beat.

    adds3, k1, k2   the similarities, calibrated (`probability`); adds4 on comparisons of four objects, where some came
    majority        of the answers to the very same question, a coin where nobody was asked it
    chance          a coin

The judgements are those that a refit with the same seed reports on; the counts are the snapshot's less theirs. About
one CPU-second at 1,000 objects and 200,000 judgements; above `OBJECTS` or `KEYS` nothing is made.
"""

import numpy as np

from stream_engine.evaluation import held_out
from stream_engine.evaluation.held_out import HeldOut
from stream_engine.evaluation.probability import HeldOutAnswers, calibration_in, held_of
from stream_engine.state.snapshot import Snapshot, triplet_columns

OBJECTS, KEYS = 1000, 200_000
OF_THREE = ("adds3", "k1", "k2", "majority")
CHANCE = "chance"


def too_many(snapshot: Snapshot) -> str | None:
    """Why none are made, in words; None where they are."""
    columns = triplet_columns(snapshot)
    if columns.n_objects > OBJECTS or len(columns.anchor) > KEYS:
        return (
            f"{', '.join(OF_THREE)} (too large: {columns.n_objects:,} objects and {len(columns.anchor):,} distinct "
            f"questions; the limits are {OBJECTS:,} and {KEYS:,})"
        )
    return None


def of_counts(snapshot: Snapshot, seed: int) -> dict[str, HeldOut]:
    """By name; empty where there are too many (`too_many`), or too few to hold any out. The last snapshot that was
    asked about is remembered."""
    key = (snapshot.digest, seed)
    found = _remembered.get(key)
    if found is None or not snapshot.digest:  # one that was never published has no name to remember it by
        found = {} if too_many(snapshot) else _of_counts(snapshot, seed)
        _remembered.clear()
        _remembered[key] = found
    return found


_remembered: dict[tuple[str, int], dict[str, HeldOut]] = {}


def _of_counts(snapshot: Snapshot, seed: int) -> dict[str, HeldOut]:
    made = _figures(held_of(snapshot, seed), OF_THREE)
    if snapshot.section("adds4") and snapshot.counters["quadruplets"]:
        made |= _figures(held_of(snapshot, seed, triplets=False), ("adds4",))
    return made


def _figures(held: HeldOutAnswers, names: tuple[str, ...]) -> dict[str, HeldOut]:
    asked, made = held.asked, dict[str, HeldOut]()
    if not len(asked.rows):
        return {}
    ceiling = held_out.ceiling(held.found)

    def told(margin: np.ndarray) -> HeldOut:
        return held_out.without_ceiling(held.found, held.part, asked, margin, 1.0)._replace(ceiling=ceiling)

    for name in names:
        margin = calibration_in(held, name)[1]
        if margin is not None:
            made[name] = told(margin)
    return made | ({CHANCE: _exact(told(np.zeros(len(asked.rows))))} if made and "majority" in names else {})


def _exact(chance: HeldOut) -> HeldOut:
    """A coin's accuracy is no estimate: no standard error."""
    kinds = {name: getattr(chance, name) for name in ("judgement", "worker", "question")}
    return chance._replace(**{name: each and each._replace(standard_error=None) for name, each in kinds.items()})
