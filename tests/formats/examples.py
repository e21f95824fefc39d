"""Examples of every format, which tests/laws runs: a module with `ACCEPTS` and `REJECTS` each, registered here."""

from importlib import import_module
from typing import Any, NamedTuple

from stream_engine.data.comparisons import Label, Quadruplet, Triplet
from stream_engine.formats.options import EventOptions

EXAMPLES = {
    "json": "tests.formats.json_examples",
    "csv": "tests.formats.csv_examples",
    "arrow": "tests.formats.arrow_examples",
}


class Accepts(NamedTuple):
    """An example of a format: what a value must decode to, comparisons first, then labels."""

    value: Any
    expected: list[Triplet | Quadruplet | Label]
    options: EventOptions = EventOptions()
    header: bytes = b""


class Rejects(NamedTuple):
    """An example of a format: a value of one event, the code it is refused with, words of the reason."""

    value: Any
    reason: str
    message: str
    options: EventOptions = EventOptions()
    header: bytes = b""


def examples_of(format: str, which: str) -> list[Any]:
    """The examples of a format; `which` of them, ACCEPTS or REJECTS."""
    return getattr(import_module(EXAMPLES[format]), which)
