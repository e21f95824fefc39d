"""The event time of a state that forgets by time: how far it has come, and where it jumped ahead.

What forgets by time measures age from the newest time that was counted, so one event from far ahead makes everything
before it old. Such jumps are counted as they arrive: `counters["time_jumps"]` is empty, or {"number": how many, "from":
…, "to": …} with the times around the largest.
"""

from collections.abc import Iterable, MutableMapping
from typing import Any

import numpy as np

from stream_engine.counts import Forgetting
from stream_engine.state.snapshot import Snapshot

_FORGET = ("adds3_decayed", "triplet_counts_decayed", "window")


def newest_time(snapshot: Snapshot) -> float | None:
    """Epoch seconds of the newest event that was counted by time; None if there is none, or nothing forgets by time."""
    states = [state for name in _FORGET if (state := snapshot.section(name)) and bool(state["by_time"])]
    newest = max((float(state["newest"]) for state in states), default=-np.inf)
    return None if newest == -np.inf else newest


def jump_limit(forgetting: Forgetting, used: Iterable[str]) -> float:
    """Seconds from which on a step ahead is a jump: the half-life, or the window if nothing decays."""
    return forgetting.half_life if "half_life" in used else forgetting.window


def count_jumps(jumps: MutableMapping[str, Any], newest: float, times: np.ndarray, limit: float) -> None:
    """Count the jumps of a batch whose events have these `times`, in the order of arrival, after one `newest` so far.

    >>> jumps = {}
    >>> count_jumps(jumps, -np.inf, np.array([5.0, 3.0, np.nan, 20.0, 21.0]), 10)
    >>> count_jumps(jumps, 21.0, np.array([99.0]), 10)
    >>> jumps
    {'number': 2, 'from': 21.0, 'to': 99.0}
    """
    reached = np.maximum.accumulate(np.append(newest, times[~np.isnan(times)]))
    reached = reached[reached > -np.inf]
    steps = np.diff(reached)
    number = int(np.count_nonzero(steps > limit))
    if number:
        widest = int(np.argmax(steps))
        of_batch = {"number": number, "from": float(reached[widest]), "to": float(reached[widest + 1])}
        jumps.update(added(jumps, of_batch))


def added(one: MutableMapping[str, Any], other: MutableMapping[str, Any]) -> dict[str, Any]:
    """The jumps of both, the larger one of the two largest."""
    if not one or not other:
        return dict(one or other)
    larger = max(one, other, key=lambda jump: jump["to"] - jump["from"])
    return {**larger, "number": one["number"] + other["number"]}
