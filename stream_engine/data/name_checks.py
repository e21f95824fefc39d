"""Check packed names from a file: offsets increase, names are UTF-8, not too long and distinct.

Raises `Corrupt` with one line. O(bytes), plus sorting one number per name; no temporary array of the full size.
"""

import numpy as np

from stream_engine.data.array_checks import Held, check_array, check_offsets, check_range, offsets
from stream_engine.data.comparisons import MAX_NAME_BYTES
from stream_engine.data.container import Corrupt
from stream_engine.data.packed_names import BLOCK, Names

PACKED = {"utf8": Held(("|u1",), ("bytes",)), "offsets": offsets("names")}  # beside what else is of each name
_MIX = np.uint64(0x9E3779B97F4A7C15)


def check_names(
    what: str,
    utf8: np.ndarray,
    ends: np.ndarray,
    *,
    least: int = 1,
    most: int | None = MAX_NAME_BYTES,
    rising: bool = False,
) -> int:
    """Raise `Corrupt` unless these are names of `least` to `most` bytes, none twice (`rising`: in order); returns how
    many."""
    sizes: dict[str, int] = {}
    for held, array in ((PACKED["utf8"], utf8), (PACKED["offsets"], ends)):
        check_array(what, held, array, sizes)
        check_range(what, held, array, sizes)
    check_offsets(f"{what} offsets", ends, len(utf8), least)
    n = sizes["names"]
    for begin in range(0, n, BLOCK):
        bounds = ends[begin : begin + BLOCK + 1]
        if most is not None and np.diff(bounds).max() > most:
            raise Corrupt(f"{what}: a name of {np.diff(bounds).max():,} bytes, expected at most {most:,}")
        _check_text(what, utf8[bounds[0] : bounds[-1]], bounds[:-1] - bounds[0])
    if rising:
        _check_rising(what, Names(utf8, ends))
    elif least:
        _check_distinct(what, utf8, ends)
    return n


def _check_text(what: str, part: np.ndarray, begins: np.ndarray) -> None:
    """The bytes are UTF-8, and no name begins inside a letter."""
    if not len(part) or part.max() < 0x80:
        return
    try:
        part.tobytes().decode()
    except UnicodeDecodeError as error:
        raise Corrupt(f"{what}: bytes that are not UTF-8: {error.reason}") from None
    if ((part[begins[begins < len(part)]] & 0xC0) == 0x80).any():
        raise Corrupt(f"{what}: a name begins inside a multi-byte character")


def _check_rising(what: str, names: Names) -> None:
    before: str | None = None
    for name in names:
        if before is not None and name <= before:
            raise Corrupt(f"{what}: {name[:80]!r} after {before[:80]!r}, expected names in ascending order")
        before = name


def _check_distinct(what: str, utf8: np.ndarray, ends: np.ndarray) -> None:
    """No name stands twice: equal names have equal hashes, and of equal hashes the names are compared."""
    hashes = np.empty(len(ends) - 1, np.uint64)
    for begin in range(0, len(hashes), BLOCK):
        hashes[begin : begin + BLOCK] = _hashes(utf8, ends[begin : begin + BLOCK + 1])
    ordered = np.sort(hashes)
    again = ordered[1:][ordered[1:] == ordered[:-1]]
    if not len(again):
        return
    names, seen = Names(utf8, ends), set()
    for at in np.flatnonzero(np.isin(hashes, again)).tolist():
        if names[at] in seen:
            raise Corrupt(f"{what}: {names[at][:80]!r} occurs twice")
        seen.add(names[at])


def _hashes(utf8: np.ndarray, ends: np.ndarray) -> np.ndarray:
    """(n,) uint64 of the names between these offsets: a polynomial of their words of eight bytes."""
    begins, sizes = ends[:-1] - ends[0], np.diff(ends)
    padded = np.zeros(int(ends[-1] - ends[0]) + 8, np.uint8)
    padded[:-8] = utf8[ends[0] : ends[-1]]
    words = np.ndarray(len(padded) - 7, "<u8", padded, strides=(1,))  # the eight bytes from each place on
    hashes, inside = sizes.astype(np.uint64), np.arange(len(sizes))
    for place in range(0, int(sizes.max(initial=0)), 8):
        inside = inside[sizes[inside] > place]
        left = 8 * np.minimum(sizes[inside] - place, 8).astype(np.uint64)
        word = words[begins[inside] + place] << (np.uint64(64) - left) if len(inside) else words[:0]
        hashes[inside] = (hashes[inside] ^ word) * _MIX
        hashes[inside] ^= hashes[inside] >> np.uint64(29)
    return hashes
