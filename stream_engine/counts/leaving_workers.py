"""How a worker leaves what is kept by worker: with all answers, or with the name alone."""

from collections.abc import Sequence

import numpy as np

from stream_engine.counts.leaving import COUNTS, TRIPLET, Leaving, State, keys_without, rows_where
from stream_engine.data.packed_names import pack_names, unpack_names


def votes_without(state: State, leaving: Leaving, tallies: Sequence[str]) -> dict[str, np.ndarray]:
    """Votes by worker without those about an object, or without a worker and what was tallied of it."""
    about_workers = {name: np.array(state[name]) for name in ("utf8", "offsets", *tallies)}
    if leaving.of_object:
        return keys_without(state, TRIPLET, ("worker", *COUNTS), leaving.gone) | about_workers
    names = list(unpack_names(state["utf8"], state["offsets"]))
    if leaving.worker not in names:
        return dict(state)
    w = names.index(leaving.worker)
    votes = rows_where(state, state["worker"] != w, (*TRIPLET, "worker", *COUNTS))
    votes["worker"] = (votes["worker"] - (votes["worker"] > w)).astype(np.int32)
    return votes | pack_names(names[:w] + names[w + 1 :]) | {name: np.delete(state[name], w) for name in tallies}


def votes_of(state: State, worker: str) -> dict[str, np.ndarray]:
    """The triplets that a worker answered: `lo`, `hi`, `anchor`, `n_lo`, `n_hi`."""
    names = unpack_names(state["utf8"], state["offsets"])
    w = names.index(worker) if worker in names else -1
    return rows_where(state, state["worker"] == w, (*TRIPLET, *COUNTS))


def votes_with_worker_called(state: State, old: str, new: str, tallies: Sequence[str]) -> dict[str, np.ndarray]:
    """Votes by worker after one got another name; workers stand in the order of their names."""
    workers, number = workers_with_one_called(state, old, new, tallies)
    votes = rows_where(state, np.ones(len(state["lo"]), bool), (*TRIPLET, "worker", *COUNTS))
    votes["worker"] = number[votes["worker"]].astype(np.int32)
    order = np.lexsort((votes["worker"], votes["anchor"], votes["hi"], votes["lo"]))
    return {name: column[order] for name, column in votes.items()} | workers


def workers_with_one_called(
    state: State, old: str, new: str, beside: Sequence[str]
) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """`(the names and what stands beside them, in order again; the new number of each worker)`."""
    names = [new if name == old else name for name in unpack_names(state["utf8"], state["offsets"])]
    order = np.array(sorted(range(len(names)), key=names.__getitem__), np.int64)
    number = np.empty(len(names), np.int64)
    number[order] = np.arange(len(names))
    return pack_names([names[w] for w in order]) | {name: state[name][order] for name in beside}, number
