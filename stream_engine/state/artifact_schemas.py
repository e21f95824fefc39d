"""What the artifacts of each kind that is built in hold: their arrays, which ones readers need, and how they fit.

A refit that is not listed here declares `AXES` (and `REQUIRED`) in its own file, see `array_declarations`.
"""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, cast

import numpy as np

from stream_engine.data.array_checks import ArraySpec, check_names, check_rising
from stream_engine.data.container import Corrupt
from stream_engine.state.array_declarations import (
    MIN_POSITIVE,
    OBJECTS,
    SUBSET,
    Axes,
    flags,
    floats,
    ids,
    labels,
    numbers,
    whole,
)
from stream_engine.state.artifact import Artifact, check_figures

RING = 1 << 17  # answers that an online embedding keeps (`embedding.online`)


class Schema(NamedTuple):
    """`axes` of all arrays, names of the `required` ones, and what else must hold: `check` raises `Corrupt`."""

    axes: Axes
    required: tuple[str, ...] = ()
    check: Callable[[Artifact], None] = lambda artifact: None


def _expect(holds: bool, what: str) -> None:
    if not holds:
        raise Corrupt(what)


def _merges(name: str, merges: np.ndarray, leaves: int) -> None:
    """A dendrogram in scipy's format over so many leaves: merge t makes node leaves + t of two earlier ones."""
    _expect(merges.shape == (max(leaves - 1, 0), 4), f"{name}: got {merges.shape}, expected merges of {leaves} leaves")
    _expect(bool(np.isfinite(merges).all()), f"{name}: got numbers that are not finite")
    nodes = merges[:, :2]
    earlier = (nodes >= 0) & (nodes < leaves + np.arange(len(merges))[:, None]) & (nodes == np.floor(nodes))
    _expect(bool(earlier.all()), f"{name}: a merge of what is not there yet")
    _expect(len(np.unique(nodes)) == nodes.size, f"{name}: what was merged is merged again")


