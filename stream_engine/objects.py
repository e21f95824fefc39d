"""Names to ids, by first appearance: an order-dependent ledger. Ids are dense and never change within a state.

Names are compared as they are, code point by code point: two spellings of one word in different Unicode normal forms
are two objects, because the engine cannot know that they are one.
"""

from collections.abc import Iterable, Sequence

import numpy as np

from stream_engine.names import Names, pack_names

MAX_OBJECTS = 2**31 - 1


class ObjectIndex:
    """The names seen so far; `names[id]` and `id_of[name]` are inverse to each other.

    Beside the strings that `id_of` needs, names are kept packed as a snapshot holds them, so that taking one costs nothing,
    however many there are. Invariant: the packed bytes are only appended to; a view of the first n stays what it was.
    """

    def __init__(self, names: Sequence[str] = ()):
        packed = pack_names(names)
        self._utf8, self._offsets = packed["utf8"].copy(), packed["offsets"].copy()
        self.id_of: dict[str, int] = {name: i for i, name in enumerate(names)}

    def __len__(self) -> int:
        return len(self.id_of)

    @property
    def names(self) -> Names:
        """All of them, by id; what is learned later does not change it. O(1)."""
        n = len(self)
        offsets = self._offsets[: n + 1]
        utf8 = self._utf8[: int(offsets[-1])]
        for array in (utf8, offsets):
            array.setflags(write=False)
        return Names(utf8, offsets)

    def ids(self, names: Iterable[str]) -> np.ndarray:
        """(len(names),) int32; unknown names get the next ids, in the order given. O(len(names)).

        >>> index = ObjectIndex()
        >>> index.ids(["b", "a", "b"]).tolist(), index.ids(["c", "a"]).tolist(), index.names
        ([0, 1, 0], [2, 1], ('b', 'a', 'c'))
        """
        id_of, start = self.id_of, len(self)
        ids = [id_of.setdefault(name, len(id_of)) for name in names]
        if len(id_of) > start:
            if len(id_of) > MAX_OBJECTS:
                raise OverflowError(f"objects: {len(id_of)} names, at most {MAX_OBJECTS} fit an int32 id")
            fresh = [""] * (len(id_of) - start)
            for name, i in zip(names, ids):
                if i >= start:
                    fresh[i - start] = name
            self._append(start, fresh)
        return np.array(ids, np.int32)

    def _append(self, start: int, fresh: list[str]) -> None:
        packed, used = pack_names(fresh), int(self._offsets[start])
        self._utf8 = _longer(self._utf8, used, used + len(packed["utf8"]))
        self._utf8[used : used + len(packed["utf8"])] = packed["utf8"]
        self._offsets = _longer(self._offsets, start + 1, start + 1 + len(fresh))
        self._offsets[start + 1 : start + 1 + len(fresh)] = packed["offsets"][1:] + used


def _longer(array: np.ndarray, used: int, size: int) -> np.ndarray:
    """The same array, or one half as long again whose first `used` entries are the same."""
    if size <= len(array):
        return array
    longer = np.empty(max(size, len(array) + len(array) // 2, 64), array.dtype)
    longer[:used] = array[:used]
    return longer
