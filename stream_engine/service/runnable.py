"""Whether a run with these settings can begin, as far as it can be told without touching state, sources or brokers.

`check-config` asks this, and a run before anything else, so that both give the same verdict.
"""

import os
from pathlib import Path

from connectors import SINKS, SOURCES, UnusableSource, resolve, split_uri
from connectors.files.paths import check_readable, expand, named_twice
from connectors.files.readers import kind_of
from connectors.kafka.address import parse_address
from connectors.kafka.start_offsets import selected_partitions
from stream_engine.service.settings import BadSettings, Settings, shard
from stream_engine.service.wiring import text_layout_of

_WITHOUT = "read it without following"


def check_runnable(settings: Settings) -> None:
    """Raises `BadSettings` or `UnusableSource`, one line, for the first thing that a run would fail at."""
    if settings.state and os.path.exists(settings.state) and not os.path.isdir(settings.state):
        raise BadSettings(f"state: {settings.state} is no folder; name one, or one that can be made")
    for uri in settings.source:
        _check_source(settings, uri)
    if twice := named_twice(rest for scheme, rest in map(split_uri, settings.source) if scheme == "file"):
        raise BadSettings(f"source: {twice}: named by two sources, its events would count twice; name it once")
    schemes = {split_uri(uri)[0] for uri in settings.source}
    if settings.source and "kafka" not in schemes:
        _check_without_topic(settings)
    if settings.http.tls_certificate is not None:
        from stream_engine.service.http.listener import tls_context

        tls_context(settings.http.tls_certificate, settings.http.tls_key)
    _check_labels(settings)
    _check_dead_letters(settings)
    if settings.kafka:
        from connectors.kafka.source import check_options

        check_options(settings.kafka)


def _check_source(settings: Settings, uri: str) -> None:
    scheme, rest = split_uri(uri)
    resolve(scheme, SOURCES)
    if scheme == "kafka":
        selected_partitions(parse_address(rest), None, shard(settings.input.shard))
    elif scheme == "file":
        paths = expand(rest)
        if not paths and not settings.follow:
            raise UnusableSource(f"{rest}: no file matches")
        for path in paths:
            if not settings.follow or os.path.lexists(path):
                check_readable(path)
            kind = kind_of(path, settings.input.format, text_layout_of(settings))
            if settings.follow and not kind.layout.is_utf8:
                raise UnusableSource(f"{path}: only UTF-8 can be followed, not {kind.layout.encoding}; {_WITHOUT}")
            if settings.follow and (not kind.is_text or kind.compression):
                raise UnusableSource(f"{path}: only plain .jsonl and .csv files can be followed; {_WITHOUT}")


def _check_without_topic(settings: Settings) -> None:
    """What only a topic gives a meaning to."""
    if shard(settings.input.shard) not in (None, (0, 1)):
        raise BadSettings(
            f"input.shard: got {settings.input.shard!r} without a topic among the sources, whose partitions it shares "
            "out; name the files of this process instead"
        )


def _check_labels(settings: Settings) -> None:
    events = settings.input
    if events.labels:
        check_readable(events.labels)
        kind_of(events.labels, None)
    elif events.labels_columns:
        raise BadSettings("input.labels_columns: without effect, no file of labels is given (input.labels)")


def _check_dead_letters(settings: Settings) -> None:
    if not settings.dead_letters:
        return
    scheme, rest = split_uri(settings.dead_letters)
    resolve(scheme, SINKS)
    if scheme == "kafka":
        parse_address(rest)
    elif Path(rest).exists() and not Path(rest).is_dir():
        raise BadSettings(f"dead_letters: {rest} is no folder; name one, or one that can be made")
