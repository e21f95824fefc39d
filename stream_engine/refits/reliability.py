"""Reliability of each participant, and AddS-3 weighted by reliability.

One-coin Dawid & Skene 1979 with a predictor as prior, see `evaluation.worker_reliability`. Needs the accumulator
`worker_votes`: all estimates are computed from its exact votes, so if a participant turns out to be unreliable, all
their answers are down-weighted, including earlier ones.
"""

from typing import Annotated, Any

import msgspec
import numpy as np
from threadpoolctl import threadpool_limits

from stream_engine.data.packed_names import pack_names, unpack_names
from stream_engine.evaluation import worker_reliability
from stream_engine.evaluation.held_out import Figures
from stream_engine.refits import CannotRefit, Progress, no_progress
from stream_engine.state.artifact import Artifact, plain_params
from stream_engine.state.artifact_schemas import RELIABILITY
from stream_engine.state.snapshot import Snapshot

KIND = "reliability"
AXES = RELIABILITY.axes


class Params(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Parameters of the refit.

    Parameters
    ----------
    prior_right, prior_wrong : float
        Beta prior of every participant, in answers.
    rank : int, optional
        Rank of the predictor of the other participants' answers; 0: use only votes on the same question; by
        default selected.
    """

    prior_right: Annotated[float, msgspec.Meta(gt=0)] = 8.0
    prior_wrong: Annotated[float, msgspec.Meta(gt=0)] = 4.0
    rank: Annotated[int, msgspec.Meta(ge=0)] | None = None


def refit(
    snapshot: Snapshot, params: Params, seed: int, previous: Artifact | None = None, progress: Progress = no_progress
) -> Artifact:
    """Estimate the reliability of the participants of a snapshot.

    In the report, `predictor_agreement` is of participants who were used neither to fit the predictor nor to select its
    rank (`predictor_tested_on` of them, drawn by the seed, which has no other effect); `predictor_agreement_that_chose`
    is of all participants and selected the rank, so it is biased upwards.

    Parameters
    ----------
    snapshot : Snapshot
        The counts.
    params : Params
        The parameters.
    seed : int
        Random seed.
    previous : Artifact, optional
        The previous artifact of this refit, to start from.
    progress : callable
        Called with the number of steps done, their total, and figures.

    Returns
    -------
    Artifact
        Arrays: One row per participant in the order of the names (`utf8`, `offsets`): `accuracy` (w,) float64, `weight`
        = max(0, 2 accuracy - 1), `comparisons`, `agreed`, `disagreed`, `repeats`, `contradictions`, `events`, `passed`,
        `failed` int64; weighted AddS-3 `i`, `j`, `w` and `squares` (sum of squared weights).

    Raises
    ------
    CannotRefit
        If no answer names its participant.
    """
    tallies = snapshot.section("worker_votes")
    if not tallies:
        raise CannotRefit(f"{KIND}: the snapshot has no worker_votes; add it to `accumulators`")
    votes = worker_reliability.votes_of(snapshot)
    progress(0, 2)
    with threadpool_limits(1):
        options: dict[str, Any] = {"prior": (params.prior_right, params.prior_wrong), "rank": params.rank}
        unseen_figures = worker_reliability.figures_of_unseen_workers(votes, seed, **options)
        progress(1, 2)
        reliability = worker_reliability.estimate(votes, start=_start(previous, votes.names, params), **options)
    record = worker_reliability.records(votes)
    weight = worker_reliability.vote_weight(reliability.accuracy)
    i, j, w = worker_reliability.adds(votes, weight[votes.worker])
    squares = float((weight**2) @ record.comparisons)
    arrays = {
        **pack_names(votes.names),
        "accuracy": reliability.accuracy,
        "weight": weight,
        **record._asdict(),
        **{tally: np.array(tallies[tally]) for tally in ("events", "passed", "failed")},
        "i": i,
        "j": j,
        "w": w,
        "squares": np.array(squares),
    }
    progress(2, 2)
    return Artifact(
        KIND,
        snapshot.digest,
        snapshot.sequence,
        plain_params(params),
        seed,
        arrays,
        _report(reliability, unseen_figures, record, tallies),
    )


def _start(previous: Artifact | None, names, params: Params) -> np.ndarray | None:
    if previous is None:
        return None
    accuracy = dict(
        zip(unpack_names(previous.arrays["utf8"], previous.arrays["offsets"]), previous.arrays["accuracy"].tolist())
    )
    return np.array(
        [accuracy.get(name, params.prior_right / (params.prior_right + params.prior_wrong)) for name in names]
    )


def _report(
    reliability: worker_reliability.Reliability,
    unseen_figures: Figures | None,
    record: worker_reliability.Records,
    tallies,
) -> dict[str, Any]:
    decided = int((record.agreed + record.disagreed).sum())
    catch_trials = int(tallies["passed"].sum() + tallies["failed"].sum())
    accuracy = reliability.accuracy[record.comparisons > 0]  # that of others is the prior's
    quantiles = np.quantile(accuracy, [0.1, 0.5, 0.9]).round(4).tolist() if len(accuracy) else []
    return {
        "workers": len(accuracy),
        "comparisons": int(record.comparisons.sum()),
        "accuracy_10_50_90": quantiles,
        "guessing": int((accuracy < 0.55).sum()),
        "agreement_with_others": float(record.agreed.sum() / decided) if decided else None,
        "contradictions_with_self": int(record.contradictions.sum()),
        "repeats": int(record.repeats.sum()),
        "catch_trials": catch_trials,
        "catch_trials_failed": int(tallies["failed"].sum()),
        "predictor_rank": reliability.rank,
        "predictor_agreement": unseen_figures.accuracy if unseen_figures else None,
        "predictor_agreement_error": unseen_figures.standard_error if unseen_figures else None,
        "predictor_tested_on": unseen_figures.clusters if unseen_figures else 0,
        "predictor_agreement_that_chose": reliability.predicted,
        "slope": reliability.slope,
        "iterations": reliability.iterations,
    }
