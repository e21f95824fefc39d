"""The laws of refits: pure functions of a published snapshot that cope with any snapshot, however poor."""

from collections.abc import Callable, Iterator, Mapping
from functools import cache
from types import ModuleType
from typing import Any, NamedTuple, get_args

import msgspec
import numpy as np

from stream_engine.counts import ACCUMULATORS, empty
from stream_engine.data.comparisons import Batch, empty_batch
from stream_engine.refits import CannotRefit
from stream_engine.state import artifact as artifacts
from stream_engine.state import snapshot as snapshots
from stream_engine.state.array_declarations import OBJECTS, SUBSET, declared
from stream_engine.state.artifact import Artifact
from stream_engine.state.snapshot import Snapshot, frozen

SEED = 7


def check_refit(
    module: ModuleType,
    params: Mapping[str, Any] | None = None,
    exclude: Mapping[str, str] | None = None,
    only: str | None = None,
) -> None:
    """Check that a refit keeps the laws, on snapshots of planted groups and on poor ones.

    Parameters
    ----------
    module : module
        With `Params`, `refit` and `AXES`, see `stream_engine.refits`.
    params : mapping, optional
        Parameters that make it quick, or that it cannot do without.
    exclude : mapping, optional
        Names of laws that do not hold, each with the reason.
    only : str, optional
        Check this law alone.

    Raises
    ------
    AssertionError
        With the law that does not hold.

    Examples
    --------
    >>> from stream_engine.refits import spectral
    >>> check_refit(spectral, only="says_where_it_comes_from")
    """
    unknown = ({*(exclude or ()), *([only] if only else [])}) - LAWS.keys()
    assert not unknown, f"no such law: {', '.join(sorted(unknown))}; there are {', '.join(LAWS)}"
    run = _Run(module, msgspec.convert(dict(params or {}), module.Params))
    for name, law in LAWS.items():
        if name not in (exclude or {}) and only in (None, name):
            try:
                law(run)
            except AssertionError as error:
                raise AssertionError(f"broken law: {name}: {(law.__doc__ or '').strip()} {error}".strip()) from error


class _Run(NamedTuple):
    """A refit with the parameters that it is checked with."""

    module: ModuleType
    params: msgspec.Struct

    def __call__(
        self, snapshot: Snapshot, params: msgspec.Struct | None = None, seed: int = SEED, **more: Any
    ) -> Artifact:
        return self.module.refit(snapshot, self.params if params is None else params, seed, **more)


def planted_triplets(rng: np.random.Generator, points: np.ndarray, size: int, flip: float = 0.0) -> np.ndarray:
    """(size, 3) int32 triplets with replacement over points (n, d), Euclidean, each answer flipped with probability."""
    n = len(points)
    anchor = rng.integers(n, size=size)
    near = (anchor + rng.integers(1, n, size=size)) % n
    far = (anchor + rng.integers(1, n, size=size)) % n
    clash = near == far
    while clash.any():
        far[clash] = (anchor[clash] + rng.integers(1, n, size=clash.sum())) % n
        clash = near == far
    wrong = np.linalg.norm(points[anchor] - points[near], axis=1) > np.linalg.norm(points[anchor] - points[far], axis=1)
    wrong ^= rng.random(size) < flip
    near[wrong], far[wrong] = far[wrong], near[wrong]
    return np.stack([anchor, near, far], axis=1).astype(np.int32)


def as_batch(triplets: np.ndarray, n_objects: int) -> Batch:
    """Triplets alone as a batch."""
    return Batch(np.asarray(triplets, np.int32), np.empty((0, 4), np.int32), np.empty(0, np.int64), n_objects)


def published(batch: Batch, labels: dict[int, str], prefix: str = "o") -> Snapshot:
    """What an engine that had learned this batch would have published, every accumulator in use."""
    arrays: dict[str, np.ndarray] = {}
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
    snapshot = Snapshot(
        3,
        {},
        names,
        {names[i]: text for i, text in labels.items()},
        counters,
        {"accumulators": list(ACCUMULATORS)},
        frozen(arrays),
    )
    return snapshots.encode(snapshot)[1]


def groups(n: int = 14, size: int = 500, flip: float = 0.1, seed: int = 0) -> tuple[np.ndarray, dict[int, str]]:
    """Triplets over two planted clusters, and the labels of all but the last two objects."""
    rng = np.random.default_rng(seed)
    points = rng.normal(0, 0.3, (n, 2)) + np.where(np.arange(n)[:, None] % 2, 2.0, -2.0)
    return planted_triplets(rng, points, size, flip), {i: "ab"[i % 2] for i in range(n - 2)}


