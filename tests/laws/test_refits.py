"""Every refit is a pure function of a published snapshot that copes with any snapshot, however poor.

The laws run over the registry, so a new refit is tested by being registered. A refit may declare at module level
`LAWS_EXCLUDED = {"name of the law": "reason"}` (the name of a test here without `test_`), and
`LAWS_PARAMS = {parameter: value}` for parameters that make it quick or that it cannot do without. The laws cannot tell
whether a result is right: certificates and planted answers are in the refits' own tests.
"""

from typing import get_args

import msgspec
import numpy as np
import pytest

from stream_engine.accumulators import ACCUMULATORS, empty
from stream_engine.data.comparisons import Batch, empty_batch
from stream_engine.refits import REFITS, CannotRefit, refit_module
from stream_engine.state import artifact as artifacts
from stream_engine.state import snapshot as snapshots
from stream_engine.state.artifact_axes import IDS, NUMBERS, OBJECTS, SUBSET, declared
from stream_engine.state.snapshot import Snapshot, frozen
from tests.support.generators import as_batch, planted_triplets

SEED = 7


@pytest.fixture(params=REFITS)
def refit(request):
    """`refit(snapshot, **more)` with the parameters of the laws, on every registered refit in turn."""
    module, law = refit_module(request.param), request.function.__name__.removeprefix("test_")
    if law in getattr(module, "LAWS_EXCLUDED", {}):
        pytest.skip(f"{request.param}: {module.LAWS_EXCLUDED[law]}")
    params = msgspec.convert(getattr(module, "LAWS_PARAMS", {}), module.Params)

    def run(snapshot, params=params, seed=SEED, **more):
        return module.refit(snapshot, params, seed, **more)

    run.name, run.module, run.params = request.param, module, params
    return run


def published(batch: Batch, labels: dict[int, str], prefix: str = "o") -> Snapshot:
    """What an engine that had learned this batch would have published, every accumulator in use."""
    arrays = {}
    for name in ACCUMULATORS:
        statistic = empty(name)
        statistic.update(batch)
        arrays |= {f"{name}/{key}": array for key, array in statistic.state().items()}
    names = tuple(f"{prefix}{i}" for i in range(batch.n_objects))
    counters = {
        "comparisons": len(batch.triplets) + len(batch.quadruplets),
        "triplets": len(batch.triplets),
        "quadruplets": len(batch.quadruplets),
    }
    made = Snapshot(
        3,
        {},
        names,
        {names[i]: text for i, text in labels.items()},
        counters,
        {"accumulators": list(ACCUMULATORS)},
        frozen(arrays),
    )
    return snapshots.encode(made)[1]


def groups(n: int = 14, size: int = 1500, flip: float = 0.1, seed: int = 0) -> tuple[np.ndarray, dict[int, str]]:
    """Triplets over two planted clusters, and the labels of all but the last two objects."""
    rng = np.random.default_rng(seed)
    points = rng.normal(0, 0.3, (n, 2)) + np.where(np.arange(n)[:, None] % 2, 2.0, -2.0)
    return planted_triplets(rng, points, size, flip), {i: "ab"[i % 2] for i in range(n - 2)}


def planted(prefix: str = "o") -> Snapshot:
    triplets, labels = groups()
    return published(as_batch(triplets, 14), labels, prefix)


def disconnected() -> Snapshot:
    """Two sets of objects that no comparison links."""
    one, labels = groups(8, 300)
    two, _ = groups(8, 300, seed=1)
    return published(as_batch(np.concatenate([one, two + 8]), 16), labels | {i + 8: text for i, text in labels.items()})


def contradictions() -> Snapshot:
    """Every triplet was said as often as its reversal."""
    triplets, labels = groups(8, 300)
    return published(as_batch(np.concatenate([triplets, triplets[:, [0, 2, 1]]]), 8), labels)


def small_class() -> Snapshot:
    """A class with one member, and one triplet about it."""
    triplets, labels = groups(8, 300)
    return published(as_batch(np.concatenate([triplets, [[8, 0, 1]]]), 9), labels | {8: "c"})


