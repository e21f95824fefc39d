"""What says something about participants: written only when asked for."""

import numpy as np

from stream_engine.data.packed_names import unpack_names
from stream_engine.evaluation.response_checks import response_checks
from stream_engine.exports import Content, NothingToExport
from stream_engine.exports.files import names_array
from stream_engine.state.published import Published

_COLUMNS = (
    "events",
    "comparisons",
    "agreed",
    "disagreed",
    "repeats",
    "contradictions",
    "passed",
    "failed",
    "accuracy",
    "weight",
)


def workers(published: Published) -> dict[str, Content]:
    """One row a worker, in the order of names. Raises `NothingToExport`."""
    if "reliability" not in published.artifacts:
        raise NothingToExport(
            "no reliability artifact in this state; run `stream-engine refit --state DIR reliability`"
        )
    arrays = published.artifacts["reliability"].arrays
    names = unpack_names(arrays["utf8"], arrays["offsets"])
    checks = response_checks(published.snapshot, names)
    columns = {name: arrays[name] for name in _COLUMNS} | {
        "response_time": checks.seconds,
        "under_300_ms": checks.fast,
        "position": checks.position + 1,
        "positions": checks.shown,
        "position_share": checks.share,
        "longest_run": checks.longest,
        "p_position": checks.p_position,
        "p_run": checks.p_run,
        "p_fast": checks.p_fast,
    }
    return {"workers": Content(names_array("worker", names) | columns, {"workers": {"worker": list(names), **columns}})}


def participants(published: Published) -> dict[str, Content]:
    """One row a participant, in the order of names. Raises `NothingToExport`."""
    artifact = published.artifacts.get("embedding")
    if artifact is None or not len(artifact.arrays["worker_lapse"]):
        raise NothingToExport(
            "no embedding with participants in this state; include worker_votes or judgements in `accumulators`, name "
            "participants in the answers, and run `stream-engine refit --state DIR embedding`"
        )
    arrays = artifact.arrays
    names = unpack_names(arrays["utf8"], arrays["offsets"])
    absolute = np.asarray(arrays.get("worker_weights", np.ones((len(names), arrays["X"].shape[1]))))
    slope, group = absolute.mean(axis=1), np.asarray(arrays.get("worker_group", np.full(len(names), -1)))
    weights = absolute / slope[:, None]
    stack = np.asarray(arrays.get("worker_stack", np.tile((1.0, 0.0), (len(names), 1))), float)
    gain = np.asarray(arrays.get("worker_gain", np.tile((np.nan, np.nan, 1.0), (len(names), 1))), float)
    columns = {
        "lapse": np.asarray(arrays["worker_lapse"]),
        "slope": slope,
        "group": np.where(group >= 0, group + 1, -1),
        "of_group_map": stack[:, 0],
        "of_own_map": stack[:, 1],
        "gain": gain[:, 0],
        "gain_error": gain[:, 1],
        "p_differs": gain[:, 2],
    }
    axes = {f"weight_{number + 1}": column for number, column in enumerate(weights.T)}
    verdict = artifact.report.get("individual_differences", {}).get("verdict", "not tested")
    contents = names_array("participant", names) | columns | {"weights": weights, "verdict": np.array(verdict)}
    return {"participants": Content(contents, {"participants": {"participant": list(names), **columns, **axes}})}
