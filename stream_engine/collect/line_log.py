"""Lines that are only added to, durable before the caller is told so: one writer, group commit.

All that was given while a sync was under way is written and synced together by the next one; what nobody waits for
to be durable is written and not synced. Invariant: a line whose future has given True is in the file whatever happens
afterwards (not synced: unless the power goes); one whose future has raised may be there or not,
and `lines` says which. What a kill left of a last line is cut off when the log is opened.

Where the answers of a study are kept: DIR/collect/answers.jsonl, or with `--log` a Kafka topic of their own.

A study keeps to the one that it began with: DIR/collect/log names its topic.
"""

import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from connectors import UnusableSource
from connectors.disk import Disk, make_folders, write_whole
from connectors.kafka.client import parse_address
from stream_engine.collect.group_commit import GroupCommit, PendingLine
from stream_engine.collect.topic_log import TopicLog
from stream_engine.service.settings import BadSettings

_PIECE = 1 << 20  # bytes that are looked at together for the end of the last whole line


class LineLog(GroupCommit):
    """A file of lines with one thread that writes. `size` is how many bytes of it were written whole: all of them are
    durable once a line that is to be synced is."""

    def __init__(self, path: Path, disk: Disk | None = None, at_least: int = 0):
        """Open the log, made when it is missing; a torn last line goes. Raises OSError.

        Where a reader is `at_least` so many bytes on, it has read what a power cut then took before it was durable:
        empty lines fill the gap, so that no later line lies where that reader has been."""
        super().__init__(str(path))
        self.path, self._disk = path, disk or Disk()
        make_folders(self._disk, path.parent)
        if not self._disk.exists(path):
            self._disk.append(path, [])
            self._disk.fsync_dir(path.parent)
        self.torn = _cut_torn_line(self._disk, path)
        self.gap = max(at_least - self._disk.size(path), 0)
        if self.gap:
            self._disk.append(path, [b"\n" * self.gap])
        self._disk.fsync(path)
        self.size = self._disk.size(path)
        self._begin()

    def _commit(self, batch: list[PendingLine]) -> None:
        try:
            self._disk.append(self.path, [each.line + b"\n" for each in batch])
        except OSError as error:  # a full disk: a part may be there
            self._undo(batch, error)
            return
        for each in batch:
            if not each.synced:
                each.done.set_result(True)
        if any(each.synced for each in batch):  # else nobody has to wait behind a sync
            try:
                self._disk.fsync(self.path)
            except OSError as error:  # the system may have given up these pages: nobody knows what is on the disk
                self._break(f"{self.path}: cannot sync: {error}; check the disk, then restart `collect`", batch)
                return
        self.size += sum(len(each.line) + 1 for each in batch)
        for each in batch:
            if each.synced:
                each.done.set_result(True)

    def _undo(self, batch: list[PendingLine], error: OSError) -> None:
        """Nothing of a batch that could not be written whole stays, or the log is broken.

        A reader may have seen whole lines of it; so lines that were written whole stay and are durable."""
        try:
            _cut_torn_line(self._disk, self.path)
            self._disk.fsync(self.path)
            written = self._disk.size(self.path) - self.size
        except OSError as again:
            self._break(f"{self.path}: cannot write: {error}; cannot truncate: {again}", batch)
            return
        for each in batch:
            written -= len(each.line) + 1
            if written >= 0:
                self.size += len(each.line) + 1
                each.done.set_result(True)
            else:
                each.done.set_exception(OSError(error.errno, error.strerror, str(self.path)))

    def lines(self) -> Iterator[bytes]:
        """All whole lines."""
        return lines_of(self.path)


def lines_of(path: Path) -> Iterator[bytes]:
    """The whole lines of a log, without their ends; nothing where there is no file."""
    if not os.path.exists(path):
        return
    with open(path, "rb") as file:
        for line in file:
            if line.endswith(b"\n"):
                yield line[:-1]


def _cut_torn_line(disk: Disk, path: Path) -> int:
    """Cut a file behind its last line end; returns how many bytes went."""
    size = end = disk.size(path)
    while end > 0:
        start = max(end - _PIECE, 0)
        at = disk.read(path, start, end - start).rfind(b"\n")
        if at >= 0:
            end = start + at + 1
            break
        end = start
    if end < size:
        disk.truncate(path, end)
    return size - end


class _Id(msgspec.Struct):
    id: str


def answer_log(folder: Path, uri: str | None, options: Mapping[str, Any], at_least: int = 0) -> GroupCommit:
    """The log of the study in DIR/collect, `folder`, opened. Raises `BadSettings`: it has another one;
    `UnusableSource`, `SinkUnavailable`, OSError."""
    file, note = folder / "answers.jsonl", folder / "log"
    before = note.read_text("utf-8").strip() if note.exists() else ""
    if uri is None:
        if before:
            raise BadSettings(
                f"--log: got none, expected kafka://HOST:PORT/{before}, which has the answers of this study"
            )
        return LineLog(file, at_least=at_least)
    topic = topic_of(uri)
    if before and before != topic:
        raise BadSettings(f"--log {uri}: got topic {topic}, expected {before}, which has the answers of this study")
    if not before and file.exists() and file.stat().st_size:
        raise BadSettings(f"--log {uri}: the answers of this study are in {file}; omit --log, or use a new --state")
    log = TopicLog(uri, options)
    if not before:
        write_whole(Disk(), note, [topic.encode()])
    return log


def topic_of(uri: str) -> str:
    """The topic of kafka://host:port/topic. Raises `BadSettings` for another kind of log, `UnusableSource`.

    >>> topic_of("kafka://broker:9092/answers")
    'answers'
    """
    kind, found, rest = uri.partition("://")
    if not found or kind != "kafka":
        raise BadSettings(f"--log: got {uri!r}, expected kafka://HOST:PORT/TOPIC")
    return parse_address(rest).topic


def of_study(lines: Iterable[bytes], study: str, where: str) -> Iterator[bytes]:
    """The lines, each of which is an answer of this study. Raises `UnusableSource`."""
    decode = msgspec.json.Decoder(_Id).decode
    for line in lines:
        if line:
            try:
                ours = decode(line).id.startswith(f"{study}-")
            except msgspec.MsgspecError:
                ours = False
            if not ours:
                raise UnusableSource(
                    f"{where}: holds {line[:60]!r}, which is not an answer of this study; expected a log of its own"
                )
        yield line
