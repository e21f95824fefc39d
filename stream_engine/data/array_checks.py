"""Checks of arrays from a file against their declarations, before compiled code, which checks nothing, uses them. All
raise `Corrupt` with one line. O(size), BLOCK entries at a time, without temporary arrays of the full size."""

from collections.abc import Callable, Mapping
from fnmatch import fnmatchcase
from typing import Any, NamedTuple

import numpy as np

from stream_engine.data.comparisons import MAX_NAME_BYTES, MAX_WEIGHT
from stream_engine.data.container import Corrupt
from stream_engine.data.mapped_arrays import BLOCK
from stream_engine.data.packed_names import BLOCK as NAMES_PER_BLOCK
from stream_engine.data.packed_names import Names
from stream_engine.data.triplet_columns import COUNT_LIMIT

MAX_COUNT = (
    1 << 53
)  # an upper bound of all counts; sums and differences of a few such numbers fit into int64 and float64
LARGEST_COUNT = MAX_COUNT // 64
LARGEST_SUM = MAX_WEIGHT * MAX_COUNT  # of weights
_MIX = np.uint64(0x9E3779B97F4A7C15)


# The code that writes arrays declares them (`ids`, `counts`, `figures`, ...), and `check_arrays` compares a file with
# the declarations: names, types, sizes, ranges. Relations between entries (order, offsets) have functions of their own.
class ArraySpec(NamedTuple):
    """Declaration of an array: its types (numpy's `dtype.str`, or only the `kind`; none: any), the meaning of each
    axis, and the range of its values.

    Axes of one name have equal lengths. "pairs+1" is one longer than "pairs"; a number stands for itself, None for any
    length; without `axes`, any shape. `below` is a number or the name of an axis. `finite`: no NaN, no infinity. The
    other fields are for arrays of artifacts, see `state.array_declarations`.
    """

    dtypes: tuple[str, ...]
    axes: tuple[str | int | None, ...] | None
    least: float | None = None
    below: float | str | None = None
    finite: bool = False
    values: str = ""  # "ids", "labels": how to update them if objects are renumbered
    unless: str = ""  # a parameter of the refit: if it is set, the array has any shape
    fewer: bool = False  # it may have fewer axes


def ids(*axes: str | int, of: str = "objects", least: int = 0) -> ArraySpec:
    """Ids of objects, or of whatever `of` names."""
    return ArraySpec(("<i4",), axes, least, of)


def counts(*axes: str | int, dtypes: tuple[str, ...] = ("<i8",), least: int = 0) -> ArraySpec:
    """Exact counts."""
    return ArraySpec(dtypes, axes, least, LARGEST_COUNT)


def figures(*axes: str | int, least: float | None = None, below: float | None = None, finite: bool = True) -> ArraySpec:
    """Floats."""
    return ArraySpec(("<f8",), axes, least, below, finite)


def weights(*axes: str | int, least: float = -LARGEST_SUM) -> ArraySpec:
    """Sums of the weights of events."""
    return figures(*axes, least=least, below=LARGEST_SUM)


def flags(*axes: str | int) -> ArraySpec:
    """True or false."""
    return ArraySpec(("|b1",), axes)


def offsets(along: str) -> ArraySpec:
    """Offsets: the start of each of `along`, and the end of the last; see `check_offsets`."""
    return ArraySpec(("<i8",), (f"{along}+1",))


def check_arrays(declared: Mapping[str, ArraySpec], arrays: Mapping[str, np.ndarray], **sizes: int) -> dict[str, int]:
    """Raise `Corrupt` unless the arrays are exactly those `declared`, and as declared. `sizes` gives known lengths of
    axes (objects=...); returns the lengths of all axes.

    >>> check_arrays({"i": ids("keys")}, {"i": np.array([0, 2], np.int32)}, objects=3)
    {'objects': 3, 'keys': 2}
    """
    if declared.keys() != arrays.keys():
        raise Corrupt(f"got the arrays {', '.join(sorted(arrays)) or 'none'}, expected {', '.join(sorted(declared))}")
    for name in declared:
        check_array(name, declared[name], arrays[name], sizes)
    for name in declared:
        check_range(name, declared[name], arrays[name], sizes)
    return sizes


