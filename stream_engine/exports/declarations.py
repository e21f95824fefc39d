"""The arrays of every export, each declared once; writers, the manual's page and tests follow this.

Add the arrays of an export to `ARRAYS`, and further columns of its table to `table_columns.TABLES`. A refit with an
export of its own declares them in its file, as `EXPORTED` and `COLUMNS`.
"""

from collections.abc import Mapping
from importlib import import_module

from stream_engine.data.array_checks import pattern_of
from stream_engine.evaluation.weighted_counts import WEIGHTINGS
from stream_engine.exports import with_own_export
from stream_engine.exports.array_types import OBJECT, SCALARS, Array, Arrays, Columns, array, figure, ids
from stream_engine.exports.table_columns import CORRECTED, DIMENSION_QUALITY, TABLES

NAMES = array("n", "U", "the objects' names; `names[id]` is object `id`")
SUBSET_NAMES = array("s", "U", "names of the objects along axis s")


_KEY = {
    "anchor": ids("t", "the object that the other two are compared with", ""),
    "lo": ids("t", "of the other two objects, the one with the lower id", ""),
    "hi": ids("t", "the one with the higher id", ""),
}
_TIMES = {
    "n_lo": array("t", "iuf", "number of answers that lo is nearer", ""),
    "n_hi": array("t", "iuf", "number of answers that hi is nearer", ""),
}


def _similarity(of: str) -> dict[str, Array]:
    return {
        "W": array("n, n", "iuf", f"{of}; symmetric, larger means more similar", ""),
        "i": ids("p", "above 4,096 objects, instead of W: first object of each nonzero entry", ""),
        "j": ids("p", "second object of each nonzero entry, i < j", ""),
        "w": array("p", "iuf", "value of each nonzero entry", ""),
    }


def _kernel(of: str) -> dict[str, Array]:
    return {
        "K": array("n, n", "f", of, ""),
        "data": array(
            "z", "f", "above 16,384 objects, instead of K: values of the factor F with K = FF', as a CSC matrix", ""
        ),
        "indices": ids("z", "object (row) of each value", ""),
        "indptr": array("c", "iu", "start of each column"),
        "shape": figure("number of rows and columns of the factor", shape="2"),
    }


