"""What JSON documents tell: reports of artifacts, `summary.json`, `inspect --json`, the live page and HTTP.

Each number and text of a document has an entry by its path, in which `#` is any position of a list and `*` any name: a
function of the world and of the positions (of the last name, where the entry ends in `*`), or the test that has its
definition, which must be there and speak of it by name.
"""

import ast
import csv
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from fnmatch import fnmatchcase
from functools import cache
from hashlib import sha256
from typing import Any
from unittest.mock import ANY

import numpy as np
import pytest

from stream_engine.counts import ACCUMULATORS
from tests.conftest import ROOT
from tests.support.crafted_worlds import FEATURES
from tests.support.told import HALF_LIFE, TOLD, WINDOW, World, agreeing, at_most, guard, same

Definition = Callable | str


def leaves(document: Any, path: str = "", at: tuple[int, ...] = ()) -> Iterator[tuple[str, tuple[int, ...], Any]]:
    """Each number, text and empty container with its path and the positions in lists that lead to it.

    >>> list(leaves({"a": [1, {"b": None}], "c": {}}))
    [('a/#', (0,), 1), ('a/#/b', (1,), None), ('c', (), {})]
    """
    if isinstance(document, Mapping) and document:
        for key, value in document.items():
            yield from leaves(value, f"{path}/{key}" if path else str(key), at)
    elif isinstance(document, list | tuple) and document:
        for number, value in enumerate(document):
            yield from leaves(value, f"{path}/#" if path else "#", (*at, number))
    else:
        yield path, at, document


def entry(path: str, known: Mapping[str, Definition]) -> str:
    """The entry of a path: its own, or the first that fits."""
    found = path if path in known else next((each for each in known if fnmatchcase(path, each)), None)
    assert found is not None, f"{path} has no definition"
    return found


def check(document: Any, known: Mapping[str, Definition], world: Any) -> set[str]:
    """Whether a document is as it is defined; returns the entries that it needs."""
    used = set()
    for path, at, found in leaves(document):
        used.add(name := entry(path, known))
        if not isinstance(definition := known[name], str):
            about = (*at, path.rpartition("/")[2]) if name.endswith("*") else at
            wanted = definition(world, *about)
            assert same(found, wanted), (path, at, found, wanted)
    return used


@cache
def _functions(file: str) -> dict[str, str]:
    text = (ROOT / file).read_text()
    return {
        each.name: ast.get_source_segment(text, each) or ""
        for each in ast.parse(text).body
        if isinstance(each, ast.FunctionDef)
    }


def dangling(name: str, test: str) -> str:
    """What is wrong with the reference FILE::TEST to a test for a name; "" where it is there and speaks of it, or of
    the word in FILE::TEST::WORD, which it has for it."""
    file, function, word = [*test.split("::"), ""][:3]
    if not (ROOT / file).is_file() or function not in _functions(file):
        return f"{test}: no such test"
    word = word or next(each for each in reversed(name.split("/")) if each not in "#*")
    return "" if re.search(rf"\b{word}\b", _functions(file)[function]) else f"{test} does not speak of {word}"


def alike(document: Mapping) -> list[tuple[str, ...]]:
    """Names beside each other in a document that have the same number: a mistake of one for the other would not be
    seen."""
    found: dict[float, list[str]] = {}
    for name, value in document.items():
        if isinstance(value, int | float) and not isinstance(value, bool):
            found.setdefault(value, []).append(name)
    inner = [alike(value) for value in document.values() if isinstance(value, Mapping)]
    return [tuple(names) for names in found.values() if len(names) > 1] + [each for some in inner for each in some]


# ---- reports of artifacts


def of_array(kind: str, name: str, *index: int) -> Callable:
    """A figure that the artifact has as an array, too, where its export is checked."""

    def told(w: World, *at: int) -> float:
        return np.asarray(getattr(w.fits[kind], name))[(*index, *at)].item()

    return told


def of_params(kind: str, name: str) -> Callable:
    return lambda w: w.fits[kind].params[name]


def total(column: str) -> Callable:
    """The sum of a column of the export `workers`."""
    return lambda w: sum(TOLD["workers"][column](w, who) for who in w.workers)


def grouped(kind: str) -> Callable:
    return lambda w: sum(label >= 0 for label in w.fits[kind].labels.tolist())


def groups(kind: str) -> Callable:
    return lambda w: len({*w.fits[kind].labels.tolist()} - {-1})


def by_themselves(w: World) -> list[str]:
    """The objects that are the only one of their group."""
    labels = w.fits["clusters"].labels.tolist()
    return [name for name, label in zip(w.names, labels) if label >= 0 and labels.count(label) == 1]


