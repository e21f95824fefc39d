"""Where the answers of a study are kept: DIR/collect/answers.jsonl, or with `--log` a Kafka topic of their own.

A study keeps to the one that it began with: DIR/collect/log names its topic.
"""

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from connectors import UnusableSource
from connectors.disk import Disk, write_whole
from connectors.kafka.address import parse_address
from stream_engine.collect.group_commit import GroupCommit
from stream_engine.collect.line_log import LineLog
from stream_engine.collect.topic_log import TopicLog
from stream_engine.service.settings import BadSettings


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
