"""Which answers features are tested on, which objects are held out, and how far a share of right answers can be
trusted.

Responses, participants and questions are units: answers to one question are right or wrong together, and so are those
of one response and, to some degree, those of one participant. The variance is that of two-way clusters, participants
and questions (Cameron, Gelbach & Miller 2011), and at least that over each of the three alone; the interval is
Student's.
"""

from typing import Any, NamedTuple

import numpy as np
from scipy.special import stdtrit

from stream_engine.data.answers import Answers
from stream_engine.data.hashing import mix64
from stream_engine.data.packed_names import unpack_names
from stream_engine.evaluation.answers import counted_answers
from stream_engine.evaluation.cross_fit import questions_of
from stream_engine.evaluation.hash_split import name_hashes, object_folds
from stream_engine.evaluation.held_out import MIN_CLUSTERS, standard_error
from stream_engine.evaluation.responses import Responses, of_comparisons, responses_of
from stream_engine.state.snapshot import Snapshot, triplet_columns

FOLDS, IN_FOLD = 5, 3  # of objects; objects of a fold, at least


class Accuracy(NamedTuple):
    """A share with its interval of 95 %; None: too few units to say."""

    accuracy: float
    standard_error: float | None
    low: float | None
    high: float | None
    answers: int

    def widened(self, factor: float) -> "Accuracy":
        """The same share with an interval that is `factor` times as long."""
        if self.standard_error is None or self.low is None or self.high is None:
            return self
        half = factor * max(self.accuracy - self.low, self.high - self.accuracy)  # either end may be cut off
        return _within(self.accuracy, factor * self.standard_error, half, self.answers)


def accuracy_of(share: float, error: float, clusters: int, total: float) -> Accuracy:
    """A share, with Student's interval over clusters; of a difference of shares, only the standard error counts."""
    half = float(stdtrit(clusters - 1, 0.975)) * error
    return _within(share, error, half, int(total))


def _within(share: float, error: float, half: float, answers: int) -> Accuracy:
    return Accuracy(share, error, max(share - half, 0.0), min(share + half, 1.0), answers)


def tested_responses(snapshot: Snapshot, seed: int) -> Responses:
    """All answers in units: whole responses where the state keeps all; else the votes of participants, or the counts, a
    unit being the answers of one participant (or of all) about the same objects. O(m log m)."""
    responses = responses_of(snapshot, seed)
    if responses.complete and responses.by == "judgements":
        return responses
    votes, columns = snapshot.section("worker_votes"), triplet_columns(snapshot)
    hashes = name_hashes(snapshot.objects, seed)
    if not votes or snapshot.section("quadruplet_counts") or not _all_named(votes, columns.n_lo, columns.n_hi):
        counted = of_comparisons(snapshot, seed)
        return _by_objects(counted.by, counted.answers, np.empty(0, np.uint64), hashes, counted.votes)
    answers = counted_answers(snapshot)
    return _by_objects(responses.by, answers, name_hashes(answers.participants, seed), hashes, None)


def _all_named(votes: dict[str, np.ndarray], n_lo: np.ndarray, n_hi: np.ndarray) -> bool:
    names = unpack_names(votes["utf8"], votes["offsets"])
    n_named = int(np.sum(votes["n_lo"], dtype=np.int64) + np.sum(votes["n_hi"], dtype=np.int64))
    return all(names) and n_named == int(np.sum(n_lo, dtype=np.int64) + np.sum(n_hi, dtype=np.int64))


def _by_objects(by: str, answers: Answers, workers: np.ndarray, hashes: np.ndarray, votes: Any) -> Responses:
    """Units are the answers of one participant about the same objects: of odd-one-out responses, both comparisons."""
    rows, first = answers.rows, np.append(workers, np.uint64(0))[answers.participant]
    content = mix64(mix64(hashes[rows[:, 0]] + hashes[rows[:, 1]] + hashes[rows[:, 3]]) + first)
    content, at, unit = np.unique(content, return_index=True, return_inverse=True)
    draw = (mix64(content) >> np.uint64(11)) / float(1 << 53)
    who = answers.participant[at].astype(np.int32)
    return Responses(by, answers._replace(response=unit.reshape(-1)), draw, who, workers, complete=False, votes=votes)


