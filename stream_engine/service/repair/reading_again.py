"""Reads again what a state has counted, from its sources."""

import os
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing
from typing import Any, NamedTuple

from connectors import STORES, Position, Source, SourceFailed, UnusableSource, open_source, split_uri
from connectors.files import expand
from connectors.files.readers import partition_of as partition_of_file
from connectors.kafka.client import parse_address, partition_of
from connectors.stores.objects import address_of
from stream_engine.input import decoding, label_files
from stream_engine.input.decoding import Block
from stream_engine.input.record_units import part_inside
from stream_engine.input.settings import Settings
from stream_engine.input.source_checks import object_names
from stream_engine.input.sources import event_options, registry_of, source
from stream_engine.state.snapshot import Snapshot

PATIENCE = 60.0  # seconds without a record until offsets that a state has read are taken for missing
MOVES = ("seek", "offsets lost")  # deeds of the history that moved a position: they have `partition`, `at`, `to`


class Stretch(NamedTuple):
    """Offsets from `begin` up to, not including, `end`."""

    begin: int
    end: int


def stretches(name: str, position: int, history: Iterable[Mapping[str, Any]], start: int = 0) -> list[Stretch]:
    """The stretches of a partition in the order in which they were counted; one that was counted twice comes twice.

    What is gone altogether, of a file or topic made anew under the same name, is excluded.

    >>> moved = [{"did": "seek", "partition": "t/0", "at": at, "to": to} for at, to in ((5, 8), (9, 2))]
    >>> stretches("t/0", 4, moved)
    [Stretch(begin=0, end=5), Stretch(begin=8, end=9), Stretch(begin=2, end=4)]
    """
    result: list[Stretch] = []
    begin = start
    for change in history:
        if change["did"] in MOVES and change.get("partition") == name:
            result = [] if _is_gone(change) else [*result, Stretch(begin, change["at"])]
            begin = change["to"]
    result.append(Stretch(begin, position))
    return [stretch for stretch in result if stretch.end > stretch.begin]


def _is_gone(change: Mapping[str, Any]) -> bool:
    return change["did"] == "offsets lost" and change["to"] < change["at"]


