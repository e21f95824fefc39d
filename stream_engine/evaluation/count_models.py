"""Models that are nothing but counts: AddS-3, AddS-4, k1, k2, the majority; how well they predict, as a baseline.

They are evaluated on the responses that refits with the same seed are evaluated on (`evaluation.cross_fit`): of the
answers outside, some calibrate a model, and its counts are those of the others.
"""

from collections.abc import Sequence

import numpy as np
from scipy.special import logit

from stream_engine.counts import kernels
from stream_engine.data.answers import Answers
from stream_engine.data.symmetric_matrices import DENSE_LIMIT
from stream_engine.data.triplet_columns import Columns, pair_of_entry
from stream_engine.evaluation import Predictor, counts_without, cross_fit
from stream_engine.evaluation.held_out import Figures, HeldOut
from stream_engine.evaluation.platt import Calibration, calibrated, platt
from stream_engine.evaluation.repetitions import repeats
from stream_engine.evaluation.responses import HELD, asked_fairly, draws_again, responses_of
from stream_engine.evaluation.similarities import by_similarity, dense_adds, restricted
from stream_engine.state.published import Published
from stream_engine.state.snapshot import Snapshot, triplet_columns

# Models of triplets, in the order in which they are listed: "majority" is that of the answers to the very same
# question, chance where there are none.
TRIPLET_MODELS = ("adds3", "k1", "k2", "majority")


def calibration_of(snapshot: Snapshot, name: str, seed: int = 0) -> tuple[Calibration, HeldOut | None]:
    """The calibration of AddS-3, k1 or k2, and the model's figures, both on responses that its counts do not
    contain."""
    counts = CountModels(snapshot, seed)
    part = cross_fit.plan(counts.responses, evaluate=False).responses[0].part
    return counts.calibrations((name,), part)[name] or Calibration(), counts.evaluate((name,)).get(name)


# Answers are divided into so many folds for the calibration, and folds are used until they have so many responses.
CALIBRATION_FOLDS, ENOUGH_RESPONSES = 5, 2_500
_COUNTS = ("triplet_counts/", "quadruplet_counts/", "adds4/")  # sections that models are made of
MIN_PROBABILITY = 1e-12  # probabilities are cut off so near to 0 and 1


class CountModels:
    """Models that are nothing but counts, evaluated on answers that these do not contain. O(m log m + keys) a fold."""

    def __init__(self, snapshot: Snapshot, seed: int):
        self.responses = responses_of(snapshot, seed)
        self.plan = cross_fit.plan(self.responses, max_divisions=cross_fit.MAX_DIVISIONS)
        counts = {key: array for key, array in snapshot.arrays.items() if key.startswith(_COUNTS)}
        self._snapshot = snapshot._replace(arrays=counts)

    def calibrations(self, names: Sequence[str], part: np.ndarray) -> dict[str, Calibration | None]:
        """Fitted to the answers that a part (U,) does not hold out, each predicted by the counts without its fold. None
        if the counts predict none of them."""
        margins_of: dict[str, list[tuple[np.ndarray, np.ndarray]]] = {name: [] for name in names}
        free, n_responses = asked_fairly(self.responses) & (part != HELD), 0.0
        answers = self.responses.answers
        inner = (draws_again(self.responses) * CALIBRATION_FOLDS).astype(int)
        for fold in range(CALIBRATION_FOLDS):
            chooses = free & (inner == fold)
            held_out = answers.of_responses((part == HELD) | chooses)
            fitting = counts_without.without(self._snapshot, held_out)
            for name in names:
                targets = _of_kind(answers, name).of_responses(chooses)
                predictor = similarity_of(fitting, name, held_out) if len(targets.rows) else None
                if predictor is not None:
                    margins_of[name].append((predictor.margins(targets.rows) / predictor.scale, targets.times))
            n_responses += float(np.count_nonzero(chooses))
            # not fewer: by a few hundred answers alone, a weak similarity would seem to know nothing by chance
            if n_responses >= ENOUGH_RESPONSES:
                break
        return {
            name: calibrated(*(np.concatenate(column) for column in zip(*parts))) if parts else None
            for name, parts in margins_of.items()
        }

    def evaluate(self, names: Sequence[str]) -> dict[str, HeldOut]:
        """The figures of each model, all of them of triplets or all of comparisons of four objects; empty if the counts
        predict nothing."""
        responses = self.responses.about(_of_kind(self.responses.answers, names[0]))

        def predict(calibrations: dict[str, Calibration | None], out: np.ndarray) -> dict[str, np.ndarray]:
            held_out, log_odds = self.responses.answers.of_responses(out), {}
            rows = responses.answers.of_responses(out).rows
            counts_outside = counts_without.without(self._snapshot, held_out)
            for name, calibration in calibrations.items():
                predictor = similarity_of(counts_outside, name, held_out) if calibration else None
                p = np.full(len(rows), 0.5)
                if predictor is not None:
                    p = platt(predictor, calibration or Calibration())(rows)
                p = np.where(np.isnan(p), 0.5, p)
                log_odds[name] = logit(np.clip(p, MIN_PROBABILITY, 1.0 - MIN_PROBABILITY))
            return log_odds

        def choose(part: np.ndarray) -> dict[str, Calibration | None]:
            return self.calibrations(names, part)

        first = choose(self.plan.responses[0].part)
        if not any(first.values()):
            return {}
        return cross_fit.evaluate(responses, self.plan, first, choose, predict, fitted=False)


