"""Sources read again, from their beginning up to the positions of a state, in one order that is always the same.

First the file of labels; then source by source as they are named, files in the order of their names, the partitions of
a topic one after the other by number; inside a partition its stretches (`stretches`). Files and topics come to the very
item that the position stands behind: records that reach over it are cut there, which is the end of an item.
"""

import os
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from msgspec import structs

from connectors import Position, Record, SourceFailed, UnusableSource, open_source, split_uri
from connectors.files.paths import expand
from connectors.files.readers import Sizes, kind_of, open_reader
from connectors.files.readers import partition_of as partition_of_file
from connectors.kafka.address import Address, parse_address, partition_of
from stream_engine.service import ingest, wiring
from stream_engine.service.ingest import Block
from stream_engine.service.repair.stretches import Stretch, gone, stretches
from stream_engine.service.settings import Settings

PATIENCE = 60.0  # seconds without a record until offsets that a state has read are taken for missing
_LABELS = "labels:"


class Counted(NamedTuple):
    """What a state has counted: the end of each partition, its history, and where first runs began, where not at 0."""

    until: Mapping[str, Position]
    history: Sequence[Mapping[str, Any]] = ()
    starts: Mapping[str, int] = {}

    def stretches(self, name: str) -> list[Stretch]:
        """The stretches of a partition."""
        return stretches(name, self.until[name].offset, self.history, self.starts.get(name, 0))


