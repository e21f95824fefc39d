"""How likely is it that people find the first of two pairs more alike? One function for each model of a state.

    embedding                  lapse / 2 + (1 - lapse) sigma(scale Delta), its own formula for somebody unknown; of few
                               answers the mean of that over draws (`embedding.posterior`)
    dimensions                 sigma(s_ij - s_kl), s the dot products of its weights; only of pairs that share an object
    kernel_learning            sigma(slope Delta), Delta the difference of squared distances; slope Platt's, fitted by
    partial_order_embedding    the refit on judgements that it held out; where none are, 1 for STE, a likelihood
    adds3, k1, k2              sigma(w . phi(margin)): Platt's logistic fit of `calibration`, on held-out judgements

A model made by a refit has its figures in the artifact's report. Those that are nothing but counts are made when they
are asked for; answers held out calibrate them, and others give the figures (`evaluation.cross_fit`).
Turning a question round turns the probability round: P(a; b, c) = 1 - P(a; c, b).

How well counts alone answer judgements that they did not have: what a model has to beat.

    adds3, k1, k2   the similarities, calibrated (`probability`); adds4 on comparisons of four objects, where some came
    majority        of the answers to the very same question, chance where nobody answered it
    chance          a coin

The judgements are those that refits with the same seed report on (`evaluation.cross_fit`). Two CPU-seconds for a
million answers about 3,000 objects, and less for fewer; above `KEYS` nothing is made.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from scipy.special import expit, logit

from stream_engine.counts import kernels
from stream_engine.data.answers import Answers
from stream_engine.data.packed_names import unpack_names
from stream_engine.data.symmetric_matrices import DENSE_LIMIT
from stream_engine.evaluation import FEATURES, LEARNED, NoModel, Predictor, counts_without, cross_fit
from stream_engine.evaluation.answer_probabilities import STE, Calibration, calibrated, log_odds
from stream_engine.evaluation.held_out import Figures, HeldOut
from stream_engine.evaluation.learned import (
    Probability,
    kernel_learning,
    of_dimensions,
    of_draws,
    of_embedding,
    of_features,
    of_points,
    partial_order_embedding,
)
from stream_engine.evaluation.responses import HELD, asked_fairly, draws_again, of_comparisons, responses_of
from stream_engine.evaluation.similarities import by_similarity, matrix, only, repeats
from stream_engine.state.artifact import Artifact, figure
from stream_engine.state.published import Published
from stream_engine.state.snapshot import Snapshot, triplet_columns

COUNTED = ("adds3", "k1", "k2")
MODELS = (*LEARNED, FEATURES, *COUNTED)
INNER, ENOUGH = 5, 2_500  # folds that calibrate, until so many judgements have
SURE = 1e-12  # a probability is never nearer to 0 or 1


class Model(NamedTuple):
    """`probability` takes (m, 4) rows i, j, k, l and gives (m,) P(d(i, j) < d(k, l) is said), NaN where the model does
    not know an object, or is not for questions about four. `log_loss` (nats an answer) is on held-out judgements, None
    where too little was held out."""

    name: str
    probability: Probability
    log_loss: float | None = None
    beside: tuple[str, ...] = ()  # objects that nobody compared, whose ids follow those of the snapshot


def model(published: Published, name: str | None = None) -> Model:
    """The model of that name; without a name the one of the artifacts with the least held-out log loss, or AddS-3 where
    no artifact gives probabilities. Raises `NoModel`."""
    if name is not None:
        found = _made(published, name)
        if found is None:
            there = [each for each in (*LEARNED, FEATURES) if _learned(published, each)]
            raise NoModel(
                f"model {name!r}: "
                + (
                    f"this state has no {name}; expected one of {', '.join((*there, *COUNTED))}, next: `stream-engine "
                    f"refit --state DIR {name}`"
                    if name in (*LEARNED, FEATURES)
                    else f"expected one of {', '.join(MODELS)}"
                    if name not in MODELS
                    else f"it needs triplets about at most {DENSE_LIMIT} objects, and there are none without ties"
                )
            )
        return found
    found = best(published) or _learned(published, FEATURES) or _made(published, "adds3")
    if found is None:
        raise NoModel("no model in this state gives probabilities; next: `stream-engine refit --state DIR embedding`")
    return found


def best(published: Published) -> Model | None:
    """Of the artifacts that give probabilities the one with the least held-out log loss; None where there is none."""
    made = [each for name in LEARNED if (each := _learned(published, name))]
    return min(made, key=lambda each: np.inf if each.log_loss is None else each.log_loss, default=None)


def _made(published: Published, name: str) -> Model | None:
    return counted(published.snapshot, name)[0] if name in COUNTED else _learned(published, name)


def _learned(published: Published, name: str) -> Model | None:
    artifact = published.artifacts.get(name)
    if artifact is None:
        return None
    if name == FEATURES:
        return by_features(published)
    if name == "embedding":
        given = of_embedding(artifact)
    elif name == "dimensions":
        if figure(artifact.report, "log_loss") is None:
            return None
        given = of_dimensions(np.asarray(artifact.arrays["X"]), np.asarray(artifact.arrays["asked"], bool))
    else:
        by = {"kernel_learning": kernel_learning, "partial_order_embedding": partial_order_embedding}.get(name)
        predictor, slope = by(published) if by else None, _slope(artifact)
        if predictor is None or slope is None:
            return None
        given = sigmoid_of(predictor, slope)
    return Model(name, given, figure(artifact.report, "log_loss"))


def by_features(published: Published) -> Model | None:
    """The model of features, for objects without answers too; None without an artifact of it."""
    found = of_features(published)
    return found and Model(FEATURES, found[0], figure(published.artifacts[FEATURES].report, "log_loss"), found[1])


def _slope(artifact: Artifact) -> float | None:
    """The slope that its report tells; without one 1 of a loss that is a likelihood."""
    told = figure(artifact.report, "probability_slope")
    return 1.0 if told is None and artifact.report.get("loss") == "ste" else told


class Participant(NamedTuple):
    """What the embedding knows about one participant."""

    known: bool  # has a lapse rate, weights or a map of their own
    weighted: bool  # whether weights of their own are used
    own_map: bool = False  # whether a map of their own is


def of_participant(artifact: Artifact, name: str, online: Artifact | None = None) -> tuple[Probability, Participant]:
    """By an artifact of the refit `embedding`, as this participant answers: with their own weights of the axes and
    their own lapse rate, as they are by now if the `online` embedding went on from this fit, stacked with their own
    map. The group's weights and the mean lapse rate for somebody unknown."""
    arrays, report = artifact.arrays, artifact.report
    names, points = unpack_names(arrays["utf8"], arrays["offsets"]), np.asarray(arrays["X"])
    asked, alpha = np.asarray(arrays["asked"], bool), float(report["alpha"])
    later = _weights_since(artifact, name, online)
    if name not in names and later is None:
        return of_embedding(artifact), Participant(False, False)
    lapse, scale = float(arrays["lapse"]), figure(report, "scale") or 1.0
    weights, own, number = arrays.get("worker_weights"), later, -1
    if name in names:
        number = names.index(name)
        lapse = float(arrays["worker_lapse"][number])
        if own is None and weights is not None and int(arrays["worker_group"][number]) >= 0:
            own = np.asarray(weights)[number]
    weighted = own is not None
    if own is not None:
        points = points * np.sqrt(own)
        scale = figure(report, "individual_differences", "scale") or 1.0
    known = weighted or lapse != float(arrays["lapse"])
    given = of_points(points, asked, lapse, alpha, scale)
    if "draws" in arrays and not weighted:
        given = of_draws(arrays["draws"], asked, lapse if known else arrays["draw_lapse"])
    if "own_X" in arrays and number >= 0 and (mine := np.asarray(arrays["own_worker"]) == number).any():
        return _stacked(artifact, given, number, mine), Participant(True, weighted, True)
    return given, Participant(known, weighted)


