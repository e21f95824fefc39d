"""The input of a run as its settings say: checked, and opened at the positions of a state.

Everything that reads events (a run, `preview`, `predict`, `verify`, `Study`) goes through `source`, so that all of them
read the same and give the same verdict about what cannot be read.
"""

import os
from collections.abc import Mapping
from inspect import signature
from pathlib import Path
from typing import Any

from msgspec import structs

from connectors import SOURCES, STORES, Position, Source, UnusableSource, open_source, resolve, split_uri
from connectors.files import check_readable, expand, named_twice
from connectors.files.line_blocks import TextLayout, text_layout
from connectors.files.readers import kind_of
from connectors.kafka.client import parse_address, partition_of
from connectors.kafka.schema_registry import check_schemas
from connectors.kafka.start_offsets import selected_partitions
from stream_engine.counts import DEFAULT_ACCUMULATORS, accumulator
from stream_engine.formats.options import Bounds, EventOptions
from stream_engine.input.settings import BadSettings, Settings
from stream_engine.input.settings.loading import shard
from stream_engine.state import spark_deltas
from stream_engine.state.snapshot import Snapshot

BYTES_EACH = 4  # per comparison; as few as in a long ranking
LEAST_BLOCK, MOST_BLOCK = 4096, 8 << 20  # bytes to decode at once
LATER = {"worker_votes", "response_patterns", "judgements"}  # defaults that older states and deltas do not have
_WITHOUT = "read it without following"


