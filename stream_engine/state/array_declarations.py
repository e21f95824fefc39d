"""How a refit declares the arrays of its artifact: what kind of numbers they are, and which axes run over objects.

AXES = {"labels": labels(OBJECTS), "K": floats(SUBSET, SUBSET), "triplets": ids(None, 3), **numbers("k")}
"""

from collections.abc import Mapping

from stream_engine.data.array_checks import ArraySpec, pattern_of

# The axis OBJECTS runs over the objects of the snapshot, entry i being object i; SUBSET over the objects in the array
# `ids`, or all where there is none. So any artifact can be put into another order of objects.
OBJECTS, SUBSET = "objects", "subset"
MIN_POSITIVE = 5e-324  # the least number above 0
Axes = Mapping[str, ArraySpec]


class Undeclared(LookupError):
    """An array that no entry of `AXES` names; the message is the array's name."""


def floats(*axes: str | int | None, least: float | None = None, below: float | None = None) -> ArraySpec:
    """Finite floats."""
    return ArraySpec(("f",), axes, least, below, True)


def whole(*axes: str | int | None, least: float | None = None, below: float | None = None) -> ArraySpec:
    """Integers."""
    return ArraySpec(("i",), axes, least, below)


def labels(*axes: str | int | None) -> ArraySpec:
    """Numbers of clusters or classes; -1 stands for none."""
    return ArraySpec(("i",), axes, -1, 1 << 31, values="labels")


def ids(*axes: str | int | None, least: int = -1) -> ArraySpec:
    """Ids of objects; -1 stands for none."""
    return ArraySpec(("i",), axes, least, OBJECTS, values="ids")


def flags(*axes: str | int | None) -> ArraySpec:
    """True or false."""
    return ArraySpec(("b",), axes)


def numbers(*names: str) -> dict[str, ArraySpec]:
    """Entries for arrays of figures of any shape that have nothing to do with objects.

    >>> numbers("k", "gap")["gap"].axes is None
    True
    """
    return dict.fromkeys(names, ArraySpec((), None))


def declared(axes: Axes, name: str, params: Mapping[str, object]) -> ArraySpec:
    """What `axes` says of the array `name` of an artifact made with `params`; the first pattern that fits where no
    entry has this very name. Raises `Undeclared`.

    >>> axes = {"map_*": ArraySpec(("f",), (None, SUBSET), unless="features")}
    >>> declared(axes, "map_0", {"features": None}).axes, declared(axes, "map_0", {"features": "file.csv"}).axes
    ((None, 'subset'), None)
    """
    pattern = pattern_of(name, axes)
    if pattern is None:
        raise Undeclared(name)
    shape = axes[pattern]
    return ArraySpec((), None) if shape.unless and params.get(shape.unless) is not None else shape
