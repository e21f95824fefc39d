"""Problems of a run's input that are found before anything is read."""

import os
from pathlib import Path

from connectors import SOURCES, STORES, UnusableSource, resolve, split_uri
from connectors.files import check_readable, expand, named_twice
from connectors.files.readers import kind_of
from connectors.kafka.client import parse_address, partition_of
from connectors.kafka.schema_registry import check_schemas
from connectors.kafka.start_offsets import selected_partitions
from stream_engine.input.settings import BadSettings, Settings
from stream_engine.input.settings.loading import shard
from stream_engine.input.sources import accumulators_in_use, registry_of, text_layout_of
from stream_engine.state import spark_deltas


def check_runnable(settings: Settings) -> None:
    """Raise `BadSettings` or `UnusableSource`, one line, for the first problem of a run that can be found without
    state, sources and brokers."""
    if settings.state and os.path.exists(settings.state) and not os.path.isdir(settings.state):
        raise BadSettings(f"state: {settings.state} is not a folder; name an existing folder, or a new one")
    for uri in settings.source:
        _check_source(settings, uri)
    if repeated_source := named_twice(path for scheme, path in map(split_uri, settings.source) if scheme == "file"):
        raise BadSettings(
            f"source: {repeated_source}: is in two sources, so its events would count twice; name it once"
        )
    objects = [name for uri in settings.source for name in object_names(uri)]
    if len(objects) != len(set(objects)):
        repeated_source = min(name for name in objects if objects.count(name) > 1)
        raise BadSettings(
            f"source: {repeated_source}: is in two sources, so its events would count twice; name it once"
        )
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
        return [store_object.name for store_object in objects_at(scheme, address)]
    except StoreFailed as failure:
        raise UnusableSource(str(failure)) from None


_NOT_FOLLOWED = "read it without following"  # the next step


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
                raise UnusableSource(f"{path}: only UTF-8 can be followed, not {kind.layout.encoding}; {_NOT_FOLLOWED}")
            if settings.follow and (not kind.is_text or kind.compression):
                raise UnusableSource(f"{path}: only plain .jsonl and .csv files can be followed; {_NOT_FOLLOWED}")


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