def per_cluster(w: World, kind: str) -> float:
    """The sum of the similarities within each cluster, divided by its size."""
    found = {}
    for name, label in zip(w.names, w.fits[kind].labels.tolist()):
        found.setdefault(label, []).append(name)
    return float(
        sum(sum(w.similarity[""][a, b] for a in each for b in each) / len(each) for k, each in found.items() if k >= 0)
    )


def among(w: World, kind: str, four: bool) -> list[tuple]:
    """The comparisons among the objects that a kernel was learned over, each with its event."""
    names = {w.names[i] for i in w.fits[kind].ids.tolist()}
    return [(rows, event) for rows, event in w.said if {*rows} <= names and (four or rows[0] == rows[2])]


def responses(said: list[tuple]) -> int:
    """Answers given in one go."""
    return len({id(event) for _, event in said})


def whole(w: World, number: int) -> Any:
    """A number of held-out answers: all of a small study, some of a larger one (tests/evaluation/test_cross_fit)."""
    return number if len(w.said) < 1000 else ANY


def usual(report: Mapping, *names: str) -> dict[str, Definition]:
    """A group of entries below some names."""
    return {f"{name}/{key}": definition for name in names for key, definition in report.items()}


@cache
def rows_of_features() -> dict[str, np.ndarray]:
    with open(FEATURES, newline="") as file:
        return {name: np.array(values, float) for name, *values in list(csv.reader(file))[1:]}


def features(w: World) -> dict[str, np.ndarray]:
    return {name: row for name, row in rows_of_features().items() if name in w.names}


def right_by_features(w: World, measure: str) -> float:
    """The share of comparisons for which the nearer pair has the larger similarity of features, ties one half."""
    x = features(w)

    def alike(a: str, b: str) -> float:
        if measure == "euclidean":
            return -float(((x[a] - x[b]) ** 2).sum())
        return float(x[a] @ x[b]) / (np.linalg.norm(x[a]) * np.linalg.norm(x[b]) if measure == "cosine" else 1.0)

    more = [round(alike(i, j) - alike(k, l), 9) for (i, j, k, l), _ in w.said]
    return float(np.mean([1.0 if each > 0 else 0.5 if each == 0 else 0.0 for each in more]))


OBJECTS = {"objects": lambda w: len(w.names)}
TRIPLETS = {"comparisons": lambda w: len(w.triplets)}
HELD = "tests/evaluation/test_held_out.py::"
CEILING = {
    "ceiling/others": lambda w: agreeing(w, False)[0],
    "ceiling/answers": lambda w: agreeing(w, False)[1],
    "ceiling/themselves": lambda w: agreeing(w, True)[0] if agreeing(w, True)[1] >= 100 else None,
    "ceiling/own_answers": lambda w: agreeing(w, True)[1],
    "ceiling/at_most": at_most,
}
CEILING_OF_SOME = dict.fromkeys(CEILING, f"{HELD}test_the_ceiling_counts_by_hand")
FIGURES = dict.fromkeys(
    ("accuracy", "standard_error", "log_loss", "calibration_error", "comparisons", "clusters"),
    f"{HELD}test_figures_are_their_definitions",
)


def held_out(kind: str, said: Callable, ceiling: Mapping[str, Definition] = CEILING) -> dict[str, Definition]:
    """Of a model that was asked about every answer: all of a small study, by fits without them."""
    own = {name: FIGURES[name] for name in ("accuracy", "standard_error", "log_loss", "calibration_error")}
    return (
        own
        | ceiling
        | usual(FIGURES, "by_worker")
        | {
            "held_out": lambda w: "judgements",
            "error": lambda w: 1 - w.fits[kind].report["accuracy"],
            "held_out_comparisons": lambda w: whole(w, len(said(w))),
            "held_out_clusters": lambda w: whole(w, responses(said(w))),
            "by_worker": lambda w: None,
            "probability_slope": f"{HELD}test_the_slope_has_the_least_log_loss::slope_of",
        }
    )