_FOUR = ("near_i", "near_j", "far_i", "far_j")
_COUNTED: dict[str, Arrays] = {
    "adds3": _similarity("AddS-3 (Perrot et al. 2020, section 4)"),
    "adds4": _similarity("AddS-4 (a triplet counts as a quadruplet)"),
    "triplet_counts": {**_KEY, **_TIMES},
    "k1": _kernel("k1 (Kleindessner & von Luxburg 2017, section 2)"),
    "k2": _kernel("k2 (Kleindessner & von Luxburg 2017, section 2)"),
    **{f"adds3_{how}": _similarity(f"AddS-3, {says}") for how, says in WEIGHTINGS.items()},
    **{f"triplet_counts_{how}": {**_KEY, **_TIMES} for how in WEIGHTINGS},
    "partial_order": {
        "kept": ids("m, 4", "comparisons in the partial order: near pair, far pair", columns=_FOUR),
        "reduced": ids("r, 4", "their transitive reduction", columns=_FOUR),
        "canonical": ids(
            "q, 4", "canonical order: built from net votes, independent of the order of arrival", columns=_FOUR
        ),
        "weight_kept": figure("share of the net vote weight in `kept`"),
        "canonical_weight_kept": figure("share of the net vote weight in `canonical`"),
    },
    "questions": {
        "anchor": ids("t", "the object that the other two are compared with"),
        "near": ids("t", "the nearer object according to the majority; in a tie, the first by name"),
        "far": ids("t", "the other object"),
        "n_near": array("t", "iu", "number of answers for `near`"),
        "n_far": array("t", "iu", "number of answers for `far`"),
        "confidence": array("t", "f", "probability that the majority is right, given these answers"),
        "predicted": array("t", "f", "probability that `near` is nearer, predicted by AddS-3 from all other answers"),
    },
    "evidence": {
        "answers": array("n", "i", "number of comparisons with the object"),
        "as_anchor": array("n", "i", "number of triplets with the object as anchor"),
        "questions": array("n", "i", "number of distinct questions"),
        "contradicted": array("n", "i", "number of answers that disagree with the majority for their question"),
        "agreement": array(
            "n",
            "f",
            "share of its answers that the answers to other questions predict (AddS-3); 1/2 if there are none",
        ),
        "cluster_stability": array("n", "f", "`stability` of `clusters`"),
    },
    "workers": {
        "worker": array("w", "U", "name of the participant"),
        "events": array("w", "i", "number of events"),
        "comparisons": array("w", "i", "number of comparisons"),
        "agreed": array("w", "i", "number of answers that agree with the net vote of the others"),
        "disagreed": array("w", "i", "number of answers that disagree with the net vote of the others"),
        "repeats": array("w", "i", "number of answers to a question that the participant had answered before"),
        "contradictions": array("w", "i", "number of these answers that differ from the first"),
        "passed": array("w", "i", "number of catch trials passed"),
        "failed": array("w", "i", "number of catch trials failed"),
        "accuracy": array("w", "f", "estimated share of correct answers"),
        "weight": array("w", "f", "weight of each answer of the participant"),
        "response_time": array(
            "w", "f", "median response time, or else median time between two answers, s; NaN means unknown"
        ),
        "under_300_ms": array("w", "f", "share of these times below 300 ms; NaN means unknown"),
        "position": array("w", "i", "position chosen least probably by chance, from 1; 0 means unknown"),
        "positions": array("w", "i", "number of objects shown in these answers; 0 means unknown"),
        "position_share": array("w", "f", "share of these answers at `position`; NaN means unknown"),
        "longest_run": array("w", "i", "number of successive answers at the same position; 0 means unknown"),
        "p_position": array("w", "f", f"p-value of `position_share`, {CORRECTED}"),
        "p_run": array("w", "f", f"p-value of `longest_run`, {CORRECTED}"),
        "p_fast": array("w", "f", f"p-value of more than 10 % under 300 ms, {CORRECTED}"),
    },
    "participants": {
        "participant": array("w", "U", "name of the participant"),
        "lapse": array("w", "f", "lapse rate: share of random answers"),
        "slope": array("w", "f", "mean weight: how sharply they distinguish compared with the group, 1"),
        "group": array("w", "i", "group of participants who see alike, from 1; -1 means no weights"),
        "of_group_map": array("w", "f", "coefficient of the log odds of the group's map (with their weights)"),
        "of_own_map": array("w", "f", "coefficient of the log odds of the participant's own map; 0 without one"),
        "gain": array(
            "w", "f", "log loss of the group's map less that of their own model on held-out answers, in nats"
        ),
        "gain_error": array("w", "f", "its standard error"),
        "p_differs": array("w", "f", f"p-value that the participant sees the group's map, {CORRECTED}"),
        "weights": array("w, d", "f", "weight of each axis of `embedding`, relative to the slope"),
        "verdict": figure("whether participants differ from one map", "U"),
    },
    "judgements": {
        **{name: ids("c", f"{name} of each comparison") for name in _FOUR},
        "judgement": array("c", "i", "index of the response that each comparison belongs to"),
        "times": array("g", "iu", "number of times that each response was given"),
        "worker": array("g", "i", "participant, an index into `worker_names`; -1 means unknown"),
        "time": array("g", "f", "time of the response; NaN means unknown", unit="s since 1970"),
        "sampler": array("g", "i", "sampling strategy, an index into `sampler_names`; -1 means unknown"),
        "worker_utf8": array("b", "u", "names of participants, concatenated as UTF-8"),
        "worker_offsets": array("w + 1", "iu", "start of each name"),
        "sampler_utf8": array("e", "u", "names of sampling strategies, concatenated as UTF-8"),
        "sampler_offsets": array("a + 1", "iu", "start of each name"),
        "worker_names": array("w", "U", "names of participants"),
        "sampler_names": array("a", "U", "names of sampling strategies"),
        "complete": figure("whether all responses of the stream are stored"),
    },
}


