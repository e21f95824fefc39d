"""Hashes of names that are the same in every process and on every machine, forever: for samples selected by content.

`Interner` finds names by its own hashes, with a new key in every process so that no input can be constructed whose
names collide; the hashes here are for values that are stored. Code that needs certainty compares the names if hashes
are equal.
"""

from collections.abc import Sequence

import numpy as np

from stream_engine.data.compiled import njit
from stream_engine.data.compiled_arguments import read_only
from stream_engine.data.integer_hash import hash_bytes
from stream_engine.data.packed_names import pack_names

_SEED = np.uint64(0x6A75646765642121)  # must never change


@njit(cache=True, nogil=True)
def _hashes(utf8, offsets, out):
    for i in range(len(out)):
        out[i] = hash_bytes(utf8, offsets[i], offsets[i + 1], _SEED)


def name_hashes(names: Sequence[str]) -> np.ndarray:
    """(n,) uint64: the hash of each name's UTF-8 bytes. O(bytes).

    >>> [hex(h) for h in name_hashes(["car-1", "car-2"]).tolist()]
    ['0xa328262e0e707fc', '0x865807e830c79161']
    """
    packed = pack_names(names)
    out = np.empty(len(packed["offsets"]) - 1, np.uint64)
    _hashes(read_only(packed["utf8"]), read_only(packed["offsets"], np.int64), out)
    return out


def hashes_of_numbers(n: int) -> np.ndarray:
    """(n,) uint64: the same for objects that nobody named: "0", "1", and so on."""
    return name_hashes([str(i) for i in range(n)])


class NameHashes:
    """The hashes of names that only become more, each made once."""

    def __init__(self) -> None:
        self._n, self._hashes = 0, np.empty(64, np.uint64)

    def of(self, names: Sequence[str]) -> np.ndarray:
        """(len(names),) uint64, read-only; all but the new ones at the end must be the names of the call before.
        O(bytes of the new ones), amortised."""
        n = len(names)
        if n > self._n:
            if n > len(self._hashes):
                longer = np.empty(n + n // 2, np.uint64)
                longer[: self._n] = self._hashes[: self._n]
                self._hashes = longer
            self._hashes[self._n : n] = name_hashes(names[self._n :])
            self._n = n
        return read_only(self._hashes[:n])
