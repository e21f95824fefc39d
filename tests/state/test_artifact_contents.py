"""What an artifact may hold, kind by kind, on the smallest that each kind can be: at its bounds it is read, one step
beyond them it is refused in one line that names the array. (Files that real refits made are in test_distrust.)"""

import sys
from types import ModuleType

import numpy as np
import pytest

from stream_engine.data.array_checks import ArraySpec
from stream_engine.data.container import Corrupt
from stream_engine.data.packed_names import pack_names
from stream_engine.refits import REFITS
from stream_engine.state.array_declarations import OBJECTS
from stream_engine.state.artifact import Artifact
from stream_engine.state.artifact_checks import check_artifact, schema_of
from stream_engine.state.artifact_schemas import RING, SCHEMAS

N = 4  # objects of the snapshot
WHOLE, TINY = np.int64, np.int32
MERGED = np.array([[0, 1, 0.5, 2], [2, 3, 0.7, 2], [4, 5, 0.9, 4.0]])


def moved(*by):
    """The merges with something added to their first rows."""
    return MERGED + np.array([*by, *[[0] * 4] * (3 - len(by))])


def kernel(**more):
    places = {"K": np.eye(N), "coordinates": np.zeros((N, 2))}
    return {**places, **more}


def good(kind):
    """`(arrays, report)` of the smallest whole artifact of a kind, over four objects."""
    labels, flags, none = np.array([0, 1, -1, 1]), np.zeros(N, bool), np.zeros((0, 3), TINY)
    workers = pack_names(["u", "v"])
    return {
        "sdp_clustering": ({"labels": labels}, {}),
        "clusters": (
            dict.fromkeys(("labels", "second", "subgroup"), labels)
            | {"stability": np.ones(N), "k": np.array(2), "replication": np.ones(3), "gain": np.zeros(2)}
            | dict.fromkeys(("clearer_than", "detection_limit"), np.array(np.nan))
            | {"tested_k": np.zeros(1, WHOLE), "tested_clearness": np.zeros(1)},
            {},
        ),
        "spectral": ({"labels": labels}, {}),
        "hierarchy": ({"leaves": np.array([3, 0, 1, 2]), "linkage": MERGED}, {}),
        "reliability": (
            {**workers, "accuracy": np.ones(2), "weight": np.ones(2)}
            | dict.fromkeys(SCHEMAS["reliability"].required[4:], np.zeros(2, WHOLE)),
            {},
        ),
        "triplet_boost": (
            dict.fromkeys(("predicted", "given"), labels)
            | dict.fromkeys(("score", "margin"), np.zeros(N))
            | {"abstained": flags, "part": np.zeros(N, np.uint8)}
            | dict.fromkeys(("j", "k"), np.zeros(3, TINY))
            | {"alpha": np.ones(3)}
            | dict.fromkeys(("o_j", "o_k"), np.zeros((3, 1), np.uint8)),
            {"rounds": 0, "classes": ["x"], "other_classes": ["y"]},
        ),
        "classify": (
            dict.fromkeys(("predicted", "given"), labels)
            | {"probability": np.full((N, 2), 0.5), "score": np.zeros(N), "abstained": flags},
            {"classes": ["x", "y"]},
        ),
        "kernel_learning": (
            kernel(K0=np.eye(N), mu=np.zeros(0), triplets=none, dual=np.zeros(0)),
            {"mu": {"known": 1}},
        ),
        "partial_order_embedding": (kernel(constraints=np.zeros((0, 4), TINY)), {}),
        "embedding": (
            {**workers, "X": np.zeros((N, 2)), "asked": flags, "lapse": np.array(0.1), "worker_lapse": np.zeros(2)}
            | {"worker_weights": np.ones((2, 2)), "worker_group": np.array([0, -1])},
            {"alpha": 0.0},
        ),
        "online_embedding": (
            dict.fromkeys(("X", "at"), np.zeros((N, 2)))
            | dict.fromkeys(("squares", "answers"), np.zeros(N))
            | {"first": np.zeros((N, 16), WHOLE), "coins": np.ones((3, 2)), "ring": np.zeros((2, 4), TINY)}
            | {"ring_worker": np.array([0, 2]), "numbers": np.array([2, 0, 0, N]), "owed": np.zeros(1)}
            | {"setting": np.zeros(4), "marks": np.zeros((0, 2), WHOLE), **workers},
            {},
        ),
    }[kind]


