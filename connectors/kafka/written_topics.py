"""Topics that one process at a time writes to, in transactions: a log of lines, and a table of rows.

Messages that are given together are one transaction, acknowledged by all in-sync replicas. Invariant: a message is on
the topic once or, where a transaction was given up, not at all, whatever is killed and whatever is retried. Where the
outcome of a transaction is not known (`BrokerUnavailable`), `open` decides it: a producer of the same transactional id
ends what the one before it has begun and shuts that one out, also one of a process that was killed and whose last
request is still under way; then reading tells what was committed. One process at a time: a second one that opens the
topic shuts the first one out, whose next transaction raises `BrokerUnavailable`.

A topic as a log of lines, one message each: `write` returns when they are there for good, all of them and once.

A compacted topic as a table: one message per row, its key the row's name, an empty value where a row is gone. A call of
`change` is one transaction. Invariant: who reads the topic from the start, committed messages only, holds the rows of
one whole call of `change` after the other, never a part of one.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any, ClassVar

from kafka import KafkaProducer, errors

from connectors import SinkUnavailable, UnusableSource
from connectors.kafka.client import (
    BrokerUnavailable,
    ClientFailed,
    OffsetsLost,
    Range,
    Refused,
    kafka_python_options,
    parse_address,
    scrubbed,
)
from connectors.kafka.kafka_python_client import KafkaPython
from connectors.kafka.kafka_python_internals import FATAL, consumer_options, producer_options

PRODUCER: dict[str, Any] = {
    "acks": "all",
    "enable_idempotence": True,
    "allow_auto_create_topics": False,
    "reconnect_backoff_max_ms": 5_000,
    "bootstrap_timeout_ms": 5_000,
    "max_block_ms": 10_000,
    "request_timeout_ms": 10_000,
    "delivery_timeout_ms": 20_000,
    "linger_ms": 0,
    "retry_backoff_ms": 20,  # a transaction that begins while the last one is still being marked is refused once
}
FOR_GOOD = (
    *FATAL,
    errors.MessageSizeTooLargeError,
    errors.UnsupportedVersionError,
)
TRANSACTION_MS = 300_000  # how long a table may take to send; the broker gives up a transaction after it


class WrittenTopic:
    """`uri`: [kafka://]host:port[,host:port]/topic, which must exist; `options` under kafka-python's names. Used by one
    thread; nothing is asked of the network before `open`. Raises `UnusableSource`."""

    kind: ClassVar[str]  # part of the transactional id
    missing_next: ClassVar[str] = "create it, or check its name"
    producer: ClassVar[dict[str, Any]] = {}  # options other than those of `PRODUCER`

    def __init__(self, uri: str, options: Mapping[str, Any] | None = None, patience: float = 30.0):
        self.address = parse_address(uri.removeprefix("kafka://"))
        self._options = kafka_python_options(options or {})
        producer_options(self._options)
        if self.address.partitions is not None:
            raise UnusableSource(f"{self.address}: got partitions, expected a whole topic to write to")
        self._producer: KafkaProducer | None = None
        self._patience = patience  # seconds until a broker that does not answer counts as away

    def open(self) -> None:
        """A producer that has shut out those before it. Raises `BrokerUnavailable`, `Refused`, `UnusableSource`."""
        self.close()
        self._look()  # a producer waits for a topic that does not exist
        options = {
            **PRODUCER,
            **producer_options(self._options),
            **self.producer,
            "bootstrap_servers": list(self.address.servers),
            "transactional_id": f"stream-engine-{self.kind}-{self.address.topic}",
        }
        try:
            self._producer = KafkaProducer(**options)
            self._producer.init_transactions()
        except FOR_GOOD as error:
            raise Refused(self._line(error)) from error
        except errors.KafkaError as error:
            self.close()
            raise BrokerUnavailable(self._line(error)) from error
        except (ValueError, AssertionError, OSError) as error:  # an option's value, a missing file
            raise UnusableSource(f"{self._line(error)}; check the [kafka] options") from error

    def close(self) -> None:
        """Within seconds."""
        producer, self._producer = self._producer, None
        if producer is not None:
            with suppress(errors.KafkaError):
                producer.close(timeout=1)

    def _commit(self, messages: Iterable[Mapping[str, Any]]) -> list[Any]:
        """Send messages as one transaction; where each of them is. Raises `BrokerUnavailable`: nobody knows whether
        they are there until `open` has returned again and the topic was read; `Refused`."""
        if self._producer is None:
            raise BrokerUnavailable(f"{self.address}: not open")
        try:
            self._producer.begin_transaction()
            sent = [self._producer.send(self.address.topic, **message) for message in messages]
            self._producer.commit_transaction()
            return [each.get(0) for each in sent]
        except FOR_GOOD as error:
            self.close()
            raise Refused(self._line(error)) from error
        except errors.KafkaError as error:
            self.close()
            raise BrokerUnavailable(self._line(error)) from error

    def _messages(self, known: dict[int, int]) -> Iterator[Any]:
        """Committed messages behind the offsets `known`, which follow, up to the end as it is now. Raises
        `BrokerUnavailable`, `Refused`, `UnusableSource`."""
        reader = self._reader()
        try:
            ranges = self._ranges(reader)
            start = {partition: max(known.get(partition, 0), each.first) for partition, each in ranges.items()}
            ends = {partition: each.end for partition, each in ranges.items()}
            for message in reader.messages_to(ends, start, self._patience):
                yield message
                known[message.partition] = message.offset + 1
            known |= {partition: max(start[partition], end) for partition, end in ends.items()}
        except (OffsetsLost, ClientFailed) as error:
            raise BrokerUnavailable(self._line(error)) from error
        finally:
            reader.close()

    def _reader(self) -> KafkaPython:
        options = {**consumer_options(self._options), "group_id": None}
        reader = KafkaPython(self.address, options, "json")
        reader.open()
        return reader

    def _look(self) -> dict[int, Range]:
        reader = self._reader()
        try:
            return self._ranges(reader)
        finally:
            reader.close()

    def _ranges(self, reader: KafkaPython) -> dict[int, Range]:
        if not (partitions := reader.look_for_topic()):
            raise UnusableSource(f"{self.address}: the topic does not exist; {self.missing_next}")
        return reader.ranges(partitions)

    def _line(self, error: object) -> str:
        said = scrubbed(error, self._options) or type(error).__name__
        return f"{self.address}: {said}"


class LinesTopic(WrittenTopic):
    """A log of lines; `lines` tells of those of other writers, too."""

    kind = "lines"

    def __init__(self, uri: str, options: Mapping[str, Any] | None = None, patience: float = 30.0):
        super().__init__(uri, options, patience)
        self._known: dict[int, int] = {}  # partition -> offset up to which all lines were told or written
        self.missing = 0  # messages that the topic does not hold any more, those before its first offsets

    def write(self, lines: Sequence[bytes]) -> None:
        """All of them, as one. Raises `BrokerUnavailable`: nobody knows whether they are there until `open` has
        returned again and `lines` told; `Refused`."""
        for at in self._commit({"value": line} for line in lines):
            self._known[at.partition] = max(self._known.get(at.partition, 0), at.offset + 1)

    def skip(self) -> None:
        """Take all that is there now for told. Raises as `lines` does."""
        self._known = {partition: each.end for partition, each in self._look().items()}

    def lines(self) -> Iterator[bytes]:
        """What was committed since the last line that was told or written, up to the end as it is now; at first
        everything. Raises `BrokerUnavailable`, `Refused`, `UnusableSource`."""
        return (message.value for message in self._messages(self._known) if message.value)

    def all_lines(self) -> Iterator[bytes]:
        """Everything that is on the topic now; from any thread. Raises as `lines` does."""
        return (message.value for message in self._messages({}) if message.value)

    def _ranges(self, reader: KafkaPython) -> dict[int, Range]:
        ranges = super()._ranges(reader)
        self.missing = sum(each.first for each in ranges.values())
        return ranges


class TableTopic(WrittenTopic):
    """The table kept in the topic `uri`, which should be compacted (cleanup.policy=compact)."""

    kind = "table"
    missing_next = "create it with cleanup.policy=compact, or check its name"
    producer: ClassVar[dict[str, Any]] = {"linger_ms": 20, "transaction_timeout_ms": TRANSACTION_MS}

    def open(self) -> None:
        """From now on no other producer of this table can write. Raises `SinkUnavailable`, `UnusableSource`."""
        with _of_a_sink():
            super().open()

    def rows(self) -> dict[bytes, bytes]:
        """The rows that the topic holds now. Raises `SinkUnavailable`, `UnusableSource`. O(messages)."""
        with _of_a_sink():
            found = {message.key or b"": message.value or b"" for message in self._messages({})}
        return {key: value for key, value in found.items() if value}

    def change(self, rows: Mapping[bytes, bytes | None], headers: Mapping[str, str]) -> None:
        """Write rows, None for one that is gone: all of them or, if this raises, none or (the broker knows) all.

        Raises `SinkUnavailable`, `UnusableSource`.
        """
        about = [(name, text.encode()) for name, text in headers.items()]
        with _of_a_sink():
            self._commit({"key": key, "value": value, "headers": about} for key, value in rows.items())


@contextmanager
def _of_a_sink() -> Iterator[None]:
    """What goes wrong with a topic, as a sink says it."""
    try:
        yield
    except BrokerUnavailable as error:
        raise SinkUnavailable(str(error)) from error
    except Refused as error:
        raise UnusableSource(str(error)) from error
