"""A snapshot without an object or without a participant, exactly or not at all.

Every statistic removes what leaves (`counts/removal.py`), or nothing is forgotten unless the caller drops that
statistic. Afterwards the counts are those of a stream in which the object was never shown.
"""

import copy
from collections.abc import Collection, Mapping
from contextlib import suppress
from typing import Any, NamedTuple

import numpy as np

from stream_engine.counts import ACCUMULATORS, Forgetting, Statistic, accumulator
from stream_engine.counts.judgement_kernels import ALL
from stream_engine.counts.judgement_states import response_columns
from stream_engine.counts.removal import (
    COUNTS,
    QUADRUPLET,
    TRIPLET,
    CannotForget,
    Removal,
    counted_triplets_without,
    rows_naming,
    rows_where,
    triplet_rows,
    votes_of,
)
from stream_engine.counts.worker_votes import WorkerVotes
from stream_engine.data.packed_names import unpack_names
from stream_engine.order.removal import without_object, without_uncounted
from stream_engine.state.snapshot import Snapshot

_NO_TRIPLETS = {name: np.empty(0, np.int32) for name in (*TRIPLET, *COUNTS)}
_NO_QUADRUPLETS = {name: np.empty(0, np.int32) for name in (*QUADRUPLET, *COUNTS)}


class UnknownName(LookupError):
    """A name that the state does not hold, or one that it holds already. One line."""


# Comparisons that name the object are gone, others of the same events stay, and ids close the gap. Positions and
# numbers of records, events and verdicts stay. What the guard had refused because of the object does not come back.
class ForgetResult(NamedTuple):
    """The state afterwards, with the next number, and what to say about it."""

    snapshot: Snapshot
    comparisons: int | None  # that left; None: their number is not known
    order_lost: int  # comparisons that the guard had kept and dropped
    answers_stay: bool = False  # of a worker: only the name left


def forget_object(snapshot: Snapshot, name: str, drop: Collection[str] = ()) -> ForgetResult:
    """The state without an object, and without the accumulators in `drop`. A name with a label alone loses that.

    Raises `UnknownName`, `CannotForget` (which names the accumulators that hinder it).
    """
    names = list(snapshot.objects)
    if name not in names and name not in snapshot.labels:
        raise UnknownName(f"no object {name!r} in snapshot {snapshot.sequence}")
    labels = {object_name: label for object_name, label in snapshot.labels.items() if object_name != name}
    if name not in names:
        return ForgetResult(_next(snapshot, labels=labels), 0, 0)
    gone = names.index(name)
    leaving = _about_object(snapshot, gone)
    states = _without(snapshot, leaving, drop)
    counters, n_forgotten = _fewer(snapshot, leaving)
    n_lost = 0
    if snapshot.settings["guard"]:
        before = snapshot.section("partial_order")
        states["partial_order"] = without_object(before, gone)
        n_lost = len(before["kept"]) - len(states["partial_order"]["kept"])
    smaller = _next(snapshot, labels=labels, objects=names[:gone] + names[gone + 1 :], counters=counters)
    return ForgetResult(_with_states(smaller, states, drop), n_forgotten, n_lost)


def forget_worker(
    snapshot: Snapshot, worker: str, drop: Collection[str] = (), keep_answers: bool = False
) -> ForgetResult:
    """The state without a worker: without all answers where `worker_votes` holds them by worker, else (or with
    `keep_answers`) without the name, in whose place one stands that says nothing.

    Raises `UnknownName`, `CannotForget`.
    """
    workers = workers_of(snapshot)
    if worker not in workers:
        raise UnknownName(f"no worker {worker!r} in snapshot {snapshot.sequence}")
    votes = snapshot.section("worker_votes")
    if not votes or keep_answers:
        number = 1
        while f"forgotten-{number}" in workers:
            number += 1
        renamed = {
            name: kind.with_worker_called(snapshot.section(name), worker, f"forgotten-{number}")
            for name, kind in _kinds(snapshot, drop).items()
        }
        return ForgetResult(_with_states(_next(snapshot), renamed | _order_of(snapshot), drop), 0, 0, True)
    leaving = Removal(votes_of(votes, worker), _quadruplets_of(snapshot, worker), worker=worker)
    counters, n_forgotten = _fewer(snapshot, leaving)
    states = _without(snapshot, leaving, drop)
    order, n_lost = _order_of_answers(snapshot, states, leaving)
    return ForgetResult(_with_states(_next(snapshot, counters=counters), states | order, drop), n_forgotten, n_lost)