def event_options(settings: Settings) -> EventOptions:
    """How to read the events of the main sources."""
    columns = {field: tuple(names.split("|")) for field, names in settings.input.columns.items()}
    judged = any(accumulator(name).needs_provenance for name in settings.accumulators)
    bounds = Bounds(settings.input.max_message_bytes)
    events, delimiter = settings.input, text_layout_of(settings).delimiter
    answers = events.answers_by, events.codes, events.answer_is, events.separator
    per_file = events.participant_from, events.drop_duplicates
    return EventOptions(
        events.type_, columns, dict(events.where), judged, bounds, delimiter, *answers, *per_file, events.max_time_ahead
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


def accumulators_in_use(settings: Settings, snapshot: Snapshot | None) -> tuple[str, ...]:
    """The accumulators of the settings. If these are the defaults: only counts for deltas, which hold nothing else. A
    state that was created with fewer defaults keeps these."""
    if settings.accumulators != DEFAULT_ACCUMULATORS:
        return settings.accumulators
    of_deltas = any(split_uri(uri)[0] == "deltas" for uri in settings.source)
    names = tuple(name for name in DEFAULT_ACCUMULATORS if not (of_deltas and name in LATER))
    accumulators = names if snapshot is None else tuple(snapshot.settings["accumulators"])
    return accumulators if {*names} - LATER <= {*accumulators} <= {*names} else names


def registry_of(settings: Settings) -> dict[str, str | None] | None:
    """The arguments of the schema registry in the settings; None where there is none."""
    registry = settings.schema_registry
    return None if registry.url is None else structs.asdict(registry)


def block_bytes(every: int | None) -> int:
    """The maximum size of a block of records, so that snapshots are taken on time: a comparison has at least
    `BYTES_EACH` bytes in every format, so a block holds a fraction of those between two snapshots.

    >>> block_bytes(None), block_bytes(0), block_bytes(10_000), block_bytes(1)
    (8388608, 8388608, 40000, 4096)
    """
    return min(MOST_BLOCK, max(LEAST_BLOCK, BYTES_EACH * every)) if every else MOST_BLOCK


def ends(settings: Settings) -> bool:
    """Whether the input is known to end: files that are not followed. A pipe may never end, and a topic does not."""
    return not settings.follow and all(split_uri(uri)[0] in ("file", "deltas", *STORES) for uri in settings.source)


# ---- whether it can be read


def check_runnable(settings: Settings) -> None:
    """Raise `BadSettings` or `UnusableSource`, one line, for the first problem of a run that can be found without
    state, sources and brokers."""
    if settings.state and os.path.exists(settings.state) and not os.path.isdir(settings.state):
        raise BadSettings(f"state: {settings.state} is not a folder; name an existing folder, or a new one")
    for uri in settings.source:
        _check_source(settings, uri)
    if twice := named_twice(path for scheme, path in map(split_uri, settings.source) if scheme == "file"):
        raise BadSettings(f"source: {twice}: is in two sources, so its events would count twice; name it once")
    objects = [name for uri in settings.source for name in object_names(uri)]
    if len(objects) != len(set(objects)):
        twice = min(name for name in objects if objects.count(name) > 1)
        raise BadSettings(f"source: {twice}: is in two sources, so its events would count twice; name it once")
    schemes = {split_uri(uri)[0] for uri in settings.source}
    if schemes and "kafka" not in schemes and shard(settings.input.shard) not in (None, (0, 1)):
        raise BadSettings(
            f"input.shard: got {settings.input.shard!r} but no topic among the sources; a shard is a share of a "
            "topic's partitions; for files, name those of this process"
        )
    topics = [parse_address(path).topic for scheme, path in map(split_uri, settings.source) if scheme == "kafka"]
    for name in settings.input.start_partitions:
        if all(partition_of(topic, name) is None for topic in topics):
            raise BadSettings(f"input.start_partitions: got {name!r}, expected TOPIC/NUMBER of a topic that is read")
    if settings.input.schema or settings.schema_registry.url:
        if not topics:
            raise BadSettings("input.schema, schema_registry.url: no effect without a topic among the sources")
        check_schemas(registry_of(settings), settings.input.schema)
    if settings.input.labels:
        check_readable(settings.input.labels)
        kind_of(settings.input.labels, None)
    elif settings.input.labels_columns:
        raise BadSettings("input.labels_columns: no effect without a file of labels (input.labels)")
    if settings.dead_letters and ("://" in settings.dead_letters or Path(settings.dead_letters).is_file()):
        raise BadSettings(f"dead_letters: got {settings.dead_letters}, expected a folder, existing or new")
    if settings.kafka:
        from connectors.kafka.source import check_options

        check_options(settings.kafka)


def object_names(uri: str) -> list[str]:
    """The objects that a source in a store names; none of other sources. Raises `UnusableSource`."""
    scheme, address = split_uri(uri)
    if scheme not in STORES:
        return []
    from connectors.stores.objects import StoreFailed, objects_at

    try:
        return [each.name for each in objects_at(scheme, address)]
    except StoreFailed as failure:
        raise UnusableSource(str(failure)) from None


def _check_source(settings: Settings, uri: str) -> None:
    scheme, address = split_uri(uri)
    resolve(scheme, SOURCES)
    if scheme == "kafka":
        selected_partitions(parse_address(address), None, shard(settings.input.shard))
    elif scheme == "deltas":
        _check_deltas(settings, uri)
    elif scheme == "file":
        paths = expand(address)
        if not paths and not settings.follow:
            raise UnusableSource(f"{address}: no file matches")
        for path in paths:
            if not settings.follow or os.path.lexists(path):
                check_readable(path)
            kind = kind_of(path, settings.input.format, text_layout_of(settings))
            if settings.follow and not kind.layout.is_utf8:
                raise UnusableSource(f"{path}: only UTF-8 can be followed, not {kind.layout.encoding}; {_WITHOUT}")
            if settings.follow and (not kind.is_text or kind.compression):
                raise UnusableSource(f"{path}: only plain .jsonl and .csv files can be followed; {_WITHOUT}")


def _check_deltas(settings: Settings, uri: str) -> None:
    """Raise `BadSettings` for what deltas cannot provide: the job has already decoded and counted their events."""
    if missing := [name for name in accumulators_in_use(settings, None) if name not in spark_deltas.HOLD]:
        raise BadSettings(
            f"{uri}: deltas have no counts for {', '.join(missing)}; expected accumulators among "
            f"{', '.join(spark_deltas.HOLD)}; read the events instead, or remove it"
        )
    events = settings.input
    options = {"type": events.type_, "columns": events.columns, "where": events.where, "format": events.format}
    if without_effect := [f"input.{key}" for key, value in options.items() if value]:
        raise BadSettings(
            f"{uri}: {', '.join(without_effect)} no effect on deltas, whose events are already decoded; use it with "
            "spark-counts"
        )