@cache
def planted(prefix: str = "o") -> Snapshot:
    """Labels and triplets with a structure to be found; names begin with `prefix`."""
    triplets, labels = groups()
    return published(as_batch(triplets, 14), labels, prefix)


_MADE: list[tuple[_Run, Artifact]] = []  # the last one, by what made it


def _once(refit: _Run) -> Artifact:
    """Of `planted()`, made once for all laws that compare something with it; `_pure` makes it once more."""
    if not _MADE or _MADE[0][0] != refit:
        _MADE[:] = [(refit, refit(planted()))]
    return _MADE[0][1]


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


def as_bytes(artifact: artifacts.Artifact) -> bytes:
    """The artifact's file."""
    return b"".join(artifacts.encode(artifact)[0])


def _pure(refit: _Run) -> None:
    """It writes to nothing that it is given (arrays are read-only), and neither reads nor moves global random state."""
    snapshot = planted()
    before = snapshots.encode(snapshot)[1].digest
    state = np.random.get_state(legacy=True)
    first_bytes = as_bytes(refit(snapshot))
    assert repr(np.random.get_state(legacy=True)) == repr(state), "moves the global random state"
    assert snapshots.encode(snapshot)[1].digest == before, "writes to the snapshot"
    np.random.random()
    assert as_bytes(_once(refit)) == first_bytes


def _says_where_it_comes_from(refit: _Run) -> None:
    """An artifact names its snapshot, seed and parameters."""
    snapshot, artifact = planted(), _once(refit)
    assert (artifact.snapshot, artifact.sequence, artifact.seed) == (snapshot.digest, 3, SEED)
    assert msgspec.convert(artifact.params, refit.module.Params) == refit.params
    assert artifact.arrays and artifact.report


def _round_trip(refit: _Run) -> None:
    """An artifact is read back as it was written."""
    artifact = _once(refit)
    back = artifacts.decode(as_bytes(artifact))
    assert back._replace(arrays={}, digest="") == artifact._replace(arrays={}, digest="", params=dict(artifact.params))
    assert back.arrays.keys() == artifact.arrays.keys()
    for name, array in artifact.arrays.items():
        assert (back.arrays[name].dtype, back.arrays[name].shape) == (array.dtype, array.shape)
        assert back.arrays[name].tobytes() == array.tobytes()


def _renamed_objects(refit: _Run) -> None:
    """Names carry no information: other names, the same arrays."""
    one, two = _once(refit), refit(planted("another-"))
    assert one.arrays.keys() == two.arrays.keys()
    for name, array in one.arrays.items():
        assert array.tobytes() == two.arrays[name].tobytes(), name


def _permuted_ids(refit: _Run) -> None:
    """Another order of arrival finds the same planted partition: arrays `labels`, up to the clusters' numbers."""
    triplets, labels = groups(size=4000, flip=0.0)
    new_id = np.random.default_rng(5).permutation(14)
    arrays = refit(published(as_batch(triplets, 14), labels)).arrays
    if "labels" not in arrays:
        return
    one = arrays["labels"]
    moved = published(as_batch(new_id[triplets], 14), {int(new_id[i]): text for i, text in labels.items()})
    two = refit(moved).arrays["labels"]
    assert len(one) == len(two) == 14
    assert ((one[:, None] == one) == (two[new_id][:, None] == two[new_id])).all()


def _progress_changes_nothing(refit: _Run) -> None:
    """Telling how far it has come does not change the artifact."""
    reports: list[tuple[int, int, dict[str, Any]]] = []
    artifact = refit(planted(), progress=lambda done, total, **figures: reports.append((done, total, figures)))
    assert as_bytes(artifact) == as_bytes(_once(refit))
    assert all(0 <= done <= total for done, total, _ in reports)
    msgspec.json.encode(reports)  # a worker tells them as JSON


def _another_seed_is_recorded_and_works(refit: _Run) -> None:
    """Any seed will do."""
    assert refit(planted(), seed=SEED + 1).seed == SEED + 1


def _previous_artifact(refit: _Run) -> None:
    """An earlier artifact, of less evidence and fewer objects, is accepted, and what follows is as reproducible."""
    triplets, labels = groups()
    early = triplets[(triplets < 11).all(axis=1)][:300]
    previous = refit(published(as_batch(early, 11), {i: c for i, c in labels.items() if i < 11}))
    previous = artifacts.decode(as_bytes(previous))  # as a worker reads it: read-only arrays
    later = refit(planted(), previous=previous)
    assert as_bytes(later) == as_bytes(refit(planted(), previous=previous))
    assert {name: array.shape for name, array in later.arrays.items() if array.shape[:1] == (14,)}


