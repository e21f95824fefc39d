"""Names to dense ids by first appearance, and labels by name: ledgers. States are merged by name.

Names are compared code point by code point, without Unicode normalisation. Labels are last-write-wins and may come
before, after or without comparisons; of merged states the first one's label stays.
"""

from collections.abc import Container, Iterable, Mapping, Sequence

import numpy as np

from stream_engine.data.comparisons import DecodedEvents, Label, Quadruplet, Triplet, canonical_quadruplet
from stream_engine.data.hashing import NameHashes
from stream_engine.data.interner import Interner
from stream_engine.data.packed_names import Names, pack_names

MAX_OBJECTS = 2**31 - 1


# Names are packed in an `Interner`, as a snapshot has them: taking a snapshot costs nothing for them, and ten million
# fit in memory.
class ObjectIndex:
    """The names seen so far: `names[id]`, and `find` for the other way."""

    def __init__(self, names: Sequence[str] = ()):
        self._interner = Interner()
        self._hashes = NameHashes()
        self.ids(names)

    def __len__(self) -> int:
        return len(self._interner)

    @property
    def names(self) -> Names:
        """All of them, by id; what is learned later does not change it. O(1)."""
        return self._interner.names

    def name_hashes(self) -> np.ndarray:
        """(n,) uint64: a number for each name that is the same in every state. O(bytes of names that are new)."""
        return self._hashes.of(self.names)

    def find(self, names: Iterable[str]) -> np.ndarray:
        """(len(names),) int32: their ids, -1 for unknown ones. O(bytes)."""
        return self._interner.find(*_spans(names))[0]

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and bool(self.find([name])[0] >= 0)

    def ids(self, names: Iterable[str]) -> np.ndarray:
        """(len(names),) int32; unknown names get the next ids, in the order given. O(bytes), amortised.

        >>> index = ObjectIndex()
        >>> index.ids(["b", "a", "b"]).tolist(), index.ids(["c", "a"]).tolist(), index.names
        ([0, 1, 0], [2, 1], ('b', 'a', 'c'))
        """
        data, begins, ends = _spans(names)
        if len(self) + len(begins) > MAX_OBJECTS:
            self._check_room(data, begins, ends)
        return self._interner.ids(data, begins, ends)

    def _check_room(self, data: np.ndarray, begins: np.ndarray, ends: np.ndarray) -> None:
        """Raise `OverflowError`, before anything is taken in, where the new ones among these names are too many."""
        new = self._interner.find(data, begins, ends)[0] < 0
        strangers = Interner()
        strangers.ids(data, begins[new], ends[new])
        total = len(self) + len(strangers)
        if total > MAX_OBJECTS:
            raise OverflowError(f"objects: {total} names, at most {MAX_OBJECTS} fit an int32 id")


def _spans(names: Iterable[str]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """All letters of the names, and where each begins and ends."""
    packed = pack_names(names)
    return packed["utf8"], packed["offsets"][:-1], packed["offsets"][1:]


def learn_labels(labelled: dict[str, str], events: Iterable[Label]) -> None:
    """Apply label events in order; `None` takes a label back.

    >>> labelled = {}
    >>> learn_labels(labelled, [Label("a", "car"), Label("b", "van"), Label("a", None), Label("b", "bus")])
    >>> labelled
    {'b': 'bus'}
    """
    for name, label in events:
        if label is None:
            labelled.pop(name, None)
        else:
            labelled[name] = label


def waiting(labelled: Mapping[str, str], objects: Container[str]) -> list[str]:
    """Labelled names that are not in `objects`, sorted. O(labels).

    >>> waiting({"b": "x", "a": "x", "c": "y"}, ["a"])
    ['b', 'c']
    """
    return sorted(name for name in labelled if name not in objects)


def decoded_of(comparisons: Iterable[Triplet | Quadruplet]) -> DecodedEvents:
    """Comparisons from Python as a block of events. Raises `InvalidEvent`."""
    names: dict[str, int] = {}
    triplets: list[list[int]] = []
    quadruplets: list[list[int]] = []
    triplets_before: list[int] = []
    for comparison in comparisons:
        if isinstance(comparison, Triplet):
            pair = (comparison.anchor, comparison.near), (comparison.anchor, comparison.far)
        else:
            pair = comparison.near, comparison.far
        row = [names.setdefault(name, len(names)) for name in canonical_quadruplet(*pair[0], *pair[1])]
        if len(row) == 3:
            triplets.append(row)
        else:
            triplets_before.append(len(triplets))
            quadruplets.append(row)
    kinds = {"triplet": len(triplets), "quadruplet": len(quadruplets)}
    return DecodedEvents(
        list(names),
        np.array(triplets, np.int32).reshape(-1, 3),
        np.array(quadruplets, np.int32).reshape(-1, 4),
        np.array(triplets_before, np.int64),
        [],
        {kind: n for kind, n in kinds.items() if n},
        [],
    )