def _of_kind(answers: Answers, name: str) -> Answers:
    return answers.quadruplets() if name == "adds4" else answers.triplets()


def similarity_of(snapshot: Snapshot, name: str, excluded: Answers | None = None) -> Predictor | None:
    """The predictor that is made of counts alone: AddS-3, k1, k2, "majority" (of the answers to the same question), or
    AddS-4 of comparisons of four objects. AddS-4 is accumulated as a sum, from which the answers `excluded` are
    subtracted; the snapshot's counts are already without them. None if the counts have no majority, or an (n, n) matrix
    is too large."""
    if name == "adds4":
        w = dense_adds(snapshot, name) if snapshot.counters.get("quadruplets") else None
        if w is None:
            return None
        return restricted(by_similarity(w if excluded is None else w - _adds(excluded, len(w))), triplets=False)
    columns = triplet_columns(snapshot)
    n = columns.n_objects
    if not 3 <= n <= DENSE_LIMIT or not (columns.n_lo != columns.n_hi).any():
        return None
    if name == "majority":
        return repeats(Published(snapshot, {}))
    similarity = {"adds3": _adds_of_columns, "k1": kernels.k1, "k2": kernels.k2}[name](columns)
    return restricted(by_similarity(similarity), triplets=True)


def _adds(answers: Answers, n: int) -> np.ndarray:
    """(n, n) AddS of answers: how often a pair was the nearer one, minus how often the farther one. O(m + n^2)."""
    return _summed(answers.rows[:, :2], answers.rows[:, 2:], answers.times, n)


def _adds_of_columns(columns: Columns) -> np.ndarray:
    """AddS of triplet counts."""
    pair = pair_of_entry(columns)
    of_lo, of_hi = (np.stack([columns.anchor, ids[pair]], axis=1) for ids in (columns.lo, columns.hi))
    return _summed(of_lo, of_hi, columns.n_lo.astype(np.float64) - columns.n_hi, columns.n_objects)


def _summed(near: np.ndarray, far: np.ndarray, times: np.ndarray, n: int) -> np.ndarray:
    """(n, n) sums of `times` over pairs (m, 2) of objects."""
    more, less = (np.sort(pair.astype(np.int64), axis=1) @ np.array([n, 1]) for pair in (near, far))
    upper = (np.bincount(more, times, n * n) - np.bincount(less, times, n * n)).reshape(n, n)
    return upper + upper.T


MAX_KEYS = 5_000_000  # distinct questions, above which no figures are computed


def too_large(snapshot: Snapshot) -> str | None:
    """Why no figures are computed, in words; None if they are."""
    columns = triplet_columns(snapshot)
    if columns.n_objects > DENSE_LIMIT or len(columns.anchor) > MAX_KEYS:
        return (
            f"{', '.join(TRIPLET_MODELS)} (too large: {columns.n_objects:,} objects and {len(columns.anchor):,} "
            f"distinct questions; the limits are {DENSE_LIMIT:,} and {MAX_KEYS:,})"
        )
    return None


_last_figures: dict[tuple[str, int, int, bytes], dict[str, HeldOut]] = {}


def count_figures(snapshot: Snapshot, seed: int) -> dict[str, HeldOut]:
    """Figures of models that are nothing but counts, by name: `TRIPLET_MODELS`, a coin ("chance"), and "adds4" of
    comparisons of four objects. Empty if there are too many questions (`too_large`), or too few to hold any out. Those
    of the last snapshot are cached. Two CPU-seconds for a million answers about 3,000 objects."""
    names = snapshot.section("worker_votes").get("utf8", np.empty(0, np.uint8))  # fewer where some are excluded
    key = (snapshot.digest, seed, snapshot.counters["comparisons"], names.tobytes())
    figures = _last_figures.get(key)
    if figures is None or not snapshot.digest:  # one that was never published has no name to cache it by
        figures = {} if too_large(snapshot) else _computed_figures(snapshot, seed)
        _last_figures.clear()
        _last_figures[key] = figures
    return figures


def _computed_figures(snapshot: Snapshot, seed: int) -> dict[str, HeldOut]:
    counts = CountModels(snapshot, seed)
    figures = counts.evaluate(TRIPLET_MODELS)
    if "majority" in figures:
        figures["chance"] = _chance(figures["majority"])
    if snapshot.section("adds4") and snapshot.counters["quadruplets"]:
        figures |= counts.evaluate(("adds4",))
    return figures


def _chance(majority: HeldOut) -> HeldOut:
    """The figures of a coin on the same answers: its accuracy is no estimate, and has no standard error."""

    def coin(figures: Figures | None) -> Figures | None:
        return figures and figures._replace(
            accuracy=0.5, standard_error=None, log_loss=float(np.log(2.0)), calibration_error=0.0
        )

    return majority._replace(judgement=coin(majority.judgement), worker=coin(majority.worker))
