"""What the arrays of an artifact speak of: declared beside whatever makes the artifact, read by whatever renumbers
objects.

A refit declares `AXES`, a mapping from the name of an array (or a pattern, "map_*") to what each of its axes runs over
and what its values are. With that, code that knows nothing of the refit can put an artifact into another order of
objects.

    AXES = {"labels": speaks(OBJECTS), "K": speaks(SUBSET, SUBSET), "triplets": speaks(values=IDS), **numbers("k")}
"""

from collections.abc import Mapping
from enum import Enum
from typing import NamedTuple

from stream_engine.data.array_checks import pattern_of


class Axis(Enum):
    """What the places along an axis stand for."""

    OBJECTS = "the objects of the snapshot, place i being object i"
    SUBSET = "the objects whose ids the array `ids` holds; all objects where the artifact has no such array"
    KERNELS = "auxiliary kernels"
    OTHER = "nothing that has to do with objects"


class Values(Enum):
    """What the numbers in an array are."""

    NUMBERS = "figures: another order of the objects does not change them"
    IDS = "ids of objects; -1 stands for none"
    LABELS = "numbers of clusters or classes; -1 stands for none"
    MERGES = "merges of a dendrogram in scipy's format; its leaves are the places of the subset"


OBJECTS, SUBSET, KERNELS, OTHER = Axis
NUMBERS, IDS, LABELS, MERGES = Values


class Speaks(NamedTuple):
    """What one array speaks of. An array with fewer axes than declared has the first of them; further axes are
    OTHER. All of it is checked when an artifact is read (`artifact_schemas`)."""

    axes: tuple[Axis, ...]
    values: Values
    unless: str  # a parameter of the refit: where it is set, the array has nothing to do with objects; "" for none
    kinds: str = ""  # of numbers, as numpy's `dtype.kind`: "f", "iu", ...; "": any
    finite: bool = False  # no NaN, no infinity
    fewer: bool = False  # it may have fewer axes than declared


Axes = Mapping[str, Speaks]


class Undeclared(LookupError):
    """An array that no entry of `AXES` names; the message is the array's name."""


def speaks(
    *axes: Axis,
    values: Values = NUMBERS,
    unless: str = "",
    kinds: str = "",
    finite: bool = False,
    fewer: bool = False,
) -> Speaks:
    """An entry of `AXES`."""
    return Speaks(axes, values, unless, kinds, finite, fewer)


def numbers(*names: str) -> dict[str, Speaks]:
    """Entries for arrays of figures that have nothing to do with objects.

    >>> numbers("k", "gap")["gap"].values is NUMBERS
    True
    """
    return dict.fromkeys(names, speaks())


def declared(axes: Axes, name: str, params: Mapping[str, object]) -> Speaks:
    """What `axes` says of the array `name` of an artifact made with `params`; the first pattern that fits where no
    entry has this very name. Raises `Undeclared`.

    >>> axes = {"map_*": speaks(OTHER, SUBSET, unless="features")}
    >>> declared(axes, "map_0", {"features": None}).axes[1].name, declared(axes, "map_0", {"features": "file.csv"}).axes
    ('SUBSET', ())
    """
    pattern = pattern_of(name, axes)
    if pattern is None:
        raise Undeclared(name)
    found = axes[pattern]
    return speaks() if found.unless and params.get(found.unless) is not None else found
