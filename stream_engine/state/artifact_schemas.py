"""What the artifacts of each kind hold: the arrays with what they speak of, those that readers need, and how they fit.

Light, so that whoever reads an artifact can check it without loading the solver that made it. A refit that is not
listed here declares `AXES` (and `REQUIRED`, where readers cannot do without an array) in its own file: then its arrays
are checked by these. `check_artifact` raises `Corrupt`; O(size).
"""

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import NamedTuple

import numpy as np

from stream_engine.data.array_checks import check_rising, pattern_of
from stream_engine.data.container import Corrupt
from stream_engine.data.name_checks import check_names
from stream_engine.state.artifact import Artifact
from stream_engine.state.artifact_axes import (
    IDS,
    KERNELS,
    LABELS,
    MERGES,
    OBJECTS,
    OTHER,
    SUBSET,
    Axes,
    Axis,
    Speaks,
    numbers,
    speaks,
)
from stream_engine.state.artifact_figures import check_figures

RING = 1 << 17  # answers that an online embedding keeps (`embedding.online`)
MAKERS = "stream_engine.refits"  # loaded by its text: a refit is added there, not here


class Schema(NamedTuple):
    """`axes` of all arrays, names of the `required` ones, and what else must hold: `check` raises `Corrupt`. `exact`:
    an array has no more axes than are declared."""

    axes: Axes
    required: tuple[str, ...] = ()
    check: Callable[[Artifact], None] = lambda artifact: None
    exact: bool = True


def _expect(holds: bool, what: str) -> None:
    if not holds:
        raise Corrupt(what)


