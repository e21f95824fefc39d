"""The whole responses that a snapshot keeps (accumulator `judgements`), unpacked."""

from typing import NamedTuple

import numpy as np

from stream_engine.counts.judgement_kernels import ALL
from stream_engine.data.packed_names import unpack_names
from stream_engine.state.snapshot import Snapshot


class KeptResponses(NamedTuple):
    """Whole responses (here also called judgements) that a snapshot keeps, each with its answers: all of the stream, or
    a sample of a long stream that depends on the contents of the responses alone."""

    rows: np.ndarray  # (m, 4) int32: d(i, j) < d(k, l) as (i, j, k, l); a triplet is (anchor, near, anchor, far)
    judgement: np.ndarray  # (m,) int32 in 0 .. J - 1, non-decreasing
    times: np.ndarray  # (J,) int64: how often exactly this response (same content, worker, time) was given, >= 1
    worker: np.ndarray  # (J,) int32 index into worker_names, -1: nobody is named
    worker_names: tuple[str, ...]
    time: np.ndarray  # (J,) float64 seconds, NaN: no time
    sampler: np.ndarray  # (J,) int32 index into sampler_names, -1: none is named
    sampler_names: tuple[str, ...]
    complete: bool  # no response of the stream is missing


def kept_responses(snapshot: Snapshot) -> KeptResponses | None:
    """The responses that a snapshot keeps, by their hashes; None if it keeps none. O(their comparisons).

    They are not `complete` if the stream has more comparisons than the accumulator holds, or a response that is too
    large for it, or if the state was merged with counts that have no responses.
    """
    state = snapshot.section("judgements")
    if not state:
        return None
    n = len(state["hash"])
    worker, sampler = (state[key] if len(state[key]) else np.full(n, -1, np.int32) for key in ("worker", "sampler"))
    return KeptResponses(
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
