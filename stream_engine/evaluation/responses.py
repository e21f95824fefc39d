"""Responses, the units of every split: which of a snapshot's answers can be held out, and the split of the others.

Which responses are held out: `evaluation.cross_fit`.
"""

from typing import NamedTuple

import numpy as np

from stream_engine.data.answers import Answers
from stream_engine.data.hashing import GOLDEN_GAMMA, mix64
from stream_engine.data.triplet_columns import pair_of_entry
from stream_engine.evaluation.counts_without import are_counted
from stream_engine.evaluation.hash_split import comparison_draws, name_hashes
from stream_engine.evaluation.kept_responses import KeptResponses, kept_responses
from stream_engine.state.merging import are_of_screens, are_of_three
from stream_engine.state.snapshot import Snapshot, triplet_columns

VALIDATION_SHARE = 0.2  # share of what is not held out that the validation set of refits has
# The setting of the published embedding is chosen on the validation set of this seed, whatever the refit's seed is:
# the published map does not depend on the seed.
PUBLISHED_SEED = 0


# The answers of one response depend on each other, so a response is never divided. Where it goes is decided by hashes
# of names and a seed: it stays there while the stream grows, whatever the ids.


class Responses(NamedTuple):
    """Answers that can be held out, and the U responses that they are of; ids are those of the snapshot.

    If a snapshot keeps no responses, the units are its questions: both directions and all repetitions of one together.
    Then a participant cannot be held out as a whole.
    """

    by: str  # what a unit is: "judgements" (responses) or "comparisons" (questions)
    answers: Answers
    draw: np.ndarray  # (U,) float64 in [0, 1): a hash of the response's content
    participant: np.ndarray  # (U,) int32, -1: nobody is named
    participant_hash: np.ndarray  # (W,) uint64
    complete: bool  # these are all answers of the stream
    fair: np.ndarray | None = None  # (U,) bool: the question was not chosen by a model; None: none was
    votes: tuple[np.ndarray, np.ndarray] | None = None  # answers each way to every question, if no participant is named
    # (U,) bool, for a sample: this unit was sampled together with all equal responses, but without those to the same
    # question that differ, so it does not tell how far participants agree; None: there is none
    together: np.ndarray | None = None

    def about(self, answers: Answers) -> "Responses":
        """The same responses with some of the answers alone; `votes` are of all."""
        return self._replace(answers=answers, votes=self.votes if len(answers.rows) == len(self.answers.rows) else None)


def responses_of(snapshot: Snapshot, seed: int) -> Responses:
    """The responses that a snapshot keeps, or else its counted comparisons. O(m log m).

    Responses are not used if one of their comparisons is missing from the counts.
    """
    kept_units = kept_responses(snapshot)
    if kept_units is not None and len(kept_units.rows):
        responses = of_judgements(kept_units, name_hashes(snapshot.objects, seed), seed)
        if are_held_out_by_screen(snapshot):
            units = of_three_objects if are_of_three(snapshot.counters) else of_screens
            responses = units(responses, name_hashes(snapshot.objects, seed))
        if are_counted(snapshot, responses.answers):
            return responses if (responses.participant >= 0).any() else responses._replace(votes=_votes(snapshot))
    return of_comparisons(snapshot, seed)


# Samplers that do not look at answers (room `asking`). Only responses to their questions, and to those of no sampler,
# validate and evaluate a model: a model asks what it is uncertain about, so the answers cannot evaluate it fairly.
WITHOUT_MODEL = ("random", "coverage", "landmark", "landmark-k2")


def of_judgements(kept_units: KeptResponses, hashes: np.ndarray, seed: int) -> Responses:
    """Answers whose units are responses; `hashes` (n,) uint64 of the objects' names. O(m log m).

    The draw of a response is a hash of its comparisons as a set, its participant's name and its time. Equal responses
    without a participant and a time may be those of several people, and are units of their own (`_copies`).
    """
    units, rows = len(kept_units.times), np.asarray(kept_units.rows)
    workers = name_hashes(kept_units.worker_names, seed)
    i, j, k, l = (hashes[column] for column in rows.T)
    content = np.zeros(units, np.uint64)
    np.add.at(content, kept_units.judgement, mix64(mix64(i + j) + np.uint64(GOLDEN_GAMMA) * mix64(k + l)))
    content += mix64(np.append(workers, np.uint64(0))[kept_units.worker] + np.uint64(1))
    content += mix64(np.nan_to_num(kept_units.time, nan=-1.0).astype(np.float64).view(np.uint64))
    unit = kept_units.judgement.astype(np.int64)
    model_samplers = [number for number, name in enumerate(kept_units.sampler_names) if name not in WITHOUT_MODEL]
    fair = ~np.isin(kept_units.sampler, model_samplers) if model_samplers else None
    copied, nth, times = _copies(kept_units)
    begins = np.searchsorted(unit, np.arange(units + 1))
    size = np.diff(begins)[copied]
    row = np.repeat(begins[copied] - np.cumsum(size) + size, size) + np.arange(size.sum())
    unit = np.repeat(np.arange(len(copied)), size)
    content = content[copied] + np.uint64(GOLDEN_GAMMA) * nth.astype(np.uint64)
    participant, n = np.asarray(kept_units.worker)[copied], len(hashes)
    return Responses(
        "judgements",
        Answers(rows[row], times[unit], participant[unit], unit, n, kept_units.worker_names),
        _draw(content),
        participant,
        workers,
        kept_units.complete,
        None if fair is None else fair[copied],
        together=None
        if kept_units.complete
        else ((np.asarray(kept_units.worker) < 0) & np.isnan(kept_units.time))[copied],
    )


