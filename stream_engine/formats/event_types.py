"""What an event type is: the fields of its events, and what they are counted as."""

from collections.abc import Callable
from typing import NamedTuple


class Shape(NamedTuple):
    """What one field of an event type holds."""

    name: str
    is_list: bool = False
    size: int | None = 1  # required number of names; None: any
    nullable: bool = False  # null is a value: a null label removes the label
    answer: bool = False  # one or more objects of the preceding list, which may be given by position


class DerivedType(NamedTuple):
    """A type that is counted as one of `data.comparisons.EVENT_TYPES`: `translate` turns the names of its fields into
    those of that type, in the order of its shapes."""

    shapes: tuple[Shape, ...]
    counted_as: str
    translate: Callable[[tuple[list[str], ...]], tuple[list[str], ...]]
