"""A snapshot: the whole state of an engine after a prefix of its stream, immutable, with the position inside.

It holds what `Engine.restore`, refits and exports need, and nothing else; equal states give equal bytes. It is checked
when it is read: header, names, labels, and the arrays of every section.
"""

import math
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from connectors import Position
from stream_engine.counts import ACCUMULATORS, Forgetting, accumulator
from stream_engine.data import container
from stream_engine.data.array_checks import check_names
from stream_engine.data.container import Corrupt
from stream_engine.data.mapped_arrays import IN_MEMORY, Allocation, is_whole
from stream_engine.data.packed_names import Names, pack_names, unpack_names
from stream_engine.data.signatures import UNSIGNED, Signing
from stream_engine.data.triplet_columns import Columns, columns_of_state
from stream_engine.order.stored_states import FORMER, POLICY, check_state, without_former_policy

NAMES = (
    "objects/utf8",
    "objects/offsets",
    "labels/object_utf8",
    "labels/object_offsets",
    "labels/label_utf8",
    "labels/label_offsets",
)
GUARD = "partial_order"
REMOVED = ("worker_reliability",)  # accumulators of version 0.1.0: their arrays are not read
MAX_COUNTER = 1 << 62  # of offsets, marks and counters
_SHARE = re.compile(r"[0-9]{1,9}/[0-9]{1,9}")
_FORGETTING: dict[str, Callable[[Any], bool]] = {
    "by": lambda value: value in ("count", "time"),
    "half_life": lambda value: _is_positive(value),
    "window": lambda value: _is_positive(value),
}
KIND = "snapshot"
ORDER = "partial_order/"


def drop_removed(meta: Mapping[str, Any], arrays: dict[str, np.ndarray]) -> tuple[str, ...]:
    """Take accumulators that engines no longer have out of a header and its arrays; which ones there were."""
    settings = meta.get("settings")
    used = settings.get("accumulators") if isinstance(settings, dict) else None
    if not isinstance(used, list):
        return ()
    removed = tuple(name for name in REMOVED if name in used)
    for name in removed:
        used.remove(name)
        for key in [key for key in arrays if key.startswith(f"{name}/")]:
            del arrays[key]
    return removed


# A right checksum does not say who wrote a file: nothing reaches the engine, an export or a refit before it passed
# here; what fails is `Corrupt`. O(size), without copying an array. Accumulators declare their arrays (`HOLDS`,
# `check_state`).
def check_meta(meta: Mapping[str, Any]) -> None:
    """Sequence, positions, counters and settings of a header."""
    if meta.keys() != {"sequence", "positions", "counters", "settings"}:
        raise Corrupt(f"header: got {', '.join(sorted(meta))[:80]}, expected sequence, positions, counters, settings")
    _expect("sequence", is_count(meta["sequence"]), meta["sequence"], "a number >= 0")
    for name, value in _table("positions", meta["positions"]).items():
        whole = isinstance(value, list) and len(value) == 2 and all(map(is_count, value))
        _expect(f"position of {name[:80]!r}", whole, value, "an offset >= 0 and its mark")
    _check_settings(_table("settings", meta["settings"]))
    _check_counters(_table("counters", meta["counters"]))


def _table(what: str, value: Any) -> dict[str, Any]:
    _expect(what, isinstance(value, dict), value, "an object")
    return value


def _expect(what: str, holds: bool, value: Any, expected: str) -> None:
    if not holds:
        raise Corrupt(f"{what}: got {str(value)[:60]}, expected {expected}")


def is_count(value: Any) -> bool:
    """A whole number >= 0 that fits an int64; True and False are none."""
    return type(value) is int and 0 <= value < MAX_COUNTER


def _is_positive(value: Any) -> bool:
    return type(value) in (int, float) and 0 < value < math.inf


def _check_settings(settings: Mapping[str, Any]) -> None:
    unknown = settings.keys() - {"accumulators", "guard", "forgetting"}
    _expect("settings", not unknown, sorted(unknown), "accumulators, guard and forgetting")
    used, guard = settings.get("accumulators"), settings.get("guard", ...)
    known_names = [name for name in ACCUMULATORS if isinstance(used, list) and name in used]
    whole = isinstance(used, list) and len(used) == len(known_names)
    _expect("settings.accumulators", whole, used, f"some of {', '.join(ACCUMULATORS)}, each once")
    known_guards = (None, POLICY, *FORMER)
    _expect("settings.guard", guard in known_guards, guard, f"none or one of {', '.join(known_guards[1:])}")
    forgetting = _table("settings.forgetting", settings.get("forgetting", {}))
    needed = {field for name in known_names for field in accumulator(name).forgets}
    needed |= {"by"} if needed else set()
    _expect("settings.forgetting", forgetting.keys() == needed, sorted(forgetting), ", ".join(sorted(needed)) or "none")
    for field, value in forgetting.items():
        _expect(f"settings.forgetting.{field}", _FORGETTING[field](value), value, "a clock, or a length above 0")


