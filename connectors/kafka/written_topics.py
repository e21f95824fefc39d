"""A compacted topic as a table: one message per row, whose key is the row's name; an empty value deletes the row.

Each call of `change` is one transaction, so a reader of committed messages sees whole changes only. The transactional
id admits one writer: opening the table ends a transaction of the one before and shuts that one out.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any

from kafka import KafkaProducer, errors

from connectors import SinkUnavailable, UnusableSource
from connectors.kafka.client import (
    BrokerUnavailable,
    ClientFailed,
    OffsetsLost,
    Range,
    Refused,
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
    "linger_ms": 20,
    "retry_backoff_ms": 20,  # a transaction that begins while the last one is still being marked is refused once
    "transaction_timeout_ms": 300_000,  # how long a table may take to send; the broker gives up a transaction after it
}
FOR_GOOD = (
    *FATAL,
    errors.MessageSizeTooLargeError,
    errors.UnsupportedVersionError,
)


class TableTopic:
    """The table kept in the topic `uri`, [kafka://]host:port[,host:port]/topic, which must exist and should be
    compacted (cleanup.policy=compact); `options` under kafka-python's names. Used by one thread; nothing is asked of
    the network before `open`. All methods raise `SinkUnavailable` and `UnusableSource`."""

    def __init__(self, uri: str, options: Mapping[str, Any] | None = None, patience: float = 30.0):
        self.address = parse_address(uri.removeprefix("kafka://"))
        self._options = dict(options or {})
        producer_options(self._options)
        if self.address.partitions is not None:
            raise UnusableSource(f"{self.address}: got partitions, expected a whole topic to write to")
        self._producer: KafkaProducer | None = None
        self._patience = patience  # seconds until a broker that does not answer counts as away

    def open(self) -> None:
        """From now on no other producer of this table can write."""
        self.close()
        with self._telling():
            with self._reading():  # a producer waits for a topic that does not exist
                pass
            options = {
                **PRODUCER,
                **producer_options(self._options),
                "bootstrap_servers": list(self.address.servers),
                "transactional_id": f"stream-engine-table-{self.address.topic}",
            }
            self._producer = KafkaProducer(**options)
            self._producer.init_transactions()

    def close(self) -> None:
        """Within seconds."""
        producer, self._producer = self._producer, None
        if producer is not None:
            with suppress(errors.KafkaError):
                producer.close(timeout=1)

    def rows(self) -> dict[bytes, bytes]:
        """The rows that the topic holds now. O(messages)."""
        with self._telling(), self._reading() as (reader, ranges):
            start, ends = ({p: getattr(span, name) for p, span in ranges.items()} for name in ("first", "end"))
            messages = reader.messages_to(ends, start, self._patience)
            latest = {message.key or b"": message.value or b"" for message in messages}
        return {key: value for key, value in latest.items() if value}

    def change(self, rows: Mapping[bytes, bytes | None], headers: Mapping[str, str]) -> None:
        """Write rows, None for one that is gone: all of them or, if this raises, none or (the broker knows) all."""
        about = [(name, text.encode()) for name, text in headers.items()]
        with self._telling():
            if self._producer is None:
                raise BrokerUnavailable("not open")
            self._producer.begin_transaction()
            sent = [
                self._producer.send(self.address.topic, key=key, value=value, headers=about)
                for key, value in rows.items()
            ]
            self._producer.commit_transaction()
            for future in sent:
                future.get(0)

    @contextmanager
    def _reading(self) -> Iterator[tuple[KafkaPython, dict[int, Range]]]:
        """A reader of the topic, and what there is to read."""
        reader = KafkaPython(self.address, {**consumer_options(self._options), "group_id": None}, "json")
        reader.open()
        try:
            if not (partitions := reader.look_for_topic()):
                raise UnusableSource(
                    f"{self.address}: the topic does not exist; create it with cleanup.policy=compact, or check its "
                    "name"
                )
            yield reader, reader.ranges(partitions)
        finally:
            reader.close()

    @contextmanager
    def _telling(self) -> Iterator[None]:
        """What goes wrong, in a line that begins with the address; the producer is closed then."""
        try:
            yield
        except (*FOR_GOOD, Refused) as error:
            self.close()
            raise UnusableSource(self._line(error)) from error
        except (errors.KafkaError, BrokerUnavailable, OffsetsLost, ClientFailed) as error:
            self.close()
            raise SinkUnavailable(self._line(error)) from error
        except UnusableSource:
            raise
        except (ValueError, AssertionError, OSError) as error:  # an option's value, a missing file
            raise UnusableSource(f"{self._line(error)}; check the [kafka] options") from error

    def _line(self, error: object) -> str:
        return f"{self.address}: {scrubbed(error, self._options) or type(error).__name__}"
