"""How the dictionary of exports says what an array holds: its shape, kind and meaning, and the table that it stands in.

In a shape, `n` are all objects that the file's `names` names, `s` those of `subset_names` (all, where there is no such
array); another letter is one length throughout a file; " | " parts alternatives.
"""

from collections.abc import Iterator, Mapping
from typing import NamedTuple


class Held(NamedTuple):
    """What one array holds; made by `held`, `ids_of`, `figure`."""

    shape: str
    kinds: str  # of numbers, as numpy's `dtype.kind`
    says: str
    table: str | None = None  # in CSV and Parquet: NAME.table ("": NAME); None: NAME.ARRAY
    within: str = ""  # the table made by hand that has it as a column already
    columns: tuple[str, ...] = ()  # of an array with two axes; (): ARRAY_0, ARRAY_1, ...
    values: str = "numbers"  # or one of VALUES

    def axes(self, ndim: int) -> tuple[str, ...]:
        """The letters of the shape that has so many axes; () where none is declared."""
        found = (tuple(filter(None, each.split(", "))) for each in self.shape.split(" | "))
        return next((axes for axes in found if len(axes) == ndim), ())

    def alternatives(self) -> Iterator[tuple[str, ...]]:
        """The letters of all shapes."""
        return (tuple(filter(None, each.split(", "))) for each in self.shape.split(" | "))

    @property
    def names_objects(self) -> bool:
        """Whether nobody could read it without the objects' names."""
        return self.values in ("ids", "merges") or any({"n", "s"} & set(axes) for axes in self.alternatives())


VALUES = {
    "ids": "of objects; -1 stands for none",
    "classes": "places in `classes`; -1 stands for none",
    "merges": "a dendrogram in scipy's format, whose leaves are the places of s",
}
Entries = Mapping[str, Held]


def held(shape: str, kinds: str, says: str, table: str | None = None, **more) -> Held:
    """An array of numbers or texts."""
    return Held(shape, kinds, says, table, **more)


def ids_of(shape: str, says: str, table: str | None = None, **more) -> Held:
    """An array of ids: `names[id]` is the object; CSV and Parquet have the names in its place."""
    return Held(shape, "i", says, table, values="ids", **more)


def figure(says: str, kinds: str = "iufb", shape: str = "") -> Held:
    """A single figure, or a few that belong together: CSV and Parquet have it in NAME.scalars.json."""
    return Held(shape, kinds, says, SCALARS)


SCALARS = "scalars"  # NAME.scalars.json: the figures of an export, where its other arrays are tables
NAMES = held("n", "U", "the objects' names; `names[id]` is object `id`")
SUBSET_NAMES = held("s", "U", "the names of the rows and columns of what is over `ids`")
