"""Every answered question with the confidence in its answers, and evidence for every object.

Whole judgements, with who gave them and when: what was kept for splits that keep together what belongs together.
"""

import numpy as np

from stream_engine.counts.confidence import answers_by_object, left_one_out, majority, predicted
from stream_engine.data.packed_names import pack_names
from stream_engine.data.triplet_columns import by_anchor, pair_of_entry
from stream_engine.evaluation.kept_responses import kept_responses
from stream_engine.exports import Content, NothingToExport
from stream_engine.exports.clusters import grouping
from stream_engine.exports.files import NameColumn, names_array
from stream_engine.exports.learned import names_of
from stream_engine.state.published import Published
from stream_engine.state.snapshot import triplet_columns


def _columns(published: Published):
    columns = triplet_columns(published.snapshot)
    if not len(columns.anchor):
        raise NothingToExport("this state has no triplet counts; add triplet_counts to `accumulators`")
    return columns


def questions(published: Published) -> dict[str, Content]:
    """A row for each question that was asked. The table has names, and can be read again as answers."""
    columns, names = _columns(published), published.snapshot.objects
    pair, order = pair_of_entry(columns), by_anchor(columns)
    lo, hi = columns.lo[pair], columns.hi[pair]
    rank = np.empty(len(names), np.int64)
    rank[sorted(range(len(names)), key=names.__getitem__)] = np.arange(len(names))
    turned = (columns.n_hi > columns.n_lo) | ((columns.n_hi == columns.n_lo) & (rank[hi] < rank[lo]))
    p_lo = predicted(left_one_out(columns), columns.n_lo, columns.n_hi)
    rows = {
        "anchor": columns.anchor,
        "near": np.where(turned, hi, lo),
        "far": np.where(turned, lo, hi),
        "n_near": np.maximum(columns.n_lo, columns.n_hi),
        "n_far": np.minimum(columns.n_lo, columns.n_hi),
        "confidence": majority(columns.n_lo, columns.n_hi),
        "predicted": np.where(turned, 1 - p_lo, p_lo),
    }
    arrays = {name: np.asarray(column)[order] for name, column in rows.items()}
    named = {name: NameColumn(arrays[name], names) for name in ("anchor", "near", "far")}
    return {"questions": Content(arrays, {"questions": {**arrays, **named}})}


def evidence(published: Published) -> dict[str, Content]:
    """A row for each object, see `counts.confidence`."""
    columns = _columns(published)
    snapshot = published.snapshot
    counted = answers_by_object(columns, snapshot.section("quadruplet_counts") or None)
    arrays = {name: np.asarray(array) for name, array in counted._asdict().items()}
    arrays["agreement"] = np.nan_to_num(counted.agreement, nan=0.5)
    clusters = grouping(published.artifacts)
    if clusters is not None and "stability" in clusters.arrays:
        stability = clusters.arrays["stability"]
        of = dict(zip(names_of(published, clusters.kind, len(stability)), stability.tolist()))
        arrays["cluster_stability"] = np.array([of.get(name, 0.0) for name in snapshot.objects])
    return {"evidence": Content(arrays, {"evidence": {"object": list(snapshot.objects), **arrays}})}


def judgements(published: Published) -> dict[str, Content]:
    """One row a comparison, d(near_i, near_j) < d(far_i, far_j), a triplet with its anchor as near_i and far_i. The
    table has names (none: empty), the arrays have ids."""
    responses = kept_responses(published.snapshot)
    if responses is None:
        raise NothingToExport(
            "this state has no responses; add `judgements` to `accumulators` and read the sources into a new state"
        )
    objects, of = published.snapshot.objects, responses.judgement
    columns = dict(zip(("near_i", "near_j", "far_i", "far_j"), responses.rows.T))
    table = {
        "judgement": of,
        "times": responses.times[of],
        "worker": _named(responses.worker, responses.worker_names, of),
        "time": np.ma.masked_invalid(responses.time[of]),
        "sampler": _named(responses.sampler, responses.sampler_names, of),
        **{name: NameColumn(column, objects) for name, column in columns.items()},
    }
    names = {
        f"{who}_{key}": array
        for who, called in (("worker", responses.worker_names), ("sampler", responses.sampler_names))
        for key, array in pack_names(called).items()
    }
    names |= names_array("worker_names", responses.worker_names) | names_array("sampler_names", responses.sampler_names)
    numbers = {
        "times": responses.times,
        "worker": responses.worker,
        "time": responses.time,
        "sampler": responses.sampler,
    }
    arrays = {**columns, "judgement": of, **numbers, **names, "complete": np.array(responses.complete)}
    return {"judgements": Content(arrays, {"judgements": table})}


def _named(column: np.ndarray, names: tuple[str, ...], of: np.ndarray) -> list[str | None]:
    return [names[i] if i >= 0 else None for i in column[of].tolist()]