POOR = {
    "nothing": lambda: published(empty_batch(0), {}),
    "labels of objects that nothing was said about": lambda: published(empty_batch(0), {})._replace(labels={"x": "a"}),
    "one object": lambda: published(empty_batch(1), {0: "a"}),
    "two objects": lambda: published(empty_batch(2), {0: "a", 1: "b"}),
    "one triplet": lambda: published(as_batch(np.array([[0, 1, 2]]), 3), {0: "a", 1: "b", 2: "a"}),
    "one quadruplet": lambda: published(
        empty_batch(4)._replace(quadruplets=np.array([[0, 1, 2, 3]], np.int32), quadruplet_at=np.zeros(1, np.int64)),
        {0: "a", 1: "b"},
    ),
    "only contradictions": contradictions,
    "disconnected groups": disconnected,
    "a class with one member": small_class,
    "no labels": lambda: planted()._replace(labels={}),
    "one class": lambda: planted()._replace(labels={f"o{i}": "a" for i in range(14)}),
}


def as_bytes(made: artifacts.Artifact) -> bytes:
    return b"".join(artifacts.encode(made)[0])


def test_pure(refit):
    """It writes to nothing that it is given (arrays are read-only), and neither reads nor moves global random state."""
    snapshot = planted()
    before = snapshots.encode(snapshot)[1].digest
    np.random.seed(1)
    state = np.random.get_state()[1].copy()
    once = as_bytes(refit(snapshot))
    assert (np.random.get_state()[1] == state).all() and snapshots.encode(snapshot)[1].digest == before
    np.random.seed(2)
    assert as_bytes(refit(snapshot)) == once


def test_says_where_it_comes_from(refit):
    snapshot = planted()
    made = refit(snapshot)
    assert (made.kind, made.snapshot, made.sequence, made.seed) == (refit.name, snapshot.digest, 3, SEED)
    assert msgspec.convert(made.params, refit.module.Params) == refit.params
    assert made.arrays and made.report


def test_round_trip(refit):
    made = refit(planted())
    back = artifacts.decode(as_bytes(made))
    assert back._replace(arrays={}, digest="") == made._replace(arrays={}, digest="", params=dict(made.params))
    assert back.arrays.keys() == made.arrays.keys()
    for name, array in made.arrays.items():
        assert back.arrays[name].dtype == array.dtype and np.array_equal(back.arrays[name], array)


def test_renamed_objects(refit):
    """Names carry no information: other names, the same arrays."""
    one, two = refit(planted()), refit(planted("another-"))
    assert one.arrays.keys() == two.arrays.keys()
    for name, array in one.arrays.items():
        assert array.tobytes() == two.arrays[name].tobytes(), name


def test_permuted_ids(refit):
    """Another order of arrival finds the same planted partition: arrays `labels`, up to the clusters' numbers."""
    triplets, labels = groups(size=4000, flip=0.0)
    new_id = np.random.default_rng(5).permutation(14)
    one = refit(published(as_batch(triplets, 14), labels)).arrays
    if "labels" not in one:
        pytest.skip(f"{refit.name}: its artifact holds no partition `labels`")
    one = one["labels"]
    moved = published(as_batch(new_id[triplets], 14), {int(new_id[i]): text for i, text in labels.items()})
    two = refit(moved).arrays["labels"]
    assert len(one) == len(two) == 14
    assert ((one[:, None] == one) == (two[new_id][:, None] == two[new_id])).all()


def test_progress_changes_nothing(refit):
    heard = []
    made = refit(planted(), progress=lambda done, total, **figures: heard.append((done, total, figures)))
    assert as_bytes(made) == as_bytes(refit(planted()))
    assert all(0 <= done <= total for done, total, _ in heard)
    msgspec.json.encode(heard)  # a worker tells them as JSON


def test_another_seed_is_recorded_and_works(refit):
    assert refit(planted(), seed=SEED + 1).seed == SEED + 1


