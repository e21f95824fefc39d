"""Refits over chosen objects: what is chosen, what is left of the counts, boosting of a choice, what is refused.

References: an engine that heard the chosen ones' comparisons only, and plain Python. The others are placed in
tests/kernel_learning/test_out_of_sample.py.
"""

import itertools
import tracemalloc
from collections import Counter

import msgspec
import numpy as np
import pytest

from stream_engine.boosting import labels
from stream_engine.counts import adds_similarity
from stream_engine.data import available_memory
from stream_engine.data.comparisons import Quadruplet, Triplet
from stream_engine.data.triplet_columns import columns_from_triplets
from stream_engine.evaluation import subset
from stream_engine.refits import (
    CannotRefit,
    hierarchy,
    kernel_learning,
    partial_order_embedding,
    sdp_clustering,
    spectral,
    triplet_boost,
)
from stream_engine.state.engine import Engine
from stream_engine.state.snapshot import Snapshot, frozen
from tests.support.generators import planted_triplets
from tests.support.kernel_reference import snapshot_of
from tests.support.subset_world import KERNEL, NAMES, ORDER, learned, planted


@pytest.fixture(scope="module")
def world() -> Snapshot:
    return planted()


def small(seed: int):
    """Comparisons of six objects, dense enough for contradictions, cycles and every kind of key."""
    rng, said = np.random.default_rng(seed), []
    for _ in range(150):
        a, b, c, d = (NAMES[i] for i in rng.permutation(6)[:4])
        said.append(Quadruplet((a, b), (c, d)) if rng.random() < 0.3 else Triplet(a, b, c))
    return said


def heard(said, guard=False) -> Snapshot:
    made = Engine(("triplet_counts", "quadruplet_counts"), guard)
    made.objects.ids(NAMES[:6])
    made.learn_many(said)
    return made.snapshot()


# --- which, and what is left -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed, inside", [(0, (1, 2, 4, 5)), (1, (0, 1, 2, 3, 4, 5)), (2, (3, 4)), (3, ())])
def test_the_counts_of_a_part_are_those_of_who_heard_nothing_else(seed, inside):
    said = small(seed)
    names = {NAMES[i] for i in inside}
    part = subset.restrict(heard(said), tuple(names), quadruplets=True)
    alone = Engine(("triplet_counts", "quadruplet_counts"), False)
    alone.objects.ids([NAMES[i] for i in inside])
    alone.learn_many([s for s in said if {*s} <= names or all(isinstance(x, tuple) and {*x} <= names for x in s)])
    expected = alone.snapshot()
    assert part.ids.tolist() == list(inside) and part.snapshot.objects == expected.objects
    for room in ("triplet_counts", "quadruplet_counts"):
        found, wanted = part.snapshot.section(room), expected.section(room)
        assert found.keys() == wanted.keys()
        for key in wanted:
            np.testing.assert_array_equal(found[key], wanted[key], err_msg=key)
            assert found[key].dtype == wanted[key].dtype


@pytest.mark.parametrize("quadruplets", [False, True])
def test_evidence_is_the_answers_that_name_an_object(quadruplets):
    said = small(7)
    snapshot, count = heard(said), Counter()
    for each in said:
        if isinstance(each, Triplet):
            count.update(each)
        elif quadruplets:
            count.update(itertools.chain(*each))
    for wanted in (2, 4, 6, 20):
        expected = sorted(sorted(range(6), key=lambda i: (-count[NAMES[i]], i))[:wanted])
        assert subset.ids_of(snapshot, wanted, quadruplets).tolist() == expected
    silent = heard([Triplet("o1", "o2", "o4")])
    assert subset.ids_of(silent, 5).tolist() == [1, 2, 4]


# --- clusters --------------------------------------------------------------------------------------------------------


