"""Labels of all objects by the best of several classifiers: nearest neighbours or a support vector machine on k1, k2,
AddS-3, the embedding or a learned kernel, or TripletBoost; each with its cross-validated accuracy.

Kleindessner & von Luxburg (2017) introduced k1 and k2 for any kernel method; Perrot & von Luxburg (2019) introduced
TripletBoost, which also has a refit of its own, `triplet_boost`. Models, settings and temperatures are selected by the
log loss of held-out objects, and the reported figures come from other objects (`boosting.nested`). Predictions are
those of the best model; a labelled object is predicted by a fit without its label, so that doubtful labels can be
found. The comparisons of all objects are used; only labels are held out. Cost: the similarities, at most 15 fits of
each setting with at most 2,000 objects each, and six fits of the best setting to all objects.

Classifiers see how near every object is to each labelled one, in one similarity, and as kernel values. k1 and k2 are
computed for the labelled objects' rows alone, the embedding for distances to them; a learned kernel and AddS come from
their matrix. Nothing but what is said here is n by n.
"""

from functools import partial
from typing import Annotated, Any, NamedTuple

import msgspec
import numpy as np
from threadpoolctl import threadpool_limits

from stream_engine.boosting import labels as label_sets
from stream_engine.boosting import nested, vector_machine
from stream_engine.boosting.codes import bytes_needed
from stream_engine.boosting.fit import fit, votes_of
from stream_engine.boosting.nested import Model, Selection
from stream_engine.boosting.votes import shares
from stream_engine.clustering import similarity_of_snapshot
from stream_engine.clustering.similarity_of_snapshot import Factored
from stream_engine.counts.adds_similarity import adds3
from stream_engine.counts.spectral import dense
from stream_engine.data import available_memory
from stream_engine.data.triplet_columns import Columns, net_vote, pair_of_entry
from stream_engine.embedding.of_snapshot import points
from stream_engine.evaluation import hash_split, subset, weighted_counts
from stream_engine.evaluation.coordinates import squared_distances
from stream_engine.refits import CannotRefit, Progress, SolverFailed, kernel_learning, no_progress
from stream_engine.state.artifact import Artifact, plain_params
from stream_engine.state.artifact_schemas import CLASSIFY
from stream_engine.state.snapshot import Snapshot, triplet_columns

KIND = "classify"
AXES = CLASSIFY.axes
BOOST = "triplet_boost"
LEARNED = "learned"  # the kernel of the refit kernel_learning
NAMES = (*similarity_of_snapshot.SIMILARITIES, LEARNED)
LEARNED_UP_TO = 60  # maximum number of objects for `learned`, which costs most
ALL_FOLDS_UP_TO = 300  # maximum number of labelled objects for which every fold is a test fold; above, only one is
TRAINED_AT_MOST = 2000  # maximum number of labelled objects in training sets of the cross-validation