def workers_of(snapshot: Snapshot) -> set[str]:
    """Everybody whom the snapshot names."""
    names_of_parts = [_workers(snapshot.section(name)) for name in ("worker_votes", "response_patterns")]
    names_of_parts.append(_workers(snapshot.section("judgements"), "worker_"))
    return {name for names in names_of_parts for name in names if name}


def _quadruplets_of(snapshot: Snapshot, worker: str) -> dict[str, np.ndarray] | None:
    """A worker's comparisons of four objects, from whole judgements; None where these are not all there."""
    if snapshot.counters["quadruplets"] == 0:
        return _NO_QUADRUPLETS
    judgements = snapshot.section("judgements")
    if not judgements or int(judgements["below"]) != ALL or int(judgements["larger"]):
        return None
    names, some = _workers(judgements, "worker_"), response_columns(judgements)
    rows = np.asarray(some.rows)
    of_row = np.repeat(some.worker, some.size)
    mine = (of_row == (names.index(worker) if worker in names else -2)) & (rows[:, 0] != rows[:, 2])
    times = np.repeat(some.times, some.size)[mine]
    near, far = np.sort(rows[mine][:, :2], axis=1), np.sort(rows[mine][:, 2:], axis=1)
    first = (near[:, 0] < far[:, 0]) | ((near[:, 0] == far[:, 0]) & (near[:, 1] < far[:, 1]))
    keys = np.where(first[:, None], np.hstack([near, far]), np.hstack([far, near])).astype(np.int32)
    counts = {"n_lo": np.where(first, times, 0), "n_hi": np.where(first, 0, times)}
    return {name: keys[:, column] for column, name in enumerate(QUADRUPLET)} | counts


def with_history(snapshot: Snapshot, time: str, did: str, **details: Any) -> Snapshot:
    """The snapshot with one more entry in its history."""
    history = [*snapshot.counters.get("history", []), {"did": did, "time": time, **details}]
    return snapshot._replace(counters={**snapshot.counters, "history": history})


def forgotten_in(counters: Mapping[str, Any]) -> dict[str, int]:
    """How many objects and workers a state has forgotten, by its history.

    >>> forgotten_in({"history": [{"did": "forget", "what": "object"}, {"did": "seek"}]})
    {'objects': 1, 'workers': 0}
    """
    what = [deed.get("what") for deed in counters.get("history", []) if deed["did"] == "forget"]
    return {"objects": what.count("object"), "workers": what.count("worker")}


def without_aliases(snapshot: Snapshot, name: str) -> tuple[Snapshot, set[str]]:
    """`(the snapshot whose history does not say any more how an object of this name was called before, all its names)`;
    names that other objects have by now are not among them."""
    history = copy.deepcopy(list(snapshot.counters.get("history", [])))
    aliases = {name}
    for deed in reversed(history):
        if deed["did"] == "rename" and deed.get("new") in aliases:
            aliases |= {deed.pop("old"), deed.pop("new")}
    if not history:
        return snapshot, aliases
    others = {other for other in snapshot.objects if other != name}
    return snapshot._replace(counters={**snapshot.counters, "history": history}), aliases - others


def _next(snapshot: Snapshot, **changes: Any) -> Snapshot:
    return snapshot._replace(sequence=snapshot.sequence + 1, digest="", **changes)


def _kinds(snapshot: Snapshot, drop: Collection[str]) -> dict[str, type[Statistic]]:
    """The class of each statistic that stays."""
    forgetting = Forgetting(**snapshot.settings.get("forgetting", {}))
    used = [name for name in ACCUMULATORS if name in snapshot.settings["accumulators"]]
    if strangers := sorted(set(drop) - set(used)):
        raise UnknownName(f"--drop {strangers[0]}: the state keeps {', '.join(used) or 'no accumulators'}")
    return {name: accumulator(name, forgetting) for name in used if name not in drop}


