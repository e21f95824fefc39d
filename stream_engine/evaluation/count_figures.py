"""How well counts alone answer judgements that they did not have: what a model has to beat.

    adds3, k1, k2   the similarities, calibrated (`probability`); adds4 on comparisons of four objects, where some came
    majority        of the answers to the very same question, chance where nobody answered it
    chance          a coin

The judgements are those that refits with the same seed report on (`evaluation.cross_fit`). Two CPU-seconds for a
million answers about 3,000 objects, and less for fewer; above `KEYS` nothing is made.
"""

import numpy as np

from stream_engine.data.symmetric_matrices import DENSE_LIMIT
from stream_engine.evaluation.held_out import Figures, HeldOut
from stream_engine.evaluation.probability import CountedAnswers
from stream_engine.state.snapshot import Snapshot, triplet_columns

KEYS = 5_000_000  # distinct questions
OF_THREE = ("adds3", "k1", "k2", "majority")
CHANCE = "chance"


def too_many(snapshot: Snapshot) -> str | None:
    """Why none are made, in words; None where they are."""
    columns = triplet_columns(snapshot)
    if columns.n_objects > DENSE_LIMIT or len(columns.anchor) > KEYS:
        return (
            f"{', '.join(OF_THREE)} (too large: {columns.n_objects:,} objects and {len(columns.anchor):,} distinct "
            f"questions; the limits are {DENSE_LIMIT:,} and {KEYS:,})"
        )
    return None


def of_counts(snapshot: Snapshot, seed: int) -> dict[str, HeldOut]:
    """By name; empty where there are too many (`too_many`), or too few to hold any out. The last snapshot that was
    asked about is remembered."""
    key = (snapshot.digest, seed, snapshot.counters["comparisons"])  # of one digest with and without participants
    found = _remembered.get(key)
    if found is None or not snapshot.digest:  # one that was never published has no name to remember it by
        found = {} if too_many(snapshot) else _of_counts(snapshot, seed)
        _remembered.clear()
        _remembered[key] = found
    return found


_remembered: dict[tuple[str, int, int], dict[str, HeldOut]] = {}


def _of_counts(snapshot: Snapshot, seed: int) -> dict[str, HeldOut]:
    counts = CountedAnswers(snapshot, seed)
    made = counts.evaluated(OF_THREE)
    if "majority" in made:
        made[CHANCE] = _chance(made["majority"])
    if snapshot.section("adds4") and snapshot.counters["quadruplets"]:
        made |= counts.evaluated(("adds4",))
    return made


def _chance(of: HeldOut) -> HeldOut:
    """A coin on the same answers: its accuracy is no estimate, and has no standard error."""

    def coin(each: Figures | None) -> Figures | None:
        return each and each._replace(
            accuracy=0.5, standard_error=None, log_loss=float(np.log(2.0)), calibration_error=0.0
        )

    return of._replace(judgement=coin(of.judgement), worker=coin(of.worker))
