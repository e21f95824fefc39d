"""The input of a run, opened as its settings say, at the positions of a state. Everything that reads events (a run,
`preview`, `predict`, `verify`, `Study`) goes through `source`, so all of them read the same."""

from collections.abc import Mapping
from inspect import signature
from typing import Any

from msgspec import structs

from connectors import SOURCES, STORES, Position, Source, open_source, resolve, split_uri
from connectors.files.line_blocks import TextLayout, text_layout
from stream_engine.counts import DEFAULT_ACCUMULATORS, accumulator
from stream_engine.formats.options import Bounds, EventOptions
from stream_engine.input.settings import Settings
from stream_engine.input.settings.loading import shard
from stream_engine.state.snapshot import Snapshot


def event_options(settings: Settings) -> EventOptions:
    """How to read the events of the main sources."""
    columns = {field: tuple(names.split("|")) for field, names in settings.input.columns.items()}
    needs_provenance = any(accumulator(name).needs_provenance for name in settings.accumulators)
    bounds = Bounds(settings.input.max_message_bytes)
    events, delimiter = settings.input, text_layout_of(settings).delimiter
    answers = events.answers_by, events.codes, events.answer_is, events.separator
    per_file = events.participant_from, events.drop_duplicates
    return EventOptions(
        events.type_,
        columns,
        dict(events.where),
        needs_provenance,
        bounds,
        delimiter,
        *answers,
        *per_file,
        events.max_time_ahead,
    )


def text_layout_of(settings: Settings) -> TextLayout:
    """The text layout of files in the settings. Raises `UnusableSource`."""
    events = settings.input
    return text_layout(events.delimiter, events.encoding, events.header, events.skip_rows)


def source(settings: Settings, uri: str, positions: Mapping[str, Position]) -> Source:
    """Open a source at the positions of the state."""
    scheme, _ = split_uri(uri)
    events = settings.input
    options: dict[str, Any] = {"format": events.format}
    if scheme == "kafka":
        options |= {
            "options": {**settings.kafka, "max_batch_bytes": events.max_message_bytes},
            "start": events.start,
            "start_partitions": events.start_partitions,
            "on_offset_loss": events.on_offset_loss,
            "shard": shard(events.shard),
            "schema": events.schema,
            "registry": registry_of(settings),
        }
    else:
        options |= {
            "block_bytes": block_bytes(settings.snapshot.every),
            "max_item_bytes": events.max_message_bytes,
            "layout": text_layout_of(settings),
            "follow": settings.follow,
            "count_copies": events.count_copies,
        }
        parameters = signature(resolve(scheme, SOURCES)).parameters
        options = {name: value for name, value in options.items() if name in parameters}
    return open_source(uri, positions, **options)


LATER_DEFAULTS = {"worker_votes", "response_patterns", "judgements"}  # which older states and deltas lack


def accumulators_in_use(settings: Settings, snapshot: Snapshot | None) -> tuple[str, ...]:
    """The accumulators of the settings. If these are the defaults: only counts for deltas, which hold nothing else. A
    state that was created with fewer defaults keeps these."""
    if settings.accumulators != DEFAULT_ACCUMULATORS:
        return settings.accumulators
    of_deltas = any(split_uri(uri)[0] == "deltas" for uri in settings.source)
    names = tuple(name for name in DEFAULT_ACCUMULATORS if not (of_deltas and name in LATER_DEFAULTS))
    accumulators = names if snapshot is None else tuple(snapshot.settings["accumulators"])
    return accumulators if {*names} - LATER_DEFAULTS <= {*accumulators} <= {*names} else names


def registry_of(settings: Settings) -> dict[str, str | None] | None:
    """The arguments of the schema registry in the settings; None where there is none."""
    registry = settings.schema_registry
    return None if registry.url is None else structs.asdict(registry)


MIN_COMPARISON_BYTES = 4  # as in a long ranking
MIN_BLOCK_BYTES, MAX_BLOCK_BYTES = 4096, 8 << 20  # of records that are decoded at once


def block_bytes(every: int | None) -> int:
    """The maximum size of a block of records, so that snapshots are taken on time: a comparison has at least
    `MIN_COMPARISON_BYTES` bytes in every format, so a block holds a fraction of those between two snapshots.

    >>> block_bytes(None), block_bytes(0), block_bytes(10_000), block_bytes(1)
    (8388608, 8388608, 40000, 4096)
    """
    return min(MAX_BLOCK_BYTES, max(MIN_BLOCK_BYTES, MIN_COMPARISON_BYTES * every)) if every else MAX_BLOCK_BYTES


def ends(settings: Settings) -> bool:
    """Whether the input is known to end: files that are not followed. A pipe may never end, and a topic does not."""
    return not settings.follow and all(split_uri(uri)[0] in ("file", "deltas", *STORES) for uri in settings.source)
