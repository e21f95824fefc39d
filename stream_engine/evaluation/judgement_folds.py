"""Answers in units that can be held out: whole judgements; which are held out: `evaluation.cross_fit`.

The answers of one judgement tell each other, so a judgement is never torn: the *unit* of every split. What is not held
out is split once more, into what is fitted and what chooses. So what chose is never what is reported. Where a unit goes
is decided by hashes of names and a seed: it keeps its place while the stream grows, whatever the ids.

Where a sampler chose questions by a model, only judgements asked without one (`WITHOUT_MODEL`) choose and are reported:
a model asks what it is uncertain about, so these answers cannot evaluate it fairly. Figures by worker hold all.

A snapshot that keeps no judgements has comparisons for units: both directions and all repetitions of one together.
Training counts are the snapshot's less those of the units that are out (`without`), so answers that a bounded sample of
judgements does not hold go on training. Then a worker cannot be held out whole, and no figure says so.

Whole judgements of a snapshot, with their comparisons: what is split when something is held out.

They are those of the accumulator `judgements`: all of the stream, or of a long stream a sample that depends on the
judgements' contents alone. So a model is trained on the snapshot's counts less those of the judgements held out, which
is exact whether or not the sample is whole.
"""

from typing import NamedTuple

import numpy as np

from stream_engine.counts.judgement_kernels import ALL
from stream_engine.data.hashing import GOLDEN_GAMMA, mix64
from stream_engine.data.packed_names import unpack_names
from stream_engine.data.triplet_columns import Columns, first_of_equal, pair_of_entry, state_of_columns
from stream_engine.evaluation.hash_split import comparison_draws, name_hashes
from stream_engine.state.snapshot import Snapshot, triplet_columns


class Judgements(NamedTuple):
    """Whole judgements that were kept, each with its comparisons."""

    rows: np.ndarray  # (m, 4) int32: d(i, j) < d(k, l) as (i, j, k, l); a triplet is (anchor, near, anchor, far)
    judgement: np.ndarray  # (m,) int32 in 0 .. J - 1, non-decreasing
    times: np.ndarray  # (J,) int64: how often exactly this judgement (same content, worker, time) was given, >= 1
    worker: np.ndarray  # (J,) int32 index into worker_names, -1 where nobody is named
    worker_names: tuple[str, ...]
    time: np.ndarray  # (J,) float64 seconds, NaN where not said
    sampler: np.ndarray  # (J,) int32 index into sampler_names, -1 where not said
    sampler_names: tuple[str, ...]
    complete: bool  # every judgement of the stream is here


