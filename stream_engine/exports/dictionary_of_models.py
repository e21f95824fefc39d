"""The dictionary of exports of what was fitted: one entry for each array of each refit's artifact that is exported."""

from collections.abc import Mapping

from stream_engine.exports.dictionary_entries import Entries, Held, figure, held, ids_of

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
    "sdp_clustering": {"warm_*": "where the solver goes on from"},
    "reliability": dict.fromkeys(("i", "j", "w", "squares"), "a weighted AddS-3: the export `adds3_trusted`"),
    "embedding": dict.fromkeys(("worker_lapse", "utf8", "offsets"), "about workers: the export `workers`"),
    "feature_metric": dict.fromkeys(("utf8", "offsets"), "`names` in its place"),
}


def _label(what: str, within: str) -> Held:
    return held("n", "i", what, within=within)


_CLUSTERS: Entries = {
    "labels": _label("the cluster of each object, -1 not clustered", "clusters"),
    "stability": held("n", "f", "how much its cluster stays the same in resampled answers", within="clusters"),
    "together": held("n, n", "f", "share of samples in which two objects are in one cluster"),
    "k": figure("number of clusters"),
    "lam": figure("weight of the trace, where it chose k; not a number elsewhere"),
    "objective": figure("value of the relaxation (Perrot et al. 2020, section 5)"),
    "upper_bound": figure("no solution has a larger value"),
    "gap": figure("relative distance between the two"),
    "residuals": figure("how far the solution is from feasible: the solver's four residuals", shape="4 | "),
    "stability_ari": held("b", "f", "adjusted Rand index of these clusters with those of each sample"),
    "criterion": held("c", "f", "SPUR of each number of clusters that was tried", "criterion"),
    "criterion_k": held("c", "i", "these numbers", "criterion"),
    "p_coins": figure("how often answers without any structure look as clustered"),
    "p_continuum": figure("how often a continuum looks as clustered"),
    "crowding": figure("how many lie near the borders of clusters: 1 as in a continuum, 0 nobody"),
    "level_k": held("l", "i", "numbers of clusters that were looked at", within="cluster_levels"),
    "level_criterion": held("l", "f", "the criterion of each", within="cluster_levels"),
    "level_peak": held("l", "b", "whether it is a peak", within="cluster_levels"),
    "level_ari": held("l", "f", "agreement with resampled clusters, -1 not looked at", within="cluster_levels"),
}
_BOOSTER: Entries = {
    "j": ids_of("c", "each triplet classifier asks which of two objects is nearer: the one", "classifiers"),
    "k": ids_of("c", "the other", "classifiers"),
    "alpha": held("c", "f", "its weight", "classifiers"),
    "o_j": held("c, bytes", "u", "the label set that it votes for where j is nearer: bit y of the row is class y"),
    "o_k": held("c, bytes", "u", "the label set where k is nearer"),
    "classes": held("y", "U", "the classes, by the numbers that stand for them", "classes"),
    "predicted": held("n", "i", "the predicted class, -1 none", "predicted", values="classes"),
    "given": held("n", "i", "the class of its label, -1 none", "predicted", values="classes"),
    "score": held("n", "f", "weight of the classifiers that vote for it", "predicted"),
    "margin": held("n", "f", "lead over the next class, of the weight of all that applied", "predicted"),
    "abstained": held("n", "b", "whether no classifier said anything about it", "predicted"),
    "part": held(
        "n", "iu", "1 trained on, 2 test, 3 stopping, 4 not in the subset, 5 no more; 0 no label", "predicted"
    ),
    "given_sets": held("n, bytes", "u", "all its labels, bits as in `o_j`"),
    "predicted_sets": held("n, bytes", "u", "all predicted labels"),
    "curve_rounds": held("v", "iu", "rounds after which was looked", "curve"),
    "log_bound": held("v", "f", "logarithm of the bound on the training error", "curve"),
    "bound": held("v", "f", "the bound", "curve"),
    "train_error": held("v", "f", "error on the training part", "curve"),
    "watched_error": held("v", "f", "error on the part that is watched", "curve"),
}
_PREDICTIONS: Entries = {
    "object": held("n", "U", "name", within="predictions"),
    "label": held("n", "U", "its own label; empty: none", within="predictions"),
    "predicted": held("n", "U", "predicted label", within="predictions"),
    "score": held("n", "f", "of `classify` the probability of it, of the booster its votes", within="predictions"),
    "abstained": held("n", "b", "whether nothing could be said", within="predictions"),
    "probability_*": held("n", "f", "of each class, by `classify`", within="predictions"),
}
_CLASSIFY: Entries = {
    "predicted": held("n", "i", "the predicted class, -1 none", "predicted", values="classes"),
    "given": held("n", "i", "the class of its label, -1 none", "predicted", values="classes"),
    "probability": held("n, y", "f", "probability of each class"),
    "score": held("n", "f", "probability of the predicted one", "predicted"),
    "abstained": held("n", "b", "whether nothing could be said about it", "predicted"),
    "reported": held("n", "b", "whether the reported figures are about it", "predicted"),
    "fold": held("n", "i", "in which part of the labelled objects it was, -1 in none", "predicted"),
    "classes": held("y", "U", "the classes, by the numbers that stand for them", "classes"),
}
_KERNEL: Entries = {
    "method": figure("the refit that made it", "U"),
    "K": held("s, s", "f", "the learned kernel"),
    "K0": held("s, s", "f", "its part that is no mixture of auxiliary kernels"),
    "L": held("s, r", "f", "K = LL' + the mixture of auxiliary kernels"),
    "mu": held("a", "f", "weight of each auxiliary kernel", "auxiliary"),
    "auxiliary": held("a", "U", "their names", "auxiliary"),
    "objective": figure("value of the problem that it solves"),
    "satisfied": figure("fraction of the comparisons that it satisfies"),
    "explained": figure("share of the spread on each axis of the map", shape="d | "),
    "coordinates": held("n, d", "f", "a map: kernel PCA of K"),
    "neighbours": ids_of("n, j", "the nearest objects of each, nearest first"),
    "linkage": Held("s - 1, 4", "f", "dendrogram in scipy's format over the rows of K", "linkage", values="merges"),
    "ids": ids_of("s", "whom K is over, where not over all", "subset"),
    "known": held("n", "iu", "0 nothing is known of it, 1 learned, 2 joined by its auxiliary kernels"),
    "factor": held("n, f", "f", "F with K ~ FF', over all objects"),
    "triplets": ids_of("m, 3", "the triplets it was learned from", columns=("anchor", "near", "far")),
    "dual": held("m", "f", "the dual variable of each"),
    "constraints": ids_of(
        "m, 4", "the comparisons it was learned from", columns=("near_i", "near_j", "far_i", "far_j")
    ),
    "W": held("a, s | a, s, s | a, v | a, v, v", "f", "weight of each object (or feature) in each auxiliary kernel"),
    "map_*": held("v, s | v, u", "f", "K is the sum of N'N over these N, each times its auxiliary kernel"),
}
_EMBEDDING: Entries = {
    "X": held("n, d", "f", "where the objects lie, on principal axes", within="embedding"),
    "asked": held("n", "b", "whether anything was asked about it; the others lie at 0", within="embedding"),
    "covariance": held("n, d, d", "f", "of each place"),
    "lapse": figure("share of answers that are given at random"),
    "alpha": figure("degrees of freedom of t-STE; 0 for STE"),
    "d": figure("number of dimensions"),
    "held_out": figure("what the next two were measured on; `none`: nothing", "U"),
    "held_out_accuracy": figure("share of held-out comparisons that come as expected; not a number: unknown"),
    "held_out_log_loss": figure("in nats an answer; not a number: unknown"),
}
_MODELS: Entries = {
    "model": held("m", "U", "name", within="models"),
    **{
        name: held("m", "f", says, within="models")
        for name, says in {
            "accuracy": "share of held-out comparisons that come as expected",
            "standard_error": "of it; not a number: of fewer than five judgements",
            "accuracy_by_worker": "the same of workers that it never heard",
            "standard_error_by_worker": "of it",
            "workers": "how many these were",
            "log_loss": "in nats an answer",
            "calibration_error": "how far stated probabilities are from what happens",
            "ceiling": "how often an answer is that of most others",
            "ceiling_at_most": "no model that answers alike for everybody is right more often",
            "seconds": "of CPU; of the refit",
        }.items()
    },
}
MODELS: Mapping[str, Entries] = {
    "clusters": _CLUSTERS,
    "spectral": {
        "labels": _label("the cluster of each object, -1 not clustered", "spectral"),
        "k": figure("number of clusters"),
        "objective": figure("similarity within clusters"),
        "eigenvalues": held("e", "f", "that chose k, largest first"),
        "edge": figure("which they had to exceed; not a number where they did not choose"),
        "criterion": held("c", "f", "of each number of clusters, where it chose"),
    },
    "hierarchy": {
        "linkage": held("l - 1, 4", "f", "dendrogram in scipy's format; leaf i is `names[i]`", within="hierarchy"),
        "names": held("l", "U", "of the leaves", within="hierarchy"),
        "leaves": ids_of("l", "their ids", "leaves"),
        "revenue": figure("what it maximises"),
        "revenue_bound": figure("no tree has more"),
    },
    "kernel_pca": {
        "coordinates": held("n, d", "f", "where the objects lie", within="kernel_pca"),
        "mapped": held("n", "b", "whether it is on the map; the others lie at 0", within="kernel_pca"),
        "eigenvalues": held("d", "f", "of each axis", "axes"),
        "lambda_min": figure("the smallest eigenvalue, by which the kernel was shifted where asked to"),
    },
    "feature_metric": {
        "points": held("n, d", "f", "where every object that has features lies", within="feature_metric"),
        "compared": held("n", "b", "whether anybody compared it", within="feature_metric"),
        "map": held("d, f", "f", "from the standardised features to the places"),
    },
    "booster": _BOOSTER,
    "classify": _CLASSIFY,
    "predictions": _PREDICTIONS,
    "embedding": _EMBEDDING,
    "kernel": _KERNEL,
    "models": _MODELS,
}
