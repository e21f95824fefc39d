"""A metric of the objects' features, learned from comparisons; it also covers objects without comparisons.

Every object of the table gets coordinates, predictions and a row in the exports, even if no comparison names it.
Therefore *objects* are held out: a fifth is the test set, and over folds of the others, the lowest log loss selects
among the forms

    euclid   the features as they are, scaled
    mkl      sum mu_a K_a of a linear and a Gaussian kernel of the features (Heim et al. 2014, eq. 6)
    metric   |L(x - y)|^2 with a low-rank L (`kernel_learning.metric`), of several ranks and ridges

A comparison belongs to the test set if it names a held-out object; no comparison used for training or selection names
an object of the test set. The selected form is then fitted to all comparisons. O(folds * forms) fits.
"""

from typing import Any, Literal, NamedTuple

import msgspec
import numpy as np
from threadpoolctl import threadpool_limits

from stream_engine.data.packed_names import pack_names
from stream_engine.evaluation import hash_split, judgement_folds
from stream_engine.evaluation.coordinates import margin_scale
from stream_engine.evaluation.held_out import Figures, figures, losses, slope_of
from stream_engine.kernel_learning import auxiliary_files, metric, mkpoe, rckl
from stream_engine.kernel_learning.auxiliary_files import BadKernel, KernelSpec
from stream_engine.kernel_learning.pair_lists import excess
from stream_engine.refits import CannotRefit, Progress, no_progress
from stream_engine.state.artifact import Artifact, plain_params
from stream_engine.state.artifact_schemas import FEATURE_METRIC
from stream_engine.state.snapshot import Snapshot

KIND = "feature_metric"
AXES = FEATURE_METRIC.axes
REQUIRED = FEATURE_METRIC.required
Form = Literal["euclid", "mkl", "metric"]
FORMS: tuple[Form, ...] = ("euclid", "mkl", "metric")
LITTLE = 0.01  # lambda2 of "mkl", of the value at which nothing is learned: two weights need no more
RANKS = (2, 5, 12)  # of the metric
RIDGES = (1e-2, 1e-3, 1e-4)  # of the sum of squares of L, for features of unit variance in all
FOLDS = 3  # of the objects that choose
BEYOND = 3  # ridges below the smallest that are tried while it wins
REPORTED = 5  # one object in so many is reported on


