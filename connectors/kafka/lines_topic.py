"""A topic as a log of lines, one message each: `write` returns when they are there for good, all of them and once.

Lines that are given together are one transaction, acknowledged by all in-sync replicas. Invariant: a line is on the
topic once or, where a transaction was given up, not at all, whatever is killed and whatever is retried. Where the
outcome of a transaction is not known (`BrokerUnavailable`), `open` decides it: a producer of the same transactional id
ends what the one before it has begun and shuts that one out, also one of a process that was killed and whose last
request is still under way; then `lines` tells what was committed. One process at a time: a second one that opens the
topic shuts the first one out, whose next `write` raises `BrokerUnavailable`, and whose `lines` then tell of the other.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

from kafka import KafkaProducer, errors

from connectors import UnusableSource
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


class LinesTopic:
    """`uri`: kafka://host:port[,host:port]/topic, which must exist; `options` under kafka-python's names. Used by one
    thread; nothing is asked of the network before `open`. Raises `UnusableSource`."""

    def __init__(self, uri: str, options: Mapping[str, Any] | None = None, patience: float = 30.0):
        self.address = parse_address(uri.removeprefix("kafka://"))
        self._options = kafka_python_options(options or {})
        producer_options(self._options)
        if self.address.partitions is not None:
            raise UnusableSource(f"{self.address}: got partitions, expected a whole topic to write to")
        self._producer: KafkaProducer | None = None
        self._known: dict[int, int] = {}  # partition -> offset up to which all lines were told or written
        self._patience = patience
        self.missing = 0  # messages that the topic does not hold any more, those before its first offsets

    def open(self) -> None:
        """A producer that has shut out those before it. Raises `BrokerUnavailable`, `Refused`, `UnusableSource`."""
        self._drop()
        self._look()  # a producer waits for a topic that does not exist
        servers = list(self.address.servers)
        options = {**PRODUCER, **producer_options(self._options), "bootstrap_servers": servers}
        try:
            self._producer = KafkaProducer(**options, transactional_id=f"stream-engine-lines-{self.address.topic}")
            self._producer.init_transactions()
        except FOR_GOOD as error:
            raise Refused(self._line(error)) from error
        except errors.KafkaError as error:
            self._drop()
            raise BrokerUnavailable(self._line(error)) from error
        except (ValueError, AssertionError, OSError) as error:  # an option's value, a missing file
            raise UnusableSource(f"{self._line(error)}; check the [kafka] options") from error

    def write(self, lines: Sequence[bytes]) -> None:
        """All of them, as one. Raises `BrokerUnavailable`: nobody knows whether they are there until `open` has
        returned again and `lines` told; `Refused`."""
        if self._producer is None:
            raise BrokerUnavailable(f"{self.address}: not open")
        try:
            self._producer.begin_transaction()
            sent = [self._producer.send(self.address.topic, value=line) for line in lines]
            self._producer.commit_transaction()
            for each in sent:
                at = each.get(0)
                self._known[at.partition] = max(self._known.get(at.partition, 0), at.offset + 1)
        except FOR_GOOD as error:
            self._drop()
            raise Refused(self._line(error)) from error
        except errors.KafkaError as error:
            self._drop()
            raise BrokerUnavailable(self._line(error)) from error

    def skip(self) -> None:
        """Take all that is there now for told. Raises as `lines` does."""
        self._known = {partition: each.end for partition, each in self._look().items()}

    def lines(self) -> Iterator[bytes]:
        """What was committed since the last line that was told or written, up to the end as it is now; at first
        everything. Raises `BrokerUnavailable`, `Refused`, `UnusableSource`."""
        yield from self._read(self._known)

    def all_lines(self) -> Iterator[bytes]:
        """Everything that is on the topic now; from any thread. Raises as `lines` does."""
        yield from self._read({})

    def close(self) -> None:
        """Within seconds."""
        self._drop()

    def _read(self, known: dict[int, int]) -> Iterator[bytes]:
        """Lines behind the offsets `known`, which follow."""
        reader = self._reader()
        try:
            ranges = self._ranges(reader)
            start = {partition: max(known.get(partition, 0), each.first) for partition, each in ranges.items()}
            ends = {partition: each.end for partition, each in ranges.items()}
            for message in reader.messages_to(ends, start, self._patience):
                if message.value:
                    yield message.value
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
            raise UnusableSource(f"{self.address}: the topic does not exist; create it, or check its name")
        ranges = reader.ranges(partitions)
        self.missing = sum(each.first for each in ranges.values())
        return ranges

    def _drop(self) -> None:
        producer, self._producer = self._producer, None
        if producer is not None:
            with suppress(errors.KafkaError):
                producer.close(timeout=1)

    def _line(self, error: object) -> str:
        said = scrubbed(error, self._options) or type(error).__name__
        return f"{self.address}: {said}"