def test_clusters_of_some_objects_are_those_of_the_comparisons_about_them():
    """Four groups; all comparisons are ninety times as many as tell of a tenth of the objects, and hide nothing."""
    rng, group = np.random.default_rng(0), np.arange(200) % 4
    rows = rng.integers(200, size=(80_000, 3))
    rows = rows[(rows[:, 0] != rows[:, 1]) & (rows[:, 0] != rows[:, 2]) & (rows[:, 1] != rows[:, 2])]
    a, b, c = group[rows].T
    nearer = np.where((a == b) == (a == c), rng.random(len(rows)) < 0.5, a == b)
    adds = adds_similarity.adds3(*np.where(nearer[:, None], rows, rows[:, [0, 2, 1]]).T, np.ones(len(rows)), 200)
    held = dict(zip(("adds3__i", "adds3__j", "adds3__w"), adds))
    snapshot = snapshot_of(rows, 200, **held)._replace(counters={"comparisons": len(rows), "triplets": len(rows)})
    chosen = tuple(f"o{i}" for i in range(40))
    inside = (rows[:, :2].max(axis=1) < 40).sum() + (rows[:, ::2].max(axis=1) < 40).sum()
    found = spectral.refit(snapshot, spectral.Params(objects=chosen), 0)
    assert found.report["k"] == 4 and found.report["comparisons"] == pytest.approx(inside / 2, rel=0.2)
    tree = hierarchy.refit(snapshot, hierarchy.Params(objects=chosen), 0)
    program = sdp_clustering.refit(snapshot, sdp_clustering.Params(objects=chosen), 0)
    assert tree.report["comparisons"] == program.report["comparisons"] == found.report["comparisons"]
    assert program.report["k"] == 4


# --- boosting --------------------------------------------------------------------------------------------------------


def labelled(n=60, size=25_000, seed=0, wrong=()):
    """Three planted classes; every fifth object has no label, those of `wrong` a false one."""
    rng = np.random.default_rng(seed)
    points = rng.normal(0, 0.4, (n, 2)) + np.array([[0, 3], [3, -2], [-3, -2]])[np.arange(n) % 3]
    said = {f"o{i}": "abc"[(i + (i in wrong)) % 3] for i in range(n) if i % 5}
    return snapshot_of(planted_triplets(rng, points, size, 0.05), n)._replace(labels=said)


CHOSEN = tuple(range(0, 60, 2))
BOOST = triplet_boost.Params(rounds=3000, objects=tuple(f"o{i}" for i in CHOSEN))


def test_labels_of_others_do_not_train():
    """As if only the chosen had labels; false labels elsewhere change nothing but the accuracy measured there."""
    one = triplet_boost.refit(labelled(), BOOST, 4)
    two = triplet_boost.refit(labelled(wrong=range(1, 60, 2)), BOOST, 4)
    snapshot = labelled()
    bare = snapshot._replace(labels={name: text for name, text in snapshot.labels.items() if int(name[1:]) in CHOSEN})
    three = triplet_boost.refit(bare, msgspec.structs.replace(BOOST, objects=None), 4)
    for other in (two, three):
        for name in (
            "j",
            "k",
            "alpha",
            "o_j",
            "o_k",
            "predicted",
            "score",
            "margin",
            "abstained",
            "bound",
            "watched_error",
        ):
            np.testing.assert_array_equal(one.arrays[name], other.arrays[name], err_msg=name)
    assert set(one.arrays["j"].tolist()) | set(one.arrays["k"].tolist()) <= set(CHOSEN)
    parts = one.arrays["part"]
    outside = np.array([i for i in range(60) if i % 2 and i % 5])
    assert (parts[outside] == labels.OUTSIDE).all() and (parts == labels.OUTSIDE).sum() == len(outside)
    right = np.mean([one.arrays["predicted"][i] == i % 3 for i in outside])
    assert one.report["outside"]["accuracy"] == right > 0.7 and one.report["outside"]["objects"] == len(outside)
    assert two.report["outside"]["accuracy"] < 0.2 and two.report["held_out"] == one.report["held_out"]
    quiet = triplet_boost.refit(labelled(), msgspec.structs.replace(BOOST, rest="none"), 4)
    inside = np.isin(np.arange(60), CHOSEN)
    assert (quiet.arrays["predicted"][~inside] == -1).all() and quiet.arrays["abstained"][~inside].all()
    np.testing.assert_array_equal(quiet.arrays["predicted"][inside], one.arrays["predicted"][inside])
    assert quiet.report["predicted"] == 30 and "outside" not in quiet.report


