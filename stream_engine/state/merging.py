"""The counters of a state, and the sum of two states."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from stream_engine.counts import Accumulator, Ledger, common_sums
from stream_engine.data.comparisons import Batch, DecodedEvents, ExternalCounts
from stream_engine.data.mapped_arrays import Allocation
from stream_engine.order.partial_order import Verdicts
from stream_engine.state import event_time

AnyAccumulators = dict[str, Accumulator | Ledger]
_PLAIN_COUNTS = ("events", "records", "comparisons", "triplets", "quadruplets", "labels", "filtered", "empty")
# in a snapshot only where there is something
OPTIONAL_COUNTERS: dict[str, Callable[[], Any]] = {
    "lost": dict,
    "dead_letters": dict,
    "history": list,
    "input": dict,
    "time_jumps": dict,
    "repeated": int,
}
OF_THREE = "three"  # kind of the screens of a sum of states, of which each is an odd-one-out answer
_NOT_COUNTED = ExternalCounts({}, np.empty((0, 4), np.int32), 0, 0, 0, 0)


class OverlappingStates(ValueError):
    """Two states that cannot be merged: they counted the same partition, whose events would count twice, or differ in
    kind. One line."""


def empty_counters() -> dict[str, Any]:
    """All counters at zero. `rejected` is by reason, `kinds` by event type, `progressive` by predictor, `lost` (records
    that were passed over with consent) by partition, `dead_letters` (which are in their folder no more) by what became
    of them: lost or removed; `history` is what operators did to the state, oldest first; `input` says how it was
    read; `repeated` counts responses that were sent twice; `time_jumps`: see `event_time`."""
    return {
        **dict.fromkeys(_PLAIN_COUNTS, 0),
        "rejected": {},
        "kinds": {},
        "guard": dict.fromkeys(Verdicts._fields, 0),
        "unknown_fields": [],
        "progressive": {},
        **{name: empty() for name, empty in OPTIONAL_COUNTERS.items()},
    }


def are_of_screens(counters: Mapping[str, Any]) -> bool:
    """Whether rows that were read are comparisons of screens (`--columns screen=...`, or as they showed), in a state or
    in one of those that it is the sum of.

    >>> are_of_screens({"input": {"options": {"columns": {"screen": "page"}}}}), are_of_screens({})
    (True, False)
    """
    made_with = counters.get("input", {})
    options = made_with.get("options")
    columns = options.get("columns", {}) if isinstance(options, Mapping) else {}
    return bool(made_with.get("screens")) or columns.get("screen", "-") != "-"


def are_of_three(counters: Mapping[str, Any]) -> bool:
    """Whether screens are of three objects each, and not of one anchor: comparisons of one odd-one-out answer, told by
    the column of the farther objects.

    >>> are_of_three({"input": {"options": {"columns": {"screen": "far"}}}}), are_of_three({})
    (True, False)
    """
    made_with = counters.get("input", {})
    options = made_with.get("options")
    columns = options.get("columns", {}) if isinstance(options, Mapping) else {}
    return made_with.get("screens") == OF_THREE or columns.get("screen", "-") == columns.get("far", "far")


def count(table: dict[str, int], more: Mapping[str, int]) -> None:
    """Add to a table of counts."""
    for key, n in more.items():
        table[key] = table.get(key, 0) + n


def count_block(counters: dict[str, Any], decoded: DecodedEvents, batch: Batch, records: int) -> None:
    """Count the events, comparisons and rejections of a block of so many records."""
    counters["records"] += records
    counters["events"] += sum(decoded.events.values())
    elsewhere = decoded.counted or _NOT_COUNTED
    triplets, quadruplets = len(batch.triplets) + elsewhere.triplets, len(batch.quadruplets) + elsewhere.quadruplets
    counters["triplets"] += triplets
    counters["quadruplets"] += quadruplets
    counters["comparisons"] += triplets + quadruplets
    counters["labels"] += elsewhere.labels if decoded.counted else len(decoded.labels)
    counters["filtered"] += decoded.filtered
    counters["empty"] += decoded.empty
    counters["repeated"] += decoded.repeated
    count(counters["kinds"], decoded.events)
    for rejected in decoded.rejected:
        count(counters["rejected"], {rejected.reason: 1})
    if not decoded.unknown_fields <= set(counters["unknown_fields"]):
        counters["unknown_fields"] = sorted(decoded.unknown_fields.union(counters["unknown_fields"]))


def all_mergeable(accumulators: AnyAccumulators) -> dict[str, Accumulator]:
    """The accumulators by name. Raises `OverlappingStates` where there is a ledger among them."""
    mergeable: dict[str, Accumulator] = {}
    for name, accumulator in accumulators.items():
        if not accumulator.mergeable:
            raise OverlappingStates(
                f"{name} depends on the order of arrival in one stream and cannot be merged"
                + ('; forgetting.by = "time" can' if accumulator.forgets else "")
            )
        mergeable[name] = accumulator
    return mergeable


def add(
    mergeable: Mapping[str, Accumulator],
    state_of: Callable[[str], Mapping[str, np.ndarray]],
    new_id: np.ndarray,
    allocation: Allocation,
) -> None:
    """Add a state of each accumulator, object i of theirs being new_id[i] here."""
    common_sums.part(mergeable, state_of)
    for name, mine in mergeable.items():
        if common_sums.holder(mine) is mine:
            mine.merge(type(mine).from_state(mine.renamed(state_of(name), new_id), allocation))


def summed(mine: Mapping[str, Any], theirs: Mapping[str, Any]) -> dict[str, Any]:
    """The counters of the sum of two states."""
    both = {**mine, **{name: mine[name] + theirs[name] for name in _PLAIN_COUNTS}}
    for name in ("rejected", "kinds", "guard", "lost", "dead_letters"):
        both[name] = {key: mine[name].get(key, 0) + theirs[name].get(key, 0) for key in mine[name] | theirs[name]}
    both["repeated"] = mine["repeated"] + theirs["repeated"]
    both["history"] = sorted([*mine["history"], *theirs["history"]], key=lambda deed: deed["time"])
    both["time_jumps"] = event_time.added(mine["time_jumps"], theirs["time_jumps"])
    if mine["input"] != theirs["input"]:
        of_screens = [each for each in (mine, theirs) if are_of_screens(each)]
        kind = OF_THREE if all(map(are_of_three, of_screens)) else True
        both["input"] = {"screens": kind} if of_screens else {}
    both["unknown_fields"] = sorted({*mine["unknown_fields"], *theirs["unknown_fields"]})
    return both
