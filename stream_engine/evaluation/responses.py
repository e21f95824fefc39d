"""Responses, and which of their answers can be held out; which are held out: `evaluation.cross_fit`.

The answers of one response depend on each other, so a response is never divided: it is the *unit* of every split. What
is not held out is split once more, into what is fitted and what chooses. So what chose is never what is reported. Where
a response goes is decided by hashes of names and a seed: it stays there while the stream grows, whatever the ids.

Where a sampler chose questions by a model, only responses asked without one (`WITHOUT_MODEL`) choose and are reported:
a model asks what it is uncertain about, so these answers cannot evaluate it fairly. Figures by participant hold all.

A snapshot that keeps no responses has questions for units: both directions and all repetitions of one together. Then a
participant cannot be held out whole, and no figure says so.
"""

from typing import NamedTuple

import numpy as np

from stream_engine.counts.judgement_kernels import ALL
from stream_engine.data.answers import Answers
from stream_engine.data.hashing import GOLDEN_GAMMA, mix64
from stream_engine.data.packed_names import unpack_names
from stream_engine.data.triplet_columns import pair_of_entry
from stream_engine.evaluation.counts_without import are_counted
from stream_engine.evaluation.hash_split import comparison_draws, name_hashes
from stream_engine.state.snapshot import Snapshot, triplet_columns


class KeptResponses(NamedTuple):
    """Whole responses that a snapshot keeps (accumulator `judgements`), each with its answers: all of the stream, or of
    a long stream a sample that depends on the responses' contents alone."""

    rows: np.ndarray  # (m, 4) int32: d(i, j) < d(k, l) as (i, j, k, l); a triplet is (anchor, near, anchor, far)
    judgement: np.ndarray  # (m,) int32 in 0 .. J - 1, non-decreasing
    times: np.ndarray  # (J,) int64: how often exactly this judgement (same content, worker, time) was given, >= 1
    worker: np.ndarray  # (J,) int32 index into worker_names, -1 where nobody is named
    worker_names: tuple[str, ...]
    time: np.ndarray  # (J,) float64 seconds, NaN where not said
    sampler: np.ndarray  # (J,) int32 index into sampler_names, -1 where not said
    sampler_names: tuple[str, ...]
    complete: bool  # every judgement of the stream is here


def kept_responses(snapshot: Snapshot) -> KeptResponses | None:
    """The judgements that a snapshot keeps, by their hashes; None where it keeps none. O(comparisons held).

    Not `complete` are those of a stream with more comparisons than the accumulator holds, or with a judgement too large
    for it, and those of a state that something came into by a way that tells no judgements.
    """
    state = snapshot.section("judgements")
    if not state:
        return None
    n = len(state["hash"])
    worker, sampler = (state[key] if len(state[key]) else np.full(n, -1, np.int32) for key in ("worker", "sampler"))
    return KeptResponses(
        state["rows"],
        np.repeat(np.arange(n, dtype=np.int32), state["size"]),
        state["times"].astype(np.int64),
        worker,
        unpack_names(state["worker_utf8"], state["worker_offsets"]),
        np.where(state["time"] == -np.inf, np.nan, state["time"]) if len(state["time"]) else np.full(n, np.nan),
        sampler,
        unpack_names(state["sampler_utf8"], state["sampler_offsets"]),
        int(state["below"]) == ALL and not int(state["larger"]),
    )


FIT, CHOOSE, HELD = range(3)
VALIDATION_SHARE = 0.2  # of what is not held out, in the validation set of refits
WITHOUT_MODEL = ("random", "coverage", "landmark", "landmark-k2")  # samplers that look at no answer (room `asking`)
ENOUGH = 200  # judgements asked so, from which on these alone are held out,
AT_MOST = 0.5  # and which share of them
COPIES = 8  # parts that copies of a judgement by nobody are divided into at most,
COPIED_ROWS = 4_000_000  # and fewer where that would be more answers than these


class Responses(NamedTuple):
    """Answers that can be held out, and the U responses that they are of; ids are those of the snapshot."""

    by: str  # what a unit is: "judgements" or "comparisons"
    answers: Answers
    draw: np.ndarray  # (U,) float64 in [0, 1), by the response's content
    participant: np.ndarray  # (U,) int32, -1: nobody is named
    participant_hash: np.ndarray  # (W,) uint64
    complete: bool  # nothing else was ever answered
    fair: np.ndarray | None = None  # (U,) bool: not chosen by a model, as far as is said; None: none was
    votes: tuple[np.ndarray, np.ndarray] | None = None  # answers each way to every question, where nobody is ever named
    together: np.ndarray | None = None  # (U,) bool: sampled with all that said the same, not with who said otherwise

    def about(self, answers: Answers) -> "Responses":
        """The same responses with some of the answers alone; `votes` are of all."""
        return self._replace(answers=answers, votes=self.votes if len(answers.rows) == len(self.answers.rows) else None)


def responses_of(snapshot: Snapshot, seed: int) -> Responses:
    """The responses that a snapshot keeps, or else its counted comparisons. O(m log m).

    Responses of which a comparison is not among the counts (they were counted in another way) are not taken.
    """
    kept = kept_responses(snapshot)
    if kept is not None and len(kept.rows):
        found = of_judgements(kept, name_hashes(snapshot.objects, seed), seed)
        if are_counted(snapshot, found.answers):
            return found if (found.participant >= 0).any() else found._replace(votes=_votes(snapshot))
    return of_comparisons(snapshot, seed)


