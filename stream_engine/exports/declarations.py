"""What every export holds, declared once: each array and each column of a table with its type, unit and meaning.

The writers (`exports.files`), the manual's page and the laws follow this. Whoever adds an export adds its arrays to
`ARRAYS`, and the columns that its tables have beside them to `TABLES`; a refit that brings its own export has them in
its file, as `EXPORTED` and `COLUMNS`.

In a shape, `n` are all objects that the file's `names` names, `s` those of `subset_names` (all, where there is no such
array); another letter is one length throughout a file; " | " parts alternatives.
"""

from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import NamedTuple

from stream_engine.data.array_checks import pattern_of
from stream_engine.evaluation.weighted_counts import HOWS
from stream_engine.exports import with_own_export

KINDS = {"i": "integer", "u": "integer", "f": "float", "b": "boolean", "U": "text"}  # by numpy's `dtype.kind`
VALUES = {
    "ids": "ids of objects; -1 means none",
    "classes": "indices into `classes`; -1 means none",
}
SCALARS = "scalars"  # NAME.scalars.json: the figures of an export, where its other arrays are tables


class Array(NamedTuple):
    """What one array holds; made by `array`, `ids`, `figure`."""

    shape: str
    kinds: str  # of numbers, as numpy's `dtype.kind`
    meaning: str
    table: str | None = None  # in CSV and Parquet: NAME.table ("": NAME); None: NAME.ARRAY
    within: str = ""  # the table made by hand that has it as a column already
    columns: tuple[str, ...] = ()  # of an array with two axes; (): ARRAY_0, ARRAY_1, ...
    values: str = "numbers"  # or one of VALUES
    unit: str = ""

    def axes(self, ndim: int) -> tuple[str, ...]:
        """The letters of the shape that has so many axes; () where none is declared."""
        return next((axes for axes in self.alternatives() if len(axes) == ndim), ())

    def alternatives(self) -> Iterator[tuple[str, ...]]:
        """The letters of all shapes."""
        return (tuple(filter(None, each.split(", "))) for each in self.shape.split(" | "))

    @property
    def names_objects(self) -> bool:
        """Whether nobody could read it without the objects' names."""
        return self.values == "ids" or any({"n", "s"} & set(axes) for axes in self.alternatives())

    @property
    def type(self) -> str:
        """In words."""
        if self.values != "numbers":
            return self.values
        return KINDS[self.kinds[0]] if len({KINDS[each] for each in self.kinds}) == 1 else "number"


Arrays = Mapping[str, Array]
Columns = Mapping[str, Array]  # of a table: shape "" for those that stand in no array


def array(shape: str, kinds: str, meaning: str, table: str | None = None, **more) -> Array:
    """An array of numbers or texts."""
    return Array(shape, kinds, meaning, table, **more)


def ids(shape: str, meaning: str, table: str | None = None, **more) -> Array:
    """An array of ids: `names[id]` is the object; CSV and Parquet have the names in its place."""
    return Array(shape, "i", meaning, table, values="ids", **more)


def figure(meaning: str, kinds: str = "iufb", shape: str = "", **more) -> Array:
    """A single figure, or a few that belong together: CSV and Parquet have it in NAME.scalars.json."""
    return Array(shape, kinds, meaning, SCALARS, **more)


def text(meaning: str) -> Array:
    """A column of texts."""
    return Array("", "U", meaning)


def number(meaning: str, kinds: str = "f", unit: str = "") -> Array:
    """A column of numbers."""
    return Array("", kinds, meaning, unit=unit)


NAMES = array("n", "U", "the objects' names; `names[id]` is object `id`")
SUBSET_NAMES = array("s", "U", "names of the objects along axis s")
_HOLM = "corrected for the number of participants (Holm); 1 means unknown"

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
    **{f"adds3_{how}": _similarity(f"AddS-3, {says}") for how, says in HOWS.items()},
    **{f"triplet_counts_{how}": {**_KEY, **_TIMES} for how in HOWS},
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
        "p_position": array("w", "f", f"p-value of `position_share`, {_HOLM}"),
        "p_run": array("w", "f", f"p-value of `longest_run`, {_HOLM}"),
        "p_fast": array("w", "f", f"p-value of more than 10 % under 300 ms, {_HOLM}"),
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
        "p_differs": array("w", "f", f"p-value that the participant sees the group's map, {_HOLM}"),
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
    },
}


def _label(what: str, within: str) -> Array:
    return array("n", "i", what, within=within)