def _clustering(artifact: Artifact) -> None:
    arrays = artifact.arrays
    if warm := [name for name in ("warm_ids", "warm_k", "warm_rho", "warm_v") if name in arrays]:
        _expect(len(warm) == 4, f"got {', '.join(warm)}, expected all that a warm start needs")
        m = len(arrays["warm_ids"])
        width = arrays["warm_v"].shape[1]
        _expect(width == m * (m + 1) // 2, f"warm_v: got {width} columns, expected the upper triangle of {m} objects")
        _expect(len(np.unique(arrays["warm_ids"])) == m, "warm_ids: an object twice")


def _tree(artifact: Artifact) -> None:
    leaves = artifact.arrays["leaves"]
    _expect(len(np.unique(leaves)) == len(leaves), "leaves: an object twice")
    _merges("linkage", artifact.arrays["linkage"], len(leaves))


def _named(artifact: Artifact) -> None:
    """Workers in the order of their names."""
    check_names("worker", artifact.arrays["utf8"], artifact.arrays["offsets"], least=0, most=None, rising=True)


def _positive(report: Mapping[str, Any], name: str) -> None:
    value = report.get(name)
    _expect(isinstance(value, float) and value >= 0, f"report.{name}: got {value!r}, expected a number >= 0")


def _every_draw(worker: np.ndarray, draw: np.ndarray, objects: np.ndarray) -> None:
    """Every draw of a participant's map has all objects of that map, once."""
    pairs = (np.unique(np.stack([worker, each]), axis=1)[0] for each in (draw, objects))
    draws, seen = (np.bincount(each, minlength=int(worker.max(initial=-1)) + 1) for each in pairs)
    once = len(np.unique(np.stack([worker, draw, objects]), axis=1).T) == len(worker)
    _expect(once and bool((np.bincount(worker) == draws * seen).all()), "own_draw: expected each draw with all objects")


def _embedding(artifact: Artifact) -> None:
    _named(artifact)
    check_figures(artifact.report)
    _positive(artifact.report, "alpha")
    if "worker_weights" in artifact.arrays:
        got, axes = artifact.arrays["worker_weights"].shape[1], artifact.arrays["X"].shape[1]
        _expect(got == axes, f"worker_weights: got {got} axes, expected the {axes} of X")
    if "group_X" in artifact.arrays:
        differences = artifact.report.get("individual_differences")
        group_map = differences.get("group_map") if isinstance(differences, Mapping) else None
        _expect(isinstance(group_map, Mapping), "group_X: expected individual_differences.group_map in the report")
        for name in ("share", "alpha", "scale", "lapse"):
            _positive(cast(Mapping[str, Any], group_map), name)
    if "own_X" in artifact.arrays:
        _expect(
            {"own_worker", "own_object", "own_lapse", "worker_stack"} <= set(artifact.arrays), "own_X: expected all"
        )
        for name, of in (("own_worker", "worker_lapse"), ("own_object", "X")):
            n = len(artifact.arrays[of])
            _expect(bool((artifact.arrays[name] < n).all()), f"{name}: expected numbers below {n}")
        if "own_draw" in artifact.arrays:
            _every_draw(*(artifact.arrays[name] for name in ("own_worker", "own_draw", "own_object")))
    if "draws" in artifact.arrays:
        _expect(len(artifact.arrays["draws"]) > 0 and "draw_lapse" in artifact.arrays, "draws: expected their lapses")
    if "picture" in artifact.arrays:
        picture = artifact.report.get("picture")
        _expect(
            isinstance(picture, Mapping) and isinstance(picture.get("by"), str),
            "report.picture: expected how it was made",
        )


def _classes(report: Mapping[str, Any], name: str) -> int:
    classes = report.get(name, [])
    right = isinstance(classes, list) and all(isinstance(name, str) for name in classes)
    _expect(right, f"report.{name}: expected names of classes")
    return len(classes)


def _of_known_classes(artifact: Artifact, n_classes: int) -> None:
    for name in ("predicted", "given"):
        _expect(
            bool((artifact.arrays[name] < n_classes).all()), f"{name}: a class beyond the {n_classes} of the report"
        )


def _booster(artifact: Artifact) -> None:
    arrays, report = artifact.arrays, artifact.report
    learned, other_classes = _classes(report, "classes"), _classes(report, "other_classes")
    rounds = report.get("rounds")
    _expect(type(rounds) is int and 0 <= rounds < 1 << 48, f"report.rounds: got {str(rounds)[:40]}, expected a number")
    _of_known_classes(artifact, learned + other_classes)
    for name in ("o_j", "o_k"):
        width = arrays[name].shape[1]
        _expect(width == -(-learned // 8), f"{name}: got {width} bytes a set, expected those of {learned} classes")


def _classified(artifact: Artifact) -> None:
    classes = _classes(artifact.report, "classes")
    _of_known_classes(artifact, classes)
    width = artifact.arrays["probability"].shape[1]
    _expect(width == classes, f"probability: got {width} columns, expected one for each of {classes} classes")


def _kernel(artifact: Artifact) -> None:
    arrays, report = artifact.arrays, artifact.report
    if "ids" in arrays:
        _expect("known" in arrays, "ids: expected an array `known`, too")
        check_rising("ids", arrays["ids"])
    check_figures(report)
    mu, kernels = report.get("mu"), report.get("kernels")
    if artifact.kind == "kernel_learning" or mu is not None:
        right = isinstance(mu, dict) and all(isinstance(weight, (int, float)) for weight in mu.values())
        _expect(right, "report.mu: expected a weight for each kernel")
    _expect(kernels is None or _named_kernels(kernels), "report.kernels: expected kernels with their names")
    _weights(artifact)


def _named_kernels(kernels: object) -> bool:
    return isinstance(kernels, list) and all(isinstance(k, dict) and isinstance(k.get("name"), str) for k in kernels)


def _weights(artifact: Artifact) -> None:
    """The diagonal form of partial order embedding has a row of W for each kernel of the report."""
    if artifact.params.get("form") != "diagonal" or artifact.params.get("features") or "W" not in artifact.arrays:
        return
    kernels = artifact.report.get("kernels")
    _expect(_named_kernels(kernels), "report.kernels: expected kernels with their names")
    shape = artifact.arrays["W"].shape
    _expect(
        len(shape) == 2 and shape[0] == max(len(kernels or ()), 1), f"W: got {shape}, expected a row for each kernel"
    )


def _online(artifact: Artifact) -> None:
    """Everything that goes on into compiled code: ids within, sums at least what they begin at."""
    arrays = artifact.arrays
    _expect(arrays["X"].shape[1] >= 1, "X: expected one dimension at least")
    names = check_names("worker", arrays["utf8"], arrays["offsets"], least=0, most=None)
    coins, ring_worker, numbers = arrays["coins"], arrays["ring_worker"], arrays["numbers"]
    right = 1 <= len(coins) <= names + 1 and coins[0, 1] > 0
    _expect(bool(right), f"coins: got {len(coins)}, expected one of all and one of each worker")
    _expect(not len(ring_worker) or int(ring_worker.max()) < len(coins), "ring_worker: a worker that is not there")
    if "weights" in arrays:
        _expect("information" in arrays and "weighting" in arrays, "weights: expected their information, too")
        information, weighted = arrays["information"][1:], len(arrays["weights"]) > 1
        _expect(1 <= len(arrays["weights"]) <= len(coins), "weights: expected those of all and of each worker")
        _expect(
            not weighted or (arrays["weighting"][0] > 0 and bool((information > 0).all())), "information: expected > 0"
        )
    _expect(int(numbers[3]) == len(arrays["X"]), f"numbers: got {int(numbers[3])} objects, expected {len(arrays['X'])}")
    _expect(
        len(ring_worker) == min(int(numbers[0]), RING), f"ring: got {len(ring_worker)} answers of {int(numbers[0])}"
    )


_NAMES = {"utf8": ArraySpec(("u",), ("bytes",)), "offsets": ArraySpec(("i",), ("names+1",))}
KERNEL_AXES: Axes = {
    "K": floats(SUBSET, SUBSET),
    "mu": floats(None),
    "coordinates": floats(OBJECTS, None),
    "ids": ids(SUBSET, least=0),
    "known": whole(OBJECTS, least=0, below=3),
    "factor": floats(OBJECTS, None),
    **numbers("objective", "satisfied", "explained"),
}
_KERNEL = ("K", "coordinates")
KERNEL_LEARNING = Schema(
    {**KERNEL_AXES, "K0": floats(SUBSET, SUBSET), "triplets": ids("triplets", 3), "dual": floats("triplets")},
    (*_KERNEL, "K0", "mu", "triplets", "dual"),
    _kernel,
)
PARTIAL_ORDER_EMBEDDING = Schema(
    {
        **KERNEL_AXES,
        "constraints": ids(None, 4),
        "W": ArraySpec((), (None, SUBSET, SUBSET), unless="features", fewer=True),
        "map_*": ArraySpec((), (None, SUBSET), unless="features"),
    },
    _KERNEL,
    _kernel,
)
SDP_CLUSTERING = Schema(
    {
        "labels": labels(OBJECTS),
        **numbers("k", "lam", "objective", "upper_bound", "gap", "criterion", "criterion_k", "residuals"),
        "criterion_converged": ArraySpec((), (None,)),
        # of the test that earlier versions made
        "stability": floats(OBJECTS),
        "second": labels(OBJECTS),
        "together": floats(OBJECTS, OBJECTS),
        **numbers("p_coins", "p_continuum", "crowding", "stability_ari"),
        **{f"tested_{name}": ArraySpec((), (None,)) for name in ("k", "crowding", "p")},
        **{f"level_{name}": ArraySpec((), (None,)) for name in ("k", "criterion", "peak", "ari")},
        "warm_ids": ids("warm", least=0),
        "warm_k": whole("solved"),
        "warm_rho": floats("solved", least=MIN_POSITIVE),
        "warm_v": floats("solved", None),
    },
    ("labels",),
    _clustering,
)
_CLUSTERS: Axes = {
    **dict.fromkeys(("labels", "second", "subgroup"), labels(OBJECTS)),
    "stability": floats(OBJECTS, least=0, below=1 + 1e-9),
    "k": ArraySpec(("i",), (), 0),
    **dict.fromkeys(("clearer_than", "detection_limit"), ArraySpec(("f",), ())),  # NaN: not computed
    "replication": ArraySpec(("f",), (3,)),
    "gain": ArraySpec(("f",), (2,)),
    "tested_k": whole("tested"),
    "tested_clearness": ArraySpec(("f",), ("tested",)),
}
CLUSTERS = Schema(_CLUSTERS, tuple(_CLUSTERS))
SPECTRAL = Schema(
    {"labels": labels(OBJECTS), **numbers("k", "objective", "eigenvalues", "edge", "criterion")}, ("labels",)
)
HIERARCHY = Schema(  # linkage: leaf t is leaves[t]
    {"leaves": ids("leaves", least=0), "linkage": ArraySpec(("f",), (None, 4)), **numbers("revenue", "revenue_bound")},
    ("leaves", "linkage"),
    _tree,
)
_COUNTED = ("comparisons", "agreed", "disagreed", "repeats", "contradictions", "events", "passed", "failed")
RELIABILITY = Schema(
    {  # a row a worker
        **_NAMES,
        **dict.fromkeys(("accuracy", "weight"), floats("names")),
        **dict.fromkeys(_COUNTED, whole("names")),
        **dict.fromkeys(("i", "j"), ids("pairs")),
        "w": ArraySpec((), ("pairs",)),
        **numbers("squares"),
    },
    ("utf8", "offsets", "accuracy", "weight", *_COUNTED),
    _named,
)
_PREDICTIONS = ("predicted", "score", "margin", "abstained", "part", "given")
TRIPLET_BOOST = Schema(
    {
        **dict.fromkeys(("predicted", "given"), labels(OBJECTS)),
        **dict.fromkeys(("score", "margin"), ArraySpec(("f",), (OBJECTS,))),
        "abstained": flags(OBJECTS),
        "part": ArraySpec(("i", "u"), (OBJECTS,)),
        **dict.fromkeys(("given_sets", "predicted_sets"), ArraySpec(("u",), (OBJECTS, None))),
        **dict.fromkeys(("j", "k"), ids("voters", least=0)),
        "alpha": floats("voters"),
        **dict.fromkeys(("o_j", "o_k"), ArraySpec(("u",), ("voters", None))),
        **numbers("curve_rounds", "log_bound", "bound", "train_error", "watched_error"),
    },
    (*_PREDICTIONS, "j", "k", "alpha", "o_j", "o_k"),
    _booster,
)
CLASSIFY = Schema(
    {
        **dict.fromkeys(("predicted", "given"), labels(OBJECTS)),
        "probability": floats(OBJECTS, None, least=0, below=1 + 1e-9),
        "score": floats(OBJECTS),
        **dict.fromkeys(("abstained", "reported"), flags(OBJECTS)),
        "fold": whole(OBJECTS),
    },
    ("predicted", "given", "probability", "score", "abstained"),
    _classified,
)
EMBEDDING = Schema(
    {
        "X": floats(OBJECTS, None),
        "asked": flags(OBJECTS),
        "covariance": floats(OBJECTS, None, None),
        "picture": floats(OBJECTS, 2),
        "supported": floats(OBJECTS, None),
        "group_X": floats(OBJECTS, None),
        "draws": floats("draws", OBJECTS, None),
        "draw_lapse": floats("draws", least=0, below=1 + 1e-9),
        "lapse": ArraySpec(("f",), None, 0, 1 + 1e-9, True),
        "worker_lapse": floats("names", least=0, below=1 + 1e-9),
        "worker_weights": floats("names", None, least=0),
        "worker_group": whole("names", least=-1),
        "worker_stack": floats("names", 2),
        "worker_predicted": floats("names", 6),
        "worker_gain": ArraySpec(("f",), ("names", 3)),
        "own_X": floats("own", None),
        "own_worker": whole("own", least=0),
        "own_draw": whole("own", least=0),
        "own_object": whole("own", least=0),
        "own_lapse": floats("names", least=0, below=1 + 1e-9),
        **_NAMES,
    },
    ("X", "asked", "lapse", "worker_lapse", "utf8", "offsets"),
    _embedding,
)
_ONLINE: Axes = {
    **dict.fromkeys(("X", "at"), floats(OBJECTS, "dimensions")),
    **dict.fromkeys(("squares", "answers"), floats(OBJECTS, least=0)),
    "first": whole(OBJECTS, 16),
    "coins": floats(None, 2, least=0),
    "ring": ids("answers", 4, least=0),
    "ring_worker": whole("answers", least=0),
    "numbers": whole(4, least=0, below=1 << 60),
    "owed": floats(1, least=0, below=1 + 1e-9),
    "setting": floats(4, least=0),
    "marks": whole(None, 2),
    **_NAMES,
}
_WEIGHTS: Axes = {  # absent before 0.2
    "weights": floats("weighted", "dimensions", least=MIN_POSITIVE),
    "information": floats("weighted", "dimensions", least=0),
    "weighting": floats(None, least=0),  # of three numbers before 0.3
}
ONLINE_EMBEDDING = Schema({**_ONLINE, **_WEIGHTS}, tuple(_ONLINE), _online)
SCHEMAS = {
    "clusters": CLUSTERS,
    "sdp_clustering": SDP_CLUSTERING,
    "spectral": SPECTRAL,
    "hierarchy": HIERARCHY,
    "reliability": RELIABILITY,
    "triplet_boost": TRIPLET_BOOST,
    "classify": CLASSIFY,
    "kernel_learning": KERNEL_LEARNING,
    "partial_order_embedding": PARTIAL_ORDER_EMBEDDING,
    "embedding": EMBEDDING,
    "online_embedding": ONLINE_EMBEDDING,
}