def check_array(name: str, spec: ArraySpec, array: np.ndarray, sizes: dict[str, int]) -> None:
    """Type and shape; adds the sizes of axes that were not known."""
    right = not spec.dtypes or array.dtype.str in spec.dtypes or array.dtype.kind in spec.dtypes
    axes = ("any",) * array.ndim if spec.axes is None else spec.axes
    if not right or array.ndim > len(axes) or (array.ndim < len(axes) and not spec.fewer):
        raise Corrupt(
            f"{name}: got {array.ndim} axes of {array.dtype.str}, expected {len(axes)} of "
            f"{' or '.join(spec.dtypes) or 'any numbers'}"
        )
    for axis, size in zip(spec.axes or (), array.shape):
        if axis is None:
            continue
        required = axis if isinstance(axis, int) else _length(axis, size, sizes)
        if size != required:
            along = "" if isinstance(axis, int) else f" {axis}"
            raise Corrupt(f"{name}: got a length of {size}, expected {required}{along}")


def _length(axis: str, size: int, sizes: dict[str, int]) -> int:
    """The required length of an axis, "pairs" or "pairs+1"; the first array with a new axis defines its length."""
    name, _, extra = axis.partition("+")
    return sizes.setdefault(name, max(size - int(extra or 0), 0)) + int(extra or 0)


def check_range(name: str, spec: ArraySpec, array: np.ndarray, sizes: Mapping[str, int]) -> None:
    """The values of an array that has its type and shape."""
    below = sizes.get(spec.below, 1 << 31) if isinstance(spec.below, str) else spec.below
    if spec.least is None and below is None and not spec.finite:
        return
    for part in _parts(array.reshape(-1)):
        low, high = part.min(), part.max()
        if spec.finite and not (np.isfinite(low) and np.isfinite(high)):
            raise Corrupt(f"{name}: got {low} to {high}, expected finite numbers")
        if (spec.least is not None and low < spec.least) or (below is not None and high >= below):
            least = "any" if spec.least is None else f"{spec.least:g}"
            raise Corrupt(f"{name}: got {low} to {high}, expected at least {least}" + _below(below))


def _below(below: float | None) -> str:
    return "" if below is None else f", below {below}"


def _parts(array: np.ndarray):
    return (array[begin : begin + BLOCK] for begin in range(0, len(array), BLOCK))


def check_offsets(name: str, starts: np.ndarray, end: int, least: int = 0) -> None:
    """Check that offsets begin at 0, increase by at least `least` (0 or 1), and end at `end`."""
    if starts[0] != 0 or starts[-1] != end:
        raise Corrupt(f"{name}: got {starts[0]} to {starts[-1]}, expected 0 to {end}")
    for earlier, later in _neighbours(starts):
        if (later <= earlier if least else later < earlier).any():  # a difference could overflow
            raise Corrupt(f"{name}: offsets do not increase by at least {least}")


def _neighbours(array: np.ndarray):
    """Entries and those after them, a block at a time."""
    for begin in range(0, len(array) - 1, BLOCK):
        block = array[begin : begin + BLOCK + 1]
        yield block[:-1], block[1:]


def check_rising(name: str, *columns: np.ndarray, twice: bool = False) -> None:
    """Check that rows of equally long columns are sorted, by the first column first; and distinct, unless `twice`.

    >>> check_rising("rows", np.array([0, 0, 1]), np.array([4, 5, 0]))
    """
    for begin in range(0, len(columns[0]) - 1, BLOCK):
        part = slice(begin, begin + BLOCK + 1)
        *first, last = (column[part] for column in columns)
        rises = last[1:] >= last[:-1] if twice else last[1:] > last[:-1]
        for column in reversed(first):
            rises &= column[1:] == column[:-1]
            rises |= column[1:] > column[:-1]
        if not rises.all():
            at = begin + int(np.flatnonzero(~rises)[0])
            raise Corrupt(f"{name}: entries {at} and {at + 1} are not in order" + ("" if twice else ", or equal"))


