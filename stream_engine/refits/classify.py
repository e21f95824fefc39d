"""Labels of all objects by the best of several classifiers: nearest neighbours or a support vector machine on k1, k2,
AddS-3, the embedding or a learned kernel, or TripletBoost; each with its cross-validated accuracy.

Kleindessner & von Luxburg (2017) introduced k1 and k2 for any kernel method; Perrot & von Luxburg (2019) introduced
TripletBoost, which also has a refit of its own, `triplet_boost`. Models, settings and temperatures are selected by the
log loss of held-out objects, and the reported figures come from other objects (`boosting.nested`). Predictions are
those of the best model; a labelled object is predicted by a fit without its label, so that doubtful labels can be
found. The comparisons of all objects are used; only labels are held out. Cost: the similarities, at most 15 fits of
each setting with at most 2,000 objects each, and six fits of the best setting to all objects.
"""

from functools import partial
from typing import Annotated, Any, NamedTuple

import msgspec
import numpy as np
from threadpoolctl import threadpool_limits

from stream_engine.boosting import labels as label_sets
from stream_engine.boosting import nearest_neighbours, nested, probabilities, vector_machine
from stream_engine.boosting.codes import bytes_needed
from stream_engine.boosting.fit import fit, votes_of
from stream_engine.boosting.nested import Model, Selection
from stream_engine.boosting.votes import shares
from stream_engine.clustering import similarity_of_snapshot
from stream_engine.clustering.kernel_factors import KernelFactor
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
LEARNED_KERNEL = "learned"  # the kernel of the refit kernel_learning
NAMES = (*similarity_of_snapshot.SIMILARITIES, LEARNED_KERNEL)


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

    similarities: tuple[str, ...] = ("k1", "k2", "adds3", "embedding", LEARNED_KERNEL)
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
    """One similarity between all objects and the labelled ones. No array is n by n."""

    name: str
    near: np.ndarray  # (n, L): larger is nearer
    kernel: np.ndarray  # (n, L): for a support vector machine, see `vector_machine.prepare_kernel`
    linked: np.ndarray  # (n, L) bool: whether the similarity of the two is known


class NoView(LookupError):
    """The snapshot lacks what a similarity needs; the message is one line."""


MAX_ALL_FOLDS_OBJECTS = 300  # labelled objects up to which every fold is a test fold; above, only one is
MAX_TRAINING_OBJECTS = 2000  # labelled objects in training sets of the cross-validation


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
        restricted = _restrict(snapshot, params.objects)
    except subset.UnknownObjects as error:
        raise CannotRefit(f"{KIND}: {error}; expected names of the snapshot, next: see `export objects`") from None
    sets, classes = label_sets.parse(restricted.snapshot.objects, snapshot.labels, multi_label=False)
    label = np.where(sets.any(axis=1), sets.argmax(axis=1) if len(classes) else 0, -1)
    if not classes:
        raise CannotRefit(
            f"{KIND}: got no labelled object among {len(label)}, {len(snapshot.labels)} labels given; expected at "
            "least one, next: give labels with label events or --labels FILE"
        )
    draws = hash_split.name_hashes(restricted.snapshot.objects, seed)
    ids = np.flatnonzero(label >= 0)
    ids = ids[np.argsort(draws[ids], kind="stable")]
    with threadpool_limits(1):
        models, exclusions = _models(restricted.snapshot, params, seed, ids, label[ids], len(classes), progress)
        selection = nested.choose(
            models,
            label[ids],
            len(classes),
            ids,
            draws[ids],
            MAX_ALL_FOLDS_OBJECTS,
            MAX_TRAINING_OBJECTS,
            lambda done, total, **figures: progress(total + done, 2 * total, **figures),
        )
        scores = nested.score_all(selection, label[ids], len(classes), ids, len(label))
    arrays = _arrays(scores, selection, label, ids, len(classes), restricted.ids, len(snapshot.objects))
    report = _report(selection, classes, label, ids, exclusions) | {"abstained": float(scores.abstained.mean())}
    return Artifact(KIND, snapshot.digest, snapshot.sequence, plain_params(params), seed, arrays, report)