def _check_counters(counters: Mapping[str, Any]) -> None:
    """Those that engines of this version write. Others are carried along: no code looks at them."""
    for name in ("events", "records", "comparisons", "triplets", "quadruplets", "labels", "filtered", "empty"):
        _expect(f"counters.{name}", is_count(counters.get(name)), counters.get(name), "a number >= 0")
    for name in ("rejected", "kinds", "guard", "lost", "dead_letters"):
        if name in counters or name not in ("lost", "dead_letters"):
            _check_counts(f"counters.{name}", counters.get(name))
    from stream_engine.order.partial_order import VERDICTS

    _expect("counters.guard", counters["guard"].keys() == set(VERDICTS), counters["guard"], "every verdict")
    unknown = counters.get("unknown_fields")
    whole = isinstance(unknown, list) and all(isinstance(name, str) for name in unknown)
    _expect("counters.unknown_fields", whole, unknown, "names of fields")
    for name, totals in _table("counters.progressive", counters.get("progressive")).items():
        _check_counts(f"counters.progressive.{name[:80]}", totals)
        complete = {"tested", "correct", "undecided"} == totals.keys()
        _expect(f"counters.progressive.{name[:80]}", complete, sorted(totals), "tested, correct, undecided")
    for name, place in _table("counters.sinks", counters.get("sinks", {})).items():
        whole = is_count(place) if name == "file" else _is_place(place)
        _expect(f"counters.sinks.{name[:80]}", whole, place, "a place >= 0, or one by partition")
    repeated = counters.get("repeated", 0)
    _expect("counters.repeated", is_count(repeated), repeated, "a number >= 0")
    share = counters.get("share", "0/1")
    _expect("counters.share", isinstance(share, str) and bool(_SHARE.fullmatch(share)), share, '"i/n"')
    _check_history(counters.get("history", []))
    jumps = _table("counters.time_jumps", counters.get("time_jumps", {}))
    times = all(isinstance(jumps.get(key), int | float) and math.isfinite(jumps[key]) for key in ("from", "to"))
    whole = not jumps or (jumps.keys() == {"number", "from", "to"} and is_count(jumps["number"]) and times)
    _expect("counters.time_jumps", whole, jumps, "a number, and two times")


def _is_place(value: Any) -> bool:
    """What a sink wants to be remembered: a number >= 0, or some by a name."""
    return all(map(is_count, value.values())) if isinstance(value, dict) else is_count(value)


def _check_counts(what: str, value: Any) -> None:
    for name, n in _table(what, value).items():
        _expect(f"{what}.{name[:80]}", is_count(n), n, "a number >= 0")


def _check_history(history: Any) -> None:
    _expect("counters.history", isinstance(history, list), history, "a list")
    for deed in history:
        whole = isinstance(deed, dict) and all(isinstance(deed.get(key), str) for key in ("did", "time"))
        _expect("counters.history", whole, deed, "what was done, with its time")