SPUR, TWO = "tests/clustering/test_spur.py::", "tests/refits/test_second_solver.py::"
BOOST, CLASSIFY = "tests/boosting/test_triplet_boost.py::", "tests/boosting/test_classify.py::"
THEOREMS, DIMENSIONS = "tests/boosting/test_theorems.py::", "tests/refits/test_dimensions.py::"
REVERSED_FIGURES = (
    "gain",
    "standard_error",
    *(f"{of}{name}" for of in ("", "as_is/") for name in ("accuracy", "held_out_comparisons")),
)
EMBEDDING, ALIGNMENT = "tests/refits/test_embedding_refit.py::", "tests/refits/test_alignment.py::"
RCKL, POE = "tests/kernel_learning/test_rckl.py::", "tests/kernel_learning/test_partial_order_embedding.py::"
ARTIFACTS, ONLINE = "tests/laws/test_told_of_artifacts.py::", "tests/evaluation/test_online_predictor.py::"
FILES = "tests/alignment/test_feature_files.py::"
GRADED, ALIGNED = "tests/clustering/test_graded.py::", "tests/alignment/test_evaluation.py::"
REPORTED: dict[str, dict[str, Definition]] = {
    "spectral": OBJECTS
    | TRIPLETS
    | {
        "ari_to_previous": f"{SPUR}test_labels_keep_their_meaning_and_the_agreement_is_reported",
        "clustered": grouped("spectral"),
        "k": groups("spectral"),
        "k_by": f"{SPUR}test_spectral_finds_the_planted_clusters_and_says_how_k_was_chosen",
        "objective": lambda w: per_cluster(w, "spectral"),
    },
    "hierarchy": OBJECTS
    | TRIPLETS
    | {
        "leaves": lambda w: len(w.fits["hierarchy"].leaves),
        "method": f"{ARTIFACTS}test_the_share_of_the_bound_is_that_of_the_best_tree",
        "revenue/*": "tests/refits/test_hierarchy.py::test_revenue_is_the_sum_over_triplets",
        "revenue_per_comparison": lambda w: of_array("hierarchy", "revenue")(w) / len(w.triplets),
        "share_of_bound": lambda w: of_array("hierarchy", "revenue")(w) / of_array("hierarchy", "revenue_bound")(w),
    },
    "reliability": TRIPLETS
    | {
        "workers": lambda w: len({event.get("worker", "") for _, event in w.triplets}),
        "accuracy_10_50_90/#": lambda w, at: round(
            float(np.percentile(w.fits["reliability"].accuracy, (10, 50, 90)[at])), 4
        ),
        "guessing": lambda w: int((w.fits["reliability"].accuracy < 0.55).sum()),
        "agreement_with_others": lambda w: total("agreed")(w) / (total("agreed")(w) + total("disagreed")(w)),
        "contradictions_with_self": total("contradictions"),
        "repeats": total("repeats"),
        "catch_trials": f"{ARTIFACTS}test_what_a_report_adds_up_is_that_of_its_participants",
        "catch_trials_failed": f"{ARTIFACTS}test_what_a_report_adds_up_is_that_of_its_participants",
        **dict.fromkeys(
            (
                "predictor_rank",
                "predictor_agreement",
                "predictor_agreement_error",
                "predictor_tested_on",
                "predictor_agreement_that_chose",
                "slope",
                "iterations",
            ),
            f"{ARTIFACTS}test_what_a_predictor_of_answers_tells_stands_by_its_name",
        ),
    },
    "triplet_boost": {
        "classes/#": lambda w, at: w.classes()[at],
        "rounds": of_params("triplet_boost", "rounds"),
        "stored": lambda w: len(w.fits["triplet_boost"].alpha),
        "labelled": lambda w: len(w.labels()),
        "trained_on": lambda w: len(w.labels()),
        "predicted": lambda w: len(w.names),
        "multi_label": f"{BOOST}test_several_labels_an_object",
        "train_error": of_array("triplet_boost", "train_error", -1),
        "bound": of_array("triplet_boost", "bound", -1),
        "log_bound": of_array("triplet_boost", "log_bound", -1),
        **usual(
            dict.fromkeys(
                ("objects", "error", "accuracy", "majority_class_accuracy", "abstained"),
                f"{BOOST}test_a_refit_predicts_everything_and_says_how_well",
            ),
            "held_out",
            "test_part",
        ),
        "abstention_rate": lambda w: float(w.fits["triplet_boost"].abstained.mean()),
        "theorem_3/least_theta": f"{THEOREMS}test_theorem_3_starts_at_the_size_of_the_classifiers",
        "theorem_3/quantiles/*": f"{THEOREMS}test_margins_are_the_lead_of_the_own_label_and_their_bound_holds",
        "theorem_3/shares/#/*": f"{THEOREMS}test_margins_are_the_lead_of_the_own_label_and_their_bound_holds",
        "theorem_4/*": f"{THEOREMS}test_theorem_4_counts_triplets_and_pairs_of_references",
    },
    "classify": {
        "classes/#": lambda w, at: w.classes()[at],
        "labelled": lambda w: len(w.labels()),
        "predicted": lambda w: len(w.names),
        "abstained": lambda w: float(w.fits["classify"].abstained.mean()),
        "model": f"{ARTIFACTS}test_the_model_of_classes_is_the_one_with_the_least_loss",
        "setting": f"{ARTIFACTS}test_the_model_of_classes_is_the_one_with_the_least_loss",
        "chosen_by": f"{ARTIFACTS}test_the_model_of_classes_is_the_one_with_the_least_loss",
        "held_out/*": f"{ARTIFACTS}test_the_model_of_classes_is_the_one_with_the_least_loss",
        "models": f"{ARTIFACTS}test_the_model_of_classes_is_the_one_with_the_least_loss",
        "without": f"{CLASSIFY}test_what_cannot_be_is_said_in_one_line",
    },
    "dimensions": OBJECTS
    | {
        **dict.fromkeys(
            (
                "dimensions",
                "reproducible",
                "responses",
                "odd_one_out",
                "sparsity",
                "tried",
                "triplet_accuracy",
                "odd_one_out_accuracy",
                "odd_one_out_standard_error",
            ),
            f"{DIMENSIONS}test_planted_dimensions_are_found_and_reproducible",
        ),
        **dict.fromkeys(
            (
                "held_out_responses",
                "held_out_comparisons",
                "log_loss",
                "odd_one_out_log_loss",
                "triplet_log_loss",
                "triplet_standard_error",
            ),
            f"{DIMENSIONS}test_figures_of_held_out_responses_are_those_of_the_likelihood",
        ),
        "chosen_by": f"{DIMENSIONS}test_few_responses_and_none",
        **dict.fromkeys(
            ("fits/#/*", "passes"), f"{DIMENSIONS}test_figures_of_held_out_responses_are_those_of_the_likelihood"
        ),
    },
    "sdp_clustering": OBJECTS
    | TRIPLETS
    | {
        "ari_to_previous": f"{SPUR}test_labels_keep_their_meaning_and_the_agreement_is_reported",
        "clustered": grouped("sdp_clustering"),
        "k": groups("sdp_clustering"),
        "sizes/*": lambda w, label: w.fits["sdp_clustering"].labels.tolist().count(int(label)),
        **{name: of_array("sdp_clustering", name) for name in ("objective", "upper_bound")},
        "gap": lambda w: of_array("sdp_clustering", "upper_bound")(w) / of_array("sdp_clustering", "objective")(w) - 1,
        "residuals/*": lambda w, name: of_array(
            "sdp_clustering", "residuals", ("row_sums", "trace", "most_negative", "least_eigenvalue").index(name)
        )(w),
        "criterion/*": lambda w, k: round(
            of_array("sdp_clustering", "criterion", w.fits["sdp_clustering"].criterion_k.tolist().index(int(k)))(w), 6
        ),
        "criterion_not_converged": f"{SPUR}test_the_artifact_holds_what_the_contract_names",
        "spur_k": f"{SPUR}test_the_artifact_holds_what_the_contract_names",
        "certified": f"{SPUR}test_the_artifact_holds_what_the_contract_names",
        "certified_by": f"{TWO}test_cvxpy_finds_the_same_optimum_with_the_same_report",
        "solver": f"{TWO}test_spur_chooses_and_cvxpy_solves",
        "solved": "tests/refits/test_ends_early.py::test_ctrl_c_publishes_the_best_so_far",
        **dict.fromkeys(("k_by", "trace"), f"{SPUR}test_k_lam_and_limits_have_effect"),
        "lam": lambda w: w.fits["sdp_clustering"].params["lam"],
        "margin": lambda w: None,
        **dict.fromkeys(
            ("warm_bytes", "iterations"), f"{SPUR}test_a_warm_start_comes_with_the_artifact_and_survives_new_objects"
        ),
    },
    "alignment": OBJECTS
    | held_out("alignment", lambda w: w.said)
    | {
        "answers": lambda w: len(w.said),
        "with_features": lambda w: len(features(w)),
        "without_features": lambda w: 0,
        "chosen_by_model": lambda w: 0,
        "predicts/set": lambda w: "x",
        "predicts/sets/#/set": lambda w, at: "x",
        **dict.fromkeys(
            ("predicts/transform", "predicts/sets/#/transform"),
            f"{ALIGNMENT}test_the_table_has_every_set_beside_chance_and_the_map",
        ),
        **dict.fromkeys(
            ("predicts/measure", "predicts/sets/#/measure"),
            f"{ALIGNED}test_sets_as_they_are_are_right_as_often_as_by_the_definitions",
        ),
        **dict.fromkeys(
            ("predicts/not_compared", "sets/#/not_compared"), lambda w, *at: len(rows_of_features()) - len(features(w))
        ),
        "rows/#/set": lambda w, at: "x",
        "rows/#/transform": lambda w, at: ("cosine", "euclidean", "dot product", "weights")[at],
        "rows/#/accuracy": lambda w, at: (
            right_by_features(w, ("cosine", "euclidean", "dot product")[at]) if at < 3 else ANY
        ),
        "rows/#/answers": lambda w, at: len(w.said),
        "rows/#/weight": f"{ALIGNMENT}test_each_set_is_told_for_each_group_of_participants",
        "rows/#/by_object": f"{ALIGNMENT}test_predictions_of_objects_that_nobody_compared_are_right",
        "rows/#/log_loss": FIGURES["log_loss"],
        **dict.fromkeys(
            ("rows/#/low", "rows/#/high", "rows/#/standard_error"),
            f"{ALIGNED}test_an_interval_that_ends_at_one_is_widened_by_its_other_end",
        ),
        "rows/#/behind": lambda w, at: (
            max(right_by_features(w, each) for each in ("cosine", "euclidean", "dot product"))
            - right_by_features(w, ("cosine", "euclidean", "dot product")[at])
        ),
        "rows/#/behind_standard_error": (
            f"{ALIGNED}test_learning_helps_where_it_can_and_combinations_prefer_what_predicts::standard_error"
        ),
        "sets/#/name": lambda w, at: "x",
        "sets/#/file": lambda w, at: "features.csv",
        "sets/#/sha256": lambda w, at: sha256(np.array([features(w)[name] for name in w.names]).tobytes()).hexdigest(),
        "sets/#/dimensions": lambda w, at: len(next(iter(rows_of_features().values()))),
        "sets/#/objects": lambda w, at: len(features(w)),
        "sets/#/constant_dimensions": lambda w, at: 0,
        "sets/#/missing": lambda w, at: 0,
        "sets/#/joined_by": f"{FILES}test_names_of_files_are_joined_without_folder_and_suffix",
    },
    "embedding": OBJECTS
    | held_out("embedding", lambda w: w.said)
    | {
        **{name: of_params("embedding", name) for name in ("kernel", "ridge")},
        "d": of_params("embedding", "dimensions"),
        "answers": lambda w: len(w.said),
        "questions": lambda w: len(
            {(frozenset((frozenset(rows[:2]), frozenset(rows[2:]))), event.get("worker")) for rows, event in w.said}
        ),
        "never_asked_about": lambda w: len({*w.names} - {name for rows, _ in w.said for name in rows}),
        "workers": lambda w: len(w.people),
        "lapse": of_array("embedding", "lapse"),
        "explained/#": lambda w, at: (x := w.fits["embedding"].X.astype(float)).var(axis=0)[at] / x.var(axis=0).sum(),
        "draws": lambda w: 0,  # of a model that was given
        "chosen_by": lambda w: "given",
        "tried": lambda w: [],
        **dict.fromkeys(
            tuple(f"reversed/{name}" for name in REVERSED_FIGURES),
            f"{EMBEDDING}test_what_a_map_of_reversed_answers_gains_is_told",
        ),
        "no_regions": f"{EMBEDDING}test_regions_are_only_offered_where_they_cover",
        **usual(FIGURES, "knowing_worker", "individual_differences/one_map", "individual_differences/own"),
        **usual(
            {"comparisons": lambda w: whole(w, len(w.said)), "clusters": lambda w: whole(w, responses(w.said))},
            "knowing_worker",
            "individual_differences/one_map",
            "individual_differences/own",
        ),
        "individual_differences/participants": lambda w: sum(
            sum(event.get("worker") == who for _, event in w.said) >= 0 for who in w.people
        ),
        **dict.fromkeys(
            (
                f"individual_differences/{name}"
                for name in (
                    "p_value",
                    "gain_of_weights",
                    "p_of_weights",
                    "own_maps",
                    "shrinkage",
                    "scale",
                    "verdict",
                    "who",
                )
            ),
            f"{ARTIFACTS}test_what_the_tests_of_individual_differences_tell_stands_by_its_name",
        ),
        **dict.fromkeys(
            ("individual_differences/group_map", "individual_differences/group_map/*"),
            "tests/refits/test_embedding_refit.py::"
            "test_unknown_participants_are_predicted_by_one_map_and_the_weights_of_the_group::group_map",
        ),
        **dict.fromkeys(
            ("individual_differences/groups/count", "individual_differences/groups/verdict"),
            "tests/embedding/test_individual.py::test_groups_of_participants_are_found::groups",
        ),
        "settings/#/*": lambda w, at, name: (
            w.fits["embedding"].params.get({"d": "dimensions"}.get(name, name), ANY) if name != "lapse" else ANY
        ),
        **dict.fromkeys(
            (
                "alpha",
                "scale",
                "guessers",
                "lapse_fitted",
                "objective",
                "fitted_log_loss",
                "iterations",
                "evaluations",
                "converged",
                "slope",
            ),
            f"{ARTIFACTS}test_what_a_fit_tells_stands_by_its_name",
        ),
    },
    "clusters": OBJECTS
    | {
        "answers": lambda w: len(w.said),
        "k": lambda w: groups("clusters")(w) or None,
        "sizes": lambda w: [],
        "sizes/#": lambda w, at: sorted(
            Counter(label for label in w.fits["clusters"].labels.tolist() if label >= 0).values(), reverse=True
        )[at],
        "alone": lambda w: [],
        "alone/#": lambda w, at: by_themselves(w)[at],
        "between": lambda w: (
            sum(
                label >= 0 and stable < 0.9
                for label, stable in zip(w.fits["clusters"].labels.tolist(), w.fits["clusters"].stability.tolist())
            )
            if w.fits["clusters"].stability.any()
            else None
        ),
        **{name: of_array("clusters", name) for name in ("clearer_than", "detection_limit")},
        **{name: of_array("clusters", "gain", at) for at, name in enumerate(("gain", "gain_se"))},
        **{
            f"replication/{name}": of_array("clusters", "replication", at)
            for at, name in enumerate(("ari", "low", "high"))
        },
        "dimensions": f"{GRADED}test_many_answers_are_graded_on_given_positions",
        "embedding/params/*": lambda w, name: w.fits["embedding"].params[name],
        "embedding/snapshot": lambda w: 2,
        "ari_to_previous": lambda w: None,
        "precision": f"{GRADED}test_planted_groups_are_separated_and_everything_is_of_them",
        "dimension_tied": f"{GRADED}test_many_answers_are_graded_on_given_positions",
        "grade": f"{GRADED}test_planted_groups_are_separated_and_everything_is_of_them",
        "reason": "tests/findings/test_clusters.py::test_each_reason_has_a_sentence_of_its_own",
        "note": "tests/findings/test_clusters.py::test_the_same_sentence_everywhere",
        **dict.fromkeys(("subgroups", "subgroups/#/*"), f"{GRADED}test_groups_within_groups"),
    },
    "kernel_learning": OBJECTS
    | held_out("kernel_learning", lambda w: among(w, "kernel_learning", False), CEILING_OF_SOME)
    | {
        **{name: of_params("kernel_learning", name) for name in ("form", "loss", "lambda1", "lambda2")},
        "chosen": lambda w: len(w.fits["kernel_learning"].ids),
        "chosen_by": lambda w: "given, or too few answers for a validation set",
        "tried": lambda w: [],
        "triplets": lambda w: len(w.fits["kernel_learning"].triplets),
        "objective": of_array("kernel_learning", "objective"),
        "satisfied": lambda w: w.satisfied("kernel_learning"),
        "gap": lambda w: (r := w.fits["kernel_learning"].report)["objective"] / r["bound"] - 1,
        "rank_K0": lambda w: int(np.linalg.matrix_rank(w.fits["kernel_learning"].K0, 1e-6)),
        **dict.fromkeys(
            ("mu", "kernels", "iterations"), f"{RCKL}test_refit_finds_the_planted_kernel_and_fills_the_contract"
        ),
        "bound": f"{TWO}test_where_the_engine_misses_its_tolerance_cvxpy_comes_closer",
        "solver": f"{TWO}test_where_the_engine_misses_its_tolerance_cvxpy_comes_closer",
    },
    "partial_order_embedding": OBJECTS
    | held_out("partial_order_embedding", lambda w: among(w, "partial_order_embedding", True), CEILING_OF_SOME)
    | {
        **{name: of_params("partial_order_embedding", name) for name in ("form", "beta", "constraints", "weights")},
        "chosen": lambda w: len(w.fits["partial_order_embedding"].ids),
        "chosen_by": lambda w: "given",
        "tried": lambda w: [],
        "size": lambda w: len(w.fits["partial_order_embedding"].constraints),
        "raw_size": lambda w: len(
            {(frozenset(rows[:2]), frozenset(rows[2:])) for rows, _ in among(w, "partial_order_embedding", True)}
        ),
        "smallest_beta": f"{POE}test_smallest_beta_is_where_learning_starts",
        "objective": of_array("partial_order_embedding", "objective"),
        "satisfied": lambda w: w.constraints_kept(),
        "mu/*": lambda w, name: of_array("partial_order_embedding", "mu", 0)(w),
        "dimensions": lambda w: len(w.fits["partial_order_embedding"].map_0),
        "gap": lambda w: (r := w.fits["partial_order_embedding"].report)["objective"] - r["bound"],
        **dict.fromkeys(
            ("bound", "certified", "iterations"),
            f"{POE}test_any_beta_publishes_its_best_iterate_and_says_if_it_is_not_certified",
        ),
        "kernels": f"{POE}test_the_form_order_refuses_what_it_does_not_have",
        "solver": f"{TWO}test_where_the_engine_misses_its_tolerance_cvxpy_comes_closer",
    },
    "online_embedding": {
        "objects": lambda w: 6,
        "d": lambda w: 3,
        "learned": lambda w: 2,
        "kernel": lambda w: "t-ste",
        "alpha": lambda w: 2.0,
        "scale": lambda w: 1.0,
        "lapse": lambda w: (coins := w.fits["online_embedding"].coins)[0, 0] / coins[0, 1],
        "fit_of_snapshot": f"{ONLINE}test_a_fit_is_taken_over_once_and_what_came_since_is_learned_again",
        "fit": lambda w: "",
        "live_accuracy": f"{ONLINE}test_a_run_keeps_it_beside_the_counts",
    },
}