class Units(NamedTuple):
    """(m,) numbers of the response, the question and the participant (None: not named) of each answer, from 0."""

    times: np.ndarray
    response: np.ndarray
    question: np.ndarray
    participant: np.ndarray | None

    def of(self, selected: np.ndarray) -> "Units":
        """Those of some answers, numbered anew."""
        participant = None if self.participant is None else _numbered(self.participant[selected])
        return Units(
            self.times[selected], _numbered(self.response[selected]), _numbered(self.question[selected]), participant
        )

    def accuracy(self, right: np.ndarray) -> Accuracy:
        """Of (m,) shares right. O(m)."""
        total = float(self.times.sum())
        share = float(self.times @ right / total)
        off = self.times * (right - share)

        def variance(number: np.ndarray) -> float:
            error = standard_error(np.bincount(number, off), total)
            return np.nan if error is None else error**2

        by = [variance(self.response), variance(self.question)]
        clusters = min(int(self.response.max()) + 1, int(self.question.max()) + 1)
        if self.participant is not None and (people := int(self.participant.max()) + 1) >= MIN_CLUSTERS:
            error = variance(self.participant)
            by += [error, by[1] + error - by[0]]
            clusters = min(clusters, people)
        if np.isnan(by).any():
            return Accuracy(share, None, None, None, int(total))
        return accuracy_of(share, float(np.sqrt(max(by))), clusters, total)


def _numbered(labels: np.ndarray) -> np.ndarray:
    return np.unique(labels, return_inverse=True)[1].reshape(-1)


def units_of(answers: Answers) -> Units:
    """The units of all answers. O(m log m)."""
    who = answers.participant
    named = bool(len(who)) and bool((who >= 0).all())
    return Units(answers.times, answers.response, questions_of(answers.rows), _numbered(who) if named else None)


class ObjectFold(NamedTuple):
    """Answers (m,) bool to learn from, to choose by, and to test on: each part's objects are in no part before it."""

    training: np.ndarray  # no object of the fold, nor of the fold that chooses
    validation: np.ndarray  # the objects that only one of the two pairs has are all of the fold that chooses
    outside: np.ndarray  # no object of the fold
    tested: np.ndarray  # the objects that only one of the two pairs has are all of the fold


def object_folds_of(names: list[str], rows: np.ndarray, seed: int, most: int = FOLDS) -> list[ObjectFold]:
    """Folds of objects by the hashes of their names; none where there are fewer than nine objects.

    Of a tested answer, what tells its two pairs apart are objects that were never learned from. The anchor that both
    share can be known: that helps neither. So features that know nothing are right half of the time, exactly.
    """
    folds = min(FOLDS, len(names) // IN_FOLD)
    if folds < 3:
        return []
    fold = object_folds(name_hashes(names, seed), folds)[rows]
    shared = rows[:, 0] == rows[:, 2]
    parts = []
    for number in range(min(folds, most)):
        inner = (number + 1) % folds
        inside, chosen = fold == number, fold == inner
        outside = ~inside.any(axis=1)
        parts.append(
            ObjectFold(outside & ~chosen.any(axis=1), outside & _apart(chosen, shared), outside, _apart(inside, shared))
        )
    return parts


def _apart(of: np.ndarray, shared: np.ndarray) -> np.ndarray:
    return of[:, 1] & of[:, 3] & (shared | (of[:, 0] & of[:, 2]))


def object_sums(rows: np.ndarray, values: np.ndarray, n: int) -> np.ndarray:
    """(n,) the sum of one value an answer over the answers about each object.

    >>> object_sums(np.array([[0, 1, 0, 2]]), np.array([5.0]), 4).tolist()
    [5.0, 5.0, 5.0, 0.0]
    """
    sums = np.zeros(n)
    for at in range(4):
        first = (rows[:, :at] != rows[:, at : at + 1]).all(axis=1)
        sums += np.bincount(rows[first, at], values[first], n)
    return sums


def over_objects(right: np.ndarray, rows: np.ndarray, times: np.ndarray, n: int) -> Accuracy:
    """A share and its interval over objects: the jackknife that leaves out one object with all of its answers."""
    total, whole = float(times.sum()), float(times @ right)
    by_object, sums = object_sums(rows, times, n), object_sums(rows, times * right, n)
    some_left_out = (by_object > 0) & (by_object < total)
    count = int(some_left_out.sum())
    if count < MIN_CLUSTERS:
        return Accuracy(whole / total, None, None, None, int(total))
    without = (whole - sums[some_left_out]) / (total - by_object[some_left_out])
    spread = float(np.sqrt((count - 1) / count * ((without - without.mean()) ** 2).sum()))
    error = spread or standard_error(np.zeros(count), total) or 0.0  # all right: Wilson's
    return accuracy_of(whole / total, error, count, total)


def agreement(units: Units, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Of each answer, whether most of the other answers to its question agree (ties one half; NaN: there are none), and
    how many answers to the question were given this way and the other. O(m)."""
    near = np.sort(rows[:, :2], axis=1).astype(np.int64) @ np.array([1 << 31, 1])
    far = np.sort(rows[:, 2:], axis=1).astype(np.int64) @ np.array([1 << 31, 1])
    way = np.where(near < far, 1.0, -1.0)
    net, total = np.bincount(units.question, way * units.times), np.bincount(units.question, units.times)
    mine, n_answers = way * net[units.question], total[units.question]
    others = np.where(n_answers > 1, 0.5 + 0.5 * np.sign(mine - 1.0), np.nan)
    return others, (n_answers + mine) / 2, (n_answers - mine) / 2