def checked(kind, changes=(), report=(), params=(), n=N):
    """Raises what the check does; else the artifact went through it as it was given."""
    arrays, told = good(kind)
    arrays = {name: array for name, array in {**arrays, **dict(changes)}.items() if array is not None}
    before = {name: array.tobytes() for name, array in arrays.items()}
    check_artifact(Artifact(kind, "", 1, dict(params), 0, arrays, {**told, **dict(report)}), n)
    return {name: array.tobytes() for name, array in arrays.items()} == before


@pytest.mark.parametrize("kind", SCHEMAS)
def test_the_smallest_of_each_kind_is_read_and_lacks_nothing(kind):
    checked(kind)
    checked(kind, {"nobody_declares_this": np.array(["x"])})
    for name in SCHEMAS[kind].required:
        with pytest.raises(Corrupt, match="expected") as caught:
            checked(kind, {name: None})
        assert name in str(caught.value)
    if "reliability" not in kind and kind != "hierarchy":
        with pytest.raises(Corrupt, match="4 objects.*3"):
            checked(kind, n=3)


HALF = np.full(N, 0.5)
SETS = np.zeros((0, 1), np.uint8)
NO_VOTERS = {"j": np.zeros(0, TINY), "k": np.zeros(0, TINY), "alpha": np.zeros(0), "o_j": SETS, "o_k": SETS}
WARM = {"warm_ids": np.array([0, 2, 3]), "warm_k": np.array([2, 3]), "warm_rho": np.ones(2), "warm_v": np.zeros((2, 6))}
SOME = {"ids": np.array([0, 2, 3]), "known": np.array([1, 0, 1, 2]), "K": np.eye(3), "K0": np.eye(3)}
NO_RING = {"ring": np.zeros((0, 4), TINY), "ring_worker": np.zeros(0, WHOLE)}
NO_RING |= {"numbers": np.array([0, 0, (1 << 60) - 1, N])}
WEIGHTED = {"weights": np.ones((3, 2)), "information": np.ones((3, 2)), "weighting": np.array([3.0, 0.0, 1.0])}
DIAGONAL = {"form": "diagonal"}
TWO = {"kernels": [{"name": "a"}, {"name": "b"}]}
READ = {
    "spectral": [
        ({"labels": np.array([-1, 2**31 - 1, 0, 0])},),
    ],
    "hierarchy": [
        ({"leaves": np.zeros(0, WHOLE), "linkage": np.zeros((0, 4))},),
        ({"leaves": np.array([3, 0])[::-1], "linkage": MERGED[:1]},),
    ],
    "sdp_clustering": [
        (WARM,),
        ({**WARM, "warm_rho": np.full(2, 1e-300)},),
    ],
    "reliability": [
        (pack_names(["", "v"]),),  # somebody who gave no name
    ],
    "triplet_boost": [
        ({}, {"rounds": (1 << 48) - 1}),
        ({"o_j": np.zeros((3, 2), np.uint8), "o_k": np.zeros((3, 2), np.uint8)}, {"classes": list("abcdefghi")}),
        (NO_VOTERS,),
    ],
    "classify": [
        ({"probability": np.tile([0.0, 1.0], (N, 1))},),
    ],
    "kernel_learning": [
        (SOME,),
        ({"factor": np.zeros((N, 3))}, {"mu": {}}),
        ({"triplets": np.array([[0, 1, 3]]), "dual": np.ones(1), "mu": np.zeros(2)}, {"accuracy": 1.0}),
    ],
    "partial_order_embedding": [
        ({"constraints": np.array([[0, 1, 2, 3]]), "map_0": np.zeros((2, N))},),
        ({"W": np.zeros((2, N))}, TWO, DIAGONAL),
        ({"W": np.zeros((1, N))}, {"kernels": []}, DIAGONAL),
        ({"W": np.zeros((7, 9))}, {}, {**DIAGONAL, "features": "file.csv"}),
    ],
    "embedding": [
        ({"worker_lapse": np.array([0.0, 1.0]), "lapse": np.array(1.0)}, {"alpha": 7.0}),
        (pack_names(["", "v"]),),
    ],
    "online_embedding": [
        ({"owed": np.ones(1), **pack_names(["", "v"])},),
        ({"coins": np.array([[0.0, 1e-9]]), "ring_worker": np.zeros(2, WHOLE)},),
        (NO_RING,),
        (WEIGHTED,),
        (WEIGHTED | {"weights": np.ones((1, 2)), "information": np.zeros((1, 2)), "weighting": np.zeros(3)},),
    ],
}  # fmt: skip
REFUSED = {
    "spectral": [
        ("labels", {"labels": np.array([-1, 2**31, 0, 0])}),
        ("labels", {"labels": np.zeros(N)}),
    ],
    "hierarchy": [
        ("leaves", {"leaves": np.array([3, 0, 1, 0])}),
        ("leaves", {"leaves": np.array([3, 0, 1, 4])}),
        ("linkage", {"linkage": moved([0, 3, 0, 0])}),
        ("linkage", {"linkage": moved([0.5, 0, 0, 0])}),
        ("linkage", {"linkage": moved([0] * 4, [1, 0, 0, 0])}),
    ],
    "sdp_clustering": [
        ("got warm_k", {"warm_k": np.array([2])}),
        ("warm_rho", {**WARM, "warm_rho": np.array([1.0, 0.0])}),
        ("warm_v", {**WARM, "warm_v": np.zeros((2, 5))}),
        ("warm_ids", {**WARM, "warm_ids": np.array([0, 2, 2])}),
    ],
    "reliability": [
        ("worker", {**pack_names(["v", "u"])}),
        ("i|j|k|w|dual|alpha", {"i": np.zeros(2, TINY), "j": np.zeros(2, TINY), "w": np.zeros(1)}),
        ("i|j|w", {"i": np.array(0), "j": np.array(1)}),
    ],
    "triplet_boost": [
        ("classes", {}, {"classes": ["x", 1]}),
        ("rounds", {}, {"rounds": 1 << 48}),
        ("rounds", {}, {"rounds": -1}),
        ("predicted", {}, {"other_classes": []}),
        ("given", {"predicted": np.zeros(N, WHOLE)}, {"other_classes": []}),
        ("o_j", {}, {"classes": list("abcdefghi")}),
        ("i|j|k|w|dual|alpha", {"k": np.zeros(2, TINY)}),
    ],
    "classify": [
        ("predicted", {}, {"classes": ["x"]}),
        ("probability", {"probability": np.eye(N)[:, :2] * (1 + 1e-8)}),
        ("probability", {"probability": np.eye(N)[:, :2] - 1e-9}),
    ],
    "kernel_learning": [
        ("ids", {**SOME, "known": None}),
        ("ids", {**SOME, "ids": np.array([0, 3, 2])}),
        ("K|ids|K0", {**SOME, "ids": np.array([0, 2])}),
        ("known", {"known": np.array([0, 1, 3, 0])}),
        ("i|j|k|w|dual|alpha", {"dual": np.ones(1)}),
        ("mu", {}, {"mu": [1.0]}),
    ],
    "partial_order_embedding": [
        ("W", {"W": np.zeros((1, N))}, TWO, DIAGONAL),
        ("W", {"W": np.zeros((2, N))}, {"kernels": []}, DIAGONAL),
        ("W", {"W": np.zeros((2, N, N))}, TWO, DIAGONAL),
        ("kernels", {"W": np.zeros((1, N))}, {"kernels": [{"name": 1}]}, DIAGONAL),
        ("kernels", {"W": np.zeros((1, N))}, {}, DIAGONAL),
    ],
    "embedding": [
        ("worker_lapse", {"worker_lapse": np.array([0.0, 1.1])}),
        ("worker_weights", {"worker_weights": np.ones((2, 3))}),
        ("worker_weights", {"worker_weights": -np.ones((2, 2))}),
        ("worker_group", {"worker_group": np.array([0, -2])}),
        ("group_X", {"group_X": np.zeros((N, 2))}),
        ("share", {"group_X": np.zeros((N, 2))}, {"individual_differences": {"group_map": {"share": -1.0}}}),
        ("worker", pack_names(["v", "u"])),
        ("lapse", {"lapse": np.array(1.1)}),
        ("alpha", {}, {"alpha": -1.0}),
    ],
    "online_embedding": [
        ("weights", WEIGHTED | {"weights": np.ones((3, 3))}),
        ("weights", WEIGHTED | {"weights": np.zeros((3, 2))}),
        ("weights", WEIGHTED | {"weights": np.ones((4, 2)), "information": np.ones((4, 2))}),
        ("information", WEIGHTED | {"information": np.zeros((3, 2))}),
        ("information", WEIGHTED | {"weighting": np.zeros(3)}),
        ("X", {"X": np.zeros((N, 0)), "at": np.zeros((N, 0))}),
        ("coins", {"coins": np.ones((4, 2))}),
        ("coins", {"coins": np.array([[1, 1], [1, -1.0], [1, 1]])}),
        ("coins", {"coins": np.array([[1, 0.0], [1, 1], [1, 1]])}),
        ("ring|ring_worker", {"ring": np.eye(4, dtype=int)[:2] - 1}),
        ("ring|ring_worker", {"ring_worker": np.array([0, 3])}),
        ("numbers", {"numbers": np.array([2, 0, 0, 3])}),
        ("numbers", {"numbers": np.array([2, 0, 1 << 60, N])}),
        ("ring|ring_worker", {"numbers": np.array([3, 0, 0, N])}),
        ("ring|ring_worker", {"numbers": np.array([1, 0, 0, N])}),
        ("owed", {"owed": np.full(1, 1.1)}),
        ("setting", {"setting": np.full(4, -1.0)}),
        ("squares", {"squares": -HALF}),
    ],
}  # fmt: skip


