"""An embedding that is updated by every answer of a stream, starting from the last fit or from nothing.

Each answer is one step (`online_step`); while answers are few, earlier ones are replayed from a ring of the last
`RING`. From nothing, points begin small, by a hash of the seed and the object, in t-STE (whose slopes do not grow with
the distance) and with a ridge that grows with the answers as their noise does: NOISE sqrt(3 m / n), in units of the
slope at X = 0 of m answers about n objects that say nothing.

`reset_to_fit` puts a published fit in the place of what was learned, as it is: no alignment is needed. Answers that
came since its snapshot are in the ring and are learned again, each once. Where the ring no longer holds all of them the
fit is not taken, and the next one may be: no answer is lost. If the fit has weights of participants on the axes,
answers refine them; a participant whom the fit does not know begins at the group's, 1.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from stream_engine.data.compiled import read_only
from stream_engine.data.hashing import splitmix64
from stream_engine.embedding.fit import alpha_of
from stream_engine.embedding.online_step import (
    EARLIER,
    FLOOR,
    KNOWN,
    LEARNED,
    MAX_COORDINATE,
    MAX_LAPSE,
    MAX_WEIGHT,
    MEMORY,
    MIN_LAPSE,
    MIN_WEIGHT,
    N_FIRST,
    PRIOR_ANSWERS,
    follow,
    information,
)
from stream_engine.evaluation.answer_probabilities import log_odds, margins, probability
from stream_engine.state.artifact_schemas import RING

MIN_RING = 64  # answers that there is room for at first, of at most RING (2.6 MB)
FIRST_SPREAD = 0.1  # standard deviation of a new object's coordinates
NOISE = 0.12
FIRST_LAPSE = 0.1, 5.0  # lapse of all at first, and how many answers it is worth


class PublishedFit(NamedTuple):
    """A published fit, as this learner takes it over."""

    points: np.ndarray  # (k, d) of the first k objects
    asked: np.ndarray  # (k,) bool: whether anything was asked about an object
    lapse: float  # of an unknown participant
    worker_lapse: Mapping[int, float]  # row of `lapse_counts` -> lapse
    alpha: float
    ridge: float
    scale: float  # confidence of the points (`calibration`)
    answers: float  # that it was fitted to
    weights: Mapping[int, np.ndarray] = {}  # row of `lapse_counts` -> (d,) on the axes
    shrinkage: float = 0.0  # of log weights; 0: one map for everybody
    weighted_scale: float = 1.0  # confidence of the points for participants with weights


class OnlineEmbedding:
    """State: points, sums of their steps, lapses, the ring. The same answers in whatever blocks: the same state."""

    def __init__(self, d: int = 3, kernel: str = "t-ste", ridge: float | None = None, seed: int = 0):
        """`ridge` None: NOISE sqrt(3 m / n) for m answers about n objects. Raises `ValueError`."""
        if d < 1:
            raise ValueError(f"OnlineEmbedding: got {d} dimensions, expected at least 1")
        self.seed, self.scale = seed, 1.0
        ridge_and_noise = (0.0, NOISE) if ridge is None else (ridge, 0.0)
        self.setting = np.array([alpha_of(kernel, d), *ridge_and_noise])
        self.points, self.squares, self.answers = np.empty((0, d)), np.empty(0), np.empty(0)
        self.mean, self.first = np.empty((0, d)), np.empty((0, N_FIRST), np.int64)
        self.lapse_counts = np.array([[FIRST_LAPSE[0] * FIRST_LAPSE[1], FIRST_LAPSE[1]]])
        self.weights, self.information = np.ones((1, d)), np.zeros((1, d))
        self.weighting = np.array([0.0, 1.0])  # shrinkage, scale with weights
        self.ring, self.ring_worker = np.zeros((MIN_RING, 4), np.int32), np.zeros(MIN_RING, np.int32)
        self.numbers, self.replay_debt = np.zeros(4, np.int64), np.zeros(1)

    @property
    def n_learned(self) -> int:
        """How many answers it learned."""
        return int(self.numbers[LEARNED])

    @property
    def lapse(self) -> np.ndarray:
        """(w,): of all (row 0), and of each worker."""
        has_counts = self.lapse_counts[:, 1] > 0
        share = np.full(len(self.lapse_counts), self.lapse_counts[0, 0] / self.lapse_counts[0, 1])
        share[has_counts] = self.lapse_counts[has_counts, 0] / self.lapse_counts[has_counts, 1]
        return np.clip(share, MIN_LAPSE, MAX_LAPSE)

    def grow(self, n: int) -> None:
        """Make room for objects up to n - 1. O(n d) where there are new ones."""
        n_known, d = self.points.shape
        if n <= n_known:
            return
        # room ahead: one new object a block is usual
        n_new = max(n, min(2 * n_known, n_known + (1 << 16))) - n_known
        new = _first_points(n_known, n_known + n_new, d, self.seed)
        self.points, self.mean = np.concatenate([self.points, new]), np.concatenate([self.mean, new])
        self.squares = np.concatenate([self.squares, np.full(n_new, FLOOR)])
        self.answers = np.concatenate([self.answers, np.zeros(n_new)])
        self.first = np.concatenate([self.first, np.full((n_new, N_FIRST), -1)])

    def learn(self, rows: np.ndarray, worker: np.ndarray | None = None) -> None:
        """Answers d(i, j) < d(k, l): (m, 4) int32, a triplet's anchor at i and k, else four objects; `worker` (m,)
        int32 rows of the lapses, 0 nobody. O(m d), times 101 while they are few. Raises `ValueError`."""
        rows = read_only(np.asarray(rows).reshape(-1, 4), np.int32)
        participant = read_only(np.zeros(len(rows), np.int32) if worker is None else worker, np.int32)
        if not len(rows):
            return
        if rows.min() < 0 or participant.min() < 0:
            raise ValueError("OnlineEmbedding.learn: got a negative id, expected rows of objects and of workers")
        self.grow(int(rows.max()) + 1)
        if participant.max() >= len(self.lapse_counts):
            self.lapse_counts = np.concatenate(
                [self.lapse_counts, np.zeros((int(participant.max()) + 1 - len(self.lapse_counts), 2))]
            )
        self._group_weights()
        self._follow(rows, participant)

    def _group_weights(self) -> None:
        """The group's weights for participants without own ones, where participants have any."""
        missing = len(self.lapse_counts) - len(self.weights)
        if not self.weighting[0] or missing <= 0:
            return
        d = self.weights.shape[1]
        prior = 2 * self.weighting[0]
        self.weights = np.concatenate([self.weights, np.ones((missing, d))])
        self.information = np.concatenate([self.information, np.full((missing, d), prior)])

    def _follow(self, rows: np.ndarray, participant: np.ndarray) -> None:
        rows, participant = read_only(rows, np.int32), read_only(participant, np.int32)  # one type, thus compiled once
        n_wanted, room = self.n_learned + len(rows), len(self.ring)
        if n_wanted > room and room < RING:
            room = min(RING, 1 << (n_wanted - 1).bit_length())
            ring, ring_worker = np.zeros((room, 4), np.int32), np.zeros(room, np.int32)
            ring[: self.n_learned], ring_worker[: self.n_learned] = (
                self.ring[: self.n_learned],
                self.ring_worker[: self.n_learned],
            )
            self.ring, self.ring_worker = ring, ring_worker
        follow(
            rows,
            participant,
            self.points,
            self.mean,
            self.squares,
            self.answers,
            self.first,
            self.lapse_counts,
            self.weights,
            self.information,
            self.ring,
            self.ring_worker,
            self.numbers,
            self.replay_debt,
            self.setting,
        )

    def _ring_size(self) -> int:
        return min(self.n_learned, len(self.ring))

    def _inform(self, rows: np.ndarray, participant: np.ndarray) -> None:
        """The sums of all objects from these answers, as if all their answers had been like them."""
        sums, times = np.zeros(len(self.points)), np.zeros(len(self.points))
        information(
            rows,
            participant,
            self.lapse[participant],
            self.points,
            self.weights,
            self.information,
            self.setting[0],
            sums,
            times,
        )
        known = slice(int(self.numbers[KNOWN]))  # and no room ahead, by which a sum would be rounded otherwise
        usual = sums[known].sum() / times[known].sum() if times.any() else FLOOR
        self.squares = FLOOR + self.answers * (sums + usual) / (times + 1.0)

    def margins(self, rows: np.ndarray, participant: int = 0) -> np.ndarray:
        """(m,) log odds of the answers (m, 4), by the lapse of all, or the weights and the lapse of one participant (a
        row of the lapses): below 0 where the opposite is expected; nan about objects of which it heard nothing.
        O(m d)."""
        rows = np.asarray(rows)
        out = np.full(len(rows), np.nan)
        known_rows = np.flatnonzero(((rows >= 0) & (rows < len(self.points))).all(axis=1))
        known_rows = known_rows[(self.answers[rows[known_rows]] > 0).all(axis=1)]
        own = 0 < participant < len(self.weights)
        points = self.mean * np.sqrt(self.weights[participant]) if own else self.mean
        scale = float(self.weighting[1]) if own else self.scale
        delta = scale * margins(points, rows[known_rows], float(self.setting[0]))
        out[known_rows] = np.sign(delta) * log_odds(probability(np.abs(delta), float(self.lapse[participant])))
        return out

    def reset_to_fit(self, fit: PublishedFit, since: int) -> bool:
        """Go on from a fit to the answers before number `since` of this learner's; False, and nothing done, where not
        all that came after them are there to be learned again. O(RING d)."""
        count, room, k = self.n_learned - since, len(self.ring), len(fit.points)
        if count < 0 or count > room or not np.isfinite(fit.points).all():
            return False
        after = np.arange(since, self.n_learned) % room
        rows, participant = self.ring[after], self.ring_worker[after]
        self.grow(k)
        n_known, d = len(self.points), fit.points.shape[1]
        points = _first_points(0, n_known, d, self.seed)
        points[:k][fit.asked] = np.clip(fit.points[fit.asked], -MAX_COORDINATE, MAX_COORDINATE)
        self.points, self.mean, self.scale = points, points.copy(), fit.scale
        self.setting = np.array([fit.alpha, fit.ridge, 0.0])
        self.answers = self._answers_before(rows, fit, since)
        self.lapse_counts = self._lapse_counts_of(fit)
        self._take_weights(fit)
        self.numbers[[LEARNED, KNOWN]] = since, max(k, int(self.numbers[KNOWN]))
        self.numbers[EARLIER] = max(int(fit.answers) - since, 0)
        before = np.arange(max(0, self.n_learned - (room - count)), since) % room
        self._inform(self.ring[before], self.ring_worker[before])
        self._follow(rows, participant)
        return True

    def _answers_before(self, rows: np.ndarray, fit: PublishedFit, since: int) -> np.ndarray:
        """(n,) answers about each object that the fit had: those counted here, more where the fit had more."""
        objects = np.where((rows[:, :1] == rows[:, 2:3]) & (np.arange(4) == 2), -1, rows)
        later = np.bincount(objects[objects >= 0], minlength=len(self.points))
        asked = np.zeros(len(self.points), bool)
        asked[: len(fit.asked)] = fit.asked
        answers = np.maximum(self.answers - later, 0.0)
        missing = max(fit.answers - since, 0.0) * 3.0 / max(int(asked.sum()), 1)
        return np.where(asked, np.maximum(answers + missing, 1.0), 0.0)

    def _lapse_counts_of(self, fit: PublishedFit) -> np.ndarray:
        """Lapses as the fit found them; a worker that it does not name begins like somebody unknown."""
        rate = np.clip(np.nan_to_num(fit.lapse, nan=FIRST_LAPSE[0]), MIN_LAPSE, MAX_LAPSE)
        counts = np.zeros((max(len(self.lapse_counts), 1 + max(fit.worker_lapse, default=0)), 2))
        counts[0] = rate * MEMORY, MEMORY
        for participant, own in fit.worker_lapse.items():
            counts[participant] = np.clip(own, MIN_LAPSE, MAX_LAPSE) * 5 * PRIOR_ANSWERS, 5 * PRIOR_ANSWERS
        return counts

    def _take_weights(self, fit: PublishedFit) -> None:
        """Weights as the fit found them, with the information of the prior; everybody else at the group's."""
        d = fit.points.shape[1]
        self.weights, self.information = np.ones((1, d)), np.zeros((1, d))
        self.weighting = np.array([fit.shrinkage, fit.weighted_scale], float)
        self._group_weights()
        for participant, own in fit.weights.items() if fit.shrinkage else ():
            self.weights[participant] = np.clip(own, MIN_WEIGHT, MAX_WEIGHT)

    def state(self) -> dict[str, np.ndarray]:
        """A copy of everything, for `resume`."""
        ring_size, n = self._ring_size(), int(self.numbers[KNOWN])
        return {
            "X": self.mean[:n].copy(),
            "at": self.points[:n].copy(),
            "squares": self.squares[:n].copy(),
            "answers": self.answers[:n].copy(),
            "first": self.first[:n].copy(),
            "coins": self.lapse_counts.copy(),
            "weights": self.weights.copy(),
            "information": self.information.copy(),
            "weighting": self.weighting.copy(),
            "ring": self.ring[:ring_size].copy(),
            "ring_worker": self.ring_worker[:ring_size].copy(),
            "numbers": self.numbers.copy(),
            "owed": self.replay_debt.copy(),
            "setting": np.append(self.setting, self.scale),
        }

    def resume(self, arrays: Mapping[str, Any]) -> None:
        """Take over a `state`; a state without weights has one map for everybody."""
        n, d = arrays["X"].shape
        self.weights = np.array(arrays.get("weights", np.ones((1, d))), np.float64)
        self.information = np.array(arrays.get("information", np.zeros((1, d))), np.float64)
        self.weighting = np.array(arrays.get("weighting", (0.0, 1.0)), np.float64)[[0, -1]]
        self.points, self.mean, self.squares, self.answers = (
            np.empty((0, d)),
            np.empty((0, d)),
            np.empty(0),
            np.empty(0),
        )
        self.first = np.empty((0, N_FIRST), np.int64)
        self.grow(n)
        self.first[:n] = arrays["first"]
        self.mean[:n], self.points[:n] = (
            np.clip(arrays[name], -MAX_COORDINATE, MAX_COORDINATE) for name in ("X", "at")
        )
        self.squares[:n], self.answers[:n] = np.maximum(arrays["squares"], FLOOR), arrays["answers"]
        self.lapse_counts, self.numbers, self.replay_debt = (
            np.array(arrays[name]) for name in ("coins", "numbers", "owed")
        )
        self.setting, self.scale = np.array(arrays["setting"][:3]), float(arrays["setting"][3])
        ring_size = len(arrays["ring"])
        room = max(MIN_RING, 1 << max(ring_size - 1, 0).bit_length())
        self.ring, self.ring_worker = np.zeros((room, 4), np.int32), np.zeros(room, np.int32)
        self.ring[:ring_size], self.ring_worker[:ring_size] = arrays["ring"], arrays["ring_worker"]


def _first_points(begin: int, end: int, d: int, seed: int) -> np.ndarray:
    """(end - begin, d) coordinates between +- sqrt(3) SMALL, by a hash of the seed, the object and the axis."""
    number = np.arange(begin, end, dtype=np.uint64)[:, None] * np.uint64(d) + np.arange(d, dtype=np.uint64)
    draw = splitmix64(splitmix64(number) ^ splitmix64(np.array([seed % (1 << 63)], np.uint64)))
    return (draw / 2.0**63 - 1.0) * np.sqrt(3.0) * FIRST_SPREAD