# arrays of artifacts that are in no export, with the reason
LEFT_OUT = {
    "sdp_clustering": {
        "warm_*": "state from which the solver resumes",
        **dict.fromkeys(
            ("level_*", "p_*", "crowding", "tested_*", "stability", "stability_ari", "second", "together"),
            "written by earlier versions",
        ),
    },
    "spectral": {"criterion": "written by version 0.1.0"},
    **dict.fromkeys(
        ("kernel_learning", "partial_order_embedding"),
        dict.fromkeys(("neighbours", "linkage"), "written by version 0.1.0"),
    ),
    "alignment": {
        **dict.fromkeys(("object_*", "question*"), "see the tables `alignment_objects` and `alignment_questions`"),
        **dict.fromkeys(("mean_*", "map_*", "varies_*"), "see `transform`"),
        **dict.fromkeys(("points", "known", "more_*"), "`transform` of the set that `predict` uses"),
        "participant_*": "about participants; see the report with `--participants`",
    },
    "reliability": dict.fromkeys(("i", "j", "w", "squares"), "a weighted AddS-3; see the export `adds3_trusted`"),
    "embedding": {
        **dict.fromkeys(("worker_*", "own_*", "utf8", "offsets"), "about participants; see the export `participants`"),
        **dict.fromkeys(("draws", "draw_lapse"), "draws from the posterior, over which predictions are averaged"),
        "group_X": "one map for everybody, for predictions beside weights of participants",
    },
}


def _label(what: str, within: str) -> Array:
    return array("n", "i", what, within=within)