def takes_subset(refit: _Run) -> bool:
    """Whether it can be made of some objects only: it has the parameter `objects`."""
    return "objects" in refit.module.Params.__struct_fields__


def subsets(refit: _Run, objects: int | tuple[str, ...]) -> Iterator[msgspec.Struct]:
    """The parameters of the laws over these objects only, once for every thing that can be done about the rest."""
    rest = {f.name: f.type for f in msgspec.structs.fields(refit.module.Params)}.get("rest")
    for each in get_args(rest) or (None,):
        if each == "placed":  # the former name of "extended"
            continue
        yield msgspec.structs.replace(refit.params, objects=objects, **({"rest": each} if each else {}))


def _subset_of_objects(refit: _Run) -> None:
    """A subset by number or by names is as reproducible as all, also after another subset; a wrong name is one line.
    Of refits that take one."""
    if not takes_subset(refit):
        return
    snapshot, moved = planted(), None
    for params in (*subsets(refit, 9), *[*subsets(refit, tuple(f"o{i}" for i in range(3, 13)))][-1:]):
        once = as_bytes(refit(snapshot, params, previous=moved))
        before, moved = moved, artifacts.decode(once)
        assert msgspec.convert(moved.params, refit.module.Params) == params
    assert as_bytes(refit(snapshot, params, previous=before)) == once
    for params in subsets(refit, ("o1", "nobody", "o2", "else")):
        try:
            refit(snapshot, params)
            raise AssertionError("accepts objects that are in no comparison")
        except CannotRefit as why:
            assert "'nobody'" in str(why) and "\n" not in str(why), why


def _subset_of_objects_of_poor_snapshots(refit: _Run) -> None:
    """A subset of a poor snapshot gives an artifact, or one line that says why not. Of refits that take one."""
    if not takes_subset(refit):
        return
    for poor in ("nothing", "one triplet", "only contradictions", "disconnected groups"):
        for params in subsets(refit, 3):
            try:
                artifact = refit(POOR[poor](), params)
            except CannotRefit as why:
                assert str(why) and "\n" not in str(why), poor
            else:
                assert as_bytes(artifact)  # no NaN in its report


def _axes_are_declared(refit: _Run) -> None:
    """Every array says what it speaks of: an axis as long as there are objects, in snapshots of two sizes, runs over
    them; ids are ids. A refit that takes a subset is asked for one too."""
    for params in (refit.params, *(subsets(refit, 9) if takes_subset(refit) else ())):
        arrays_of = {}
        for n in (14, 12):
            triplets, labels = groups(n)
            arrays_of[n] = refit(published(as_batch(triplets, n), labels), params).arrays
            over: dict[Any, int] = {OBJECTS: n, SUBSET: len(arrays_of[n].get("ids", range(n)))}
            for name, array in arrays_of[n].items():
                said = declared(refit.module.AXES, name, msgspec.to_builtins(params))
                for axis, size in zip(said.axes or (), array.shape):
                    assert over.get(axis, size) == size, (name, axis)
                if said.values == "ids":
                    assert array.dtype.kind == "i" and -1 <= array.min(initial=0) <= array.max(initial=0) < n, name
        for name, array in arrays_of[14].items():
            said = declared(refit.module.AXES, name, msgspec.to_builtins(params))
            for number, (large, small) in enumerate(zip(array.shape, arrays_of[12].get(name, array).shape)):
                if (large, small) == (14, 12) and not said.values:
                    axes = said.axes or ()
                    assert number < len(axes) and axes[number] in (OBJECTS, SUBSET), (name, number)


def _poor_snapshots(refit: _Run) -> None:
    """An artifact that holds no NaN in its report, or one line that says why there is none; never another error."""
    for poor, make in POOR.items():
        try:
            artifact = refit(make())
        except CannotRefit as why:
            assert str(why) and "\n" not in str(why), poor
        else:
            assert as_bytes(artifact), poor


LAWS: dict[str, Callable[[_Run], None]] = {
    "pure": _pure,
    "says_where_it_comes_from": _says_where_it_comes_from,
    "round_trip": _round_trip,
    "renamed_objects": _renamed_objects,
    "permuted_ids": _permuted_ids,
    "progress_changes_nothing": _progress_changes_nothing,
    "another_seed_is_recorded_and_works": _another_seed_is_recorded_and_works,
    "previous_artifact": _previous_artifact,
    "subset_of_objects": _subset_of_objects,
    "subset_of_objects_of_poor_snapshots": _subset_of_objects_of_poor_snapshots,
    "axes_are_declared": _axes_are_declared,
    "poor_snapshots": _poor_snapshots,
}