# The order is always the same: the file of labels; then source by source as they are named, files in the order of their
# names, the partitions of a topic by number. Offsets that a state was moved over (`seek`, offsets lost) are excluded,
# and those that it was moved back to are counted twice.
class SourceReader:
    """The blocks that a state has counted. `problems` gets what could not be read any more, one line each."""

    def __init__(
        self, settings: Settings, snapshot: Snapshot, history: list[dict[str, Any]], starts: Mapping[str, int]
    ):
        self._settings, self._until, self._history, self._starts = settings, snapshot.positions, history, starts
        self._ingest = decoding.RecordDecoder(event_options(settings), settings.input.format)
        self._begun_partitions: set[str] = set()  # partitions
        self.problems: list[str] = []
        self.missing: dict[str, int] = {}  # topic -> offsets without a message: control records, or compacted away

    def blocks(self) -> Iterator[Block]:
        """All of them. Raises `UnusableSource`, `SourceFailed`."""
        if self._settings.input.labels:
            yield from self._labels(self._settings.input.labels)
        for uri in self._settings.source:
            scheme, address = split_uri(uri)
            if scheme == "stdin":
                raise UnusableSource("-: standard input cannot be read again; name the files or the topic")
            yield from {"kafka": self._topic, "file": self._files, **dict.fromkeys(STORES, self._files)}.get(
                scheme, self._deltas
            )(uri, address)
        for name in self._until.keys() - self._begun_partitions:
            self.problems.append(f"{name}: read by the state, not among the sources")

    def _labels(self, path: str) -> Iterator[Block]:
        name = f"labels:{os.path.abspath(path)}"
        if not self._stretches_of(name):
            return
        columns = {field: tuple(names.split("|")) for field, names in self._settings.input.labels_columns.items()}
        blocks, position = label_files.read_labels(path, columns)
        if position != self._until[name]:
            self.problems.append(f"{path}: the file of labels is not the one that was read last")
        for block in blocks:
            yield block._replace(records=[record._replace(partition=name) for record in block.records])

    def _files(self, uri: str, address: str) -> Iterator[Block]:
        if split_uri(uri)[0] in STORES:
            paths = {name: address_of(name, uri) for name in object_names(uri)}
        else:
            paths = {partition_of_file(path): path for path in expand(address)}
        if not paths:
            raise UnusableSource(f"{address}: no file matches")
        for name, path in paths.items():
            stretches_of_file = self._stretches_of(name)
            if stretches_of_file:
                with closing(source(self._settings, path, self._until)) as opened_source:
                    opened_source.poll(float("inf"))  # fails when the file is not the one that the state has read
            for stretch in stretches_of_file:
                yield from self._read(stretch, name, source(self._settings, path, {}))

    def _deltas(self, uri: str, address: str) -> Iterator[Block]:
        with closing(source(self._settings, uri, {})) as opened_source:
            name = next(iter(opened_source.lag()), "")
        for stretch in self._stretches_of(name):
            yield from self._read(stretch, name, source(self._settings, uri, {}))

    def _topic(self, uri: str, rest: str) -> Iterator[Block]:
        address = parse_address(rest)
        numbers = ((partition_of(address.topic, name), name) for name in self._until)
        for number, name in sorted((number, name) for number, name in numbers if number is not None):
            if address.partitions is None or number in address.partitions:
                for stretch in self._stretches_of(name):
                    topic = open_source(
                        f"{address}",
                        {name: Position(stretch.begin, self._until[name].mark)},
                        options=self._settings.kafka,
                        on_offset_loss="earliest",
                        partitions=[number],
                        format=self._settings.input.format,
                        schema=self._settings.input.schema,
                        registry=registry_of(self._settings),
                    )
                    yield from self._read(stretch, name, topic)

    def _stretches_of(self, name: str) -> list[Stretch]:
        """The stretches to read of a partition; none when the state does not know it, or it was read before."""
        if name not in self._until or name in self._begun_partitions:
            return []
        self._begun_partitions.add(name)
        for change in self._history:
            if change.get("partition") == name and _is_gone(change):
                self.problems.append(f"{name}: what was read up to {change['at']:,} is gone: {change['why']}")
        return stretches(name, self._until[name].offset, self._history, self._starts.get(name, 0))

    def _read(self, stretch: Stretch, name: str, opened_source: Source) -> Iterator[Block]:
        """The blocks of one stretch of one partition; it is closed."""
        at, last_progress, topic = stretch.begin, time.monotonic(), name.rpartition("/")[0]
        with closing(opened_source):
            while at < stretch.end and not opened_source.finished():
                records = opened_source.poll(0.2)
                for loss in opened_source.losses():
                    first, resumes_at = stretch.begin, loss.going_on_at
                    missing_offsets = (
                        f"offsets {first:,} to {resumes_at - 1:,} are not there any more: "
                        if resumes_at > first
                        else ""
                    )
                    self.problems.append(f"{name}: {missing_offsets}{loss.why}")
                    at = max(at, resumes_at)
                if records:
                    if records[0].unit == "message":
                        inside = sum(at <= record.offset < stretch.end for record in records)
                        span = min(records[-1].next_offset, stretch.end) - at
                        self.missing[topic] = self.missing.get(topic, 0) + span - inside
                    at, last_progress = records[-1].next_offset, time.monotonic()
                    yield from self._ingest.blocks([part for item in records if (part := part_inside(item, *stretch))])
                elif opened_source.ready() and opened_source.lag().get(name) == 0:
                    self.missing[topic] = self.missing.get(topic, 0) + stretch.end - at
                    return  # behind the control records of a topic, or where the log ends
                elif time.monotonic() - last_progress > PATIENCE:
                    raise SourceFailed(
                        f"{name}: nothing came for {PATIENCE:g} s from offset {at}, the state has read up to "
                        f"{stretch.end}; is the broker there, is a transaction open?"
                    )
        if at < stretch.end:
            self.problems.append(f"{name}: ends at {at:,}, the state has read {stretch.end:,}")