class ReadAgain:
    """The blocks that a state has counted. `problems` fills up with what could not be read any more, one line each, and
    `reached` with the positions that were come to."""

    def __init__(self, settings: Settings, counted: Counted):
        self._settings = structs.replace(settings, follow=False)
        self._counted = counted
        self._ingest = ingest.Ingest(wiring.event_options(settings), settings.input.format)
        self.problems: list[str] = []
        self.reached: dict[str, Position] = {}

    def blocks(self) -> Iterator[Block]:
        """All of them. Raises `UnusableSource`, `SourceFailed`."""
        yield from self._labels()
        for uri in self._settings.source:
            scheme, rest = split_uri(uri)
            if scheme == "stdin":
                raise UnusableSource("-: standard input cannot be read again; name the files or the topic")
            of_scheme = {"kafka": self._topic, "file": self._files}.get(scheme, self._other)
            yield from of_scheme(uri, rest)
        for name in self._counted.until.keys() - self.reached.keys():
            self.problems.append(f"{name}: read by the state, not among the sources")

    def _wanted(self, name: str) -> list[Stretch] | None:
        """The stretches to read of a partition; None when the state knows nothing of it."""
        if name not in self._counted.until or name in self.reached:
            return None
        self.reached[name] = self._counted.until[name]
        for deed in self._counted.history:
            if deed.get("partition") == name and gone(deed):
                self.problems.append(f"{name}: what was read up to {deed['at']:,} is gone: {deed['why']}")
        return self._counted.stretches(name)

    def _labels(self) -> Iterator[Block]:
        path = self._settings.input.labels
        name = f"{_LABELS}{os.path.abspath(path)}" if path else ""
        if not path or self._wanted(name) is None:
            return
        columns = {field: tuple(names.split("|")) for field, names in self._settings.input.labels_columns.items()}
        blocks, position = ingest.read_labels(path, columns)
        if position != self._counted.until[name]:
            self.problems.append(f"{path}: the file of labels is not the one that was read last")
            self.reached[name] = position
        for block in blocks:
            yield block._replace(records=[record._replace(partition=name) for record in block.records])

    # ---- files

    def _files(self, uri: str, rest: str) -> Iterator[Block]:
        paths = expand(rest)
        if not paths:
            raise UnusableSource(f"{rest}: no file matches")
        for path in paths:
            name = partition_of_file(path)
            if (wanted := self._wanted(name)) is not None:
                self._check(path, self._counted.until[name])
                yield from self._cut_out(name, wanted, path)

    def _check(self, path: str, position: Position) -> None:
        """Raise `SourceFailed` when the file is not the one that the state has read."""
        if position.offset:
            reader = open_reader(
                path,
                kind_of(path, self._settings.input.format, wiring.text_layout_of(self._settings)),
                position,
                Sizes(),
            )
            try:
                reader.check()
            finally:
                reader.close()

    def _other(self, uri: str, rest: str) -> Iterator[Block]:
        """Deltas: one partition, whose name the source knows."""
        source = wiring.source(self._settings, uri, {})
        try:
            name = next(iter(source.lag()), "")
        finally:
            source.close()
        if (wanted := self._wanted(name)) is not None:
            yield from self._cut_out(name, wanted, uri)

    def _cut_out(self, name: str, wanted: list[Stretch], uri: str) -> Iterator[Block]:
        for stretch in wanted:
            at, source = 0, wiring.source(self._settings, uri, {})
            try:
                while at < stretch.end and not source.finished():
                    for record in source.poll(1.0):
                        at = record.next_offset
                        yield from self._blocks(record, stretch)
            finally:
                source.close()
            self._ended(name, at, stretch)

    def _blocks(self, record: Record, stretch: Stretch) -> Iterator[Block]:
        part = cut(record, stretch)
        if part is not None:
            until = self._counted.until[record.partition]
            mark = until.mark if part.next_offset == until.offset else part.mark
            yield from self._ingest.blocks([part._replace(mark=mark)])

    def _ended(self, name: str, at: int, stretch: Stretch) -> None:
        if at < stretch.end:
            self.problems.append(f"{name}: ends at {at:,}, the state has read {stretch.end:,}")
            self.reached[name] = Position(at, self.reached[name].mark)

    # ---- topics

    def _topic(self, uri: str, rest: str) -> Iterator[Block]:
        address = parse_address(rest)
        numbered = ((partition_of(address.topic, name), name) for name in self._counted.until)
        for number, name in sorted((number, name) for number, name in numbered if number is not None):
            if address.partitions is None or number in address.partitions:
                for stretch in self._wanted(name) or ():
                    yield from self._partition(address, number, name, stretch)

    def _partition(self, address: Address, number: int, name: str, stretch: Stretch) -> Iterator[Block]:
        mark = self._counted.until[name].mark
        source = open_source(
            f"{address}",
            {name: Position(stretch.begin, mark)},
            options=self._settings.kafka,
            on_offset_loss="earliest",
            partitions=[number],
            format=self._settings.input.format,
        )
        at, moved = stretch.begin, time.monotonic()
        try:
            while at < stretch.end:
                records = source.poll(0.2)
                for lost in source.losses():
                    self._gone(lost.partition, stretch.begin, lost.going_on_at, lost.why)
                    at = max(at, lost.going_on_at)
                if records:
                    at, moved = records[-1].next_offset, time.monotonic()
                    inside = [record for record in records if stretch.begin <= record.offset < stretch.end]
                    yield from self._ingest.blocks(inside)
                elif source.ready() and source.lag().get(name) == 0:
                    break  # behind control records, or the log ends
                elif time.monotonic() - moved > PATIENCE:
                    raise SourceFailed(
                        f"{name}: nothing came for {PATIENCE:g} s from offset {at}, the state has read up to "
                        f"{stretch.end}; is the broker there, is a transaction open?"
                    )
        finally:
            source.close()

    def _gone(self, name: str, begin: int, left: int, why: str) -> None:
        gone = f"offsets {begin:,} to {left - 1:,} are not there any more: " if left > begin else ""
        self.problems.append(f"{name}: {gone}{why}")


def cut(record: Record, stretch: Stretch) -> Record | None:
    """The part of a record inside a stretch whose ends are ends of items; None when there is none.

    >>> cut(Record(b"1\\n2\\n3\\n", "f", 10, 16), Stretch(12, 14))[:4]
    (b'2\\n', 'f', 12, 14)
    """
    begin, end = max(record.offset, stretch.begin), min(record.next_offset, stretch.end)
    if end <= begin:
        return None
    if (begin, end) == (record.offset, record.next_offset):
        return record
    if record.problem or record.unit not in ("byte", "row"):
        return None  # an item that cannot be cut: the stretch ends before it
    if record.unit == "row":
        value = record.value.slice(begin - record.offset, end - begin)
    else:
        value = record.value[begin - record.offset : end - record.offset]
    return record._replace(value=value, offset=begin, next_offset=end)