class Params(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Parameters of the refit.

    Parameters
    ----------
    features : dict, optional
        A table of numbers by object name (kind "linear"); by default one indicator column per compared object.
    forms : tuple of {'euclid', 'metric', 'mkl'}
        Models to compare, simplest first; in a tie, the first is selected.
    """

    features: KernelSpec | None = None
    forms: tuple[Form, ...] = FORMS


class Inputs(NamedTuple):
    """Comparisons whose objects have features; objects are numbered as in the table."""

    names: tuple[str, ...]
    features: np.ndarray  # (N, D), about their mean, of unit variance in all
    rows: np.ndarray  # (m, 4) int32
    times: np.ndarray  # (m,) float64
    compared: np.ndarray  # (N,) bool


class Candidate(NamedTuple):
    """A form with its settings."""

    form: str
    rank: int = 0
    ridge: float = 0.0


class Trial(NamedTuple):
    """A candidate with its log loss on objects held out, and the slope of margins in their units that it needs."""

    candidate: Candidate
    log_loss: float
    slope: float


def refit(
    snapshot: Snapshot, params: Params, seed: int, previous: Artifact | None = None, progress: Progress = no_progress
) -> Artifact:
    """Compute coordinates of every object in a table of features.

    Parameters
    ----------
    snapshot : Snapshot
        The counts.
    params : Params
        The parameters.
    seed : int
        Random seed.
    previous : Artifact, optional
        The previous artifact of this refit, not used.
    progress : callable
        Called with the number of steps done, their total, and figures.

    Returns
    -------
    Artifact
        Arrays: `points` (N, d) float64, one row per object of the table (`utf8`, `offsets`), whose distances are the
        learned ones; `compared` (N,) bool; `map` (d, D) of the standardised features for the form "metric".

    Raises
    ------
    CannotRefit
        If the snapshot lacks what the refit needs.
    BadKernel
        If the table cannot be used.
    """
    with threadpool_limits(1):
        inputs = _inputs(snapshot, params)
        fold = hash_split.object_folds(hash_split.name_hashes(inputs.names, seed), REPORTED)
        reported = fold == REPORTED - 1
        inner = hash_split.object_folds(hash_split.name_hashes(inputs.names, seed + 1), FOLDS)
        tried = _tried(inputs, params, ~reported, inner, progress)
        best = min(tried, key=lambda each: each.log_loss) if tried else Trial(_candidates(params)[-1], np.nan, 1.0)
        told = _reported(inputs, best, reported)
        points, made = _placed(inputs, best.candidate, np.ones(len(inputs.rows), bool))
    slope = best.slope / margin_scale(points @ points.T)
    arrays = {**pack_names(inputs.names), "points": points, "compared": inputs.compared}
    return Artifact(
        KIND,
        snapshot.digest,
        snapshot.sequence,
        plain_params(params),
        seed,
        arrays if made is None else arrays | {"map": made},
        _report(inputs, best, tried, told, slope),
    )


def _inputs(snapshot: Snapshot, params: Params) -> Inputs:
    """The comparisons that features can tell of."""
    if params.features is None:
        names, values = tuple(snapshot.objects), np.eye(len(snapshot.objects))
    else:
        table = auxiliary_files.read_table(params.features)
        if isinstance(table.values, list) or params.features.kind != "linear":
            raise BadKernel(f"features: got kind {params.features.kind!r}; expected kind 'linear' and numbers")
        names = tuple(snapshot.objects) if table.names is None else tuple(table.names)
        values = table.values
        if len(set(names)) < len(names) or len(names) != len(values):
            raise BadKernel(f"features: {len(values)} rows for {len(set(names))} names; expected one row per name")
        there = np.isfinite(values).all(axis=1)
        names, values = tuple(name for name, ok in zip(names, there.tolist()) if ok), values[there]
    number = {name: at for at, name in enumerate(names)}
    place = np.array([number.get(name, -1) for name in snapshot.objects], np.int64)
    said = judgement_folds.of_comparisons(snapshot, 0)
    inside = (place[said.rows] >= 0).all(axis=1) if len(said.rows) else np.zeros(0, bool)
    rows = place[said.rows[inside]].astype(np.int32) if inside.any() else np.empty((0, 4), np.int32)
    if not len(rows):
        raise CannotRefit(
            f"{KIND}: got 0 comparisons of objects that have features ({len(names):,} named, "
            f"{len(snapshot.objects):,} in the snapshot); expected at least one, next: check `key`, or add "
            "triplet_counts to `accumulators` and read comparisons"
        )
    apart = values - values.mean(axis=0)
    spread = float((apart**2).sum() / len(values))
    compared = np.bincount(rows.ravel(), minlength=len(names)) > 0
    return Inputs(names, apart / (np.sqrt(spread) or 1.0), rows, said.times[inside], compared)


def _candidates(params: Params) -> list[Candidate]:
    plain = [Candidate(form) for form in params.forms if form != "metric"]
    learned = [Candidate("metric", rank, ridge) for rank in RANKS for ridge in RIDGES]
    return plain + (learned if "metric" in params.forms else [])


def _tried(inputs: Inputs, params: Params, mine: np.ndarray, inner: np.ndarray, progress: Progress) -> list[Trial]:
    """Every candidate over folds of the objects `mine` (N,) bool; nothing names another one."""
    usable, out = [], []
    within = mine[inputs.rows].all(axis=1)
    for number in range(FOLDS):
        asked = within & (inner == number)[inputs.rows].any(axis=1)
        if asked.any() and (within & ~asked).any():
            usable.append((within & ~asked, asked))
    candidates = _candidates(params) if usable else []
    most = len(candidates) + BEYOND
    for done, candidate in enumerate(candidates):  # grows while the smallest ridge wins
        margins = [_margins(inputs, candidate, train, test) for train, test in usable]
        margin, times = np.concatenate(margins), np.concatenate([inputs.times[test] for _, test in usable])
        slope = slope_of(margin, times)
        out.append(Trial(candidate, float(times @ losses(margin, slope) / times.sum()), slope))
        progress(done + 1, len(candidates) + 1, log_loss=out[-1].log_loss)
        if done + 1 == len(candidates) and len(out) <= most:
            last = min(out, key=lambda each: each.log_loss).candidate
            if last.form == "metric" and last.ridge == min(each.ridge for each in candidates if each.form == "metric"):
                candidates.append(last._replace(ridge=last.ridge / 10.0))
    return out


def _margins(inputs: Inputs, candidate: Candidate, train: np.ndarray, test: np.ndarray) -> np.ndarray:
    points, _ = _placed(inputs, candidate, train)
    gram = points @ points.T
    return -excess(gram, inputs.rows[test]) / margin_scale(gram)


def _reported(inputs: Inputs, best: Trial, reported: np.ndarray) -> Figures | None:
    """On comparisons that name an object that neither trained nor chose; clusters are these objects."""
    named = reported[inputs.rows]
    test = named.any(axis=1)
    if not test.any() or test.all():
        return None
    margin = _margins(inputs, best.candidate, ~test, test)
    who = inputs.rows[test][np.arange(test.sum()), named[test].argmax(axis=1)]
    return figures(margin, best.slope, inputs.times[test], who)


def _placed(inputs: Inputs, candidate: Candidate, train: np.ndarray) -> tuple[np.ndarray, np.ndarray | None]:
    """`((N, d) points of all objects, L where there is one)` by the comparisons `train` (m,) bool."""
    x, rows, times = inputs.features, inputs.rows[train], inputs.times[train]
    if candidate.form == "euclid":
        return x, None
    if candidate.form == "metric":
        made = metric.fit(rows, times, x, candidate.rank, candidate.ridge).map
        return x @ made.T, made
    kernels = _kernels(x)
    three = rows[:, 0] == rows[:, 2]
    triplets, weight = rows[three][:, [0, 1, 3]], times[three]
    if not len(triplets):
        return x, None
    problem = rckl.build(triplets, weight, kernels, len(x), "mkl", "ste", 1.0, 1.0)
    lambda2 = LITTLE * rckl.largest_lambdas(problem)[1]
    if not lambda2 > 0:
        return x, None
    learned = rckl.fit(triplets, len(x), kernels, form="mkl", lambda2=lambda2, weight=weight, tolerance=1e-3)
    return mkpoe.factor(learned.gram).root, None


def _kernels(x: np.ndarray) -> list[np.ndarray]:
    """A linear and a Gaussian kernel (by the median distance) of unit trace."""
    linear = x @ x.T
    own = np.diag(linear)
    d = np.maximum(own[:, None] + own[None, :] - 2 * linear, 0.0)
    gaussian = np.exp(-d / (float(np.median(d[d > 0])) if (d > 0).any() else 1.0))
    return [kernel / trace for kernel in (linear, gaussian) if (trace := float(np.trace(kernel))) > 0]


def _report(inputs: Inputs, best: Trial, tried: list[Trial], told: Figures | None, slope: float) -> dict[str, Any]:
    own: dict[str, Any] = told._asdict() if told else dict.fromkeys(Figures._fields)
    return {
        **best.candidate._asdict(),
        "chosen_by": "held-out log loss, objects held out" if tried else "too few objects for a validation set",
        "tried": [{**each.candidate._asdict(), "log_loss": each.log_loss} for each in tried],
        "held_out": "objects" if told else "none",
        "error": None if told is None else 1.0 - told.accuracy,
        **{f"held_out_{name}" if name in ("comparisons", "clusters") else name: own[name] for name in own},
        "by_worker": None,
        "by_question": None,
        "ceiling": None,
        "probability_slope": slope,
        "objects": len(inputs.names),
        "never_compared": int((~inputs.compared).sum()),
        "comparisons": float(inputs.times.sum()),
    }