def _same_length(artifact: Artifact, *names: str) -> None:
    lengths = {name: artifact.arrays[name].shape[:1] for name in names if name in artifact.arrays}
    _expect(len(set(lengths.values())) <= 1 and () not in lengths.values(), f"lengths differ: {lengths}")


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
        m, s = len(arrays["warm_ids"]), len(arrays["warm_k"])
        _expect(
            arrays["warm_rho"].shape == (s,) and bool((arrays["warm_rho"] > 0).all()), "warm_rho: expected some > 0"
        )
        _expect(arrays["warm_v"].shape == (s, m * (m + 1) // 2), f"warm_v: got {arrays['warm_v'].shape} of {m} objects")
        _expect(len(np.unique(arrays["warm_ids"])) == m, "warm_ids: an object twice")


def _tree(artifact: Artifact) -> None:
    leaves = artifact.arrays["leaves"]
    _expect(leaves.ndim == 1 and len(np.unique(leaves)) == len(leaves), "leaves: an object twice")
    _expect(not len(leaves) or int(leaves.min()) >= 0, "leaves: an object below 0")
    _merges("linkage", artifact.arrays["linkage"], len(leaves))


def _workers(artifact: Artifact) -> None:
    arrays = artifact.arrays
    n = check_names("worker", arrays["utf8"], arrays["offsets"], least=0, most=None, rising=True)
    columns = RELIABILITY.required[2:]
    _expect(all(arrays[name].shape == (n,) for name in columns), f"a column is not of {n} workers")
    _same_length(artifact, "i", "j", "w")


def _embedding(artifact: Artifact) -> None:
    arrays, alpha = artifact.arrays, artifact.report.get("alpha")
    n = check_names("worker", arrays["utf8"], arrays["offsets"], least=0, most=None, rising=True)
    _expect(arrays["worker_lapse"].shape == (n,), f"worker_lapse: got {arrays['worker_lapse'].shape}, expected ({n},)")
    for name in ("lapse", "worker_lapse"):
        within = arrays[name].size == 0 or (arrays[name].min() >= 0 and arrays[name].max() <= 1)
        _expect(bool(within), f"{name}: expected numbers from 0 to 1")
    check_figures(artifact.report)
    _expect(isinstance(alpha, float) and alpha >= 0, f"report.alpha: got {alpha!r}, expected a number >= 0")


def _feature_metric(artifact: Artifact) -> None:
    arrays = artifact.arrays
    n = check_names("object", arrays["utf8"], arrays["offsets"], least=1, most=None, rising=False)
    for name in ("points", "compared"):
        _expect(arrays[name].shape[:1] == (n,), f"{name}: got {arrays[name].shape}, expected {n} objects")
    check_figures(artifact.report)
    slope = artifact.report.get("probability_slope")
    _expect(isinstance(slope, float) and slope >= 0, f"report.probability_slope: got {slope!r}, expected a number >= 0")


def _booster(artifact: Artifact) -> None:
    arrays, report = artifact.arrays, artifact.report
    for name in ("classes", "other_classes"):
        classes = report.get(name, [])
        whole = isinstance(classes, list) and all(isinstance(each, str) for each in classes)
        _expect(whole, f"report.{name}: expected names of classes")
    rounds, learned = report.get("rounds"), len(report.get("classes", []))
    _expect(type(rounds) is int and 0 <= rounds < 1 << 48, f"report.rounds: got {str(rounds)[:40]}, expected a number")
    known = learned + len(report.get("other_classes", []))
    for name in ("predicted", "given"):
        _expect(bool((arrays[name] < known).all()), f"{name}: a class beyond the {known} of the report")
    sets = (len(arrays["alpha"]), -(-learned // 8))
    for name in ("o_j", "o_k"):
        _expect(arrays[name].shape == sets, f"{name}: got {arrays[name].shape}, expected sets of classes {sets}")
    _same_length(artifact, "j", "k", "alpha")
    for name in ("j", "k"):
        _expect(arrays[name].ndim == 1 and int(arrays[name].min(initial=0)) >= 0, f"{name}: expected objects >= 0")


def _classified(artifact: Artifact) -> None:
    arrays, classes = artifact.arrays, artifact.report.get("classes", [])
    whole = isinstance(classes, list) and all(isinstance(each, str) for each in classes)
    _expect(whole, "report.classes: expected names of classes")
    for name in ("predicted", "given"):
        _expect(bool((arrays[name] < len(classes)).all()), f"{name}: a class beyond the {len(classes)} of the report")
    shape, probability = (len(arrays["predicted"]), len(classes)), arrays["probability"]
    _expect(probability.shape == shape, f"probability: got {probability.shape}, expected {shape}")
    within = probability.size == 0 or (probability.min() >= 0 and probability.max() <= 1 + 1e-9)
    _expect(bool(within), "probability: expected numbers from 0 to 1")


def _kernel(artifact: Artifact) -> None:
    arrays, report = artifact.arrays, artifact.report
    n = len(arrays["ids"]) if "ids" in arrays else len(arrays["neighbours"])
    if "ids" in arrays:
        _expect(arrays["ids"].ndim == 1 and "known" in arrays, "ids: expected a list of them, and `known`")
        check_rising("ids", arrays["ids"])
        _expect(not n or int(arrays["ids"][0]) >= 0, "ids: an object below 0")
    for name in ("known",) if "known" in arrays else ():
        _expect(bool(((arrays[name] >= 0) & (arrays[name] <= 2)).all()), f"{name}: expected 0, 1 or 2")
    if "linkage" in arrays:
        _merges("linkage", arrays["linkage"], n)
    _same_length(artifact, "triplets", "dual")
    for name in ("triplets", "constraints"):
        width = 3 if name == "triplets" else 4
        whole = name not in arrays or (arrays[name].ndim == 2 and arrays[name].shape[1] == width)
        _expect(whole, f"{name}: expected rows of {width}")
    check_figures(report)
    if artifact.kind == "kernel_learning":
        mu = report.get("mu")
        whole = isinstance(mu, dict) and all(isinstance(weight, (int, float)) for weight in mu.values())
        _expect(whole, "report.mu: expected a weight for each kernel")
    _weights(artifact)


def _weights(artifact: Artifact) -> None:
    """The diagonal form of partial order embedding has a row of W for each kernel of the report."""
    if artifact.params.get("form") != "diagonal" or artifact.params.get("features") or "W" not in artifact.arrays:
        return
    kernels = artifact.report.get("kernels")
    whole = isinstance(kernels, list) and all(isinstance(k, dict) and isinstance(k.get("name"), str) for k in kernels)
    _expect(whole, "report.kernels: expected kernels with their names")
    shape = artifact.arrays["W"].shape
    _expect(
        len(shape) == 2 and shape[0] == max(len(kernels or ()), 1), f"W: got {shape}, expected a row for each kernel"
    )


def _online(artifact: Artifact) -> None:
    """Everything that goes on into compiled code: ids within, sums at least what they begin at."""
    arrays = artifact.arrays
    n, d = arrays["X"].shape
    _expect(d >= 1 and arrays["at"].shape == (n, d), f"at: got {arrays['at'].shape}, expected {(n, max(d, 1))}")
    _expect(arrays["first"].shape == (n, 16), f"first: got {arrays['first'].shape}, expected {(n, 16)}")
    coins, ring, who = arrays["coins"], arrays["ring"], arrays["ring_worker"]
    names = check_names("worker", arrays["utf8"], arrays["offsets"], least=0, most=None)
    whole = len(coins) <= names + 1 and len(coins) >= 1 and coins.shape[1] == 2 and bool((coins >= 0).all())
    _expect(whole and coins[0, 1] > 0, f"coins: got {coins.shape}, expected two numbers >= 0 for all and each worker")
    _expect(ring.shape == (len(who), 4), f"ring: got {ring.shape}, expected four objects for {len(who)} answers")
    within = len(who) == 0 or (ring.min() >= 0 and who.min() >= 0 and who.max() < len(coins))
    _expect(bool(within), "ring: expected objects and workers that are there")
    numbers = arrays["numbers"]
    whole = numbers.shape == (4,) and bool((numbers >= 0).all()) and int(numbers.max()) < 1 << 60
    _expect(whole and int(numbers[3]) == n, "numbers: expected four that fit the others")
    _expect(len(who) == min(int(numbers[0]), RING), f"ring: got {len(who)} answers of {int(numbers[0])}")
    for name, size in (("owed", 1), ("setting", 4)):
        array = arrays[name]
        _expect(array.shape == (size,) and bool((array >= 0).all()), f"{name}: expected {size} numbers >= 0")
    _expect(bool((arrays["owed"] <= 1).all()), "owed: expected at most 1")
    for name in ("squares", "answers"):
        _expect(bool((arrays[name] >= 0).all()), f"{name}: expected numbers >= 0")
    _expect(arrays["marks"].ndim == 2 and arrays["marks"].shape[1] == 2, "marks: expected pairs")


def _finite(*axes: Axis) -> Speaks:
    return speaks(*axes, kinds="f", finite=True)


KERNEL_AXES: Axes = {
    "K": _finite(SUBSET, SUBSET),
    "mu": _finite(KERNELS),
    "coordinates": _finite(OBJECTS, OTHER),
    "neighbours": speaks(OBJECTS, OTHER, values=IDS),
    "linkage": speaks(OTHER, OTHER, values=MERGES, kinds="f"),
    "ids": speaks(SUBSET, values=IDS),
    "known": speaks(OBJECTS, kinds="i"),
    "factor": _finite(OBJECTS, OTHER),
    **numbers("objective", "satisfied", "explained"),
}
_KERNEL = ("K", "coordinates", "neighbours")
KERNEL_LEARNING = Schema(
    {
        **KERNEL_AXES,
        "K0": _finite(SUBSET, SUBSET),
        "triplets": speaks(OTHER, OTHER, values=IDS),
        "dual": _finite(OTHER),
    },
    (*_KERNEL, "K0", "mu", "triplets", "dual"),
    _kernel,
)
PARTIAL_ORDER_EMBEDDING = Schema(
    {
        **KERNEL_AXES,
        "constraints": speaks(OTHER, OTHER, values=IDS),
        "W": speaks(KERNELS, SUBSET, SUBSET, unless="features", fewer=True),
        "map_*": speaks(OTHER, SUBSET, unless="features"),
    },
    _KERNEL,
    _kernel,
)
SDP_CLUSTERING = Schema(
    {
        "labels": speaks(OBJECTS, values=LABELS),
        "stability": _finite(OBJECTS),
        "together": _finite(OBJECTS, OBJECTS),
        "warm_ids": speaks(OTHER, values=IDS),
        **numbers("k", "lam", "objective", "upper_bound", "gap", "criterion", "criterion_k", "residuals"),
        **{name: speaks() for name in ("p_coins", "p_continuum", "crowding")},
        **{f"level_{name}": speaks(OTHER) for name in ("k", "criterion", "peak", "ari")},
        "stability_ari": speaks(),
        "warm_k": speaks(OTHER, kinds="i"),
        "warm_rho": _finite(OTHER),
        "warm_v": _finite(OTHER, OTHER),
    },
    ("labels",),
    _clustering,
)
SPECTRAL = Schema(
    {"labels": speaks(OBJECTS, values=LABELS), **numbers("k", "objective", "eigenvalues", "edge", "criterion")},
    ("labels",),
)
KERNEL_PCA = Schema(
    {
        "coordinates": _finite(OBJECTS, OTHER),
        "mapped": speaks(OBJECTS, kinds="b"),
        "eigenvalues": _finite(OTHER),
        "lambda_min": speaks(kinds="f"),
    },
    ("coordinates", "mapped", "eigenvalues"),
)
HIERARCHY = Schema(
    {  # linkage: leaf t is leaves[t]
        "leaves": speaks(OTHER, values=IDS),
        "linkage": speaks(OTHER, OTHER, kinds="f"),
        **numbers("revenue", "revenue_bound"),
    },
    ("leaves", "linkage"),
    _tree,
)
_COUNTED = ("comparisons", "agreed", "disagreed", "repeats", "contradictions", "events", "passed", "failed")
RELIABILITY = Schema(
    {  # a row a worker
        **numbers("utf8", "offsets"),
        **dict.fromkeys(("accuracy", "weight"), _finite(OTHER)),
        **dict.fromkeys(_COUNTED, speaks(OTHER, kinds="i")),
        **dict.fromkeys(("i", "j"), speaks(OTHER, values=IDS)),
        **numbers("w", "squares"),
    },
    ("utf8", "offsets", "accuracy", "weight", *_COUNTED),
    _workers,
)
FEATURE_METRIC = Schema(
    {  # a row an object of the table
        **numbers("utf8", "offsets"),
        "points": _finite(OTHER, OTHER),
        "compared": speaks(OTHER, kinds="b"),
        "map": _finite(OTHER, OTHER),
    },
    ("utf8", "offsets", "points", "compared"),
    _feature_metric,
)
_SEEN = ("predicted", "score", "margin", "abstained", "part", "given")
TRIPLET_BOOST = Schema(
    {
        **dict.fromkeys(("predicted", "given"), speaks(OBJECTS, values=LABELS)),
        **dict.fromkeys(("score", "margin"), speaks(OBJECTS, kinds="f")),
        "abstained": speaks(OBJECTS, kinds="b"),
        "part": speaks(OBJECTS, kinds="iu"),
        **dict.fromkeys(("given_sets", "predicted_sets"), speaks(OBJECTS, OTHER, kinds="u")),
        **dict.fromkeys(("j", "k"), speaks(OTHER, values=IDS)),
        "alpha": _finite(OTHER),
        **dict.fromkeys(("o_j", "o_k"), speaks(OTHER, OTHER, kinds="u")),
        **numbers("curve_rounds", "log_bound", "bound", "train_error", "watched_error"),
    },
    (*_SEEN, "j", "k", "alpha", "o_j", "o_k"),
    _booster,
)
CLASSIFY = Schema(
    {
        **dict.fromkeys(("predicted", "given"), speaks(OBJECTS, values=LABELS)),
        "probability": _finite(OBJECTS, OTHER),
        "score": _finite(OBJECTS),
        **dict.fromkeys(("abstained", "reported"), speaks(OBJECTS, kinds="b")),
        "fold": speaks(OBJECTS, kinds="i"),
    },
    ("predicted", "given", "probability", "score", "abstained"),
    _classified,
)
EMBEDDING = Schema(
    {
        "X": _finite(OBJECTS, OTHER),
        "asked": speaks(OBJECTS, kinds="b"),
        "covariance": _finite(OBJECTS, OTHER, OTHER),
        "lapse": _finite(),
        "worker_lapse": _finite(OTHER),
        **numbers("utf8", "offsets"),
    },
    ("X", "asked", "lapse", "worker_lapse", "utf8", "offsets"),
    _embedding,
)
ONLINE_EMBEDDING = Schema(
    {
        **dict.fromkeys(("X", "at"), _finite(OBJECTS, OTHER)),
        **dict.fromkeys(("squares", "answers"), _finite(OBJECTS)),
        "first": speaks(OBJECTS, OTHER, kinds="i"),
        "coins": _finite(OTHER, OTHER),
        "ring": speaks(OTHER, OTHER, values=IDS),
        **dict.fromkeys(("ring_worker", "numbers"), speaks(OTHER, kinds="i")),
        **dict.fromkeys(("owed", "setting"), _finite(OTHER)),
        "marks": speaks(OTHER, OTHER, kinds="i"),
        **numbers("utf8", "offsets"),
    },
    (
        *(
            "X",
            "at",
            "squares",
            "answers",
            "first",
            "coins",
            "ring",
            "ring_worker",
            "numbers",
            "owed",
            "setting",
            "marks",
        ),
        *("utf8", "offsets"),
    ),
    _online,
)
SCHEMAS = {
    "sdp_clustering": SDP_CLUSTERING,
    "spectral": SPECTRAL,
    "kernel_pca": KERNEL_PCA,
    "hierarchy": HIERARCHY,
    "reliability": RELIABILITY,
    "feature_metric": FEATURE_METRIC,
    "triplet_boost": TRIPLET_BOOST,
    "classify": CLASSIFY,
    "kernel_learning": KERNEL_LEARNING,
    "partial_order_embedding": PARTIAL_ORDER_EMBEDDING,
    "embedding": EMBEDDING,
    "online_embedding": ONLINE_EMBEDDING,
}


def schema_of(kind: str) -> Schema | None:
    """What artifacts of a kind hold; None for a kind that nothing here makes, and so nothing here looks into."""
    if kind in SCHEMAS:
        return SCHEMAS[kind]
    makers = import_module(MAKERS).REFITS
    if kind not in makers:
        return None
    declared = vars(import_module(makers[kind]))
    return Schema(declared.get("AXES", {}), declared.get("REQUIRED", ()), exact=False)


def check_artifact(artifact: Artifact, n_objects: int | None = None) -> None:
    """Raise `Corrupt` unless the arrays are what their kind says; `n_objects` of the snapshot that it is read beside,
    which knows all objects that the artifact knows. Arrays that nobody declares are for nobody to read."""
    schema = schema_of(artifact.kind)
    if schema is None:
        return
    if missing := [name for name in schema.required if name not in artifact.arrays]:
        raise Corrupt(f"got no {', '.join(missing)}, expected {', '.join(schema.required)}")
    spoken = {name: _spoken(schema.axes, name, artifact) for name in artifact.arrays}
    known = {name: each for name, each in spoken.items() if each is not None}
    sizes: dict[object, int] = {}
    if "ids" in artifact.arrays and "ids" in known:
        sizes[SUBSET] = len(np.atleast_1d(artifact.arrays["ids"]))
    for name, each in known.items():
        most = len(each.axes) if schema.exact and each.axes else artifact.arrays[name].ndim
        _check_shape(name, each, artifact.arrays[name], sizes, "ids" in artifact.arrays, most)
    n = sizes.get(OBJECTS, n_objects)
    if n_objects is not None and n is not None and n > n_objects:
        raise Corrupt(f"speaks of {n} objects, the snapshot knows {n_objects}")
    for name, each in known.items():
        _check_values(name, each, artifact.arrays[name], n)
    schema.check(artifact)


def _spoken(axes: Mapping[str, Speaks], name: str, artifact: Artifact) -> Speaks | None:
    pattern = pattern_of(name, axes)
    if pattern is None:
        return None
    found = axes[pattern]
    return speaks() if found.unless and artifact.params.get(found.unless) is not None else found


def _check_shape(
    name: str, spoken: Speaks, array: np.ndarray, sizes: dict[object, int], has_ids: bool, most: int
) -> None:
    """Axes that run over the same are equally long; a subset is all objects where no `ids` say otherwise."""
    if array.ndim > most or (array.ndim < len(spoken.axes) and not spoken.fewer):
        raise Corrupt(f"{name}: got {array.ndim} axes, expected {len(spoken.axes)}")
    for axis, size in zip(spoken.axes, array.shape):
        axis = OBJECTS if axis is SUBSET and not has_ids else axis
        if axis in (OBJECTS, SUBSET) and sizes.setdefault(axis, size) != size:
            raise Corrupt(f"{name}: got a length of {size}, expected {sizes[axis]}: {axis.value}")


def _check_values(name: str, spoken: Speaks, array: np.ndarray, n: int | None) -> None:
    kinds = "i" if spoken.values in (IDS, LABELS) else spoken.kinds
    if kinds and array.dtype.kind not in kinds:
        raise Corrupt(f"{name}: got {array.dtype}, expected another kind of number")
    if spoken.finite and not np.isfinite(array).all():
        raise Corrupt(f"{name}: got numbers that are not finite")
    if spoken.values in (IDS, LABELS) and array.size:
        low, high = int(array.min()), int(array.max())
        most = n if spoken.values is IDS and n is not None else 1 << 31
        if low < -1 or high >= most:
            raise Corrupt(f"{name}: got {low} to {high}, expected -1 and more, below {most}")