def of_judgements(kept: KeptResponses, hashes: np.ndarray, seed: int) -> Responses:
    """Answers whose units are judgements; `hashes` (n,) uint64 of the objects' names. O(m log m).

    A judgement's draw is a hash of its comparisons as a set, its worker's name and its time. Copies of one that names
    nobody and no time are those of several people: units of their own (`_copies`).
    """
    units, rows = len(kept.times), np.asarray(kept.rows)
    workers = name_hashes(kept.worker_names, seed)
    i, j, k, l = (hashes[column] for column in rows.T)
    content = np.zeros(units, np.uint64)
    np.add.at(content, kept.judgement, mix64(mix64(i + j) + np.uint64(GOLDEN_GAMMA) * mix64(k + l)))
    content += mix64(np.append(workers, np.uint64(0))[kept.worker] + np.uint64(1))
    content += mix64(np.nan_to_num(kept.time, nan=-1.0).astype(np.float64).view(np.uint64))
    unit = kept.judgement.astype(np.int64)
    chosen = [number for number, name in enumerate(kept.sampler_names) if name not in WITHOUT_MODEL]
    fair = ~np.isin(kept.sampler, chosen) if chosen else None
    copied, nth, times = _copies(kept)
    begins = np.searchsorted(unit, np.arange(units + 1))
    size = np.diff(begins)[copied]
    row = np.repeat(begins[copied] - np.cumsum(size) + size, size) + np.arange(size.sum())
    unit = np.repeat(np.arange(len(copied)), size)
    content = content[copied] + np.uint64(GOLDEN_GAMMA) * nth.astype(np.uint64)
    participant, n = np.asarray(kept.worker)[copied], len(hashes)
    return Responses(
        "judgements",
        Answers(rows[row], times[unit], participant[unit], unit, n, kept.worker_names),
        _draw(content),
        participant,
        workers,
        kept.complete,
        None if fair is None else fair[copied],
        together=None if kept.complete else ((np.asarray(kept.worker) < 0) & np.isnan(kept.time))[copied],
    )


def _copies(kept: KeptResponses) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Which judgement each unit is of, the how many-th of it, and how many copies it holds.

    What names nobody and no time is kept once, with how often it came. Were it held out whole, what is left would be
    the answers of those who said otherwise, and a model of them would be wrong where most people agree.
    """
    apart, most = (np.asarray(kept.worker) < 0) & np.isnan(kept.time), COPIES
    size = np.bincount(kept.judgement, minlength=len(kept.times))
    parts = np.where(apart, np.minimum(kept.times, most), 1)
    while most > 2 and size @ parts > max(COPIED_ROWS, 2 * len(kept.rows)):
        most //= 2
        parts = np.minimum(parts, most)
    copied = np.repeat(np.arange(len(parts)), parts)
    nth = np.arange(len(copied)) - np.repeat(np.cumsum(parts) - parts, parts)
    each, rest = np.divmod(np.asarray(kept.times, np.int64), parts)
    return copied, nth, (each[copied] + (nth < rest[copied])).astype(np.float64)


def _draw(hashes: np.ndarray) -> np.ndarray:
    return (mix64(hashes) >> np.uint64(11)) / float(1 << 53)


def _votes(snapshot: Snapshot) -> tuple[np.ndarray, np.ndarray]:
    """How often each question was answered either way."""
    columns, four = triplet_columns(snapshot), snapshot.section("quadruplet_counts")
    if not four:
        return columns.n_lo, columns.n_hi
    return np.append(columns.n_lo, four["n_lo"]), np.append(columns.n_hi, four["n_hi"])


def of_comparisons(snapshot: Snapshot, seed: int) -> Responses:
    """Answers whose units are the counted comparisons, both directions of one together. O(keys)."""
    columns = triplet_columns(snapshot)
    pair = pair_of_entry(columns)
    keys = [np.stack([columns.anchor, columns.lo[pair], columns.anchor, columns.hi[pair]], axis=1)]
    times = np.concatenate(_votes(snapshot)).astype(np.float64)
    if four := snapshot.section("quadruplet_counts"):
        keys.append(np.stack([four[name] for name in "ijkl"], axis=1).astype(np.int32))
    key = np.concatenate(keys).astype(np.int32)
    draw = comparison_draws(key, name_hashes(snapshot.objects, seed))
    rows, unit = np.concatenate([key, key[:, [2, 3, 0, 1]]]), np.tile(np.arange(len(key)), 2)
    said = times > 0
    nobody, none = np.full(len(key), -1, np.int32), np.empty(0, np.uint64)
    votes = times[: len(key)], times[len(key) :]
    answers = Answers(rows[said], times[said], nobody[unit[said]], unit[said], columns.n_objects)
    return Responses("comparisons", answers, draw, nobody, none, True, votes=votes)


def asked_fairly(responses: Responses) -> np.ndarray:
    """(U,) bool: units that may choose and be reported; all where too few were asked without a model."""
    if responses.fair is None or np.count_nonzero(responses.fair) < ENOUGH:
        return np.ones(len(responses.draw), bool)
    return responses.fair


def parts(responses: Responses, held: np.ndarray, choose: float) -> np.ndarray:
    """(U,) int8: HELD where `held` (U,) says so, else CHOOSE for about this share of the units, else FIT. O(U)."""
    part = np.full(len(responses.draw), FIT, np.int8)
    fair = asked_fairly(responses) & ~held
    of_all = int(np.count_nonzero(~held)) / max(int(np.count_nonzero(fair)), 1)
    share = min(choose * of_all, max(choose, AT_MOST))
    part[fair & (draws_again(responses) < share)] = CHOOSE
    part[held] = HELD
    return part


def draws_again(responses: Responses) -> np.ndarray:
    """(U,) float64 in [0, 1): one more draw of each unit, which does not depend on its first one."""
    return _draw(np.asarray(responses.draw, np.float64).view(np.uint64))