def judgements_of(snapshot: Snapshot) -> Judgements | None:
    """The judgements that a snapshot keeps, by their hashes; None where it keeps none. O(comparisons held).

    Not `complete` are those of a stream with more comparisons than the accumulator holds, or with a judgement too large
    for it, and those of a state that something came into by a way that tells no judgements.
    """
    state = snapshot.section("judgements")
    if not state:
        return None
    n = len(state["hash"])
    worker, sampler = (state[key] if len(state[key]) else np.full(n, -1, np.int32) for key in ("worker", "sampler"))
    return Judgements(
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


class AnswerUnits(NamedTuple):
    """Answers that can be held out, each with its unit; ids are those of the snapshot that they came from."""

    by: str  # what a unit is: "judgements" or "comparisons"
    rows: np.ndarray  # (m, 4) int32: d(i, j) < d(k, l)
    times: np.ndarray  # (m,) float64: how often
    unit: np.ndarray  # (m,) int64 in 0 .. U - 1
    draw: np.ndarray  # (U,) float64 in [0, 1), by the unit's content
    worker: np.ndarray  # (U,) int32, -1: nobody is named
    worker_hash: np.ndarray  # (W,) uint64
    complete: bool  # nothing else was ever answered
    fair: np.ndarray | None = None  # (U,) bool: not chosen by a model, as far as is said; None: none was
    votes: tuple[np.ndarray, np.ndarray] | None = None  # answers each way to every question, where nobody is ever named
    together: np.ndarray | None = None  # (U,) bool: sampled with all that said the same, not with who said otherwise

    def of(self, units: np.ndarray) -> "AnswerUnits":
        """The answers of a (U,) bool mask of units; the units keep their numbers."""
        kept = units[self.unit]
        return self._replace(rows=self.rows[kept], times=self.times[kept], unit=self.unit[kept])

    def of_triplets(self) -> "AnswerUnits":
        """The answers about three objects; the units keep their numbers."""
        three = self.rows[:, 0] == self.rows[:, 2]
        return self._replace(rows=self.rows[three], times=self.times[three], unit=self.unit[three])

    def of_quadruplets(self) -> "AnswerUnits":
        """The answers about two pairs that are not written about one anchor; the units keep their numbers."""
        four = self.rows[:, 0] != self.rows[:, 2]
        return self._replace(rows=self.rows[four], times=self.times[four], unit=self.unit[four])

    def by_unit(self, values: np.ndarray) -> np.ndarray:
        """(u,) sums of one value an answer over the units that have answers, in the order of their numbers."""
        return np.bincount(np.unique(self.unit, return_inverse=True)[1].reshape(-1), values)

    def among(self, new_id: np.ndarray) -> "AnswerUnits":
        """The answers all of whose objects have a new id >= 0 in (n,), under these; the units keep their numbers."""
        rows = new_id[self.rows]
        kept = (rows >= 0).all(axis=1)
        return self._replace(rows=rows[kept].astype(np.int32), times=self.times[kept], unit=self.unit[kept])


def evidence(snapshot: Snapshot, seed: int) -> AnswerUnits:
    """The judgements that a snapshot keeps, or else its counted comparisons. O(m log m).

    Judgements of which a comparison is not among the counts (they were counted in another way) are not taken.
    """
    kept = judgements_of(snapshot)
    if kept is not None and len(kept.rows):
        found = of_judgements(kept, name_hashes(snapshot.objects, seed), seed)
        if _counted(snapshot, found):
            return found if (found.worker >= 0).any() else found._replace(votes=_votes(snapshot))
    return of_comparisons(snapshot, seed)


def of_judgements(kept: Judgements, hashes: np.ndarray, seed: int) -> AnswerUnits:
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
    return AnswerUnits(
        "judgements",
        rows[row],
        times[unit],
        unit,
        _draw(content),
        np.asarray(kept.worker)[copied],
        workers,
        kept.complete,
        None if fair is None else fair[copied],
        together=None if kept.complete else ((np.asarray(kept.worker) < 0) & np.isnan(kept.time))[copied],
    )


def _copies(kept: Judgements) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
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


def of_comparisons(snapshot: Snapshot, seed: int) -> AnswerUnits:
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
    return AnswerUnits("comparisons", rows[said], times[said], unit[said], draw, nobody, none, True, votes=votes)


def asked_fairly(found: AnswerUnits) -> np.ndarray:
    """(U,) bool: units that may choose and be reported; all where too few were asked without a model."""
    if found.fair is None or np.count_nonzero(found.fair) < ENOUGH:
        return np.ones(len(found.draw), bool)
    return found.fair


def parts(found: AnswerUnits, held: np.ndarray, choose: float) -> np.ndarray:
    """(U,) int8: HELD where `held` (U,) says so, else CHOOSE for about this share of the units, else FIT. O(U)."""
    part = np.full(len(found.draw), FIT, np.int8)
    fair = asked_fairly(found) & ~held
    of_all = int(np.count_nonzero(~held)) / max(int(np.count_nonzero(fair)), 1)
    share = min(choose * of_all, max(choose, AT_MOST))
    part[fair & (draws_again(found) < share)] = CHOOSE
    part[held] = HELD
    return part


def draws_again(found: AnswerUnits) -> np.ndarray:
    """(U,) float64 in [0, 1): one more draw of each unit, which does not depend on its first one."""
    return _draw(np.asarray(found.draw, np.float64).view(np.uint64))


def without(snapshot: Snapshot, held: AnswerUnits) -> Snapshot:
    """The snapshot as if these answers had never come: their counts subtracted. Only counts that kernels and orders are
    learned from; ids stay. O(keys + m log keys)."""
    columns, arrays = triplet_columns(snapshot), dict(snapshot.arrays)
    at, forward = _entries(columns, held.rows)
    less = _subtracted(columns.n_lo, columns.n_hi, at, forward, held.times)
    arrays |= {f"triplet_counts/{name}": array for name, array in state_of_columns(_left(columns, *less)).items()}
    if four := snapshot.section("quadruplet_counts"):
        at, forward = _quadruplet_entries(four, held.rows, len(snapshot.objects))
        n_lo, n_hi = _subtracted(four["n_lo"], four["n_hi"], at, forward, held.times)
        some = n_lo + n_hi > 0
        left = {name: four[name][some] for name in "ijkl"} | {"n_lo": n_lo[some], "n_hi": n_hi[some]}
        arrays |= {f"quadruplet_counts/{name}": array for name, array in left.items()}
    return snapshot._replace(arrays=arrays)


def anchored(rows: np.ndarray) -> np.ndarray:
    """(m, 4) comparisons with the object that both pairs share, if they share one, first in both.

    >>> anchored(np.array([[1, 0, 2, 0], [0, 1, 2, 3]])).tolist()
    [[0, 1, 0, 2], [0, 1, 2, 3]]
    """
    i, j, k, l = rows.T
    near = np.where(((j == k) | (j == l))[:, None], rows[:, [1, 0]], rows[:, :2])
    far = np.where(((l == i) | (l == j))[:, None], rows[:, [3, 2]], rows[:, 2:])
    return np.concatenate([near, far], axis=1)


def _counted(snapshot: Snapshot, found: AnswerUnits) -> bool:
    """Whether every answer is among the snapshot's counts, as often as it was given. Quadruplets need no counts of
    their own to be held out."""
    columns = triplet_columns(snapshot)
    at, forward = _entries(columns, found.rows)
    if (at[found.rows[:, 0] == found.rows[:, 2]] < 0).any():
        return False
    there = at >= 0
    for counts, way in ((columns.n_lo, forward), (columns.n_hi, ~forward)):
        if (np.bincount(at[there & way], found.times[there & way], len(counts)) > counts).any():
            return False
    return True


def _entries(columns: Columns, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """`((m,) the entry of each triplet in the columns, -1 for none; (m,) bool whether lo is the nearer)`."""
    anchor, near, far = (rows[:, c].astype(np.int64) for c in (0, 1, 3))
    lo, hi, n = np.minimum(near, far), np.maximum(near, far), columns.n_objects
    pair = _found(columns.lo.astype(np.int64) * n + columns.hi, lo * n + hi)
    entry = _found(pair_of_entry(columns) * n + columns.anchor, pair * n + anchor)
    return np.where((pair >= 0) & (rows[:, 0] == rows[:, 2]), entry, -1), near < far


def _quadruplet_entries(four: dict[str, np.ndarray], rows: np.ndarray, n: int) -> tuple[np.ndarray, np.ndarray]:
    """`_entries` of comparisons of four objects in quadruplet counts."""
    near, far = np.sort(rows[:, :2].astype(np.int64), axis=1), np.sort(rows[:, 2:].astype(np.int64), axis=1)
    near, far = near[:, 0] * n + near[:, 1], far[:, 0] * n + far[:, 1]
    first, second = (four[a].astype(np.int64) * n + four[b] for a, b in ("ij", "kl"))
    numbers = np.unique(np.concatenate([first, second]))
    pairs = [_found(numbers, pair) for pair in (np.minimum(near, far), np.maximum(near, far))]
    keys = np.searchsorted(numbers, first) * len(numbers) + np.searchsorted(numbers, second)
    entry = _found(keys, pairs[0] * len(numbers) + pairs[1])
    return np.where((pairs[0] >= 0) & (pairs[1] >= 0) & (rows[:, 0] != rows[:, 2]), entry, -1), near < far


def _found(rising: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """(m,) int64: where each wanted number stands in a rising array, -1 where it does not."""
    if not len(rising):
        return np.full(len(wanted), -1)
    at = np.minimum(np.searchsorted(rising, wanted), len(rising) - 1)
    return np.where(rising[at] == wanted, at, -1)


def _subtracted(n_lo, n_hi, at: np.ndarray, forward: np.ndarray, times: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    left = []
    for counts, way in ((n_lo, forward), (n_hi, ~forward)):
        mine = way & (at >= 0)
        left.append(counts - np.bincount(at[mine], times[mine], len(counts)).astype(counts.dtype))
    return left[0], left[1]


def _left(columns: Columns, n_lo: np.ndarray, n_hi: np.ndarray) -> Columns:
    """The columns with these counts, without keys that have none."""
    some, pair = n_lo + n_hi > 0, pair_of_entry(columns)
    pairs = pair[some]
    begins = np.flatnonzero(first_of_equal(pairs)) if len(pairs) else np.empty(0, np.int64)
    start = np.append(begins, len(pairs)).astype(np.int64)
    first = pairs[begins]
    return Columns(
        columns.lo[first],
        columns.hi[first],
        start,
        columns.anchor[some],
        n_lo[some],
        n_hi[some],
        columns.n_objects,
    )
