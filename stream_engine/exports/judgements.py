"""Whole judgements, with who gave them and when: what was kept for splits that keep together what belongs together."""

import numpy as np

from stream_engine.data.packed_names import pack_names
from stream_engine.evaluation.judgement_folds import judgements_of
from stream_engine.exports import Content, NothingToExport
from stream_engine.exports.naming import NameColumn, names_array
from stream_engine.state.published import Published


def judgements(published: Published) -> dict[str, Content]:
    """One row a comparison, d(near_i, near_j) < d(far_i, far_j), a triplet with its anchor as near_i and far_i; beside
    it its judgement, how often that was given, by whom, when, and by what sampler it was asked. The table has names
    (none: empty); the arrays have ids, and `complete`, whether all judgements of the stream are here."""
    kept = judgements_of(published.snapshot)
    if kept is None:
        raise NothingToExport(
            "this state has no responses; add `judgements` to `accumulators` and read the sources into a new state"
        )
    objects, of = published.snapshot.objects, kept.judgement
    columns = dict(zip(("near_i", "near_j", "far_i", "far_j"), kept.rows.T))
    table = {
        "judgement": of,
        "times": kept.times[of],
        "worker": _named(kept.worker, kept.worker_names, of),
        "time": np.ma.masked_invalid(kept.time[of]),
        "sampler": _named(kept.sampler, kept.sampler_names, of),
        **{name: NameColumn(column, objects) for name, column in columns.items()},
    }
    names = {
        f"{who}_{key}": array
        for who, called in (("worker", kept.worker_names), ("sampler", kept.sampler_names))
        for key, array in pack_names(called).items()
    }
    names |= names_array("worker_names", kept.worker_names) | names_array("sampler_names", kept.sampler_names)
    told = {"times": kept.times, "worker": kept.worker, "time": kept.time, "sampler": kept.sampler}
    arrays = {**columns, "judgement": of, **told, **names, "complete": np.array(kept.complete)}
    return {"judgements": Content(arrays, {"judgements": table})}


def _named(column: np.ndarray, names: tuple[str, ...], of: np.ndarray) -> list[str | None]:
    return [names[i] if i >= 0 else None for i in column[of].tolist()]