@pytest.mark.parametrize(("kind", "place"), [(kind, at) for kind, many in READ.items() for at in range(len(many))])
def test_at_its_bounds_it_is_read(kind, place):
    assert checked(kind, *READ[kind][place])


@pytest.mark.parametrize(("kind", "place"), [(kind, at) for kind, many in REFUSED.items() for at in range(len(many))])
def test_beyond_them_it_is_refused_and_why(kind, place):
    told, *what = REFUSED[kind][place]
    with pytest.raises(Corrupt, match=rf"^(report\.)?({told})\b") as caught:
        checked(kind, *what)
    assert "\n" not in str(caught.value)


def test_the_ring_of_answers_is_bounded():
    ring = {"ring": np.zeros((RING, 4), TINY), "ring_worker": np.zeros(RING, TINY)}
    for given in (RING, RING + 1, 10 * RING):
        checked("online_embedding", {**ring, "numbers": np.array([given, 0, 0, N])})
    with pytest.raises(Corrupt, match="ring: got"):
        checked("online_embedding", {**ring, "numbers": np.array([RING - 1, 0, 0, N])})


def test_without_a_snapshot_beside_it_the_largest_id_is_what_fits():
    for n, high in ((None, 2**31 - 1), (N, N - 1)):
        leaves = np.array([high, 0, 1, 2])
        checked("hierarchy", {"leaves": leaves}, n=n)
        with pytest.raises(Corrupt, match=f"leaves: got 0 to {high + 1}"):
            checked("hierarchy", {"leaves": np.array([high + 1, 0, 1, 2])}, n=n)


def test_a_refit_that_is_not_listed_says_itself_what_it_makes(monkeypatch):
    made = ModuleType("made_by_somebody")
    made.AXES, made.REQUIRED = {"place": ArraySpec((), (OBJECTS, None))}, ("place",)  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, made.__name__, made)
    monkeypatch.setitem(REFITS, "mine", made.__name__)
    of = lambda kind, **arrays: Artifact(kind, "", 1, {}, 0, arrays, {})  # noqa: E731
    check_artifact(of("mine", place=np.zeros((N, 2)), more=np.ones(9)), N)
    for arrays, told in (
        ({}, "got no place, expected place"),
        ({"place": np.zeros((N + 1, 2))}, "speaks of 5 objects"),
    ):
        with pytest.raises(Corrupt, match=told):
            check_artifact(of("mine", **arrays), N)
    check_artifact(of("nobody_makes_this", place=np.zeros(9)), N)
    assert schema_of("nobody_makes_this") is None
