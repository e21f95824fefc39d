"""What a reader of a state gets: one snapshot and the artifacts that belong to it."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from stream_engine.state.artifact import Artifact
from stream_engine.state.order_file import OrderFile
from stream_engine.state.snapshot import Snapshot


class Published(NamedTuple):
    """What an export reads: one snapshot and the artifacts that were made from it or before it, by kind."""

    snapshot: Snapshot
    artifacts: dict[str, Artifact]
    object_names: Mapping[str, tuple[str, ...]] = MappingProxyType({})  # of artifacts whose objects stand otherwise
    as_seen: Any = None  # the same with objects by first appearance, where these are sorted by name
    seconds: Mapping[str, float] = MappingProxyType({})  # of CPU that making each artifact took, where that was noted
    excluded: tuple[str, ...] = ()  # participants who are excluded of the snapshot (`state.exclusion`)
    order_file: OrderFile | None = None  # where its canonical order is kept; None where it is to be made each time