# ---- what a state says of itself


def contradicting(w: World) -> list[float]:
    return [min(votes) for votes in w.questions().values() if min(votes)]


NOTHING = lambda w: {}  # noqa: E731
SUMMARY: dict[str, Definition] = {
    "snapshot": lambda w: 2,
    "objects": lambda w: len({name for rows, _ in w.said for name in rows}),
    "events": lambda w: len(w.events),
    "records": lambda w: 5,
    "comparisons": lambda w: len(w.said),
    "triplets": lambda w: len(w.triplets),
    "quadruplets": lambda w: len(w.four),
    "labels": lambda w: sum(event.get("type") == "label" for event in w.events),
    "labelled_objects": lambda w: len(w.labels()),
    "filtered": lambda w: 4,
    "empty": lambda w: 6,
    "repeated": lambda w: 9,
    "dead_letters_lost": lambda w: 3,
    "dead_letters_removed": lambda w: 11,
    "kinds/*": lambda w, kind: sum(event.get("type", "triplet") == kind for event in w.events),
    "rejected/*": lambda w, reason: {"not_distinct": 7, "missing_field": 12}[reason],
    "unknown_fields": lambda w: [],
    "unique_triplets": lambda w: sum(n > 0 for n in w.votes[""].values()),
    "contradicting_pairs": lambda w: len(contradicting(w)),
    "contradicting_triplets": lambda w: sum(contradicting(w)),
    "guard/*": lambda w, verdict: guard(w)[verdict],
    "order_kept": lambda w: len(w.order()),
    "positions/t/0": lambda w: 1,
    "lost/t/0": lambda w: 2,
    "share": lambda w: "0/2",
    "history/#/did": lambda w, at: "seek",
    "history/#/partition": lambda w, at: "t/0",
    "history/#/time": lambda w, at: ANY,  # of the clock
    **{f"progressive/adds3/{name}": lambda w, n=n: n for name, n in (("tested", 5), ("correct", 3), ("undecided", 1))},
    "not_in_recent/*/late": lambda w: 0,  # counted by number, not by time
    "not_in_recent/*/untimed": lambda w: 0,
    **{f"clusters/{name}": REPORTED["clusters"][name] for name in ("grade", "reason", "k")},
    "clusters/sentence": REPORTED["clusters"]["note"],
}
MODELS = "tests/laws/test_told.py::test_models_are_told_as_they_report"
FINDINGS = "tests/laws/test_told_in_words.py::test_every_finding_is_as_it_is_defined"
STATED: dict[str, Definition] = {  # by `inspect --json`, beside the summary, the reports and the findings
    "state": lambda w: w.directory,
    "snapshots/#": lambda w, at: 2,
    "digest": "tests/state/test_golden.py::test_version_1_is_still_read_and_means_the_same",
    "settings/accumulators/#": lambda w, at: [*ACCUMULATORS][at],
    "settings/guard": lambda w: "first",
    **{
        f"settings/forgetting/{name}": lambda w, n=n: n
        for name, n in (("by", "count"), ("half_life", HALF_LIFE), ("window", WINDOW))
    },
    "artifacts/*/report*": "tests/laws/test_told_in_documents.py::test_every_report_is_as_it_is_defined",
    "artifacts/*/snapshot": lambda w: 1,
    "artifacts/*/seed": lambda w: 7,
    "artifacts/*/params*": "tests/laws/test_told_in_words.py::test_every_table_is_as_it_is_defined::COPIED",
    "summary/*": "tests/laws/test_told_in_documents.py::test_the_summary_is_as_it_is_defined",
    "models/#/*": MODELS,
    "findings/*": FINDINGS,
    "warnings": lambda w: [],
    "warnings/#": lambda w, at: ("rejected", "sent_twice", "chance_level")[at],
    "progressive": NOTHING,
    "workers": lambda w: len(w.people),
    "judgements/kept": lambda w: responses(w.said),
    "judgements/comparisons": lambda w: len(w.said),
    "judgements/of": lambda w: len(w.said),
    "judgements/complete": lambda w: True,
}
MOVES = "tests/service/test_live_page.py::test_what_moves_is_what_the_metrics_say"
RATE = "tests/service/test_live_page.py::test_rate_and_behind_follow_the_clock_and_refusing_the_metric"
LIVE: dict[str, Definition] = {  # of a run that read 100 events before it started anew, and 70 since
    "time": lambda w: ANY,
    "events": lambda w: 70 + 100,
    "comparisons": lambda w: 90 + 300,
    "refused": lambda w: 30 + 7,
    "objects": lambda w: 12,
    "objects_shown": lambda w: True,
    "lag": lambda w: 5 + 8,
    "snapshot": lambda w: 2,
    "age": lambda w: pytest.approx(50, abs=20),
    "accuracy": lambda w: 0.75,
    "accuracy_n": lambda w: 60,
    "accuracy_of": lambda w: "since",
    "accuracy_by": lambda w: "adds3",
    "snapshot_due": lambda w: None,  # the run has none
    "drifts": lambda w: 2 + 1,
    "refits/#/kind": lambda w, at: ("embedding", "sdp_clustering")[at],
    "refits/#/done": lambda w, at: (0.25, 0.75)[at],
    "refits/#/gap": lambda w, at: (None, 0.5)[at],
    "failed/#": lambda w, at: ("classify", "spectral")[at],
    **dict.fromkeys(("rate", "refusing", "behind"), RATE),
    **dict.fromkeys(("ready", "wrong/#"), MOVES),
    "starting": lambda w: False,  # nothing is compiled
    "quiet": lambda w: pytest.approx(0, abs=20),
    "page": lambda w: None,  # is not made yet
}