def _stacked(artifact: Artifact, group: Probability, number: int, mine: np.ndarray) -> Probability:
    """The log odds of the group's map and of a participant's own, where that knows the objects, as they are stacked."""
    arrays, n = artifact.arrays, len(artifact.arrays["X"])
    points, asked = np.zeros((n, arrays["own_X"].shape[1])), np.zeros(n, bool)
    points[arrays["own_object"][mine]], asked[arrays["own_object"][mine]] = np.asarray(arrays["own_X"])[mine], True
    own = of_points(points, asked, float(arrays["own_lapse"][number]), STE)
    base, alone = np.asarray(arrays["worker_stack"], float)[number]

    def given(rows: np.ndarray) -> np.ndarray:
        p, q = group(rows), own(rows)
        return np.where(np.isnan(q), p, expit(base * log_odds(p) + alone * log_odds(np.where(np.isnan(q), 0.5, q))))

    return given


def _weights_since(artifact: Artifact, name: str, online: Artifact | None) -> np.ndarray | None:
    """(d,) weights of a participant after the answers since a fit; None where the online embedding has none of it."""
    if online is None or "weights" not in online.arrays or online.report.get("fit") != artifact.digest:
        return None
    names = unpack_names(online.arrays["utf8"], online.arrays["offsets"])
    row = names.index(name) + 1 if name in names else 0
    return np.asarray(online.arrays["weights"])[row] if 0 < row < len(online.arrays["weights"]) else None