def _about_object(snapshot: Snapshot, gone: int) -> Removal:
    """The comparisons that name an object, from what holds them one by one."""
    triplets = quadruplets = None
    if section := snapshot.section("triplet_counts"):
        rows: Mapping[str, np.ndarray] = triplet_rows(section)
    else:
        rows = snapshot.section("worker_votes")
    if rows:
        triplets = rows_where(rows, rows_naming(rows, TRIPLET, gone), (*TRIPLET, *COUNTS))
    elif not snapshot.counters["triplets"]:
        triplets = _NO_TRIPLETS
    if section := snapshot.section("quadruplet_counts"):
        quadruplets = rows_where(section, rows_naming(section, QUADRUPLET, gone), (*QUADRUPLET, *COUNTS))
    elif not snapshot.counters["quadruplets"]:
        quadruplets = _NO_QUADRUPLETS
    return Removal(triplets, quadruplets, gone)


def _without(snapshot: Snapshot, leaving: Removal, drop: Collection[str]) -> dict[str, dict[str, np.ndarray]]:
    """The states of all statistics after something left. Raises `CannotForget` with all that hinder it."""
    states, hindered = {}, []
    for name, kind in _kinds(snapshot, drop).items():
        try:
            states[name] = kind.without(snapshot.section(name), leaving)
        except CannotForget as error:
            hindered.append((name, str(error)))
    if hindered:
        raise CannotForget(
            "; ".join(f"{name} {why}" for name, why in hindered)
            + f". Nothing was deleted; use {' '.join(f'--drop {name}' for name, _ in hindered)} to remove "
            + ("it" if len(hindered) == 1 else "them")
            + " from the state"
        )
    return states


def _fewer(snapshot: Snapshot, leaving: Removal) -> tuple[dict[str, Any], int | None]:
    """`(the counters after comparisons left, how many)`; None where some of them were not held one by one."""
    counters, n_forgotten = dict(snapshot.counters), 0
    for name, rows in (("triplets", leaving.triplets), ("quadruplets", leaving.quadruplets)):
        n = 0 if rows is None else sum(int(rows[count].sum(dtype=np.int64)) for count in COUNTS)
        counters[name] -= n
        counters["comparisons"] -= n
        n_forgotten += n
    return counters, None if leaving.triplets is None or leaving.quadruplets is None else n_forgotten


def _order_of(snapshot: Snapshot) -> dict[str, dict[str, np.ndarray]]:
    return {"partial_order": snapshot.section("partial_order")} if snapshot.settings["guard"] else {}


def _order_of_answers(
    snapshot: Snapshot, states: Mapping[str, Mapping[str, np.ndarray]], leaving: Removal
) -> tuple[dict[str, dict[str, np.ndarray]], int]:
    """The guard's section without what nobody answered any more, and how many kept comparisons that were."""
    if not snapshot.settings["guard"]:
        return {}, 0
    before = snapshot.section("partial_order")
    counts = states.get("triplet_counts")
    if not counts and (dropped := snapshot.section("triplet_counts")):  # votes beside them name somebody
        with suppress(CannotForget):
            counts = counted_triplets_without(dropped, leaving)
    rows = triplet_rows(counts) if counts else WorkerVotes.without(snapshot.section("worker_votes"), leaving)
    lower, higher = rows["n_lo"] > 0, rows["n_hi"] > 0
    near, far, anchor = (
        np.concatenate([rows[a][lower], rows[b][higher]]) for a, b in (("lo", "hi"), ("hi", "lo"), ("anchor", "anchor"))
    )
    after = without_uncounted(before, near, far, anchor)
    return {"partial_order": after}, len(before["kept"]) - len(after["kept"])


def _with_states(snapshot: Snapshot, states: Mapping[str, Mapping[str, np.ndarray]], drop: Collection[str]) -> Snapshot:
    """The snapshot with these sections and no others, and settings that fit them."""
    arrays = {f"{name}/{key}": array for name, state in states.items() for key, array in state.items()}
    settings = dict(snapshot.settings)
    if drop:
        settings["accumulators"] = [name for name in settings["accumulators"] if name not in drop]
        if "forgetting" in settings:
            used = {field for kind in _kinds(snapshot, drop).values() for field in kind.forgets}
            used |= {"by"} if used else set()
            settings["forgetting"] = {name: value for name, value in settings["forgetting"].items() if name in used}
            if not used:
                del settings["forgetting"]
    return snapshot._replace(arrays=arrays, settings=settings)


def _workers(state: Mapping[str, np.ndarray], prefix: str = "") -> tuple[str, ...]:
    return unpack_names(state[f"{prefix}utf8"], state[f"{prefix}offsets"]) if state else ()
