"""How participants answer, whatever they answer: the position of the chosen object, and response times.

Counts of each position by number of objects shown, and a histogram of times with the bounds `BOUNDS`; both add up. In
order of arrival also the longest run at one position and the number of changes, none of them across a merge.
"""

from collections.abc import Mapping
from typing import Any, ClassVar, Self

import numpy as np

from stream_engine.counts import Accumulator
from stream_engine.counts.judgements import NumberedNames
from stream_engine.counts.removal import Removal, workers_with_one_called
from stream_engine.data.array_checks import PACKED, ArraySpec, check_names, check_rising, check_rows, counts, ids
from stream_engine.data.comparisons import Batch
from stream_engine.data.container import Corrupt
from stream_engine.data.mapped_arrays import IN_MEMORY, Allocation
from stream_engine.data.packed_names import pack_names, unpack_names

BOUNDS = np.round(300.0 * 2.0 ** (np.arange(-16, 41) / 4)).astype(np.int64)  # ms: 19 to 307,200, among them 300
FIELD = 16  # bits of a number of objects, of a position, of a bin of response times
SEQUENCE = ("last_shown", "last", "run", "longest", "followed", "changes")
COLUMNS = ("worker", "shown", "value")


class ResponsePatterns(Accumulator):
    """`state()`: K rows by participant, `worker`, `shown`, `value` (K,) int32 and `n` (K,) int64: with `shown` > 1, how
    often the object at position `value` was chosen among so many; with `shown` 0, how many response times lie in bin
    `value` of `BOUNDS`. `utf8`, `offsets`: the names of the w participants, sorted. In the order of arrival, (w,)
    int64: `last_shown`, `last` (the last answer's, 0 and 0 where none tells a position), `run` (answers at the same
    position up to the last one), `longest` run, `followed` (answers that came after one among as many objects),
    `changes` (of position among these).

    >>> kept = ResponsePatterns()
    >>> kept.count(["S1"], np.zeros(3, int), np.array([2, 2, 2]), np.array([0, 0, 1]), np.full(3, 0.25))
    >>> state = kept.state()
    >>> [state[name].tolist() for name in ("shown", "value", "n", "longest", "changes")]
    [[0, 2, 2], [15, 0, 1], [3, 2, 1], [2], [1]]
    """

    needs_provenance = True
    arrival = SEQUENCE
    HOLDS: ClassVar[Mapping[str, ArraySpec]] = {
        "worker": ids("keys", of="names"),
        **{name: ArraySpec(("<i4",), ("keys",), 0, 1 << FIELD) for name in ("shown", "value")},
        "n": counts("keys", least=1),
        **PACKED,
        **{name: counts("names") for name in SEQUENCE},
    }

    def __init__(self) -> None:
        self._workers = NumberedNames()
        self._keys, self._n = np.empty(0, np.int64), np.empty(0, np.int64)  # sorted
        self._new: list[np.ndarray] = []  # keys that were not added yet
        self._sequence = np.zeros((len(SEQUENCE), 0), np.int64)

    def update(self, batch: Batch) -> None:
        """Count the answers of a batch that name a participant and tell a position or a response time."""
        provenance = batch.provenance
        if provenance is None or not provenance.workers or not len(provenance.shown):
            return
        events = slice(int(provenance.continues), None)
        worker = provenance.worker[events]
        self.count(
            provenance.workers,
            worker,
            provenance.shown[events],
            provenance.position[events],
            provenance.seconds[events],
        )

    def count(
        self, names: list[str], worker: np.ndarray, shown: np.ndarray, position: np.ndarray, seconds: np.ndarray
    ) -> None:
        """Count answers in their order: (e,) who of `names` (-1: nobody), among how many objects one was chosen (0:
        unknown), at which position, and in how many seconds (NaN: unknown)."""
        placed, timed = (worker >= 0) & (shown > 1), (worker >= 0) & np.isfinite(seconds)
        counted = placed | timed
        if not counted.any():
            return
        number = np.full(len(worker), -1, np.int64)
        number[counted] = self._workers.numbers(names, worker[counted])
        self._sequence = _longer(self._sequence, len(self._workers.number))
        bins = np.searchsorted(BOUNDS, 1000.0 * seconds[timed] + 1e-6, side="right")  # 300 ms are 300 in any unit
        self._new += [_key(number[placed], shown[placed], position[placed]), _key(number[timed], 0, bins)]
        if sum(map(len, self._new)) > max(1 << 16, len(self._keys)):
            self._settle()
        self._follow(number[placed], shown[placed].astype(np.int64), position[placed].astype(np.int64))

    def _follow(self, number: np.ndarray, shown: np.ndarray, position: np.ndarray) -> None:
        """Runs and changes of answers, of each participant in their order."""
        if not len(number):
            return
        order = np.argsort(number, kind="stable")
        number, shown, position = number[order], shown[order], position[order]
        last_shown, last, run, longest, followed, changes = self._sequence
        begins = np.append(True, number[1:] != number[:-1])
        before_shown = np.where(begins, last_shown[number], np.append(0, shown[:-1]))
        before = np.where(begins, last[number], np.append(0, position[:-1]))
        follows = before_shown == shown
        same = follows & (before == position)
        np.add.at(followed, number[follows], 1)
        np.add.at(changes, number[follows & ~same], 1)
        at = np.arange(len(number))
        since = np.maximum.accumulate(np.where(begins | ~same, at, 0))  # where the run that each is in began, here
        length = at - since + 1 + np.where(same[since], run[number], 0)
        np.maximum.at(longest, number, length)
        ends = np.append(begins[1:], True)
        for column, values in ((last_shown, shown), (last, position), (run, length)):
            column[number[ends]] = values[ends]

    def _settle(self) -> None:
        keys = np.concatenate([self._keys, *self._new])
        n = np.concatenate([self._n, np.ones(len(keys) - len(self._n), np.int64)])
        self._keys, self._n, self._new = *_added(keys, n), []

    def merge(self, other: Self) -> None:
        """Add another one's answers, which came after these: participants of one name are one."""
        self._add(other.state())

    def _add(self, state: Mapping[str, np.ndarray]) -> None:
        names = unpack_names(state["utf8"], state["offsets"])
        number = self._workers.numbers(names, np.arange(len(names))).astype(np.int64)
        self._sequence = _longer(self._sequence, len(self._workers.number))
        self._settle()
        keys = _key(number[state["worker"]], state["shown"], state["value"])
        keys, n = np.concatenate([self._keys, keys]), np.concatenate([self._n, state["n"]])
        self._keys, self._n = _added(keys, n)
        theirs = np.stack([state[name] for name in SEQUENCE])
        mine, placed = self._sequence[:, number], theirs[0] > 0
        both = np.where(placed, theirs, mine)
        both[3:] = np.maximum(mine[3], theirs[3]), mine[4] + theirs[4], mine[5] + theirs[5]
        self._sequence[:, number] = both

    @property
    def workers(self) -> list[str]:
        """The participants of whom something is known, in the order of their first answers."""
        return self._workers.names()

    @property
    def nbytes(self) -> int:
        """Bytes held, buffers included."""
        return sum(array.nbytes for array in (self._keys, self._n, self._sequence, *self._new))

    def state(self) -> dict[str, np.ndarray]:
        """Rows by participant, in the order of names. O(K log K)."""
        self._settle()
        names = self._workers.names()
        order = np.array(sorted(range(len(names)), key=names.__getitem__), np.int64)
        new = np.empty(len(names), np.int64)
        new[order] = np.arange(len(names))
        worker, shown_and_value = self._keys >> 2 * FIELD, self._keys & ((1 << 2 * FIELD) - 1)
        keys = new[worker] << 2 * FIELD | shown_and_value
        by = np.argsort(keys)
        columns = keys[by] >> 2 * FIELD, shown_and_value[by] >> FIELD, shown_and_value[by] & ((1 << FIELD) - 1)
        return {
            **{name: column.astype(np.int32) for name, column in zip(COLUMNS, columns)},
            "n": self._n[by],
            **pack_names([names[i] for i in order.tolist()]),
            **{name: column[order] for name, column in zip(SEQUENCE, self._sequence)},
        }

    @classmethod
    def check_state(cls, state: Mapping[str, np.ndarray], n_objects: int, **forgetting: Any) -> None:
        """Raise `Corrupt` unless rows are in order, positions among the objects shown, and participants by name."""
        super().check_state(state, n_objects, **forgetting)
        check_names("worker", state["utf8"], state["offsets"], least=1, most=None, rising=True)
        worker, shown, value = (state[name] for name in COLUMNS)
        check_rising("worker, shown, value", worker, shown, value)

        def possible(part: slice) -> np.ndarray:
            return np.where(
                shown[part] > 1, value[part] < shown[part], (shown[part] == 0) & (value[part] <= len(BOUNDS))
            )

        check_rows("shown, value", len(shown), possible, "a position among those shown, or a bin of response times")
        if (state["run"] > state["longest"]).any() or (state["changes"] > state["followed"]).any():
            raise Corrupt("run, changes: expected no more than longest, followed")

    @classmethod
    def from_state(cls, state: Mapping[str, np.ndarray], allocation: Allocation = IN_MEMORY) -> Self:
        """The accumulator that has this state."""
        patterns = cls()
        patterns._add(state)
        return patterns

    @classmethod
    def renamed(cls, state: Mapping[str, np.ndarray], new_id: np.ndarray) -> dict[str, np.ndarray]:
        """The same: objects have no say."""
        return {name: np.array(array) for name, array in state.items()}

    @classmethod
    def without(cls, state: Mapping[str, np.ndarray], leaving: Removal) -> dict[str, np.ndarray]:
        """The state without a participant. Without an object it stays: it counts answers, not objects. O(K)."""
        names = unpack_names(state["utf8"], state["offsets"])
        if leaving.of_object or leaving.worker not in names:
            return {name: np.array(array) for name, array in state.items()}
        gone = names.index(leaving.worker)
        stays = state["worker"] != gone
        remaining = {name: state[name][stays] for name in (*COLUMNS, "n")}
        remaining["worker"] = (remaining["worker"] - (remaining["worker"] > gone)).astype(np.int32)
        others = [name for name in names if name != leaving.worker]
        return remaining | pack_names(others) | {name: np.delete(state[name], gone) for name in SEQUENCE}

    @classmethod
    def with_worker_called(cls, state: Mapping[str, np.ndarray], old: str, new: str) -> dict[str, np.ndarray]:
        """The same answers by a participant of another name. O(K log K)."""
        workers, number = workers_with_one_called(state, old, new, SEQUENCE)
        worker = number[state["worker"]].astype(np.int32)
        order = np.lexsort((state["value"], state["shown"], worker))
        rows = {"worker": worker, **{name: state[name] for name in ("shown", "value", "n")}}
        return {name: column[order] for name, column in rows.items()} | workers


def _key(number: np.ndarray, shown: np.ndarray | int, value: np.ndarray) -> np.ndarray:
    return number << 2 * FIELD | np.asarray(shown, np.int64) << FIELD | value.astype(np.int64)


def _added(keys: np.ndarray, n: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Each key once, sorted, with the sum of its counts."""
    if not len(keys):
        return keys, n
    order = np.argsort(keys, kind="stable")
    keys = keys[order]
    first = np.flatnonzero(np.append(True, keys[1:] != keys[:-1]))
    return keys[first], np.add.reduceat(n[order], first)


def _longer(columns: np.ndarray, people: int) -> np.ndarray:
    """The columns with zeros for those who are new."""
    new = people - columns.shape[1]
    return np.pad(columns, ((0, 0), (0, new))) if new > 0 else columns