def sigmoid_of(predictor: Predictor, slope: float) -> Probability:
    """P = sigma(slope * margin)."""
    return _of_margins(predictor, lambda margin: expit(slope * margin))


def platt(predictor: Predictor, calibration: Calibration) -> Probability:
    """P by a calibration of margins in units of the predictor's scale."""
    return _of_margins(predictor, lambda margin: calibration.probability(margin / predictor.scale))


def _of_margins(predictor: Predictor, made: Callable[[np.ndarray], np.ndarray]) -> Probability:
    """By what is `made` of a predictor's margins; NaN about objects that nobody knows."""

    def given(rows: np.ndarray) -> np.ndarray:
        p = np.full(len(rows), np.nan)
        known = (rows >= 0).all(axis=1)
        p[known] = made(predictor.margins(rows[known]))
        return p

    return given


def counted(snapshot: Snapshot, name: str, seed: int = 0) -> tuple[Model | None, HeldOut | None]:
    """AddS-3, k1 or k2 with its probabilities, and its figures on judgements that neither its counts nor its
    calibration had; None where the counts decide nothing. Three times the similarity's cost."""
    whole = similarity_of(snapshot, name)
    if whole is None:
        return None, None
    calibration, figures = calibration_of(snapshot, name, seed)
    log_loss = figures.judgement.log_loss if figures and figures.judgement else None
    return Model(name, platt(whole, calibration), log_loss), figures


def calibration_of(snapshot: Snapshot, name: str, seed: int = 0) -> tuple[Calibration, HeldOut | None]:
    """Of margins of AddS-3, k1 or k2, in units of the predictor's scale: on judgements that its counts did not have."""
    counts = CountModels(snapshot, seed)
    part = cross_fit.plan(counts.every, evaluate=False).responses[0].part
    return counts.calibrations((name,), part)[name] or Calibration(), counts.evaluated((name,)).get(name)