def check_rows(name: str, size: int, holds: Callable[[slice], Any], expected: str) -> None:
    """Check that `holds(part)` is true for all rows, in blocks given as slices of 0 .. size - 1."""
    for begin in range(0, size, BLOCK):
        if not np.all(holds(slice(begin, min(begin + BLOCK, size)))):
            raise Corrupt(f"{name}: expected {expected}")


def check_groups(name: str, starts: np.ndarray, values: np.ndarray, *owners: np.ndarray) -> None:
    """Check that inside each group starts[p] .. starts[p + 1] - 1 (none is empty) `values` rise strictly, and are none
    of the group's `owners`."""
    for begin in range(0, len(values), BLOCK):
        part = values[begin : begin + BLOCK]
        end = begin + len(part)
        first, last = np.searchsorted(starts, begin, "right") - 1, np.searchsorted(starts, end, "left")
        group_starts = starts[first : last + 1]
        sizes = np.diff(np.clip(group_starts, begin, end))
        rises = np.empty(len(part), bool)
        rises[1:] = part[1:] > part[:-1]
        rises[0] = begin == 0 or part[0] > values[begin - 1]
        rises[group_starts[(group_starts >= begin) & (group_starts < end)] - begin] = True
        if not rises.all():
            raise Corrupt(f"{name}: not in order inside a group, or twice")
        for owner in owners:
            if (part == np.repeat(owner[first:last], sizes)).any():
                raise Corrupt(f"{name}: an entry that is its group's own object")


def check_like(template: Mapping[str, np.ndarray], arrays: Mapping[str, np.ndarray]) -> None:
    """Check arrays without a declaration: they have the names, kinds and numbers of axes of a template."""
    if template.keys() != arrays.keys():
        raise Corrupt(f"got the arrays {', '.join(sorted(arrays)) or 'none'}, expected {', '.join(sorted(template))}")
    for name, array in arrays.items():
        like = template[name]
        if (array.dtype.kind, array.ndim) != (like.dtype.kind, like.ndim):
            raise Corrupt(f"{name}: got {array.ndim} axes of {array.dtype}, expected {like.ndim} of {like.dtype}")


def pattern_of(name: str, declared: Mapping[str, Any]) -> str | None:
    """The key of the declaration of an array: its name, or the first pattern ("map_*") that matches."""
    return name if name in declared else next((pattern for pattern in declared if fnmatchcase(name, pattern)), None)


COLUMNS: dict[str, ArraySpec] = {
    "lo": ids("pairs"),
    "hi": ids("pairs"),
    "start": offsets("pairs"),
    "anchor": ids("keys"),
}
EXACT: dict[str, ArraySpec] = {
    name: ArraySpec(("<i4", "<i8"), ("keys",)) for name in ("n_lo", "n_hi")
}  # see check_counts
COUNT_COLUMNS = {**COLUMNS, **EXACT}


def check_columns(state: Mapping[str, np.ndarray]) -> None:
    """Pairs lo < hi in order, each with its anchors in order, which are neither of the two."""
    lo, hi, start, anchor = (state[name] for name in ("lo", "hi", "start", "anchor"))
    check_rows("lo, hi", len(lo), lambda part: lo[part] < hi[part], "lo < hi")
    check_rising("lo, hi", lo, hi)
    check_offsets("start", start, len(anchor), least=1)
    check_groups("anchor", start, anchor, lo, hi)