# Answers without participants are together by anchor alone, up to so many an object: beyond, most of what places it
# would be held out.
MAX_ANSWERS_OF_ANCHOR = 500


def are_held_out_by_screen(snapshot: Snapshot) -> bool:
    """Whether comparisons of screens are held out together (`of_screens`)."""
    if not are_of_screens(snapshot.counters):
        return False
    is_named = len(snapshot.section("judgements").get("worker_utf8", ())) > 0
    return is_named or snapshot.counters["comparisons"] <= MAX_ANSWERS_OF_ANCHOR * len(snapshot.objects)


def of_screens(responses: Responses, hashes: np.ndarray) -> Responses:
    """Responses about one anchor, together by participant and anchor: a state does not keep which of them were of one
    screen, and what one ranking implies depends on the rest of it. Other responses stay as they are. `hashes` (n,)
    uint64 of the objects' names. O(m log m)."""
    answers, n = responses.answers, len(responses.draw)
    lowest, highest = np.full(n, np.iinfo(np.int64).max), np.full(n, -1)
    np.minimum.at(lowest, answers.response, np.where(answers.rows[:, 0] == answers.rows[:, 2], answers.rows[:, 0], -1))
    np.maximum.at(highest, answers.response, answers.rows[:, 0])
    anchor = np.where((lowest == highest) & (highest >= 0), highest, -1)
    return _together(responses, np.where(anchor >= 0, hashes[anchor], np.uint64(0)), anchor >= 0)


def of_three_objects(responses: Responses, hashes: np.ndarray) -> Responses:
    """Responses of one comparison, together by participant and the three objects: two of them are one odd-one-out
    answer. Other responses stay as they are. `hashes` as in `of_screens`. O(m log m)."""
    answers, n = responses.answers, len(responses.draw)
    of_three = hashes[answers.rows[:, [0, 1, 3]]].sum(1, dtype=np.uint64)
    is_triplet = (answers.rows[:, 0] == answers.rows[:, 2]) & (np.bincount(answers.response, minlength=n) == 1)[
        answers.response
    ]
    about, is_about = np.zeros(n, np.uint64), np.zeros(n, bool)
    about[answers.response], is_about[answers.response] = of_three, is_triplet
    return _together(responses, about, is_about)


def _together(responses: Responses, about: np.ndarray, is_about: np.ndarray) -> Responses:
    """Responses about one thing, together by participant, where `is_about` (n,) is true; `about` (n,) uint64 is the
    hash of the thing."""
    answers, n = responses.answers, len(responses.draw)
    names = np.append(responses.participant_hash, np.uint64(0))[responses.participant]
    hashed = mix64(about + np.uint64(GOLDEN_GAMMA) * mix64(names + np.uint64(1)))
    key = np.where(is_about, hashed, np.arange(n, dtype=np.uint64))
    _, first, unit = np.unique(key, return_index=True, return_inverse=True)
    unit = unit.reshape(-1)
    participant = responses.participant[first]
    rows = np.argsort(unit[answers.response], kind="stable")
    return responses._replace(
        answers=answers.of(rows)._replace(response=unit[answers.response][rows]),
        draw=np.where(is_about[first], _draw(hashed[first]), responses.draw[first]),
        participant=participant,
        fair=None if responses.fair is None else np.bincount(unit, ~responses.fair, len(first)) == 0,
        together=None if responses.together is None else np.bincount(unit, responses.together, len(first)) > 0,
    )


# Equal responses without a participant and a time are divided into so many units at most, and into fewer where the
# copies would have more answers than this.
MAX_COPIES, MAX_COPIED_ROWS = 8, 4_000_000


def _copies(kept_units: KeptResponses) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """`(the kept response of each unit, its number among the units of this response, how many copies it stands for)`.

    A response without a participant and a time is kept once, with its number of repetitions. If all of them were held
    out together, only the answers that differ would remain, and a model of these would be wrong where most people
    agree."""
    anonymous, max_copies = (np.asarray(kept_units.worker) < 0) & np.isnan(kept_units.time), MAX_COPIES
    size = np.bincount(kept_units.judgement, minlength=len(kept_units.times))
    parts = np.where(anonymous, np.minimum(kept_units.times, max_copies), 1)
    while max_copies > 2 and size @ parts > max(MAX_COPIED_ROWS, 2 * len(kept_units.rows)):
        max_copies //= 2
        parts = np.minimum(parts, max_copies)
    copied = np.repeat(np.arange(len(parts)), parts)
    nth = np.arange(len(copied)) - np.repeat(np.cumsum(parts) - parts, parts)
    times_each, remainder = np.divmod(np.asarray(kept_units.times, np.int64), parts)
    return copied, nth, (times_each[copied] + (nth < remainder[copied])).astype(np.float64)


