"""What every export holds, declared once: each array and each column of a table with its type, unit and meaning.

The writers (`exports.files`), the manual's page and the laws follow this. Whoever adds an export adds its arrays to
`ARRAYS`, and the columns that its tables have beside them to `TABLES`.

In a shape, `n` are all objects that the file's `names` names, `s` those of `subset_names` (all, where there is no such
array); another letter is one length throughout a file; " | " parts alternatives.
"""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from stream_engine.data.array_checks import pattern_of
from stream_engine.statistics.weighted_counts import HOWS

KINDS = {"i": "whole", "u": "whole", "f": "real", "b": "yes or no", "U": "text"}  # by numpy's `dtype.kind`
VALUES = {
    "ids": "of objects; -1 stands for none",
    "classes": "places in `classes`; -1 stands for none",
    "merges": "a dendrogram in scipy's format, whose leaves are the places of s",
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
        return self.values in ("ids", "merges") or any({"n", "s"} & set(axes) for axes in self.alternatives())

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
SUBSET_NAMES = array("s", "U", "the names of the rows and columns of what is over `ids`")

_KEY = {
    "anchor": ids("t", "what the two others are compared with", ""),
    "lo": ids("t", "of the two others the one with the lower id", ""),
    "hi": ids("t", "the other", ""),
}
_TIMES = {
    "n_lo": array("t", "iuf", "how often lo was nearer", ""),
    "n_hi": array("t", "iuf", "how often hi was nearer", ""),
}


def _similarity(of: str) -> dict[str, Array]:
    return {
        "W": array("n, n", "iuf", f"{of}: symmetric, larger for more alike", ""),
        "i": ids("p", "above 4,096 objects, the entries that are not zero: the one object", ""),
        "j": ids("p", "the other object, i < j", ""),
        "w": array("p", "iuf", "the entry", ""),
    }


def _kernel(of: str) -> dict[str, Array]:
    return {
        "K": array("n, n", "f", of, ""),
        "data": array("z", "f", "above 16,384 objects, a factor with K = FF', as a CSC matrix: its values", ""),
        "indices": ids("z", "the object (row) of each value", ""),
        "indptr": array("c", "iu", "where each column begins"),
        "shape": figure("rows and columns of the factor", shape="2"),
    }


_FOUR = ("near_i", "near_j", "far_i", "far_j")


_COUNTED: dict[str, Arrays] = {
    "adds3": _similarity("AddS-3 (Perrot et al. 2020, section 4)"),
    "adds4": _similarity("AddS-4, in which a triplet is the quadruplet that it is"),
    "triplet_counts": {**_KEY, **_TIMES},
    "k1": _kernel("k1 (Kleindessner & von Luxburg 2017, section 2)"),
    "k2": _kernel("k2 (Kleindessner & von Luxburg 2017, section 2)"),
    **{f"adds3_{how}": _similarity(f"AddS-3, {says}") for how, says in HOWS.items()},
    **{f"triplet_counts_{how}": {**_KEY, **_TIMES} for how in HOWS},
    "partial_order": {
        "kept": ids("m, 4", "the comparisons that the guard keeps: near pair, far pair", columns=_FOUR),
        "reduced": ids("r, 4", "their transitive reduction", columns=_FOUR),
        "canonical": ids("q, 4", "the order of the net votes alone, whatever the order of arrival", columns=_FOUR),
        "weight_kept": figure("fraction of the net vote weight that `kept` keeps"),
        "canonical_weight_kept": figure("fraction of the net vote weight that `canonical` keeps"),
        "implied": figure(
            "triplets that follow from `kept` without having been said; and between which two numbers the truth lies "
            "(95 %)",
            shape="3",
        ),
        "implied_exact": figure("whether all were looked at, else a sample was"),
    },
    "questions": {
        "anchor": ids("t", "what the two others are compared with", within="questions"),
        "near": ids("t", "which was nearer by the majority; at a tie the first by name", within="questions"),
        "far": ids("t", "the other", within="questions"),
        "n_near": array("t", "iu", "how many answers said so", within="questions"),
        "n_far": array("t", "iu", "how many said the opposite", within="questions"),
        "confidence": array("t", "f", "probability that the majority is right, by these answers", within="questions"),
        "predicted": array(
            "t", "f", "probability that `near` is nearer, by AddS-3 of all other answers", within="questions"
        ),
    },
    "confidence": {
        **_KEY,
        "confidence": array("t", "f", "probability that the majority of its answers is right, from these alone", ""),
        "predicted": array("t", "f", "probability that lo is nearer, from all other answers", ""),
    },
    "evidence": {
        "answers": array("n", "i", "comparisons that name the object", within="evidence"),
        "as_anchor": array("n", "i", "of these, triplets whose anchor it is", within="evidence"),
        "questions": array("n", "i", "distinct ones", within="evidence"),
        "contradicted": array("n", "i", "answers in the minority of their own question", within="evidence"),
        "agreement": array("n", "f", "share of its answers that all others foretell; 1/2 of none", within="evidence"),
        "cluster_stability": array("n", "f", "`stability` of `clusters`", within="evidence"),
        "right_*": array("n", "f", "share of the answers about it that this model gets right", within="evidence"),
    },
    "workers": {
        "worker": array("w", "U", "name", within="workers"),
        "events": array("w", "i", "events that name the worker", within="workers"),
        "comparisons": array("w", "i", "comparisons in them", within="workers"),
        "agreed": array("w", "i", "with the net vote of the others", within="workers"),
        "disagreed": array("w", "i", "with the net vote of the others", within="workers"),
        "repeats": array("w", "i", "answers to a question that the worker had answered", within="workers"),
        "contradictions": array("w", "i", "of these, answered the other way", within="workers"),
        "passed": array("w", "i", "catch trials passed", within="workers"),
        "failed": array("w", "i", "catch trials failed", within="workers"),
        "accuracy": array("w", "f", "estimated share of answers that are right", within="workers"),
        "weight": array("w", "f", "what an answer of the worker counts", within="workers"),
    },
    "judgements": {
        **{name: ids("c", f"{name} of a comparison", within="judgements") for name in _FOUR},
        "judgement": array("c", "i", "the judgement that a comparison belongs to", within="judgements"),
        "times": array("g", "iu", "how often each judgement was given", within="judgements"),
        "worker": array("g", "i", "by whom, a place in `worker_names`; -1 unknown", within="judgements"),
        "time": array("g", "f", "when; not a number: unknown", within="judgements", unit="s since 1970"),
        "sampler": array("g", "i", "what asked it, a place in `sampler_names`; -1 unknown", within="judgements"),
        "worker_utf8": array("b", "u", "their names, all bytes in a row", within="judgements"),
        "worker_offsets": array("w + 1", "iu", "where each begins", within="judgements"),
        "sampler_utf8": array("e", "u", "likewise of the samplers", within="judgements"),
        "sampler_offsets": array("a + 1", "iu", "where each begins", within="judgements"),
        "worker_names": array("w", "U", "the workers' names", within="judgements"),
        "sampler_names": array("a", "U", "the samplers' names", within="judgements"),
        "complete": figure("whether all judgements of the stream are here"),
    },
}

# export -> the kinds of artifacts that it is of; `kernel` has one file for each
OF_REFITS = {
    "clusters": ("sdp_clustering",),
    "spectral": ("spectral",),
    "hierarchy": ("hierarchy",),
    "kernel_pca": ("kernel_pca",),
    "workers": ("reliability",),
    "feature_metric": ("feature_metric",),
    "booster": ("triplet_boost",),
    "classify": ("classify",),
    "embedding": ("embedding",),
    "kernel": ("kernel_learning", "partial_order_embedding"),
}
# arrays of artifacts that are in no export, with the reason
LEFT_OUT = {
    "sdp_clustering": {"warm_*": "where the solver goes on from", "level_*": "of version 0.1.0"},
    "spectral": {"criterion": "of version 0.1.0"},
    "reliability": dict.fromkeys(("i", "j", "w", "squares"), "a weighted AddS-3: the export `adds3_trusted`"),
    "embedding": dict.fromkeys(("worker_lapse", "utf8", "offsets"), "about workers: the export `workers`"),
    "feature_metric": dict.fromkeys(("utf8", "offsets"), "`names` in its place"),
}


def _label(what: str, within: str) -> Array:
    return array("n", "i", what, within=within)


_CLUSTERS: Arrays = {
    "labels": _label("the cluster of each object, -1 not clustered", "clusters"),
    "stability": array("n", "f", "share of random halves of responses that put it into its cluster", within="clusters"),
    "second": _label("the cluster that it is in most often besides, -1 none", "clusters"),
    "together": array("n, n", "f", "share of these halves in which two objects are in one cluster"),
    "k": figure("number of clusters"),
    "lam": figure("weight of the trace, where it chose k; not a number elsewhere"),
    "objective": figure("value of the relaxation (Perrot et al. 2020, section 5)"),
    "upper_bound": figure("no solution has a larger value"),
    "gap": figure("relative distance between the two"),
    "residuals": figure("how far the solution is from feasible: the solver's four residuals", shape="4 | "),
    "stability_ari": array("b", "f", "adjusted Rand index of the clusters in halves of two different splits"),
    "criterion": array("c", "f", "SPUR of each number of clusters that was tried", "criterion"),
    "criterion_k": array("c", "i", "these numbers", "criterion"),
    "criterion_converged": array("c", "b", "whether it was solved to its tolerance", "criterion"),
    "p_coins": figure("how often answers without any structure look as clustered"),
    "p_continuum": figure("how often a continuum looks as clustered, whatever the number of clusters"),
    "crowding": figure("density at the most crowded border of clusters: 1 as in a continuum, 0 nobody"),
    "tested_k": array("t", "i", "numbers of clusters that were tested", within="cluster_numbers"),
    "tested_crowding": array("t", "f", "`crowding` of each", within="cluster_numbers"),
    "tested_p": array("t", "f", "p against a continuum, corrected for the choice", within="cluster_numbers"),
}
_BOOSTER: Arrays = {
    "j": ids("c", "each triplet classifier asks which of two objects is nearer: the one", "classifiers"),
    "k": ids("c", "the other", "classifiers"),
    "alpha": array("c", "f", "its weight", "classifiers"),
    "o_j": array("c, bytes", "u", "the label set that it votes for where j is nearer: bit y of the row is class y"),
    "o_k": array("c, bytes", "u", "the label set where k is nearer"),
    "classes": array("y", "U", "the classes, by the numbers that stand for them", "classes"),
    "predicted": array("n", "i", "the predicted class, -1 none", "predicted", values="classes"),
    "given": array("n", "i", "the class of its label, -1 none", "predicted", values="classes"),
    "score": array("n", "f", "weight of the classifiers that vote for it", "predicted"),
    "margin": array("n", "f", "lead over the next class, of the weight of all that applied", "predicted"),
    "abstained": array("n", "b", "whether no classifier said anything about it", "predicted"),
    "part": array(
        "n", "iu", "1 trained on, 2 test, 3 stopping, 4 not in the subset, 5 no more; 0 no label", "predicted"
    ),
    "given_sets": array("n, bytes", "u", "all its labels, bits as in `o_j`"),
    "predicted_sets": array("n, bytes", "u", "all predicted labels"),
    "curve_rounds": array("v", "iu", "rounds after which was looked", "curve"),
    "log_bound": array("v", "f", "logarithm of the bound on the training error", "curve"),
    "bound": array("v", "f", "the bound", "curve"),
    "train_error": array("v", "f", "error on the training part", "curve"),
    "watched_error": array("v", "f", "error on the part that is watched", "curve"),
}
_PREDICTIONS: Arrays = {
    "object": array("n", "U", "name", within="predictions"),
    "label": array("n", "U", "its own label; empty: none", within="predictions"),
    "predicted": array("n", "U", "predicted label", within="predictions"),
    "score": array("n", "f", "of `classify` the probability of it, of the booster its votes", within="predictions"),
    "abstained": array("n", "b", "whether nothing could be said", within="predictions"),
    "probability_*": array("n", "f", "of each class, by `classify`", within="predictions"),
}
_CLASSIFY: Arrays = {
    "predicted": array("n", "i", "the predicted class, -1 none", "predicted", values="classes"),
    "given": array("n", "i", "the class of its label, -1 none", "predicted", values="classes"),
    "probability": array("n, y", "f", "probability of each class"),
    "score": array("n", "f", "probability of the predicted one", "predicted"),
    "abstained": array("n", "b", "whether nothing could be said about it", "predicted"),
    "reported": array("n", "b", "whether the reported figures are about it", "predicted"),
    "fold": array("n", "i", "in which part of the labelled objects it was, -1 in none", "predicted"),
    "classes": array("y", "U", "the classes, by the numbers that stand for them", "classes"),
}
_KERNEL: Arrays = {
    "method": figure("the refit that made it", "U"),
    "K": array("s, s", "f", "the learned kernel"),
    "K0": array("s, s", "f", "its part that is no mixture of auxiliary kernels"),
    "L": array("s, r", "f", "K = LL' + the mixture of auxiliary kernels"),
    "mu": array("a", "f", "weight of each auxiliary kernel", "auxiliary"),
    "auxiliary": array("a", "U", "their names", "auxiliary"),
    "objective": figure("value of the problem that it solves"),
    "satisfied": figure("fraction of the comparisons that it satisfies"),
    "explained": figure("share of the spread on each axis of the map", shape="d | "),
    "coordinates": array("n, d", "f", "a map: kernel PCA of K"),
    "neighbours": ids("n, j", "the nearest objects of each, nearest first"),
    "linkage": Array("s - 1, 4", "f", "dendrogram in scipy's format over the rows of K", "linkage", values="merges"),
    "ids": ids("s", "whom K is over, where not over all", "subset"),
    "known": array("n", "iu", "0 nothing is known of it, 1 learned, 2 joined by its auxiliary kernels"),
    "factor": array("n, f", "f", "F with K ~ FF', over all objects"),
    "triplets": ids("m, 3", "the triplets it was learned from", columns=("anchor", "near", "far")),
    "dual": array("m", "f", "the dual variable of each"),
    "constraints": ids("m, 4", "the comparisons it was learned from", columns=("near_i", "near_j", "far_i", "far_j")),
    "W": array("a, s | a, s, s | a, v | a, v, v", "f", "weight of each object (or feature) in each auxiliary kernel"),
    "map_*": array("v, s | v, u", "f", "K is the sum of N'N over these N, each times its auxiliary kernel"),
}
_EMBEDDING: Arrays = {
    "X": array("n, d", "f", "where the objects lie, on principal axes", within="embedding"),
    "asked": array("n", "b", "whether anything was asked about it; the others lie at 0", within="embedding"),
    "covariance": array("n, d, d", "f", "of each place"),
    "lapse": figure("share of answers that are given at random"),
    "alpha": figure("degrees of freedom of t-STE; 0 for STE"),
    "d": figure("number of dimensions"),
    "held_out": figure("what the next two were measured on; `none`: nothing", "U"),
    "held_out_accuracy": figure("share of held-out comparisons that come as expected; not a number: unknown"),
    "held_out_log_loss": figure("not a number: unknown", unit="nats an answer"),
}
_UNITS = {"log_loss": "nats an answer", "seconds": "s"}
_MODELS: Arrays = {
    "model": array("m", "U", "name", within="models"),
    **{
        name: array("m", "f", meaning, within="models", unit=_UNITS.get(name, ""))
        for name, meaning in {
            "accuracy": "share of held-out comparisons that come as expected",
            "standard_error": "of it; not a number: of fewer than five judgements",
            "accuracy_by_worker": "the same of workers that it never heard",
            "standard_error_by_worker": "of it",
            "workers": "how many these were",
            "log_loss": "of held-out comparisons; .693 at chance",
            "calibration_error": "how far stated probabilities are from what happens",
            "ceiling": "how often an answer is that of most others",
            "ceiling_at_most": "no model that answers alike for everybody is right more often",
            "seconds": "CPU time of the refit",
        }.items()
    },
}
ARRAYS: Mapping[str, Arrays] = _COUNTED | {
    "clusters": _CLUSTERS,
    "spectral": {
        "labels": _label("the cluster of each object, -1 not clustered", "spectral"),
        "k": figure("number of clusters"),
        "objective": figure("similarity within clusters"),
        "eigenvalues": array("e", "f", "that chose k, largest first"),
        "edge": figure("which they had to exceed; not a number where they did not choose"),
    },
    "hierarchy": {
        "linkage": array("l - 1, 4", "f", "dendrogram in scipy's format; leaf i is `names[i]`", within="hierarchy"),
        "names": array("l", "U", "of the leaves", within="hierarchy"),
        "leaves": ids("l", "their ids", "leaves"),
        "revenue": figure("what it maximises"),
        "revenue_bound": figure("no tree has more"),
    },
    "kernel_pca": {
        "coordinates": array("n, d", "f", "where the objects lie", within="kernel_pca"),
        "mapped": array("n", "b", "whether it is on the map; the others lie at 0", within="kernel_pca"),
        "eigenvalues": array("d", "f", "of each axis", "axes"),
        "lambda_min": figure("the smallest eigenvalue, by which the kernel was shifted where asked to"),
    },
    "feature_metric": {
        "points": array("n, d", "f", "where every object that has features lies", within="feature_metric"),
        "compared": array("n", "b", "whether anybody compared it", within="feature_metric"),
        "map": array("d, f", "f", "from the standardised features to the places"),
    },
    "booster": _BOOSTER,
    "classify": _CLASSIFY,
    "predictions": _PREDICTIONS,
    "embedding": _EMBEDDING,
    "kernel": _KERNEL,
    "models": _MODELS,
}

_OBJECT = text("name")
# table -> column, or a pattern of columns -> what it holds; the columns of all other tables are arrays within them
TABLES: Mapping[str, Columns] = {
    "objects": {
        "object": _OBJECT,
        "answers": number("comparisons that name it", "i"),
        "contradicted": number("of these, answers in the minority of their own question", "i"),
        "agreement": number("share of its answers that all others predict"),
        "cluster": number("its cluster (refit `sdp_clustering`); empty: in none", "i"),
        "stability": number("share of random halves of responses that put it into its cluster"),
        "x": number(
            "its coordinate on the first axis of the map (refit `embedding`); empty: nothing was asked about it"
        ),
        "y": number("on the second axis"),
        "z": number("on the third axis"),
        "axis_*": number("on further axes, `axis_4`, `axis_5`, …"),
        "ellipse_a": number(
            "larger half axis of the region of x and y in which it lies with probability .95, given the model; in one "
            "dimension half the interval"
        ),
        "ellipse_b": number("smaller half axis"),
        "ellipse_angle": number("direction of the larger one from the x axis", unit="rad"),
        "nearest_?": text("the three objects that lie nearest, `nearest_1` first"),
        "label": text("its label"),
        "predicted": text("the label that is predicted of it: see `predictions`"),
    },
    "judgements": {
        "judgement": number("number of the judgement; one of several comparisons has several rows", "i"),
        "times": number("how often it was given", "i"),
        "worker": text("by whom; empty: unknown"),
        "time": number("when; empty: unknown", unit="s since 1970"),
        "sampler": text("what asked it; empty: unknown"),
        "near_?": text("the pair that was judged more alike"),
        "far_?": text("the other pair; of a triplet the anchor is `near_i` and `far_i`"),
    },
    "clusters": {
        "object": _OBJECT,
        "cluster": number("its cluster, -1 not clustered", "i"),
        "stability": number("share of random halves of responses that put it into its cluster; below .9: between two"),
        "second": number("the cluster that it is in most often besides, -1 none", "i"),
        "verdict": text(
            "of all of them, in every row: whether there are clusters, or the groups are pieces of a continuum"
        ),
    },
    "cluster_verdict": {
        "verdict": text("whether there are clusters"),
        "k": number("how many", "i"),
        "p_coins": number("how often answers at random look as clustered"),
        "p_continuum": number("how often a continuum looks as clustered, whatever the number of clusters"),
        "crowding": number("density at the most crowded border of clusters: 1 as in a continuum, 0 nobody"),
    },
    "cluster_numbers": {
        "k": number("number of clusters that was tested", "i"),
        "crowding": number("density at the most crowded border of so many clusters"),
        "p": number("how often a continuum looks as clustered, corrected for the choice"),
    },
    "spectral": {"object": _OBJECT, "cluster": number("its cluster, -1 not clustered", "i")},
    "hierarchy": {
        "merge": number("number of the merge, from 1", "i"),
        "left": text("the object that it joins; empty: an earlier merge"),
        "left_merge": number("which merge; 0: an object", "i"),
        "right": text("the other, likewise"),
        "right_merge": number("which merge; 0: an object", "i"),
        "height": number("how unlike the two are"),
        "objects": number("how many objects are joined then", "i"),
    },
    "kernel_pca": {
        "object": _OBJECT,
        "mapped": number("whether it is on the map; else it lies at 0", "b"),
        "axis_*": number("its coordinates"),
    },
    "embedding": {
        "object": _OBJECT,
        "asked": number("whether anything was asked about it; else it lies at 0", "b"),
        "axis_*": number("its coordinates; `axis_1` is `x` of `objects`, `axis_2` is `y`"),
        "sd_*": number("standard deviation of each coordinate"),
    },
    "feature_metric": {
        "object": _OBJECT,
        "compared": number("whether anybody compared it", "b"),
        "axis_*": number("its coordinates"),
    },
    "kernel_weights": {
        "object": _OBJECT,
        "*": number("its weight in each auxiliary kernel (McFee & Lanckriet 2011, fig. 8)"),
    },
    "classifiers": {
        "model": text("classifier"),
        "setting": number("neighbours, penalty or rounds"),
        "objects": number("how many objects it is judged by"),
        "accuracy": number("share of them that it predicts correctly, without having seen their labels"),
        "standard_error": number("of it"),
        "log_loss": number("of them", unit="nats an object"),
        "abstained": number("share of which it says nothing"),
        "best": number("whether it makes `predictions`", "b"),
    },
}


def declared(what: str, name: str) -> Array | None:
    """The declaration of an array; of one whose name fits a pattern ("map_*"), the pattern's; None: there is none."""
    known = ARRAYS.get(what, {})
    pattern = pattern_of(name, known)
    return None if pattern is None else known[pattern]


def columns(table: str) -> Columns:
    """What the columns of a table of this name hold: those of `TABLES`, or the arrays within it."""
    if table in TABLES:
        return TABLES[table]
    own = {name: each for name, each in ARRAYS.get(table, {}).items() if each.within == table}
    over_objects = any("n" in axes for each in own.values() for axes in each.alternatives())
    return ({"object": _OBJECT} if over_objects and "object" not in own else {}) | own