def test_a_class_that_only_others_have_is_given_and_never_predicted():
    """`classes` and `other_classes` are those that `given` numbers."""
    snapshot = labelled()
    params = msgspec.structs.replace(BOOST, rounds=50)
    made = triplet_boost.refit(snapshot._replace(labels=snapshot.labels | {"o1": "d"}), params, 4)
    assert (made.report["classes"], made.report["other_classes"]) == (["a", "b", "c"], ["d"])
    assert made.arrays["given"][1] == 3 and made.arrays["predicted"].max() < 3
    assert "other_classes" not in triplet_boost.refit(snapshot, params, 4).report


# --- refusals, and size ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "params, line",
    [
        (KERNEL, r"kernel_learning of 14 objects \(16 matrices of 14 x 14.*choose objects"),
        (ORDER, r"14 objects \(24.*3.8e-05 GB.*1e-06 GB.*.*--set objects=500"),
    ],
)
def test_what_does_not_fit_is_refused_with_the_figures(world, params, line, monkeypatch):
    monkeypatch.setattr(available_memory, "available", lambda: 1000)
    with pytest.raises(CannotRefit, match=line) as caught:
        learned(msgspec.structs.replace(params, objects=None), world)
    assert "\n" not in str(caught.value)


def test_nothing_of_size_n_squared_is_made():
    """60,000 objects, of which 30 are chosen: a matrix of bytes over all would be 3.6 GB; each refit stays under 0.12
    GB."""
    n, rng = 60_000, np.random.default_rng(0)
    pair = np.array(list(itertools.combinations(range(10), 2)))[rng.integers(45, size=60_000)]
    pair = rng.permuted(pair, axis=1)
    anchor = np.concatenate([rng.integers(10, n, 55_000), rng.integers(10, 40, 5_000)])
    swap = (pair[:, 1] % 2 == anchor % 2) & (pair[:, 0] % 2 != anchor % 2)
    pair[swap] = pair[swap][:, ::-1]
    columns = columns_from_triplets(np.column_stack([anchor, pair]), n)
    room = {f"triplet_counts/{key}": array for key, array in columns._asdict().items() if key != "n_objects"}
    names = tuple(f"o{i}" for i in range(n))
    snapshot = Snapshot(
        1, {}, names, {f"o{i}": "ab"[i % 2] for i in range(40)}, {}, {"guard": None}, frozen(room), "0" * 64
    )
    made = {}
    for params in (
        kernel_learning.Params(form="t", lambda1=5.0, tolerance=1e-2, objects=30, rest="extended"),
        partial_order_embedding.Params(constraints="raw", beta=300.0, tolerance=0.1, objects=30, rest="extended"),
        triplet_boost.Params(rounds=500, objects=30),
    ):
        tracemalloc.start()
        try:
            refit = triplet_boost.refit if isinstance(params, triplet_boost.Params) else learned
            found = refit(snapshot, params, 0) if refit is triplet_boost.refit else refit(params, snapshot)
            made[found.kind] = found
            assert tracemalloc.get_traced_memory()[1] < 120e6
        finally:
            tracemalloc.stop()
    telling = pair[:, 0] % 2 != pair[:, 1] % 2  # the others are tosses
    about = np.setdiff1d(anchor[telling], np.arange(40))
    assert (
        made["kernel_learning"].report["placed"] == len(np.setdiff1d(anchor, subset.ids_of(snapshot, 30)))
        and made["kernel_learning"].report["placed_unfinished"] == 0
    )
    for kind in ("kernel_learning", "partial_order_embedding"):
        F = made[kind].arrays["factor"].astype(float)
        mean = np.array([F[:10][np.arange(10) % 2 == side].mean(axis=0) for side in range(2)])
        nearer = ((F[about][:, None] - mean) ** 2).sum(axis=2).argmin(axis=1)
        assert (nearer == about % 2).mean() > 0.7, kind
    guess = made["triplet_boost"].arrays["predicted"][about]
    assert (guess == about % 2).mean() > 0.7