def probability(w: World, i: str, j: str, k: str, l: str) -> float:
    """That d(i, j) < d(k, l) is said by somebody unknown."""
    fit = w.fits["embedding"]
    x = {name: fit.X[w.row[name]].astype(float) for name in (i, j, k, l)}
    delta = ((x[k] - x[l]) ** 2).sum() - ((x[i] - x[j]) ** 2).sum()
    lapse = float(fit.lapse)
    return lapse / 2 + (1 - lapse) / (1 + np.exp(-fit.report["scale"] * delta))


def apart(w: World, one: str, other: str) -> float:
    x = w.fits["embedding"].X.astype(float)
    return float(np.linalg.norm(x[w.row[one]] - x[w.row[other]]))


ANSWERED: dict[str, dict[str, Definition]] = {  # path -> what its JSON answer has
    "/snapshot": SUMMARY,
    "/models": {"#/*": f"{MODELS}::model"},
    "/progressive": {"": NOTHING},  # of a run that predicts nothing
    "/predict": {
        "snapshot": lambda w: 2,
        "model": lambda w: "embedding",
        "predictions/#/model": lambda w, at: "embedding",
        "predictions/#/p": lambda w, at: (probability(w, "d", "a", "d", "c"), probability(w, "d", "a", "b", "f"))[at],
    },
    "/nearest": {
        "snapshot": lambda w: 2,
        "object": lambda w: "d",
        "nearest/#/object": lambda w, at: w.nearest("d", at + 1),
        "nearest/#/distance": lambda w, at: apart(w, "d", w.nearest("d", at + 1)),
    },
    "/ask": {
        "snapshot": lambda w: 2,
        **dict.fromkeys(
            (f"questions/#/{name}" for name in ("anchor", "shown/#", "sampler", "id", "propensity", "worker", "type")),
            "tests/service/test_live_answers.py::"
            "test_a_question_is_asked_once_until_all_are_and_then_of_each_participant_once::questions",
        ),
    },
    "/history": {
        f"{name}/#": "tests/service/test_live_page.py::test_history_is_served_and_grows::SERIES"
        for name in ("time", "events", "refused", "lag", "accuracy", "drifts")
    },
    "/object": {"text": lambda w: "a text", "picture": lambda w: False},
    "/openapi.json": {
        "*": "tests/service/test_live_answers.py::test_the_document_is_openapi_and_has_every_path::openapi"
    },
    **{
        f"/admin/{name}": {"*": "tests/service/test_asked_of_a_run.py::test_paused_resumed_snapshot_and_refit::admin"}
        for name in ("snapshot", "refit", "log-level", "pause", "resume")
    },
}
