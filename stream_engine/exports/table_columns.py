"""The columns of tables that are no arrays of their export: the type, unit and meaning of each."""

from collections.abc import Mapping

from stream_engine.exports.array_types import OBJECT, Arrays, Columns, array, number, text

CORRECTED = "corrected for the number of participants (Holm); 1 means unknown"
DIMENSION_QUALITY: Arrays = {
    name: array("d", "f", meaning, within="dimension_quality", unit=unit)
    for name, meaning, unit in (
        ("reproducibility", "smallest correlation with the matching dimension of a fit with another seed", ""),
        ("importance", "log loss that held-out responses gain without the dimension", "nats per response"),
        ("importance_error", "standard error of the importance", "nats per response"),
    )
}

# table -> column, or a pattern of columns -> what it holds; the columns of all other tables are arrays within them
TABLES: Mapping[str, Columns] = {
    "objects": {
        "object": OBJECT,
        "answers": number("number of comparisons with the object", "i"),
        "contradicted": number(
            "number of answers that disagree with the majority for their question (ties count half)", "i"
        ),
        "agreement": number("share of its answers that the answers to other questions predict (AddS-3)"),
        "set": number(
            "set of objects that were compared with each other, directly or through others, by more than a few "
            "questions, from 1, the largest first; "
            "only if there are several",
            "i",
        ),
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
        "nearest_?": text("the three nearest objects of the same set, `nearest_1` first"),
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
        "detection_limit": number(
            "separation that four of five simulated studies detect, in standard deviations within groups"
        ),
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
        "joins_sets": number(
            "whether it joins sets that were never compared with each other, or by few questions: its height means "
            "nothing; only if there are several sets",
            "b",
        ),
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
        "p_differs": number(f"p-value that the participant sees the group's map, {CORRECTED}"),
    },
    "dimensions": {
        "object": OBJECT,
        "asked": number("whether it has answers; otherwise its weights are 0", "b"),
        "dimension_*": number("its weights"),
    },
    "dimension_quality": {
        "dimension": number("number of the dimension, from 1", "i"),
        "share": number("share of the sum of all weights"),
        **DIMENSION_QUALITY,
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
