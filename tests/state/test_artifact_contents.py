"""What an artifact may hold, kind by kind, on the smallest that each kind can be: at its bounds it is read, one step
beyond them it is refused in one line that names the array. (Files that real refits made are in test_distrust.)"""

import sys
from types import ModuleType

import numpy as np
import pytest

from stream_engine.data.container import Corrupt
from stream_engine.data.packed_names import pack_names
from stream_engine.refits import REFITS
from stream_engine.state.artifact import Artifact
from stream_engine.state.artifact_axes import OBJECTS, speaks
from stream_engine.state.artifact_schemas import RING, SCHEMAS, check_artifact, schema_of

N = 4  # objects of the snapshot
WHOLE, TINY = np.int64, np.int32
MERGED = np.array([[0, 1, 0.5, 2], [2, 3, 0.7, 2], [4, 5, 0.9, 4.0]])


def moved(*by):
    """The merges with something added to their first rows."""
    return MERGED + np.array([*by, *[[0] * 4] * (3 - len(by))])


def kernel(**more):
    places = {"K": np.eye(N), "coordinates": np.zeros((N, 2)), "neighbours": np.zeros((N, 3), TINY), "linkage": MERGED}
    return {**places, **more}


def good(kind):
    """`(arrays, report)` of the smallest whole artifact of a kind, over four objects."""
    labels, flags, none = np.array([0, 1, -1, 1]), np.zeros(N, bool), np.zeros((0, 3), TINY)
    workers = pack_names(["u", "v"])
    return {
        "sdp_clustering": ({"labels": labels}, {}),
        "spectral": ({"labels": labels}, {}),
        "kernel_pca": ({"coordinates": np.zeros((N, 2)), "mapped": flags, "eigenvalues": np.ones(2)}, {}),
        "hierarchy": ({"leaves": np.array([3, 0, 1, 2]), "linkage": MERGED}, {}),
        "reliability": (
            {**workers, "accuracy": np.ones(2), "weight": np.ones(2)}
            | dict.fromkeys(SCHEMAS["reliability"].required[4:], np.zeros(2, WHOLE)),
            {},
        ),
        "feature_metric": (
            {**pack_names(["a", "b"]), "points": np.zeros((2, 3)), "compared": np.zeros(2, bool)},
            {"probability_slope": 1.0},
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
            {**workers, "X": np.zeros((N, 2)), "asked": flags, "lapse": np.array(0.1), "worker_lapse": np.zeros(2)},
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
    if "reliability" not in kind and kind != "feature_metric" and kind != "hierarchy":
        with pytest.raises(Corrupt, match=r"speaks of 4 objects, the snapshot knows 3"):
            checked(kind, n=3)


HALF = np.full(N, 0.5)
SETS = np.zeros((0, 1), np.uint8)
NO_VOTERS = {"j": np.zeros(0, TINY), "k": np.zeros(0, TINY), "alpha": np.zeros(0), "o_j": SETS, "o_k": SETS}
WARM = {"warm_ids": np.array([0, 2, 3]), "warm_k": np.array([2, 3]), "warm_rho": np.ones(2), "warm_v": np.zeros((2, 6))}
SOME = {"ids": np.array([0, 2, 3]), "known": np.array([1, 0, 1, 2]), "K": np.eye(3), "K0": np.eye(3)}
SOME |= {"linkage": np.array([[0, 1, 0.5, 2], [2, 3, 0.7, 3]])}
NO_RING = {"ring": np.zeros((0, 4), TINY), "ring_worker": np.zeros(0, WHOLE)}
NO_RING |= {"numbers": np.array([0, 0, (1 << 60) - 1, N])}
DIAGONAL = {"form": "diagonal"}
TWO = {"kernels": [{"name": "a"}, {"name": "b"}]}
READ = {
    "spectral": [
        ({"labels": np.array([-1, 2**31 - 1, 0, 0])},),
    ],
    "hierarchy": [
        ({"leaves": np.array([3]), "linkage": np.zeros((0, 4))},),
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
    "feature_metric": [
        ({}, {"probability_slope": 0.0}),
        (pack_names(["b", "a"]),),
    ],
    "triplet_boost": [
        ({}, {"rounds": (1 << 48) - 1}),
        ({"o_j": np.zeros((3, 2), np.uint8), "o_k": np.zeros((3, 2), np.uint8)}, {"classes": list("abcdefghi")}),
        ({}, {"classes": list("abcdefgh")}),
        (NO_VOTERS,),
    ],
    "classify": [
        ({"probability": np.tile([0.0, 1.0], (N, 1))},),
    ],
    "kernel_learning": [
        (SOME,),
        ({"known": np.array([0, 1, 2, 0])},),
        ({"neighbours": np.array([[-1, N - 1]] * N), "factor": np.zeros((N, 3))}, {"mu": {}}),
        ({"triplets": np.array([[0, 1, 3]]), "dual": np.ones(1), "mu": np.zeros(2)}, {"accuracy": 1.0}),
    ],
    "partial_order_embedding": [
        ({"constraints": np.array([[0, 1, 2, 3]]), "map_0": np.zeros((2, N))},),
        ({"W": np.zeros((2, N))}, TWO, DIAGONAL),
        ({"W": np.zeros((1, N))}, {"kernels": []}, DIAGONAL),
        ({"W": np.zeros((7, 9))}, {}, {**DIAGONAL, "features": "file.csv"}),
        ({"W": np.zeros((3, N))}, {}, {"form": "full"}),
    ],
    "embedding": [
        ({"worker_lapse": np.array([0.0, 1.0]), "lapse": np.array(1.0)}, {"alpha": 7.0}),
        (pack_names(["", "v"]),),
    ],
    "online_embedding": [
        ({"owed": np.ones(1), **pack_names(["", "v"])},),
        ({"X": np.ones((N, 1)), "at": np.ones((N, 1))},),
        ({"coins": np.array([[0.0, 1e-9]]), "ring_worker": np.zeros(2, WHOLE)},),
        (NO_RING,),
    ],
}  # fmt: skip
REFUSED = {
    "spectral": [
        ("labels: got -1 to 2147483648, expected -1 and more", {"labels": np.array([-1, 2**31, 0, 0])}),
        ("labels: got -2 to 1", {"labels": np.array([-2, 1, 0, 0])}),
        ("labels: got float64, expected another kind of number", {"labels": np.zeros(N)}),
        ("labels: got 2 axes, expected 1", {"labels": np.zeros((N, 1), WHOLE)}),
    ],
    "kernel_pca": [
        ("coordinates: got numbers that are not finite", {"coordinates": np.full((N, 2), np.inf)}),
        ("mapped: got a length of 3, expected 4", {"mapped": np.zeros(N - 1, bool)}),
        ("coordinates: got 1 axes, expected 2", {"coordinates": np.zeros(N)}),
    ],
    "hierarchy": [
        ("leaves: an object twice", {"leaves": np.array([3, 0, 1, 0])}),
        ("leaves: an object below 0", {"leaves": np.array([3, 0, 1, -1])}),
        ("leaves: got 0 to 4", {"leaves": np.array([3, 0, 1, 4])}),
        (r"linkage: got \(2, 4\), expected merges of 4 leaves", {"linkage": MERGED[:2]}),
        (r"linkage: got \(3, 3\)", {"linkage": MERGED[:, :3]}),
        ("linkage: got numbers that are not finite", {"linkage": np.full((3, 4), np.nan)}),
        ("what is not there yet", {"linkage": moved([0, 3, 0, 0])}),
        ("what is not there yet", {"linkage": moved([-1, 0, 0, 0])}),
        ("what is not there yet", {"linkage": moved([0.5, 0, 0, 0])}),
        ("what was merged is merged again", {"linkage": moved([0] * 4, [1, 0, 0, 0])}),
    ],
    "sdp_clustering": [
        ("got warm_k, expected all that a warm start needs", {"warm_k": np.array([2])}),
        ("warm_rho: expected some > 0", {**WARM, "warm_rho": np.ones(1)}),
        ("warm_rho: expected some > 0", {**WARM, "warm_rho": np.array([1.0, 0.0])}),
        (r"warm_v: got \(2, 5\) of 3 objects", {**WARM, "warm_v": np.zeros((2, 5))}),
        ("warm_ids: an object twice", {**WARM, "warm_ids": np.array([0, 2, 2])}),
    ],
    "reliability": [
        ("a column is not of 2 workers", {"accuracy": np.ones(3)}),
        ("worker", {**pack_names(["v", "u"])}),
        ("lengths differ", {"i": np.zeros(2, TINY), "j": np.zeros(2, TINY), "w": np.zeros(1)}),
        ("lengths differ|axes", {"i": np.array(0), "j": np.array(1)}),
    ],
    "feature_metric": [
        (r"points: got \(3, 3\), expected 2 objects", {"points": np.zeros((3, 3))}),
        (r"compared: got \(1,\), expected 2 objects", {"compared": np.zeros(1, bool)}),
        ("probability_slope: got -1e-09, expected a number >= 0", {}, {"probability_slope": -1e-9}),
        ("probability_slope: got 1, expected", {}, {"probability_slope": 1}),
        ("report.accuracy: got 1.5", {}, {"accuracy": 1.5}),
        ("object", pack_names(["a", "a"])),
    ],
    "triplet_boost": [
        ("report.classes: expected names of classes", {}, {"classes": ["x", 1]}),
        ("report.other_classes: expected names of classes", {}, {"other_classes": "y"}),
        ("report.rounds: got 281474976710656, expected a number", {}, {"rounds": 1 << 48}),
        ("report.rounds: got -1", {}, {"rounds": -1}),
        ("report.rounds: got True", {}, {"rounds": True}),
        ("predicted: a class beyond the 1 of the report", {}, {"other_classes": []}),
        ("given: a class beyond the 1", {"predicted": np.zeros(N, WHOLE)}, {"other_classes": []}),
        (r"o_j: got \(3, 1\), expected sets of classes \(3, 2\)", {}, {"classes": list("abcdefghi")}),
        (r"o_k: got \(2, 1\), expected sets of classes \(3, 1", {"o_k": np.zeros((2, 1), np.uint8)}),
        ("lengths differ", {"k": np.zeros(2, TINY)}),
        ("j: expected objects >= 0", {"j": np.array([0, -1, 0], TINY)}),
    ],
    "classify": [
        ("report.classes: expected names of classes", {}, {"classes": ["x", None]}),
        ("predicted: a class beyond the 1 of the report", {}, {"classes": ["x"]}),
        ("given: a class beyond the 2 of the report", {"given": np.array([0, 2, 0, 0])}),
        (r"probability: got \(4, 3\), expected \(4, 2\)", {"probability": np.zeros((N, 3))}),
        ("probability: expected numbers from 0 to 1", {"probability": np.eye(N)[:, :2] * (1 + 1e-8)}),
        ("probability: expected numbers from 0 to 1", {"probability": np.eye(N)[:, :2] - 1e-9}),
    ],
    "kernel_learning": [
        ("ids: expected a list of them, and `known`", {**SOME, "known": None}),
        ("ids: entries 1 and 2 are not in order", {**SOME, "ids": np.array([0, 3, 2])}),
        ("ids: an object below 0", {**SOME, "ids": np.array([-1, 2, 3])}),
        ("ids: got 0 to 4, expected -1 and more, below 4", {**SOME, "ids": np.array([0, 2, 4])}),
        ("got a length of 3, expected 2", {**SOME, "ids": np.array([0, 2])}),
        ("expected merges of 3 leaves", {**SOME, "linkage": MERGED}),
        ("known: expected 0, 1 or 2", {"known": np.array([0, 1, 3, 0])}),
        ("known: expected 0, 1 or 2", {"known": np.array([0, 1, -1, 0])}),
        ("expected merges of 4 leaves", {"linkage": MERGED[:2]}),
        ("neighbours: got 4 to 4, expected -1 and more, below 4", {"neighbours": np.full((N, 1), N)}),
        ("lengths differ", {"dual": np.ones(1)}),
        ("triplets: expected rows of 3", {"triplets": np.zeros((0, 4), TINY)}),
        ("report.mu: expected a weight for each kernel", {}, {"mu": [1.0]}),
        ("report.mu: expected a weight for each kernel", {}, {"mu": {"a": "x"}}),
        ("report.log_loss: got -1.0", {}, {"log_loss": -1.0}),
    ],
    "partial_order_embedding": [
        ("map_0: got a length of 2, expected 4", {"map_0": np.zeros((N, 2))}),
        ("constraints: expected rows of 4", {"constraints": np.zeros((2, 3), TINY)}),
        (r"W: got \(1, 4\), expected a row for each", {"W": np.zeros((1, N))}, TWO, DIAGONAL),
        ("W: got", {"W": np.zeros((2, N))}, {"kernels": []}, DIAGONAL),
        ("W: got", {"W": np.zeros((2, N, N))}, TWO, DIAGONAL),
        ("kernels with their names", {"W": np.zeros((1, N))}, {"kernels": [{"name": 1}]}, DIAGONAL),
        ("kernels with their names", {"W": np.zeros((1, N))}, {"kernels": ["a"]}, DIAGONAL),
        ("report.kernels: expected kernels", {"W": np.zeros((1, N))}, {}, DIAGONAL),
    ],
    "embedding": [
        (r"worker_lapse: got \(3,\), expected \(2,\)", {"worker_lapse": np.zeros(3)}),
        ("worker_lapse: expected numbers from 0 to 1", {"worker_lapse": np.array([0.0, 1.1])}),
        ("worker_lapse: expected numbers from 0 to 1", {"worker_lapse": np.array([-0.1, 0.1])}),
        ("worker", pack_names(["v", "u"])),
        ("lapse: expected numbers from 0 to 1", {"lapse": np.array(1.1)}),
        ("lapse: expected numbers from 0 to 1", {"lapse": np.array(-0.1)}),
        ("report.alpha: got -1.0, expected a number >= 0", {}, {"alpha": -1.0}),
        ("report.alpha: got 1, expected", {}, {"alpha": 1}),
        ("report.ceiling.others: got 2, expected a number from 0 to 1", {}, {"ceiling": {"others": 2}}),
    ],
    "online_embedding": [
        (r"at: got \(4, 3\), expected \(4, 2\)", {"at": np.zeros((N, 3))}),
        (r"at: got \(4, 0\), expected \(4, 1\)", {"X": np.zeros((N, 0)), "at": np.zeros((N, 0))}),
        (r"first: got \(4, 15\), expected \(4, 16\)", {"first": np.zeros((N, 15), WHOLE)}),
        (r"coins: got \(4, 2\)", {"coins": np.ones((4, 2))}),
        (r"coins: got \(0, 2\)", {"coins": np.ones((0, 2))}),
        (r"coins: got \(3, 3\)", {"coins": np.ones((3, 3))}),
        (r"coins: got \(3, 2\)", {"coins": np.array([[1, 1], [1, -1.0], [1, 1]])}),
        (r"coins: got \(3, 2\)", {"coins": np.array([[1, 0.0], [1, 1], [1, 1]])}),
        (r"ring: got \(3, 4\), expected four objects for 2", {"ring": np.zeros((3, 4), TINY)}),
        ("ring: expected objects and workers that are there", {"ring": np.eye(4, dtype=int)[:2] - 1}),
        ("ring: expected objects and workers that are there", {"ring_worker": np.array([0, 3])}),
        ("ring: expected objects and workers that are there", {"ring_worker": np.array([2, -1])}),
        ("numbers: expected four that fit the others", {"numbers": np.array([2, 0, 0, 3])}),
        ("numbers: expected four that fit the others", {"numbers": np.array([2, -1, 0, N])}),
        ("numbers: expected four that fit the others", {"numbers": np.array([2, 0, 1 << 60, N])}),
        ("numbers: expected four that fit the others", {"numbers": np.array([2, 0, N])}),
        ("ring: got 2 answers of 3", {"numbers": np.array([3, 0, 0, N])}),
        ("ring: got 2 answers of 1", {"numbers": np.array([1, 0, 0, N])}),
        ("owed: expected at most 1", {"owed": np.full(1, 1.1)}),
        ("owed: expected 1 numbers >= 0", {"owed": np.full(1, -0.1)}),
        ("owed: expected 1 numbers >= 0", {"owed": np.zeros(2)}),
        ("setting: expected 4 numbers >= 0", {"setting": np.zeros(3)}),
        ("setting: expected 4 numbers >= 0", {"setting": np.full(4, -1.0)}),
        ("squares: expected numbers >= 0", {"squares": -HALF}),
        ("answers: expected numbers >= 0", {"answers": -HALF}),
        ("marks: expected pairs", {"marks": np.zeros((2, 3), WHOLE)}),
    ],
}  # fmt: skip


@pytest.mark.parametrize(("kind", "place"), [(kind, at) for kind, many in READ.items() for at in range(len(many))])
def test_at_its_bounds_it_is_read(kind, place):
    assert checked(kind, *READ[kind][place])


@pytest.mark.parametrize(("kind", "place"), [(kind, at) for kind, many in REFUSED.items() for at in range(len(many))])
def test_beyond_them_it_is_refused_and_why(kind, place):
    told, *what = REFUSED[kind][place]
    with pytest.raises(Corrupt, match=told) as caught:
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
        with pytest.raises(Corrupt, match=f"leaves: got 0 to {high + 1}, expected -1 and more, below {high + 1}"):
            checked("hierarchy", {"leaves": np.array([high + 1, 0, 1, 2])}, n=n)


def test_a_refit_that_is_not_listed_says_itself_what_it_makes(monkeypatch):
    made = ModuleType("made_by_somebody")
    made.AXES, made.REQUIRED = {"place": speaks(OBJECTS)}, ("place",)  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, made.__name__, made)
    monkeypatch.setitem(REFITS, "mine", made.__name__)
    of = lambda kind, **arrays: Artifact(kind, "", 1, {}, 0, arrays, {})  # noqa: E731
    check_artifact(of("mine", place=np.zeros((N, 2)), more=np.ones(9)), N)  # further axes are nobody's
    for arrays, told in (({}, "got no place, expected place"), ({"place": np.zeros(N + 1)}, "speaks of 5 objects")):
        with pytest.raises(Corrupt, match=told):
            check_artifact(of("mine", **arrays), N)
    check_artifact(of("nobody_makes_this", place=np.zeros(9)), N)
    assert schema_of("nobody_makes_this") is None
