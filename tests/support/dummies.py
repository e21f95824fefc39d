"""The smallest thing of every kind that can be added to the engine, each registered by its one line.

`tests/house/test_growth.py` runs every verb with them. A new growth point gets a dummy here and a line in `DUMMIES`.
"""

import json
from collections.abc import Callable, Mapping

import msgspec
import numpy as np

import connectors
from connectors import Position
from stream_engine import counts, exports, formats, refits
from stream_engine.counts.adds_similarity import AddS3
from stream_engine.data.array_checks import ArraySpec
from stream_engine.exports import Content, NothingToExport
from stream_engine.formats import json_events
from stream_engine.refits import CannotRefit, Progress, no_progress
from stream_engine.state.array_declarations import OBJECTS, ids, numbers
from stream_engine.state.artifact import Artifact
from stream_engine.state.published import Published
from stream_engine.state.snapshot import Snapshot
from tests.support.memory_source import MemorySource

DUMMIES = (
    (refits.REFITS, "dummy_refit", __name__),
    (exports.EXPORTS, "dummy_export", f"{__name__}:export"),
    (counts.ACCUMULATORS, "dummy_accumulator", f"{__name__}:DummyAccumulator"),
    (formats.FORMATS, "dummy_format", f"{__name__}:DummyDecoder"),
    (connectors.SOURCES, "dummy", f"{__name__}:source"),
)
NAMES = ("pear", "apple", "fig", "date", "kiwi")  # in the order of their first appearance, which is not that of names
LINES = b"pear apple fig\ndate kiwi pear\nnonsense\napple fig kiwi\n"


def register(put: Callable[[dict[str, str], str, str], None] = dict.__setitem__) -> None:
    """Register every dummy."""
    for registry, name, target in DUMMIES:
        put(registry, name, target)


# --- a refit ---------------------------------------------------------------------------------------------------------

AXES = {"length": ArraySpec((), (OBJECTS,)), "next_*": ids(OBJECTS), **numbers("total")}


class Params(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`least`: how many objects there must be."""

    least: int = 1


def refit(
    snapshot: Snapshot, params: Params, seed: int, previous: Artifact | None = None, progress: Progress = no_progress
) -> Artifact:
    """The lengths of names, and who appeared next."""
    n = len(snapshot.objects)
    if n < params.least:
        raise CannotRefit(f"dummy_refit: got {n} objects, expected at least {params.least}")
    length = np.array([len(name) for name in snapshot.objects], np.int32)
    next_one = np.append(np.arange(1, n, dtype=np.int32), np.int32(-1))
    arrays = {"length": length, "next_one": next_one, "total": np.array(length.sum())}
    progress(1, 1, letters=int(length.sum()))
    report = {"objects": n, "after": previous is not None}
    as_given = msgspec.to_builtins(params)
    return Artifact("dummy_refit", snapshot.digest, snapshot.sequence, as_given, seed, arrays, report)


# --- an export -------------------------------------------------------------------------------------------------------


def export(published: Published) -> dict[str, Content]:
    """The artifact of the dummy refit, and a table of the dummy accumulator's entries."""
    if "dummy_refit" not in published.artifacts:
        raise NothingToExport("no dummy_refit artifact in this state")
    arrays = dict(published.artifacts["dummy_refit"].arrays)
    names, counts = published.snapshot.objects, published.snapshot.section("dummy_accumulator")
    pairs = {"one": [names[i] for i in counts["i"]], "other": [names[j] for j in counts["j"]], "w": counts["w"]}
    return {"dummy_export": Content(arrays, {"dummy_pairs": pairs})}


# --- an accumulator, a format, a source, a sink ----------------------------------------------------------------------


class DummyAccumulator(AddS3):
    """AddS-3 under another name."""


class DummyDecoder(json_events.Decoder):
    """Lines of three words: anchor, near, far."""

    def __call__(self, value: bytes | None, header: bytes = b""):
        return super().__call__(_as_json(value), header)

    def many(self, values):
        return super().many([_as_json(value) for value in values])


def _as_json(value: bytes | None) -> bytes:
    events = [dict(zip(("anchor", "near", "far"), line.split())) for line in (value or b"").decode().splitlines()]
    return "\n".join(map(json.dumps, events)).encode()


def source(rest: str, positions: Mapping[str, Position], *, format: str | None = None) -> MemorySource:
    """The same lines, always."""
    return MemorySource(rest, positions, items=[LINES], format="dummy_format")