def test_previous_artifact(refit):
    """An earlier artifact, of less evidence and fewer objects, is accepted, and what follows is as reproducible."""
    triplets, labels = groups()
    early = triplets[(triplets < 11).all(axis=1)][:300]
    previous = refit(published(as_batch(early, 11), {i: c for i, c in labels.items() if i < 11}))
    previous = artifacts.decode(as_bytes(previous))  # as a worker reads it: read-only arrays
    later = refit(planted(), previous=previous)
    assert as_bytes(later) == as_bytes(refit(planted(), previous=previous))
    assert {name: array.shape for name, array in later.arrays.items() if array.shape[:1] == (14,)}


def subsets(refit, objects):
    """The parameters of the laws over these objects only, once for every thing that can be done about the rest."""
    rest = {f.name: f.type for f in msgspec.structs.fields(refit.module.Params)}.get("rest")
    for each in get_args(rest) or (None,):
        yield msgspec.structs.replace(refit.params, objects=objects, **({"rest": each} if each else {}))


def test_subset_of_objects(refit):
    """A subset by number or by names is as reproducible as all, also after another subset; a wrong name is one line."""
    snapshot, moved = planted(), None
    for params in (*subsets(refit, 9), *[*subsets(refit, tuple(f"o{i}" for i in range(3, 13)))][-1:]):
        once = as_bytes(refit(snapshot, params, previous=moved))
        before, moved = moved, artifacts.decode(once)
        assert msgspec.convert(moved.params, refit.module.Params) == params
    assert as_bytes(refit(snapshot, params, previous=before)) == once
    for params in subsets(refit, ("o1", "nobody", "o2", "else")):
        with pytest.raises(CannotRefit, match="2 of 4 names are in no comparison, the first is 'nobody'") as caught:
            refit(snapshot, params)
        assert "\n" not in str(caught.value)


@pytest.mark.parametrize("poor", ["nothing", "one triplet", "only contradictions", "disconnected groups"])
def test_subset_of_objects_of_poor_snapshots(refit, poor):
    for params in subsets(refit, 3):
        try:
            made = refit(POOR[poor](), params)
        except CannotRefit as why:
            assert str(why) and "\n" not in str(why)
        else:
            assert as_bytes(made)  # no NaN in its report


def test_axes_are_declared(refit):
    """Every array says what it speaks of: an axis as long as there are objects, in snapshots of two sizes, runs over
    them; ids are ids. A refit that takes a subset is asked for one too."""
    takes_subset = "objects" in refit.module.Params.__struct_fields__
    for params in (refit.params, *(subsets(refit, 9) if takes_subset else ())):
        made = {}
        for n in (14, 12):
            triplets, labels = groups(n)
            made[n] = refit(published(as_batch(triplets, n), labels), params).arrays
            over = {OBJECTS: n, SUBSET: len(made[n].get("ids", range(n)))}
            for name, array in made[n].items():
                said = declared(refit.module.AXES, name, msgspec.to_builtins(params))
                for axis, size in zip(said.axes, array.shape):
                    assert over.get(axis, size) == size, (name, axis)
                if said.values is IDS:
                    assert array.dtype.kind == "i" and -1 <= array.min(initial=0) <= array.max(initial=0) < n, name
        for name, array in made[14].items():
            said = declared(refit.module.AXES, name, msgspec.to_builtins(params))
            for number, (large, small) in enumerate(zip(array.shape, made[12].get(name, array).shape)):
                if (large, small) == (14, 12) and said.values is NUMBERS:
                    assert number < len(said.axes) and said.axes[number] in (OBJECTS, SUBSET), (name, number)


@pytest.mark.parametrize("poor", POOR)
def test_poor_snapshots(refit, poor):
    """An artifact that holds no NaN in its report, or one line that says why there is none; never another error."""
    snapshot = POOR[poor]()
    try:
        made = refit(snapshot)
    except CannotRefit as why:
        assert str(why) and "\n" not in str(why)
    else:
        assert as_bytes(made) == as_bytes(refit(snapshot))


def test_every_exclusion_names_a_law_and_a_reason():
    laws = {name.removeprefix("test_") for name in globals() if name.startswith("test_")}
    for name in REFITS:
        for law, reason in getattr(refit_module(name), "LAWS_EXCLUDED", {}).items():
            assert law in laws and len(reason) > 10
