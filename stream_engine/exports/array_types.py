"""How an export declares an array or a column of a table: its type, unit and meaning.

In a shape, `n` are all objects that the file's `names` names, `s` those of `subset_names` (all, where there is no such
array); another letter is one length throughout a file; " | " separates alternatives.
"""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

KINDS = {"i": "integer", "u": "integer", "f": "float", "b": "boolean", "U": "text"}  # by numpy's `dtype.kind`
VALUES = {
    "ids": "ids of objects; -1 means none",
    "classes": "indices into `classes`; -1 means none",
}
SCALARS = "scalars"  # NAME.scalars.json: the figures of an export, where its other arrays are tables


class Array(NamedTuple):
    """What one array holds; made by `array`, `ids`, `figure`."""

    shape: str
    kinds: str  # of numbers, as numpy's `dtype.kind`
    meaning: str
    table: str | None = None  # in CSV and Parquet: NAME.table ("": NAME); None: NAME.ARRAY
    within: str = ""  # a table with this array as a column; then CSV and Parquet need no file of its own
    columns: tuple[str, ...] = ()  # of an array with two axes; (): ARRAY_0, ARRAY_1, ...
    values: str = "numbers"  # or one of VALUES
    unit: str = ""

    def axes(self, ndim: int) -> tuple[str, ...]:
        """The letters of the shape that has so many axes; () where none is declared."""
        return next((axes for axes in self.alternatives() if len(axes) == ndim), ())

    def alternatives(self) -> Iterator[tuple[str, ...]]:
        """The letters of all shapes."""
        return (tuple(filter(None, axes.split(", "))) for axes in self.shape.split(" | "))

    @property
    def names_objects(self) -> bool:
        """Whether nobody could read it without the objects' names."""
        return self.values == "ids" or any({"n", "s"} & set(axes) for axes in self.alternatives())

    @property
    def type(self) -> str:
        """In words."""
        if self.values != "numbers":
            return self.values
        return KINDS[self.kinds[0]] if len({KINDS[kind] for kind in self.kinds}) == 1 else "number"


Arrays = Mapping[str, Array]
Columns = Mapping[str, Array]  # of a table: shape "" for those that stand in no array


def array(shape: str, kinds: str, meaning: str, table: str | None = None, **options) -> Array:
    """An array of numbers or texts."""
    return Array(shape, kinds, meaning, table, **options)


def ids(shape: str, meaning: str, table: str | None = None, **options) -> Array:
    """An array of ids: `names[id]` is the object; CSV and Parquet have the names in its place."""
    return Array(shape, "i", meaning, table, values="ids", **options)


def figure(meaning: str, kinds: str = "iufb", shape: str = "", **options) -> Array:
    """A single figure, or a few that belong together: CSV and Parquet have it in NAME.scalars.json."""
    return Array(shape, kinds, meaning, SCALARS, **options)


def text(meaning: str) -> Array:
    """A column of texts."""
    return Array("", "U", meaning)


def number(meaning: str, kinds: str = "f", unit: str = "") -> Array:
    """A column of numbers."""
    return Array("", kinds, meaning, unit=unit)


OBJECT = text("name of the object")