_PROGRAM = "of the semidefinite program (refit `sdp_clustering`)"
_CLUSTERS: Arrays = {
    "labels": _label(
        "group of each object, the same number from one refit to the next; -1 means in no group. `cluster` of "
        "tables counts the groups from 1, the largest first",
        "clusters",
    ),
    "k": figure("number of groups; 0 means none"),
    "stability": array(
        "n",
        "f",
        "share of replicates, positions moved by their standard errors, that assign the object to its group",
        within="clusters",
    ),
    "second": _label("second most frequent group of each object; -1 means none", "clusters"),
    "subgroup": _label("part of its group that an object is in, if the group splits again; -1 means none", "clusters"),
    "clearer_than": figure("share of continua whose groups are less clear"),
    "detection_limit": figure(
        "separation that four of five simulated studies detect, in standard deviations within groups"
    ),
    "replication": figure(
        "adjusted Rand index expected between these groups and those of a replication, and its 95 % interval",
        shape="3",
    ),
    "gain": figure("held-out log loss that positions within groups save, and its standard error, nats", shape="2"),
    "tested_k": array("t", "i", "examined numbers of groups", within="cluster_numbers"),
    "tested_clearness": array("t", "f", "how clear that number of groups is", within="cluster_numbers"),
    "sdp_labels": _label(f"cluster in the partition {_PROGRAM}; -1 means not clustered", "clusters"),
    "sdp_k": figure(f"number of clusters {_PROGRAM}"),
    "lam": figure("weight of the trace, if it determined sdp_k; otherwise NaN"),
    "objective": figure("objective of the relaxation (Perrot et al. 2020, section 5)"),
    "upper_bound": figure("proven upper bound of the objective"),
    "gap": figure("relative difference between bound and objective"),
    "residuals": figure("feasibility of the solution: the four residuals of the solver", shape="4 | "),
    "criterion": array("c", "f", "SPUR objective for each candidate number of clusters", "criterion"),
    "criterion_k": array("c", "i", "candidate numbers of clusters", "criterion"),
    "criterion_converged": array("c", "b", "whether the solver reached its tolerance", "criterion"),
}
_BOOSTER: Arrays = {
    "j": ids("c", "each triplet classifier compares the distances to two objects: the first", "classifiers"),
    "k": ids("c", "the second", "classifiers"),
    "alpha": array("c", "f", "weight of the classifier", "classifiers"),
    "o_j": array("c, bytes", "u", "label set that it votes for if j is nearer; bit y of the row is class y"),
    "o_k": array("c, bytes", "u", "label set that it votes for if k is nearer"),
    "classes": array("y", "U", "names of the classes", "classes"),
    "predicted": array("n", "i", "predicted class; -1 means none", "predicted", values="classes"),
    "given": array("n", "i", "class of the label; -1 means none", "predicted", values="classes"),
    "score": array("n", "f", "total weight of the classifiers that vote for the predicted class", "predicted"),
    "margin": array(
        "n", "f", "margin over the next class, relative to the weight of all applicable classifiers", "predicted"
    ),
    "abstained": array("n", "b", "whether no classifier was applicable", "predicted"),
    "part": array(
        "n",
        "iu",
        "1 training, 2 test, 3 early stopping (by version 0.1.0), 4 not in the subset; 0 no label",
        "predicted",
    ),
    "given_sets": array("n, bytes", "u", "all labels, as bits like `o_j`"),
    "predicted_sets": array("n, bytes", "u", "all predicted labels, as bits like `o_j`"),
    "curve_rounds": array("v", "iu", "number of rounds at each evaluation", "curve"),
    "log_bound": array("v", "f", "logarithm of the bound on the training error", "curve"),
    "bound": array("v", "f", "bound on the training error", "curve"),
    "train_error": array("v", "f", "error on the training set", "curve"),
    "watched_error": array("v", "f", "error on the test set", "curve"),
}
_PREDICTIONS: Arrays = {
    "object": array("n", "U", "name of the object"),
    "label": array("n", "U", "label; empty if none"),
    "predicted": array("n", "U", "predicted label"),
    "score": array("n", "f", "probability of the predicted label (`classify`), or weight of its votes (booster)"),
    "abstained": array("n", "b", "whether there is no prediction"),
    "probability_*": array("n", "f", "probability of each class (`classify`)"),
}
_CLASSIFY: Arrays = {
    "predicted": array("n", "i", "predicted class; -1 means none", "predicted", values="classes"),
    "given": array("n", "i", "class of the label; -1 means none", "predicted", values="classes"),
    "probability": array("n, y", "f", "probability of each class"),
    "score": array("n", "f", "probability of the predicted class", "predicted"),
    "abstained": array("n", "b", "whether there is no prediction", "predicted"),
    "reported": array("n", "b", "whether the object is in the test set", "predicted"),
    "fold": array("n", "i", "cross-validation fold; -1 means none", "predicted"),
    "classes": array("y", "U", "names of the classes", "classes"),
}
_KERNEL: Arrays = {
    "method": figure("refit that learned the kernel", "U"),
    "K": array("s, s", "f", "the learned kernel"),
    "K0": array("s, s", "f", "component of K that is not a mixture of auxiliary kernels"),
    "L": array("s, r", "f", "K = LL' + the mixture of auxiliary kernels"),
    "mu": array("a", "f", "weight of each auxiliary kernel", "auxiliary"),
    "auxiliary": array("a", "U", "names of the auxiliary kernels", "auxiliary"),
    "objective": figure("objective of the optimisation problem"),
    "satisfied": figure("share of the comparisons that K satisfies"),
    "explained": figure("share of the variance on each axis of the map", shape="d | "),
    "coordinates": array("n, d", "f", "coordinates of the map: kernel PCA of K"),
    "ids": ids("s", "objects that K covers, if not all", "subset"),
    "known": array("n", "iu", "0: no data; 1: learned; 2: added by its auxiliary kernels"),
    "factor": array("n, f", "f", "F with K ≈ FF', over all objects"),
    "triplets": ids("m, 3", "triplets in the training set", columns=("anchor", "near", "far")),
    "dual": array("m", "f", "dual variable of each triplet"),
    "constraints": ids("m, 4", "comparisons in the training set", columns=("near_i", "near_j", "far_i", "far_j")),
    "W": array("a, s | a, s, s | a, v | a, v, v", "f", "weight of each object (or feature) in each auxiliary kernel"),
    "map_*": array("v, s | v, u", "f", "maps N; K is the sum over N'N, each applied to its auxiliary kernel"),
}
_EMBEDDING: Arrays = {
    "X": array("n, d", "f", "coordinates of the objects on principal axes", within="embedding"),
    "asked": array("n", "b", "whether the object has answers; the others are at 0", within="embedding"),
    "covariance": array("n, d, d", "f", "covariance of the coordinates of each object"),
    "picture": array(
        "n, 2", "f", "coordinates of a two-dimensional picture, for display only, if d > 2", within="embedding"
    ),
    "supported": array(
        "n, D", "f", "coordinates in the number of dimensions that the answers support, if fewer", within="embedding"
    ),
    "lapse": figure("lapse rate: share of random answers"),
    "alpha": figure("degrees of freedom of t-STE; 0 for STE"),
    "d": figure("number of dimensions"),
    "held_out": figure("kind of held-out answers for the next two; `none`: there are none", "U"),
    "held_out_accuracy": figure("accuracy on held-out comparisons; NaN means unknown"),
    "held_out_log_loss": figure("log loss on held-out comparisons; NaN means unknown", unit="nats per answer"),
}
_UNITS = {"log_loss": "nats per answer", "seconds": "s"}
_MODELS: Arrays = {
    "model": array("m", "U", "name of the model"),
    **{
        name: array("m", "f", meaning, unit=_UNITS.get(name, ""))
        for name, meaning in {
            "accuracy": "accuracy on held-out comparisons",
            "standard_error": "standard error of the accuracy; NaN with fewer than five responses",
            "accuracy_by_worker": "accuracy for participants whose answers are all held out",
            "comparisons": "held-out comparisons, predicted by fits that did not have them (cross-fitting)",
            "standard_error_by_worker": "standard error of accuracy_by_worker",
            "workers": "number of these participants",
            "log_loss": "log loss on held-out comparisons; 0.693 at chance",
            "calibration_error": "mean difference between stated probabilities and observed frequencies",
            "ceiling": "inter-rater agreement: share of answers that match the majority of the others",
            "ceiling_at_most": "upper bound of the noise ceiling for a model without individual differences",
            "seconds": "CPU time of the refit",
        }.items()
    },
}
_DECLARED: dict[str, Arrays] = _COUNTED | {
    "clusters": _CLUSTERS,
    "hierarchy": {
        "linkage": array("l - 1, 4", "f", "linkage matrix in SciPy's format; leaf i is `names[i]`", within="hierarchy"),
        "names": array("l", "U", "names of the leaves", within="hierarchy"),
        "leaves": ids("l", "ids of the leaves", "leaves"),
        "revenue": figure("comparison-based revenue of the tree"),
        "revenue_bound": figure("upper bound of the revenue of any tree"),
    },
    "dimensions": {
        "X": array("n, d", "f", "weights of the objects on the dimensions, 0 or above", within="dimensions"),
        "standard_error": array("n, d", "f", "standard error of each weight, all others given"),
        "asked": array("n", "b", "whether the object has answers; the others are at 0", within="dimensions"),
        **DIMENSION_QUALITY,
    },
    "booster": _BOOSTER,
    "classify": _CLASSIFY,
    "predictions": _PREDICTIONS,
    "embedding": _EMBEDDING,
    "kernel": _KERNEL,
    "models": _MODELS,
}
ARRAYS: Mapping[str, Arrays] = _DECLARED | {
    what: {
        name: declaration if declaration.table == SCALARS else declaration._replace(within=what)
        for name, declaration in _DECLARED[what].items()
    }
    for what in ("questions", "evidence", "workers", "participants", "judgements", "predictions", "models")
}  # of these exports, all but the figures are columns of the table of the same name


def arrays_of(what: str) -> Arrays:
    return ARRAYS[what] if what in ARRAYS else _of_module(what, "EXPORTED")


def _of_module(what: str, name: str) -> Arrays:
    """What a refit that brings its own export declares under this name."""
    module = with_own_export().get(what)
    return getattr(import_module(module), name, {}) if module else {}


def declared(what: str, name: str) -> Array | None:
    """The declaration of an array; of one whose name fits a pattern ("map_*"), the pattern's; None: there is none."""
    arrays = arrays_of(what)
    pattern = pattern_of(name, arrays)
    return None if pattern is None else arrays[pattern]


def columns(table: str) -> Columns:
    """What the columns of a table of this name hold: those of `TABLES`, or the arrays within it."""
    if of_table := TABLES.get(table) or _of_module(table, "COLUMNS"):
        return of_table
    declared = {name: declaration for name, declaration in arrays_of(table).items() if declaration.within == table}
    over_objects = any("n" in axes for declaration in declared.values() for axes in declaration.alternatives())
    return ({"object": OBJECT} if over_objects and "object" not in declared else {}) | declared