class Params(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Parameters of the refit.

    Parameters
    ----------
    similarities : tuple of str
        Input of nearest neighbours and support vector machines: any of `classify.NAMES`; `learned` is that of
        the refit kernel_learning.
    neighbours : tuple of int
        Candidate numbers of nearest neighbours.
    penalties : tuple of float
        Candidate C of the support vector machine.
    rounds : int
        Rounds of TripletBoost; 0: exclude it.
    objects : int or tuple of str, optional
        Use only these names, or the given number of objects with the most answers.
    """

    similarities: tuple[str, ...] = ("k1", "k2", "adds3", "embedding", LEARNED)
    neighbours: tuple[Annotated[int, msgspec.Meta(ge=1)], ...] = (1, 3, 5, 9, 15)
    penalties: tuple[Annotated[float, msgspec.Meta(gt=0)], ...] = (0.1, 1.0, 10.0, 100.0)
    rounds: Annotated[int, msgspec.Meta(ge=0, le=100_000_000)] = 20_000
    objects: Annotated[int, msgspec.Meta(ge=2)] | tuple[str, ...] | None = None

    def __post_init__(self):
        for name in self.similarities:
            if name not in NAMES:
                raise ValueError(f"similarities: got {name!r}, expected any of {', '.join(NAMES)}")
        if not (self.rounds or (self.similarities and (self.neighbours or self.penalties))):
            raise ValueError("similarities, neighbours, penalties, rounds: got no model to try, expected at least one")


class View(NamedTuple):
    """One similarity, seen from the labelled objects."""

    name: str
    near: np.ndarray  # (n, L): larger is nearer
    kernel: np.ndarray  # (n, L): for a support vector machine, see `vector_machine.prepared`
    linked: np.ndarray  # (n, L) bool: whether anything is known of the two together


class NoView(LookupError):
    """A similarity that this snapshot has nothing for; one line."""


def refit(
    snapshot: Snapshot, params: Params, seed: int, previous: Artifact | None = None, progress: Progress = no_progress
) -> Artifact:
    """Classify a snapshot's objects from those with a label.

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
        Arrays: `predicted` (n,) int32 class, -1 for objects outside the subset; `probability` (n, Y) float64; `score`
        (n,) of the predicted class; `abstained` (n,) bool: without information, so the class is the most frequent one;
        `given` (n,) int32; `fold` (n,) int8 of the labelled objects, -1 for others; `reported` (n,) bool: objects in
        the test set.

    Raises
    ------
    CannotRefit
        If no object of the comparisons has a label, or if memory does not suffice.
    """
    try:
        chosen = _chosen(snapshot, params.objects)
    except subset.UnknownObjects as error:
        raise CannotRefit(f"{KIND}: {error}; expected names of the snapshot, next: see `export objects`") from None
    sets, classes = label_sets.parse(chosen.snapshot.objects, snapshot.labels, multi_label=False)
    given = np.where(sets.any(axis=1), sets.argmax(axis=1) if len(classes) else 0, -1)
    if not classes:
        raise CannotRefit(
            f"{KIND}: got no labelled object among {len(given)}, {len(snapshot.labels)} labels given; expected at "
            "least one, next: give labels with label events or --labels FILE"
        )
    draws = hash_split.name_hashes(chosen.snapshot.objects, seed)
    ids = np.flatnonzero(given >= 0)
    ids = ids[np.argsort(draws[ids], kind="stable")]
    with threadpool_limits(1):
        models, without = _models(chosen.snapshot, params, seed, ids, given[ids], len(classes), progress)
        found = nested.choose(
            models,
            given[ids],
            len(classes),
            ids,
            draws[ids],
            ALL_FOLDS_UP_TO,
            TRAINED_AT_MOST,
            lambda done, total, **figures: progress(total + done, 2 * total, **figures),
        )
        told = nested.delivered(found, given[ids], len(classes), ids, len(given))
    arrays = _arrays(told, found, given, ids, len(classes), chosen.ids, len(snapshot.objects))
    report = _report(found, classes, given, ids, without) | {"abstained": float(told.abstained.mean())}
    return Artifact(KIND, snapshot.digest, snapshot.sequence, plain_params(params), seed, arrays, report)


def _chosen(snapshot: Snapshot, objects: int | tuple[str, ...] | None) -> subset.Subset:
    """The snapshot restricted to these objects, with the AddS-3 of what is left if it keeps that."""
    chosen = subset.restrict(snapshot, objects)
    if objects is None or not snapshot.section("adds3"):
        return chosen
    columns = triplet_columns(chosen.snapshot)
    pair, net = pair_of_entry(columns), net_vote(columns.n_lo, columns.n_hi)
    adds = adds3(columns.anchor, columns.lo[pair], columns.hi[pair], net, len(chosen.ids))
    arrays = {f"adds3/{name}": array for name, array in zip("ijw", adds)}
    return chosen._replace(snapshot=chosen.snapshot._replace(arrays={**chosen.snapshot.arrays, **arrays}))


def _models(
    snapshot: Snapshot, params: Params, seed: int, ids: np.ndarray, truth: np.ndarray, classes: int, progress: Progress
) -> tuple[list[Model], dict[str, str]]:
    """What is tried, and what was excluded with the reason."""
    n, models, without = len(snapshot.objects), [], {}
    columns = triplet_columns(snapshot)
    views: list[View] = []
    try:
        available_memory.require(
            f"{KIND} of {n:,} objects, {len(ids):,} with labels",
            24.0 * n * len(ids) * len(params.similarities) + bytes_needed(columns, len(ids), n),
            "choose objects (objects=5000), or fewer similarities",
        )
        for done, name in enumerate(params.similarities):
            progress(done, 2 * len(params.similarities), similarity=name)
            if name == LEARNED and n > LEARNED_UP_TO:
                without[name] = f"{n:,} objects, more than {LEARNED_UP_TO}"
                continue
            try:
                views.append(view(snapshot, name, ids, seed))
            except NoView as why:
                without[name] = str(why)
    except available_memory.TooLarge as error:
        raise CannotRefit(f"{KIND}: {error}") from None
    for each in views:
        if params.neighbours:
            ask = partial(_neighbours, each, truth, classes)
            models.append(Model(f"nearest neighbours, {each.name}", tuple(map(float, params.neighbours)), ask))
        if params.penalties:
            machine = partial(_machine, each, ids, truth, classes)
            models.append(Model(f"support vectors, {each.name}", params.penalties, machine))
    if params.rounds or not models:
        boosted = partial(_boosted, columns, ids, truth, classes, seed)
        models.append(Model(BOOST, (float(params.rounds),), boosted))
    return models, without


def _neighbours(view: View, truth: np.ndarray, classes: int, k: float, train: np.ndarray, asked: np.ndarray):
    block = np.ix_(asked, train)
    return vector_machine.shares(view.near[block], truth[train], classes, int(k)), ~view.linked[block].any(axis=1)


def _machine(view: View, ids, truth: np.ndarray, classes: int, C: float, train: np.ndarray, asked: np.ndarray):
    scores = vector_machine.scores(view.kernel, (ids[train], train), truth[train], asked, classes, C)
    return scores, ~view.linked[np.ix_(asked, train)].any(axis=1)


def _boosted(
    columns: Columns, ids, truth: np.ndarray, classes: int, seed: int, rounds: float, train: np.ndarray, asked
) -> tuple[np.ndarray, np.ndarray]:
    sets = np.zeros((columns.n_objects, classes), bool)
    sets[ids[train], truth[train]] = True
    return shares(votes_of(fit(columns, sets, int(rounds), seed, checks=1), columns, asked))


def _arrays(
    told: nested.FinalScores,
    found: Selection,
    given: np.ndarray,
    ids: np.ndarray,
    classes: int,
    inside: np.ndarray,
    n: int,
) -> dict[str, np.ndarray]:
    prior = nested.shares(given[ids], classes)
    probability = nested.probabilities(told.scores, told.temperature, told.abstained, prior)
    predicted = nested.decided(told.scores, told.abstained, prior)
    fold, reported = np.full(len(given), -1, np.int8), np.zeros(len(given), bool)
    fold[ids], reported[ids] = found.fold, found.reported
    arrays = {
        "predicted": predicted,
        "probability": probability,
        "score": probability[np.arange(len(given)), predicted],
        "abstained": told.abstained,
        "given": given.astype(np.int32),
        "fold": fold,
        "reported": reported,
    }
    if len(inside) == n:
        return arrays
    outside = {"predicted": -1, "given": -1, "fold": -1, "abstained": True}
    whole = {name: np.full((n, *array.shape[1:]), outside.get(name, 0), array.dtype) for name, array in arrays.items()}
    for name, array in arrays.items():
        whole[name][inside] = array
    return whole


def _report(
    found: Selection, classes: list[str], given: np.ndarray, ids: np.ndarray, without: dict[str, str]
) -> dict[str, Any]:
    figures: dict[str, Any] = {"objects": 0, "accuracy": None}
    if found.best is not None:
        figures = {**found.best._asdict(), "majority_class_accuracy": found.majority}
    return {
        "classes": classes,
        "labelled": len(ids),
        "predicted": len(given),
        "model": found.model.name,
        "setting": found.setting,
        "chosen_by": "log loss of held-out objects"
        if found.best
        else f"fewer than {nested.MIN_LABELLED_OBJECTS} labels, or one class",
        "held_out": figures,
        "models": nested.report(found),
        "without": without,
    }


def view(snapshot: Snapshot, name: str, labelled: np.ndarray, seed: int) -> View:
    """The view of this name on labelled objects (ids, L). Raises `NoView`, and `available_memory.TooLarge` where k1 or
    k2 do not fit. Cost as of the similarity, memory 3 n L."""
    if name == "embedding":
        found = points(snapshot, seed)
        return _of_distances(name, _squared(found.X, labelled), found.asked, labelled)
    if name == LEARNED:
        return _learned(snapshot, labelled, seed)
    near = _rows(snapshot, name, labelled)
    return View(name, near, vector_machine.prepared(near, labelled), near != 0)


def _rows(snapshot: Snapshot, name: str, labelled: np.ndarray) -> np.ndarray:
    """(n, L) of a similarity."""
    statistic, form, _ = similarity_of_snapshot.recipe(name)
    try:
        if statistic in similarity_of_snapshot.KERNELS:
            kernel = similarity_of_snapshot.KERNELS[statistic](weighted_counts.counts(snapshot, form), rows=labelled)
            return np.ascontiguousarray(kernel.T)
        W = similarity_of_snapshot.similarity(snapshot, name).W
    except (similarity_of_snapshot.NoCounts, weighted_counts.NotKept) as error:
        raise NoView(str(error)) from None
    assert not isinstance(W, Factored)  # only k1 and k2 have one
    return dense(W[:, labelled])


def _learned(snapshot: Snapshot, labelled: np.ndarray, seed: int) -> View:
    try:
        made = kernel_learning.refit(snapshot, kernel_learning.Params(), seed, evaluate=False)
    except (CannotRefit, SolverFailed) as error:
        raise NoView(str(error)) from None
    distances = squared_distances(np.asarray(made.arrays["K"]))[:, labelled]
    return _of_distances(LEARNED, distances, np.ones(len(distances), bool), labelled)


def _squared(X: np.ndarray, labelled: np.ndarray) -> np.ndarray:
    some = X[labelled]
    return np.maximum((X**2).sum(axis=1)[:, None] + (some**2).sum(axis=1) - 2 * X @ some.T, 0.0)


def _of_distances(name: str, squared: np.ndarray, known: np.ndarray, labelled: np.ndarray) -> View:
    """Of squared distances (n, L): neighbours by them, and the kernel exp(-D^2 / 2 m), m the mean among labelled ones.
    What is not known is not linked."""
    among = squared[labelled][np.ix_(known[labelled], known[labelled])]
    mean = float(among.sum()) / max(len(among) * (len(among) - 1), 1) or 1.0
    linked = known[:, None] & known[labelled]
    near = np.where(linked, -squared, -np.inf)
    kernel = np.where(linked, np.exp(-squared / (2 * mean)), 0.0)
    kernel[labelled, np.arange(len(labelled))] = 1.0
    return View(name, near, vector_machine.prepared(kernel, labelled), linked)