def check_counts(n_lo: np.ndarray, n_hi: np.ndarray) -> None:
    """Exact counts, in their one type, not both zero. The bitwise or of two numbers is negative, zero, or 2^k and more
    exactly if one is negative, both are zero, or one is 2^k or more: one comparison checks both."""
    if n_lo.dtype != n_hi.dtype:
        raise Corrupt(f"n_lo, n_hi: got {n_lo.dtype} and {n_hi.dtype}, expected one type")
    wide = n_lo.dtype.itemsize == 8
    limit = LARGEST_COUNT if wide else COUNT_LIMIT
    for begin in range(0, len(n_lo), BLOCK):
        bits = n_lo[begin : begin + BLOCK] | n_hi[begin : begin + BLOCK]
        if bits.min() <= 0 or bits.max() >= limit:
            raise Corrupt(f"n_lo, n_hi: expected counts from 0 up to {limit}, not both 0")
    if wide and max(n_lo.max(initial=0), n_hi.max(initial=0)) < COUNT_LIMIT:
        raise Corrupt(f"n_lo, n_hi: got int64 for counts below {COUNT_LIMIT}, expected int32")


PACKED = {"utf8": ArraySpec(("|u1",), ("bytes",)), "offsets": offsets("names")}  # beside what else is of each name


def check_names(
    what: str,
    utf8: np.ndarray,
    ends: np.ndarray,
    *,
    least: int = 1,
    most: int | None = MAX_NAME_BYTES,
    rising: bool = False,
) -> int:
    """Raise `Corrupt` unless these are names of `least` to `most` bytes, distinct (`rising`: in order); returns their
    number. O(bytes), plus sorting one number per name; no temporary array of the full size."""
    sizes: dict[str, int] = {}
    for spec, array in ((PACKED["utf8"], utf8), (PACKED["offsets"], ends)):
        check_array(what, spec, array, sizes)
        check_range(what, spec, array, sizes)
    check_offsets(f"{what} offsets", ends, len(utf8), least)
    n = sizes["names"]
    for begin in range(0, n, NAMES_PER_BLOCK):
        bounds = ends[begin : begin + NAMES_PER_BLOCK + 1]
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
    previous: str | None = None
    for name in names:
        if previous is not None and name <= previous:
            raise Corrupt(f"{what}: {name[:80]!r} after {previous[:80]!r}, expected names in ascending order")
        previous = name


def _check_distinct(what: str, utf8: np.ndarray, ends: np.ndarray) -> None:
    """Check that names are distinct: equal names have equal hashes, and names with equal hashes are compared."""
    hashes = np.empty(len(ends) - 1, np.uint64)
    for begin in range(0, len(hashes), NAMES_PER_BLOCK):
        hashes[begin : begin + NAMES_PER_BLOCK] = _hashes(utf8, ends[begin : begin + NAMES_PER_BLOCK + 1])
    sorted_hashes = np.sort(hashes)
    repeated_hashes = sorted_hashes[1:][sorted_hashes[1:] == sorted_hashes[:-1]]
    if not len(repeated_hashes):
        return
    names, checked_names = Names(utf8, ends), set()
    for at in np.flatnonzero(np.isin(hashes, repeated_hashes)).tolist():
        if names[at] in checked_names:
            raise Corrupt(f"{what}: {names[at][:80]!r} occurs twice")
        checked_names.add(names[at])


def _hashes(utf8: np.ndarray, ends: np.ndarray) -> np.ndarray:
    """(n,) uint64 of the names between these offsets: a polynomial of their words of eight bytes."""
    begins, sizes = ends[:-1] - ends[0], np.diff(ends)
    padded_bytes = np.zeros(int(ends[-1] - ends[0]) + 8, np.uint8)
    padded_bytes[:-8] = utf8[ends[0] : ends[-1]]
    words = np.ndarray(len(padded_bytes) - 7, "<u8", padded_bytes, strides=(1,))  # the eight bytes from each place on
    hashes, inside = sizes.astype(np.uint64), np.arange(len(sizes))
    for place in range(0, int(sizes.max(initial=0)), 8):
        inside = inside[sizes[inside] > place]
        n_bits = 8 * np.minimum(sizes[inside] - place, 8).astype(np.uint64)
        word = words[begins[inside] + place] << (np.uint64(64) - n_bits) if len(inside) else words[:0]
        hashes[inside] = (hashes[inside] ^ word) * _MIX
        hashes[inside] ^= hashes[inside] >> np.uint64(29)
    return hashes