def _draw(hashes: np.ndarray) -> np.ndarray:
    return (mix64(hashes) >> np.uint64(11)) / float(1 << 53)


def _votes(snapshot: Snapshot) -> tuple[np.ndarray, np.ndarray]:
    """How often each question was answered either way."""
    columns, quadruplets = triplet_columns(snapshot), snapshot.section("quadruplet_counts")
    if not quadruplets:
        return columns.n_lo, columns.n_hi
    return np.append(columns.n_lo, quadruplets["n_lo"]), np.append(columns.n_hi, quadruplets["n_hi"])


def of_comparisons(snapshot: Snapshot, seed: int) -> Responses:
    """Answers whose units are the counted comparisons, both directions of one together. O(keys)."""
    columns = triplet_columns(snapshot)
    pair = pair_of_entry(columns)
    keys = [np.stack([columns.anchor, columns.lo[pair], columns.anchor, columns.hi[pair]], axis=1)]
    times = np.concatenate(_votes(snapshot)).astype(np.float64)
    if quadruplets := snapshot.section("quadruplet_counts"):
        keys.append(np.stack([quadruplets[name] for name in "ijkl"], axis=1).astype(np.int32))
    key = np.concatenate(keys).astype(np.int32)
    draw = comparison_draws(key, name_hashes(snapshot.objects, seed))
    rows, unit = np.concatenate([key, key[:, [2, 3, 0, 1]]]), np.tile(np.arange(len(key)), 2)
    was_given = times > 0
    nobody, no_hashes = np.full(len(key), -1, np.int32), np.empty(0, np.uint64)
    votes = times[: len(key)], times[len(key) :]
    answers = Answers(rows[was_given], times[was_given], nobody[unit[was_given]], unit[was_given], columns.n_objects)
    return Responses("comparisons", answers, draw, nobody, no_hashes, True, votes=votes)


ENOUGH_WITHOUT_MODEL = 200  # responses to questions that no model chose, from which on these alone evaluate models


def asked_fairly(responses: Responses) -> np.ndarray:
    """(U,) bool: units that may validate and evaluate models; all of them if too few were asked without a model."""
    if responses.fair is None or np.count_nonzero(responses.fair) < ENOUGH_WITHOUT_MODEL:
        return np.ones(len(responses.draw), bool)
    return responses.fair


FIT, CHOOSE, HELD = range(3)  # parts of the units: the training set, the validation set, and what is held out
# Share of the units that the validation set can take from those which no model chose, if these alone may be in it.
MAX_VALIDATION_SHARE = 0.5


def parts(responses: Responses, held_out: np.ndarray, choose: float) -> np.ndarray:
    """(U,) int8: HELD where `held_out` (U,) is true, else CHOOSE for about this share of the units, else FIT. O(U)."""
    part = np.full(len(responses.draw), FIT, np.int8)
    fair = asked_fairly(responses) & ~held_out
    available_each = int(np.count_nonzero(~held_out)) / max(int(np.count_nonzero(fair)), 1)
    share = min(choose * available_each, max(choose, MAX_VALIDATION_SHARE))
    part[fair & (draws_again(responses) < share)] = CHOOSE
    part[held_out] = HELD
    return part


ENOUGH_VALIDATED, MAX_VALIDATION_SETS = 200, 5  # units, and sets of them, on which settings are compared at most


def further_validation_sets(responses: Responses, part: np.ndarray) -> list[np.ndarray]:
    """(U,) bool each: parts of the training set as large as the validation set of `part` (U,), for comparing settings
    again where the validation set is small; so many that `ENOUGH_VALIDATED` units validate. O(U log U)."""
    size = int(np.count_nonzero(part == CHOOSE))
    available = np.flatnonzero(asked_fairly(responses) & (part == FIT))
    if size == 0:
        return []
    wanted = min(-(-ENOUGH_VALIDATED // size), MAX_VALIDATION_SETS) - 1
    order = available[np.argsort(draws_again(responses)[available], kind="stable")]
    sets = [order[first : first + size] for first in range(0, wanted * size, size)]
    return [np.isin(np.arange(len(part)), each) for each in sets if len(each) == size]


def further_draws(responses: Responses, number: int) -> Responses:
    """The responses with further draws, for one more division of them; with their own for number 0."""
    if not number:
        return responses
    bits = np.asarray(responses.draw, np.float64).view(np.uint64)
    return responses._replace(draw=_draw(mix64(bits + np.uint64(number))))


def draws_again(responses: Responses) -> np.ndarray:
    """(U,) float64 in [0, 1): one more draw of each unit, which does not depend on its first one."""
    return _draw(np.asarray(responses.draw, np.float64).view(np.uint64))
