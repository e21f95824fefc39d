"""Names to ids, by first appearance: an order-dependent ledger. Ids are dense and never change within a state.

Names are compared as they are, code point by code point: two spellings of one word in different Unicode normal forms
are two objects, because the engine cannot know that they are one.
"""

from collections.abc import Iterable

import numpy as np

MAX_OBJECTS = 2**31 - 1


class ObjectIndex:
    """The names seen so far; `names[id]` and `id_of[name]` are inverse to each other."""

    def __init__(self, names: Iterable[str] = ()):
        self.names: list[str] = list(names)
        self.id_of: dict[str, int] = {name: i for i, name in enumerate(self.names)}

    def __len__(self) -> int:
        return len(self.names)

    def ids(self, names: Iterable[str]) -> np.ndarray:
        """(len(names),) int32; unknown names get the next ids, in the order given. O(len(names)).

        >>> index = ObjectIndex()
        >>> index.ids(["b", "a", "b"]).tolist(), index.ids(["c", "a"]).tolist(), index.names
        ([0, 1, 0], [2, 1], ['b', 'a', 'c'])
        """
        id_of = self.id_of
        ids = [id_of.setdefault(name, len(id_of)) for name in names]
        if len(id_of) > len(self.names):
            if len(id_of) > MAX_OBJECTS:
                raise OverflowError(f"objects: {len(id_of)} names, at most {MAX_OBJECTS} fit an int32 id")
            start = len(self.names)
            fresh = [""] * (len(id_of) - start)
            for name, i in zip(names, ids):
                if i >= start:
                    fresh[i - start] = name
            self.names += fresh
        return np.array(ids, np.int32)
