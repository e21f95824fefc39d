"""objects and summary.json: counts of events and comparisons, rejected events by reason, and results."""

from typing import Any

import numpy as np

from stream_engine.clustering.sentence import sentence
from stream_engine.exports import Content
from stream_engine.exports.clusters import cluster_answer
from stream_engine.state.forgetting import forgotten_in
from stream_engine.state.object_index import waiting
from stream_engine.state.published import Published
from stream_engine.state.snapshot import Snapshot, triplet_columns


def objects(published: Published) -> dict[str, Content]:
    """JSON: the names, position = id. The table `objects`: a row an object, with all that is known of it."""
    from stream_engine.exports import object_table  # it brings scipy, which the summary does without

    return {
        "objects": Content(tables={"objects": object_table.table(published)}, value=list(published.snapshot.objects))
    }


def summary(published: Published) -> dict[str, Content]:
    """The figures of the contract; see `summary_of`. Where there is an answer about clusters, it is here, too."""
    results = {}
    if "clusters" in published.artifacts:
        answer = cluster_answer(published)
        figures = {key: answer.get(key) for key in ("grade", "reason", "k")}
        results = {"clusters": {**figures, "sentence": sentence(answer)}}
    return {"summary": Content(value=summary_of(published.snapshot) | results)}


def summary_of(snapshot: Snapshot) -> dict[str, Any]:
    """The figures of a snapshot, by the contract's names.

    `unique_triplets` counts distinct (anchor, near, far); `contradicting_pairs` the (anchor, {near, far}) seen in both
    directions, `contradicting_triplets` the sum of the smaller of their two counts. `guard` counts verdicts since the
    beginning; `order_kept` is how many comparisons the partial order keeps now, null where there is none.
    `not_in_recent`, where something
    forgets: triplets that were too late, or had no time, for it. Where there is something to say: `share` "i/n", the
    share of a topic that the state was made with; `repeated`, responses
    that were sent twice; `lost`, records passed over with consent, by partition;
    `dead_letters_lost` and `dead_letters_removed`, letters that are in their folder no more; `history`, what was done
    to the state on purpose; `forgotten`, how many objects and workers. O(keys).
    """
    counters = snapshot.counters
    columns = triplet_columns(snapshot)
    contradictions = np.minimum(columns.n_lo, columns.n_hi)
    return {
        "snapshot": snapshot.sequence,
        "objects": len(snapshot.objects),
        **{key: counters[key] for key in ("events", "records", "comparisons", "triplets", "quadruplets", "labels")},
        "labelled_objects": len(snapshot.labels) - len(waiting(snapshot.labels, {*snapshot.objects})),
        "filtered": counters["filtered"],
        "empty": counters["empty"],
        "kinds": dict(sorted(counters["kinds"].items())),
        "rejected": dict(sorted(counters["rejected"].items())),
        "unknown_fields": counters["unknown_fields"],
        "unique_triplets": int(np.count_nonzero(columns.n_lo) + np.count_nonzero(columns.n_hi)),
        "contradicting_pairs": int(np.count_nonzero(contradictions)),
        "contradicting_triplets": int(contradictions.sum()),
        "guard": dict(counters["guard"]),
        "order_kept": kept_now(snapshot),
        "positions": {name: position.offset for name, position in sorted(snapshot.positions.items())},
        "progressive": counters["progressive"],
        **{name: counters[name] for name in ("share", "lost", "history", "repeated") if name in counters},
        **{f"dead_letters_{what}": n for what, n in counters.get("dead_letters", {}).items()},
        **({"forgotten": forgotten} if any((forgotten := forgotten_in(counters)).values()) else {}),
        **({"not_in_recent": excluded} if (excluded := _left_out(snapshot)) else {}),
    }


def kept_now(snapshot: Snapshot) -> int | None:
    """How many comparisons the partial order keeps, as the export `partial_order` has rows; None where none is kept.
    Fewer than were accepted, where something was forgotten."""
    state = snapshot.section("partial_order")
    return len(state["kept"]) if state else None


def _left_out(snapshot: Snapshot) -> dict[str, dict[str, int]]:
    """What accumulators that forget by time did not count: triplets too late for the window, triplets without a
    time."""
    rooms = {name: snapshot.section(name) for name in ("window", "adds3_decayed", "triplet_counts_decayed")}
    return {
        name: {what: int(room[what]) for what in ("late", "untimed") if what in room}
        for name, room in rooms.items()
        if room
    }