_DIMENSION_QUALITY: Arrays = {
    name: array("d", "f", meaning, within="dimension_quality", unit=unit)
    for name, meaning, unit in (
        ("reproducibility", "smallest correlation with the matching dimension of a fit with another seed", ""),
        ("importance", "log loss that held-out responses gain without the dimension", "nats per response"),
        ("importance_error", "standard error of the importance", "nats per response"),
    )
}
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
    "detection_limit": figure("smallest separation that would be detected, in standard deviations within groups"),
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
        **_DIMENSION_QUALITY,
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
        name: each if each.table == SCALARS else each._replace(within=what) for name, each in _DECLARED[what].items()
    }
    for what in ("questions", "evidence", "workers", "participants", "judgements", "predictions", "models")
}  # of these exports, all but the figures are columns of the table of the same name

OBJECT = text("name of the object")
# table -> column, or a pattern of columns -> what it holds; the columns of all other tables are arrays within them
TABLES: Mapping[str, Columns] = {
    "objects": {
        "object": OBJECT,
        "answers": number("number of comparisons with the object", "i"),
        "contradicted": number(
            "number of answers that disagree with the majority for their question (ties count half)", "i"
        ),
        "agreement": number("share of its answers that the answers to other questions predict (AddS-3)"),
        "cluster": number(
            "group (refit `clusters`, or else `sdp_clustering`), from 1, the largest first; empty if none", "i"
        ),
        "cluster_label": number("the same group by its value in `labels` of the export `clusters`", "i"),
        "stability": number("share of replicates that assign it to its group"),
        "x": number("coordinate on the first axis of the map (refit `embedding`); empty if it has no answers"),
        "y": number("coordinate on the second axis"),
        "z": number("coordinate on the third axis"),
        "axis_*": number("coordinates on further axes, `axis_4`, `axis_5`, …"),
        "se_*": number(
            "standard error of each coordinate, `se_x`, `se_y`, …, given the model and its number of dimensions"
        ),
        "ellipse_a": number(
            "semi-major axis of the 95 % confidence ellipse of x and y, given the model; in one dimension, half the "
            "interval"
        ),
        "ellipse_b": number("semi-minor axis"),
        "ellipse_angle": number("angle of the semi-major axis from the x axis", unit="rad"),
        "supported_*": number("coordinates in the number of dimensions that the answers support, if fewer"),
        "picture_?": number("position in the two-dimensional picture, if the map has more dimensions"),
        "nearest_?": text("the three nearest objects, `nearest_1` first"),
        "label": text("label"),
        "predicted": text("predicted label; see `predictions`"),
    },
    "judgements": {
        "judgement": number("number of the response; a response with several comparisons has several rows", "i"),
        "times": number("number of times that the response was given", "i"),
        "worker": text("participant; empty if unknown"),
        "time": number("time of the response; empty if unknown", unit="s since 1970"),
        "sampler": text("sampling strategy; empty if unknown"),
        "near_?": text("the pair that was judged more similar"),
        "far_?": text("the other pair; for a triplet, the anchor is `near_i` and `far_i`"),
    },
    "clusters": {
        "object": OBJECT,
        "cluster": number("group, from 1, the largest first; -1 means in none", "i"),
        "cluster_label": number("the same group by its value in `labels`", "i"),
        "stability": number("share of replicates that assign it to its group; below .9: between groups"),
        "second": number("second most frequent group; -1 means none", "i"),
        "between": number("whether it lies between groups", "b"),
        "subgroup": number("part of its group, from 1, if the group splits again; -1 means none", "i"),
        "grade": text("how separated the groups are, the same in every row"),
        "sdp_cluster": number("cluster in the partition of the semidefinite program; -1 means not clustered", "i"),
    },
    "cluster_answer": {
        "grade": text("how separated the groups are: clearly separated, separated, not separable, or cannot tell"),
        "reason": text("why nobody can tell, or what is special about the objects; empty otherwise"),
        "k": number("number of groups", "i"),
        "clearer_than": number("share of continua whose groups are less clear"),
        "detection_limit": number("smallest separation that would be detected, in standard deviations within groups"),
        "ari": number("adjusted Rand index expected between these groups and those of a replication"),
        "ari_low": number("lower end of its 95 % interval"),
        "ari_high": number("upper end of its 95 % interval"),
        "gain": number("held-out log loss that positions within groups save", unit="nats per answer"),
        "gain_error": number("standard error of `gain`", unit="nats per answer"),
        "sentence": text("the answer in words"),
    },
    "cluster_numbers": {
        "k": number("examined number of groups", "i"),
        "clearness": number("how clear that number of groups is"),
    },
    "hierarchy": {
        "merge": number("number of the merge, from 1", "i"),
        "left": text("first object; empty if it is an earlier merge"),
        "left_merge": number("number of the first merge; 0 if it is an object", "i"),
        "right": text("second object; empty if it is an earlier merge"),
        "right_merge": number("number of the second merge; 0 if it is an object", "i"),
        "height": number("dissimilarity at which they join"),
        "objects": number("number of objects after the merge", "i"),
    },
    "embedding": {
        "object": OBJECT,
        "asked": number("whether it has answers; otherwise its coordinates are 0", "b"),
        "axis_*": number("coordinates; `axis_1` is `x` of `objects`, `axis_2` is `y`"),
        "sd_*": number("standard deviation (uncertainty) of each coordinate"),
        "picture_?": number("position in the two-dimensional picture, if there are more dimensions"),
    },
    "participants": {
        "participant": text("name of the participant"),
        "lapse": number("lapse rate: share of random answers"),
        "slope": number("mean weight: how sharply they distinguish compared with the group, 1"),
        "group": number("group of participants who see alike, from 1; -1 means no weights", "i"),
        "weight_*": number("weight of each axis of `embedding`, relative to the slope"),
        "of_group_map": number("coefficient of the log odds of the group's map (with their weights)"),
        "of_own_map": number("coefficient of the log odds of the participant's own map; 0 without one"),
        "gain": number("log loss of the group's map less that of their own model on held-out answers, in nats"),
        "gain_error": number("its standard error"),
        "p_differs": number(f"p-value that the participant sees the group's map, {_HOLM}"),
    },
    "dimensions": {
        "object": OBJECT,
        "asked": number("whether it has answers; otherwise its weights are 0", "b"),
        "dimension_*": number("its weights"),
    },
    "dimension_quality": {
        "dimension": number("number of the dimension, from 1", "i"),
        "share": number("share of the sum of all weights"),
        **_DIMENSION_QUALITY,
        "objects": text("the objects with the largest weights, separated by semicolons"),
    },
    "alignment_objects": {
        "object": OBJECT,
        "answers": number("number of tested answers that name it", "i"),
        "accuracy": number("share of them that the best row of `alignment` predicts"),
        "agreement": number("share of them that agree with most other answers to the same question"),
    },
    "alignment_questions": {
        "near_?": text("the pair that most people judge more similar"),
        "far_?": text("the pair that the best row of `alignment` predicts; of a triplet, `near_i` is the anchor"),
        "agree": number("number of answers with the majority", "i"),
        "disagree": number("number of answers against it", "i"),
        "log_odds": number("predicted log odds of the majority's answer"),
    },
    "kernel_weights": {
        "object": OBJECT,
        "*": number("weight in each auxiliary kernel (McFee & Lanckriet 2011, fig. 8)"),
    },
    "classifiers": {
        "model": text("classifier"),
        "setting": number("number of neighbours, penalty, or number of rounds"),
        "objects": number("number of objects in its evaluation"),
        "accuracy": number("cross-validated accuracy"),
        "standard_error": number("standard error of the accuracy"),
        "log_loss": number("cross-validated log loss", unit="nats per object"),
        "abstained": number("share of objects without a prediction"),
        "best": number("whether `predictions` are from this classifier", "b"),
    },
}


def arrays_of(what: str) -> Arrays:
    """The arrays of an export."""
    return ARRAYS[what] if what in ARRAYS else _own(what, "EXPORTED")


def _own(what: str, name: str) -> Arrays:
    """What a refit that brings its own export declares under this name."""
    module = with_own_export().get(what)
    return getattr(import_module(module), name, {}) if module else {}


def declared(what: str, name: str) -> Array | None:
    """The declaration of an array; of one whose name fits a pattern ("map_*"), the pattern's; None: there is none."""
    known = arrays_of(what)
    pattern = pattern_of(name, known)
    return None if pattern is None else known[pattern]


def columns(table: str) -> Columns:
    """What the columns of a table of this name hold: those of `TABLES`, or the arrays within it."""
    if known := TABLES.get(table) or _own(table, "COLUMNS"):
        return known
    own = {name: each for name, each in arrays_of(table).items() if each.within == table}
    over_objects = any("n" in axes for each in own.values() for axes in each.alternatives())
    return ({"object": OBJECT} if over_objects and "object" not in own else {}) | own