class CountModels:
    """Models that are nothing but counts, on answers that these do not have. O(m log m + keys) for each fold."""

    def __init__(self, snapshot: Snapshot, seed: int):
        self.every = responses_of(snapshot, seed)
        self.plan = cross_fit.plan(self.every)
        counts = {key: array for key, array in snapshot.arrays.items() if not key.startswith("partial_order/")}
        self._snapshot = snapshot._replace(arrays=counts)

    def calibrations(self, names: Sequence[str], part: np.ndarray) -> dict[str, Calibration | None]:
        """Made of answers that are not held out by a part (U,), each predicted by the counts of the others: of a few
        hundred alone, a weak similarity would seem to know nothing by chance. None where nothing is known of them."""
        said: dict[str, list[tuple[np.ndarray, np.ndarray]]] = {name: [] for name in names}
        free, asked_of = asked_fairly(self.every) & (part != HELD), 0.0
        answers = self.every.answers
        inner = (draws_again(self.every) * INNER).astype(int)
        for number in range(INNER):
            chooses = free & (inner == number)
            out = answers.of_responses((part == HELD) | chooses)
            fitting = counts_without.without(self._snapshot, out)
            for name in names:
                asked = _of_kind(answers, name).of_responses(chooses)
                known = similarity_of(fitting, name, out) if len(asked.rows) else None
                if known is not None:
                    said[name].append((known.margins(asked.rows) / known.scale, asked.times))
            asked_of += float(np.count_nonzero(chooses))
            if asked_of >= ENOUGH:
                break
        return {
            name: calibrated(*(np.concatenate(column) for column in zip(*each))) if each else None
            for name, each in said.items()
        }

    def evaluated(self, names: Sequence[str]) -> dict[str, HeldOut]:
        """The figures of each model that knows something, all of comparisons of three objects or all of four."""
        responses = self.every.about(_of_kind(self.every.answers, names[0]))

        def predict(calibrations: dict[str, Calibration | None], out: np.ndarray) -> dict[str, np.ndarray]:
            held, told = self.every.answers.of_responses(out), {}
            rows = responses.answers.of_responses(out).rows
            outside = counts_without.without(self._snapshot, held)
            for name, calibration in calibrations.items():
                known = similarity_of(outside, name, held) if calibration else None
                p = np.full(len(rows), 0.5) if known is None else platt(known, calibration or Calibration())(rows)
                told[name] = logit(np.clip(np.where(np.isnan(p), 0.5, p), SURE, 1.0 - SURE))
            return told

        def choose(part: np.ndarray) -> dict[str, Calibration | None]:
            return self.calibrations(names, part)

        first = choose(self.plan.responses[0].part)
        if not any(first.values()):
            return {}
        return cross_fit.evaluated(responses, self.plan, first, choose, predict, fitted=False)


def _of_kind(answers: Answers, name: str) -> Answers:
    return answers.quadruplets() if name == "adds4" else answers.triplets()


def similarity_of(snapshot: Snapshot, name: str, less: Answers | None = None) -> Predictor | None:
    """The predictor that counts alone make: AddS-3, k1, k2, "majority" (of the answers to the very question), or AddS-4
    of comparisons of four objects, from the accumulated sums, which `less` is taken out of (it is out of counts
    already). None where they decide nothing, or an (n, n) matrix is too large."""
    if name == "adds4":
        w = matrix(snapshot, name) if snapshot.counters.get("quadruplets") else None
        if w is None:
            return None
        return only(by_similarity(w if less is None else w - _adds(less, len(w))), triplets=False)
    columns = triplet_columns(snapshot)
    n = columns.n_objects
    if not 3 <= n <= DENSE_LIMIT or not (columns.n_lo != columns.n_hi).any():
        return None
    if name == "majority":
        return repeats(Published(snapshot, {}))
    if name == "adds3":
        similarity = _adds(of_comparisons(snapshot, 0).answers.triplets(), n)
    else:
        similarity = {"k1": kernels.k1, "k2": kernels.k2}[name](columns)
    return only(by_similarity(similarity), triplets=True)


def _adds(answers: Answers, n: int) -> np.ndarray:
    """(n, n) AddS of answers: how often a pair was the near one less how often the far one. O(m + n^2)."""
    pairs = answers.rows[:, :2], answers.rows[:, 2:]
    near, far = (np.sort(pair.astype(np.int64), axis=1) @ np.array([n, 1]) for pair in pairs)
    sums = np.bincount(near, answers.times, n * n) - np.bincount(far, answers.times, n * n)
    upper = sums.reshape(n, n)
    return upper + upper.T


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
    named = snapshot.section("worker_votes").get(
        "utf8", np.empty(0, np.uint8)
    )  # of one digest without some participants
    key = (snapshot.digest, seed, snapshot.counters["comparisons"], named.tobytes())
    found = _remembered.get(key)
    if found is None or not snapshot.digest:  # one that was never published has no name to remember it by
        found = {} if too_many(snapshot) else _of_counts(snapshot, seed)
        _remembered.clear()
        _remembered[key] = found
    return found


_remembered: dict[tuple[str, int, int, bytes], dict[str, HeldOut]] = {}


def _of_counts(snapshot: Snapshot, seed: int) -> dict[str, HeldOut]:
    counts = CountModels(snapshot, seed)
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