def _restrict(snapshot: Snapshot, objects: int | tuple[str, ...] | None) -> subset.Subset:
    """The snapshot restricted to these objects, with the AddS-3 of what is left if it keeps that."""
    restricted = subset.restrict(snapshot, objects)
    if objects is None or not snapshot.section("adds3"):
        return restricted
    columns = triplet_columns(restricted.snapshot)
    pair, net = pair_of_entry(columns), net_vote(columns.n_lo, columns.n_hi)
    adds = adds3(columns.anchor, columns.lo[pair], columns.hi[pair], net, len(restricted.ids))
    arrays = {f"adds3/{name}": array for name, array in zip("ijw", adds)}
    return restricted._replace(snapshot=restricted.snapshot._replace(arrays={**restricted.snapshot.arrays, **arrays}))


BOOSTING = "triplet_boost"  # name of the model
MAX_LEARNED_OBJECTS = 60  # objects up to which the learned kernel is used, which costs most


def _models(
    snapshot: Snapshot, params: Params, seed: int, ids: np.ndarray, truth: np.ndarray, classes: int, progress: Progress
) -> tuple[list[Model], dict[str, str]]:
    """`(candidate models, excluded similarity -> reason)`."""
    n, models, exclusions = len(snapshot.objects), [], {}
    columns = triplet_columns(snapshot)
    views: list[View] = []
    try:
        available_memory.require(
            f"{KIND} of {n:,} objects, {len(ids):,} with labels",
            24.0 * n * len(ids) * len(params.similarities) + bytes_needed(columns, len(ids), n),
            "choose objects (objects=5000), or fewer similarities",
        )
        for number, name in enumerate(params.similarities):
            progress(number, 2 * len(params.similarities), similarity=name)
            if name == LEARNED_KERNEL and n > MAX_LEARNED_OBJECTS:
                exclusions[name] = f"{n:,} objects, more than {MAX_LEARNED_OBJECTS}"
                continue
            try:
                views.append(view(snapshot, name, ids, seed))
            except NoView as reason:
                exclusions[name] = str(reason)
    except available_memory.TooLarge as error:
        raise CannotRefit(f"{KIND}: {error}") from None
    for similarity in views:
        if params.neighbours:
            ask = partial(_neighbours, similarity, truth, classes)
            models.append(Model(f"nearest neighbours, {similarity.name}", tuple(map(float, params.neighbours)), ask))
        if params.penalties:
            machine = partial(_machine, similarity, ids, truth, classes)
            models.append(Model(f"support vectors, {similarity.name}", params.penalties, machine))
    if params.rounds or not models:
        boosted = partial(_boosted, columns, ids, truth, classes, seed)
        models.append(Model(BOOSTING, (float(params.rounds),), boosted))
    return models, exclusions


def _neighbours(view: View, truth: np.ndarray, classes: int, k: float, train: np.ndarray, targets: np.ndarray):
    block = np.ix_(targets, train)
    votes = nearest_neighbours.vote_shares(view.near[block], truth[train], classes, int(k))
    return votes, ~view.linked[block].any(axis=1)


def _machine(view: View, ids, truth: np.ndarray, classes: int, C: float, train: np.ndarray, targets: np.ndarray):
    scores = vector_machine.scores(view.kernel, (ids[train], train), truth[train], targets, classes, C)
    return scores, ~view.linked[np.ix_(targets, train)].any(axis=1)


def _boosted(
    columns: Columns, ids, truth: np.ndarray, classes: int, seed: int, rounds: float, train: np.ndarray, targets
) -> tuple[np.ndarray, np.ndarray]:
    sets = np.zeros((columns.n_objects, classes), bool)
    sets[ids[train], truth[train]] = True
    return shares(votes_of(fit(columns, sets, int(rounds), seed, checks=1), columns, targets))


def _arrays(
    scores: nested.FinalScores,
    selection: Selection,
    label: np.ndarray,
    ids: np.ndarray,
    classes: int,
    subset_ids: np.ndarray,
    n: int,
) -> dict[str, np.ndarray]:
    prior = probabilities.class_shares(label[ids], classes)
    probability = probabilities.of_scores(scores.scores, scores.temperature, scores.abstained, prior)
    predicted = probabilities.decide_classes(scores.scores, scores.abstained, prior)
    fold, reported = np.full(len(label), -1, np.int8), np.zeros(len(label), bool)
    fold[ids], reported[ids] = selection.fold, selection.is_reported
    arrays = {
        "predicted": predicted,
        "probability": probability,
        "score": probability[np.arange(len(label)), predicted],
        "abstained": scores.abstained,
        "given": label.astype(np.int32),
        "fold": fold,
        "reported": reported,
    }
    if len(subset_ids) == n:
        return arrays
    outside = {"predicted": -1, "given": -1, "fold": -1, "abstained": True}
    full_arrays = {
        name: np.full((n, *array.shape[1:]), outside.get(name, 0), array.dtype) for name, array in arrays.items()
    }
    for name, array in arrays.items():
        full_arrays[name][subset_ids] = array
    return full_arrays


