"""States that have learned events, as a run learns those of a file."""

import json
from collections.abc import Iterable

import numpy as np

from stream_engine.counts import ACCUMULATORS, DEFAULT_ACCUMULATORS
from stream_engine.formats import decoder
from stream_engine.formats.options import EventOptions
from stream_engine.state.engine import Engine
from stream_engine.state.snapshot import Snapshot

NAMED = EventOptions(provenance=True)


def snapshot_of(
    events: Iterable[dict], accumulators=DEFAULT_ACCUMULATORS, guard=True, objects=(), options=NAMED
) -> Snapshot:
    """The snapshot after these events; `objects` have the first ids."""
    engine = Engine(accumulators, guard)
    engine.objects.ids(list(objects))
    engine.learn(decoder("json", options)("\n".join(map(json.dumps, events)).encode()))
    return engine.snapshot()


def snapshot_of_rows(rows: np.ndarray, who: np.ndarray, times: np.ndarray) -> Snapshot:
    lines = [
        {"anchor": f"o{a}", "near": f"o{b}", "far": f"o{c}", "worker": f"w{w}"}
        | ({"time": 100.0 * t + at} if t else {})
        for at, ((a, b, c), w, t) in enumerate(zip(rows.tolist(), who.tolist(), times.tolist()))
    ]
    return snapshot_of(lines, tuple(ACCUMULATORS))