def check_contents(meta: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> None:
    """The arrays of a snapshot whose header was checked, those of its names included."""
    missing = [name for name in NAMES if name not in arrays]
    _expect("arrays", not missing, f"no {', '.join(missing)}", "the names of objects and labels")
    utf8, ends, object_utf8, object_ends, label_utf8, label_ends = (arrays[name] for name in NAMES)
    n = check_names("objects", utf8, ends)
    labelled = check_names("labels/object", object_utf8, object_ends, rising=True)
    labels = check_names("labels/label", label_utf8, label_ends, least=0, most=None)
    _expect("labels", labelled == labels, labels, f"one for each of {labelled} objects")
    sections = _sections(arrays)
    for name in meta["settings"]["accumulators"]:
        _in_section(name, _check_accumulator, meta, sections.pop(name, {}), n)
    if meta["settings"]["guard"]:
        _in_section(GUARD, _check_guard, meta, sections.pop(GUARD, {}), n)
    _expect("arrays", not sections, ", ".join(sorted(sections))[:80], "those of the accumulators and the guard in use")


def _sections(arrays: Mapping[str, np.ndarray]) -> dict[str, dict[str, np.ndarray]]:
    sections: dict[str, dict[str, np.ndarray]] = {}
    for name, array in arrays.items():
        if name not in NAMES:
            section, _, key = name.partition("/")
            sections.setdefault(section, {})[key] = array
    return sections


def _in_section(name: str, check: Callable, meta: Mapping[str, Any], arrays: Mapping[str, Any], n: int) -> None:
    try:
        check(name, meta, arrays, n)
    except Corrupt as error:
        raise Corrupt(f"{name}: {error}") from None


def _check_accumulator(name: str, meta: Mapping[str, Any], arrays: Mapping[str, Any], n: int) -> None:
    forgetting, counters = Forgetting(**meta["settings"].get("forgetting", {})), meta["counters"]
    kind = accumulator(name, forgetting)
    kind.check_state(arrays, n, **{field: float(getattr(forgetting, field)) for field in kind.forgets})
    answers, counted = kind.answers(arrays), counters["comparisons"]
    if answers > counted and not any(deed["did"] == "forget" for deed in counters.get("history", [])):
        raise Corrupt(f"holds {answers:,.0f} comparisons, expected at most {counted:,} by the counters")


def _check_guard(name: str, meta: Mapping[str, Any], arrays: Mapping[str, Any], n: int) -> None:
    check_state(arrays, n)


class Snapshot(NamedTuple):
    """The complete state after a prefix of the stream, immutable.

    Attributes
    ----------
    sequence : int
        Sequence number.
    positions : mapping of str to Position
        The position after the last item read, by partition.
    objects : sequence of str
        Object names; the index is the id.
    labels : mapping of str to str
        Class by object name, including objects without comparisons.
    counters : mapping
        Events, records, comparisons, rejected, ...: see `Engine`.
    settings : mapping
        Settings that determine the state.
    arrays : mapping of str to ndarray
        Read-only arrays named "section/array": `adds3/*`, `adds4/*`, `triplet_counts/*`, `partial_order/*`, …
    digest : str
        SHA-256 of its encoding, once it has one.
    ignored : tuple of str
        Accumulators of older engines in the file that were not read.
    """

    sequence: int
    positions: Mapping[str, Position]  # partition -> after the last read item
    objects: Sequence[str]  # position = id; `packed_names.Names`, decoded when asked for
    labels: Mapping[str, str]  # object name -> class; may name objects that no comparison has named yet
    counters: Mapping[str, Any]  # events, records, comparisons, rejected, ...: see Engine
    settings: Mapping[str, Any]  # what shapes the state: accumulators in use, guard policy
    arrays: Mapping[str, np.ndarray]
    digest: str = ""  # SHA-256 of its encoding, once it has one
    ignored: tuple[str, ...] = ()  # accumulators of older engines that its file holds, and that were not read

    def section(self, name: str) -> dict[str, np.ndarray]:
        """The arrays of one accumulator or ledger.

        Parameters
        ----------
        name : str
            Name of the section, such as "triplet_counts".

        Returns
        -------
        dict of str to ndarray
            The arrays without the prefix; empty if the section does not exist.
        """
        prefix = name + "/"
        return {key[len(prefix) :]: array for key, array in self.arrays.items() if key.startswith(prefix)}


def frozen(arrays: Mapping[str, np.ndarray], allocation: Allocation = IN_MEMORY) -> dict[str, np.ndarray]:
    """The same arrays, such that nothing can change them any more. One that is all of its memory and read-only was made
    for us (`triplet_columns.handed_over`) and is taken as it is; all others are copied, allocated as told: a read-only
    view still changes with its base."""
    final = {name: array if _is_final(array) else allocation.copied(array) for name, array in arrays.items()}
    for array in final.values():
        array.setflags(write=False)
    return final


def _is_final(array: np.ndarray) -> bool:
    return type(array) is np.ndarray and is_whole(array) and not array.flags.writeable and array.flags.c_contiguous


def encode(snapshot: Snapshot, signing: Signing = UNSIGNED) -> tuple[list[memoryview], Snapshot]:
    """`(chunks to write, the snapshot with its digest)`; the digest does not depend on a key."""
    meta = {
        "sequence": snapshot.sequence,
        "positions": {name: list(position) for name, position in snapshot.positions.items()},
        "counters": snapshot.counters,
        "settings": snapshot.settings,
    }
    names = {f"objects/{k}": v for k, v in pack_names(snapshot.objects).items()}
    labelled = sorted(snapshot.labels)
    labels = pack_names(labelled), pack_names([snapshot.labels[name] for name in labelled])
    for prefix, packed in zip(("labels/object", "labels/label"), labels):
        names |= {f"{prefix}_{k}": v for k, v in packed.items()}
    chunks, digest = container.encode(KIND, meta, {**snapshot.arrays, **names}, signing)
    return chunks, snapshot._replace(digest=digest)


def _decoded(kind: str, meta: dict, arrays: dict[str, np.ndarray], digest: str) -> Snapshot:
    if kind != KIND:
        raise container.Corrupt(f"holds {kind!r}, expected {KIND!r}")
    ignored = drop_removed(meta, arrays)
    check_meta(meta)
    if meta["settings"]["guard"] in FORMER:
        arrays = _of_former_policy(arrays, meta["settings"]["guard"])
    check_contents(meta, arrays)
    objects = Names(arrays.pop("objects/utf8"), arrays.pop("objects/offsets"))
    keys = unpack_names(arrays.pop("labels/object_utf8"), arrays.pop("labels/object_offsets"))
    values = unpack_names(arrays.pop("labels/label_utf8"), arrays.pop("labels/label_offsets"))
    positions = {name: Position(*position) for name, position in meta["positions"].items()}
    return Snapshot(
        meta["sequence"],
        positions,
        objects,
        dict(zip(keys, values)),
        meta["counters"],
        meta["settings"],
        arrays,
        digest,
        ignored,
    )


def _of_former_policy(arrays: Mapping[str, np.ndarray], policy: str) -> dict[str, np.ndarray]:
    """With what the guard goes on from instead of what it remembered under a policy of version 0.1."""
    section = {name.removeprefix(ORDER): array for name, array in arrays.items() if name.startswith(ORDER)}
    others = {name: array for name, array in arrays.items() if not name.startswith(ORDER)}
    try:
        order_arrays = without_former_policy(section, policy)
    except container.Corrupt as error:
        raise container.Corrupt(f"partial_order: {error}") from None
    return others | {ORDER + name: array for name, array in order_arrays.items()}


def decode(buffer: bytes | memoryview, signing: Signing = UNSIGNED) -> Snapshot:
    """The snapshot in `buffer`, all of it checked. Raises `container.Corrupt`."""
    return _decoded(*container.decode(buffer, signing))


def read_snapshot(path: str | Path, signing: Signing = UNSIGNED) -> Snapshot:
    """Read a snapshot from a file. Its arrays are checked and mapped, not copied.

    Parameters
    ----------
    path : str or Path
        The file, `DIR/snapshots/NUMBER.snapshot`.
    signing : Signing
        The key with which the file must be signed; none by default.

    Returns
    -------
    Snapshot
        The snapshot.

    Raises
    ------
    Corrupt
        If the file is damaged, has invalid contents, or is not trusted.
    OSError
        If the file cannot be read.

    Examples
    --------
    >>> import tempfile
    >>> from stream_engine import read
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     state = read([("lemon", "lime", "bread")]).save(folder)
    ...     snapshot = read_snapshot(next(state.rglob("*.snapshot")))
    ...     list(snapshot.objects), snapshot.section("triplet_counts")["n_lo"].tolist()
    (['lemon', 'lime', 'bread'], [1])
    """
    return _decoded(*container.load(path, signing))


def triplet_columns(snapshot: Snapshot) -> Columns:
    """The triplet counts of a snapshot as columns.

    Parameters
    ----------
    snapshot : Snapshot
        The snapshot.

    Returns
    -------
    Columns
        The columns; empty if triplets are not counted.

    Examples
    --------
    >>> len(triplet_columns(Snapshot(1, {}, ["lemon", "lime"], {}, {}, {}, {})).lo)
    0
    """
    counts = snapshot.section("triplet_counts")
    if not counts:
        none, uncounted = np.empty(0, np.int32), np.empty(0, np.int64)
        return Columns(none, none, np.zeros(1, np.int64), none, uncounted, uncounted, len(snapshot.objects))
    return columns_of_state(counts, len(snapshot.objects))
