"""Whole judgements of a snapshot, with their comparisons: what is split when something is held out.

They are those of the accumulator `judgements`: all of the stream, or of a long stream a sample that depends on the
judgements' contents alone. So a model is trained on the snapshot's counts less those of the judgements held out, which
is exact whether or not the sample is whole.
"""

from typing import NamedTuple

import numpy as np

from stream_engine.counts.judgement_kernels import ALL
from stream_engine.data.packed_names import unpack_names
from stream_engine.state.snapshot import Snapshot


class Judgements(NamedTuple):
    """Whole judgements that were kept, each with its comparisons."""

    rows: np.ndarray  # (m, 4) int32: d(i, j) < d(k, l) as (i, j, k, l); a triplet is (anchor, near, anchor, far)
    judgement: np.ndarray  # (m,) int32 in 0 .. J - 1, non-decreasing
    times: np.ndarray  # (J,) int64: how often exactly this judgement (same content, worker, time) was given, >= 1
    worker: np.ndarray  # (J,) int32 index into worker_names, -1 where nobody is named
    worker_names: tuple[str, ...]
    time: np.ndarray  # (J,) float64 seconds, NaN where not said
    sampler: np.ndarray  # (J,) int32 index into sampler_names, -1 where not said
    sampler_names: tuple[str, ...]
    complete: bool  # every judgement of the stream is here


def judgements_of(snapshot: Snapshot) -> Judgements | None:
    """The judgements that a snapshot keeps, by their hashes; None where it keeps none. O(comparisons held).

    Not `complete` are those of a stream with more comparisons than the accumulator holds, or with a judgement too large
    for it, and those of a state that something came into by a way that tells no judgements.
    """
    state = snapshot.section("judgements")
    if not state:
        return None
    n = len(state["hash"])
    worker, sampler = (state[key] if len(state[key]) else np.full(n, -1, np.int32) for key in ("worker", "sampler"))
    return Judgements(
        state["rows"],
        np.repeat(np.arange(n, dtype=np.int32), state["size"]),
        state["times"].astype(np.int64),
        worker,
        unpack_names(state["worker_utf8"], state["worker_offsets"]),
        np.where(state["time"] == -np.inf, np.nan, state["time"]) if len(state["time"]) else np.full(n, np.nan),
        sampler,
        unpack_names(state["sampler_utf8"], state["sampler_offsets"]),
        int(state["below"]) == ALL and not int(state["larger"]),
    )
