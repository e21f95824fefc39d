"""What a snapshot may hold, checked when it is read: header, names, labels, and the arrays of every section in use.

A right checksum says that a file is as it was written, not who wrote it. Nothing that is read from one reaches the
engine, an export or a refit before it passed here; what fails is `Corrupt`, in one line. O(size), and no copy of an
array. What an accumulator's arrays are is declared by the accumulator (`HOLDS`, `check_state`), and by the guard.
"""

import math
import re
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from stream_engine.counts import ACCUMULATORS, Forgetting, accumulator
from stream_engine.data.container import Corrupt
from stream_engine.data.name_checks import check_names
from stream_engine.order.stored_states import FORMER, POLICY, check_state

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
LARGEST = 1 << 62  # of offsets, marks and counters
_SHARE = re.compile(r"[0-9]{1,9}/[0-9]{1,9}")
_FORGETTING: dict[str, Callable[[Any], bool]] = {
    "by": lambda value: value in ("count", "time"),
    "half_life": lambda value: _is_positive(value),
    "window": lambda value: _is_positive(value),
}


def drop_removed(meta: Mapping[str, Any], arrays: dict[str, np.ndarray]) -> tuple[str, ...]:
    """Take accumulators that engines no longer have out of a header and its arrays; which ones there were."""
    settings = meta.get("settings")
    used = settings.get("accumulators") if isinstance(settings, dict) else None
    if not isinstance(used, list):
        return ()
    found = tuple(name for name in REMOVED if name in used)
    for name in found:
        used.remove(name)
        for key in [key for key in arrays if key.startswith(f"{name}/")]:
            del arrays[key]
    return found


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
    return type(value) is int and 0 <= value < LARGEST


def _is_positive(value: Any) -> bool:
    return type(value) in (int, float) and 0 < value < math.inf


def _check_settings(settings: Mapping[str, Any]) -> None:
    unknown = settings.keys() - {"accumulators", "guard", "forgetting"}
    _expect("settings", not unknown, sorted(unknown), "accumulators, guard and forgetting")
    used, guard = settings.get("accumulators"), settings.get("guard", ...)
    known = [name for name in ACCUMULATORS if isinstance(used, list) and name in used]
    whole = isinstance(used, list) and len(used) == len(known)
    _expect("settings.accumulators", whole, used, f"some of {', '.join(ACCUMULATORS)}, each once")
    known_guards = (None, POLICY, *FORMER)
    _expect("settings.guard", guard in known_guards, guard, f"none or one of {', '.join(known_guards[1:])}")
    forgetting = _table("settings.forgetting", settings.get("forgetting", {}))
    needed = {field for name in known for field in accumulator(name).forgets}
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
    whole = isinstance(unknown, list) and all(isinstance(each, str) for each in unknown)
    _expect("counters.unknown_fields", whole, unknown, "names of fields")
    for name, totals in _table("counters.progressive", counters.get("progressive")).items():
        _check_counts(f"counters.progressive.{name[:80]}", totals)
        complete = {"tested", "correct", "undecided"} == totals.keys()
        _expect(f"counters.progressive.{name[:80]}", complete, sorted(totals), "tested, correct, undecided")
    for name, place in _table("counters.sinks", counters.get("sinks", {})).items():
        whole = {"file": is_count, "kafka": _is_by_partition}.get(name, _is_place)(place)
        _expect(f"counters.sinks.{name[:80]}", whole, place, "a place >= 0, or one by partition")
    share = counters.get("share", "0/1")
    _expect("counters.share", isinstance(share, str) and bool(_SHARE.fullmatch(share)), share, '"i/n"')
    _check_history(counters.get("history", []))


def _is_place(value: Any) -> bool:
    """What a sink wants to be remembered: a number >= 0, or some by a name."""
    return all(map(is_count, value.values())) if isinstance(value, dict) else is_count(value)


def _is_by_partition(value: Any) -> bool:
    return isinstance(value, dict) and _is_place(value) and all(re.fullmatch("[0-9]{1,9}", key) for key in value)


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
