"""A Kafka topic as the log of answers, which other engines and programs may follow too.

A group is a transaction: its futures give True when it is committed by all in-sync replicas. While the broker is away
what was given waits. Where the outcome of a transaction is not known, the topic is opened anew, which
decides it, and read: what is there is told, what is not is written again. So each line is on the topic once.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from connectors import SinkUnavailable, UnusableSource
from connectors.kafka.client import BrokerUnavailable, Refused
from connectors.kafka.lines_topic import LinesTopic
from stream_engine.collect.group_commit import GroupCommit, PendingLine

PAUSES = (0.2, 5.0)  # seconds between attempts to reach a broker, doubling


class TopicLog(GroupCommit):
    """`uri`: kafka://host:port[,host:port]/topic, `options` those of the [kafka] section."""

    patience = 10.0

    def __init__(self, uri: str, options: Mapping[str, Any]):
        """Raises `UnusableSource`, and `SinkUnavailable` where no broker answers."""
        self._topic = LinesTopic(uri, options)
        super().__init__(str(self._topic.address))
        self.topic = self._topic.address.topic
        try:
            self._topic.open()
            self._topic.skip()
        except Refused as error:
            raise UnusableSource(f"{error}; check the [kafka] options") from error
        except BrokerUnavailable as error:
            raise SinkUnavailable(f"{error}; check the broker, then restart `collect`") from error
        self._begin()

    @property
    def missing(self) -> int:
        """Messages that the topic does not hold any more."""
        return self._topic.missing

    def lines(self) -> Iterator[bytes]:
        """All lines that are on the topic. Raises `SinkUnavailable`, `UnusableSource`."""
        try:
            yield from self._topic.all_lines()
        except Refused as error:
            raise UnusableSource(str(error)) from error
        except BrokerUnavailable as error:
            raise SinkUnavailable(str(error)) from error

    def close(self) -> None:
        """Within seconds."""
        super().close()
        self._topic.close()

    def _commit(self, batch: list[PendingLine]) -> None:
        left = batch
        while left:
            try:
                self._topic.write([each.line for each in left])
            except Refused as error:
                self._break(f"{error}; then restart `collect`", batch)
                return
            except BrokerUnavailable:
                left = self._settled(left)
                continue
            for each in left:
                each.done.set_result(True)
            return

    def _settled(self, batch: list[PendingLine]) -> list[PendingLine]:
        """Those of a batch that are not on the topic, once that is known; none where the log is broken."""
        ours, there, pause = {each.line for each in batch}, set[bytes](), PAUSES[0]
        while not self._end:
            try:
                self._topic.open()
                for line in self._topic.lines():
                    there.add(line)
            except (Refused, UnusableSource) as error:
                self._break(f"{error}; then restart `collect`", batch)
                return []
            except BrokerUnavailable:
                with self._wake:
                    self._wake.wait_for(lambda: self._end, pause)
                pause = min(2 * pause, PAUSES[1])
                continue
            if there - ours:
                self._break(f"{self.name}: another process writes to this topic; stop one of them", batch)
                return []
            for each in batch:
                if each.line in there:
                    each.done.set_result(True)
            return [each for each in batch if each.line not in there]
        self._break(f"{self.name}: stopped before the broker came back", batch)
        return []