def _report(
    selection: Selection, classes: list[str], label: np.ndarray, ids: np.ndarray, exclusions: dict[str, str]
) -> dict[str, Any]:
    figures: dict[str, Any] = {"objects": 0, "accuracy": None}
    if selection.best is not None:
        figures = {**selection.best._asdict(), "majority_class_accuracy": selection.majority}
    return {
        "classes": classes,
        "labelled": len(ids),
        "predicted": len(label),
        "model": selection.model.name,
        "setting": selection.setting,
        "chosen_by": "log loss of held-out objects"
        if selection.best
        else f"fewer than {nested.MIN_LABELLED_OBJECTS} labels, or one class",
        "held_out": figures,
        "models": nested.report(selection),
        "without": exclusions,
    }


def view(snapshot: Snapshot, name: str, labelled: np.ndarray, seed: int) -> View:
    """The view of this name on labelled objects (ids, L). Raises `NoView`, and `available_memory.TooLarge` if k1 or k2
    do not fit. Cost of the similarity, memory 3 n L."""
    if name == "embedding":
        embedding = points(snapshot, seed)
        return _of_distances(name, _squared(embedding.X, labelled), embedding.asked, labelled)
    if name == LEARNED_KERNEL:
        return _learned(snapshot, labelled, seed)
    near = _rows(snapshot, name, labelled)
    return View(name, near, vector_machine.prepare_kernel(near, labelled), near != 0)


def _rows(snapshot: Snapshot, name: str, labelled: np.ndarray) -> np.ndarray:
    """(n, L) columns of a similarity: k1 and k2 are computed for the labelled objects alone."""
    statistic, form, _ = similarity_of_snapshot.recipe(name)
    try:
        if statistic in similarity_of_snapshot.KERNELS:
            kernel = similarity_of_snapshot.KERNELS[statistic](weighted_counts.counts(snapshot, form), rows=labelled)
            return np.ascontiguousarray(kernel.T)
        W = similarity_of_snapshot.similarity(snapshot, name).W
    except (similarity_of_snapshot.NoCounts, weighted_counts.NotKept) as error:
        raise NoView(str(error)) from None
    assert not isinstance(W, KernelFactor)  # only k1 and k2 have one
    return dense(W[:, labelled])


def _learned(snapshot: Snapshot, labelled: np.ndarray, seed: int) -> View:
    try:
        artifact = kernel_learning.refit(snapshot, kernel_learning.Params(), seed, evaluate=False)
    except (CannotRefit, SolverFailed) as error:
        raise NoView(str(error)) from None
    distances = squared_distances(np.asarray(artifact.arrays["K"]))[:, labelled]
    return _of_distances(LEARNED_KERNEL, distances, np.ones(len(distances), bool), labelled)


def _squared(X: np.ndarray, labelled: np.ndarray) -> np.ndarray:
    labelled_points = X[labelled]
    return np.maximum((X**2).sum(axis=1)[:, None] + (labelled_points**2).sum(axis=1) - 2 * X @ labelled_points.T, 0.0)


def _of_distances(name: str, squared: np.ndarray, has_answers: np.ndarray, labelled: np.ndarray) -> View:
    """The view by squared distances (n, L): neighbours by distance, and the kernel exp(-D^2 / 2 m), m the mean among
    the labelled objects. Objects without answers are not linked."""
    labelled_squares = squared[labelled][np.ix_(has_answers[labelled], has_answers[labelled])]
    mean = float(labelled_squares.sum()) / max(len(labelled_squares) * (len(labelled_squares) - 1), 1) or 1.0
    linked = has_answers[:, None] & has_answers[labelled]
    near = np.where(linked, -squared, -np.inf)
    kernel = np.where(linked, np.exp(-squared / (2 * mean)), 0.0)
    kernel[labelled, np.arange(len(labelled))] = 1.0
    return View(name, near, vector_machine.prepare_kernel(kernel, labelled), linked)
