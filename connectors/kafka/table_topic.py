"""A compacted topic as a table: one message per row, its key the row's name, an empty value where a row is gone.

A call of `change` is one transaction, and a producer of the same topic shuts out those before it, also one of a process
that was killed and whose last request is still under way. Invariant: who reads the topic from the start, committed
messages only, holds the rows of one whole call of `change` after the other, never a part of one.
"""

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from kafka import KafkaProducer, errors

from connectors import SinkUnavailable, UnusableSource
from connectors.kafka.client import (
    BrokerUnavailable,
    ClientFailed,
    OffsetsLost,
    Refused,
    kafka_python_options,
    parse_address,
    scrubbed,
)
from connectors.kafka.kafka_python_client import KafkaPython
from connectors.kafka.kafka_python_internals import consumer_options, producer_options
from connectors.kafka.lines_topic import FOR_GOOD, PRODUCER

TRANSACTION_MS = 300_000  # how long a table may take to send; the broker gives up a transaction after it


class TableTopic:
    """The table kept in the topic `rest`, "host:port[,host:port]/topic", which must exist.

    Parameters
    ----------
    rest : str
        Address without scheme.
    options : mapping, optional
        Options of the [kafka] section, under kafka-python's names.
    patience : float
        Seconds until a broker that does not answer counts as away.
    """

    def __init__(self, rest: str, options: Mapping[str, Any] | None = None, patience: float = 30.0):
        self._address = parse_address(rest)
        self._options = kafka_python_options(options or {})
        self._patience = patience
        if self._address.partitions is not None:
            raise UnusableSource(f"{self._address}: got partitions, expected a whole topic to write to")

    def open(self) -> None:
        """From now on no other producer of this table can write. Raises `SinkUnavailable`, `UnusableSource`."""
        self._look()  # a producer waits for a topic that does not exist
        options = {
            **PRODUCER,
            **producer_options(self._options),
            "linger_ms": 20,
            "bootstrap_servers": list(self._address.servers),
            "transactional_id": f"stream-engine-table-{self._address.topic}",
            "transaction_timeout_ms": TRANSACTION_MS,
        }
        try:
            self._producer = KafkaProducer(**options)
            self._producer.init_transactions()
        except errors.KafkaError as error:
            raise SinkUnavailable(self._line(error)) from error
        except (ValueError, AssertionError, OSError) as error:  # an option's value, a missing file
            raise UnusableSource(f"{self._line(error)}; check the [kafka] options") from error

    def rows(self) -> dict[bytes, bytes]:
        """The rows that the topic holds now. Raises `SinkUnavailable`, `UnusableSource`. O(messages)."""
        reader = KafkaPython(self._address, {**consumer_options(self._options), "group_id": None}, "json")
        found: dict[bytes, bytes] = {}
        try:
            reader.open()
            ranges = reader.ranges(reader.look_for_topic() or [])
            start = {partition: each.first for partition, each in ranges.items()}
            ends = {partition: each.end for partition, each in ranges.items()}
            for message in reader.messages_to(ends, start, self._patience):
                found[message.key or b""] = message.value or b""
        except (BrokerUnavailable, OffsetsLost, ClientFailed, Refused) as error:
            raise SinkUnavailable(self._line(error)) from error
        finally:
            reader.close()
        return {key: value for key, value in found.items() if value}

    def change(self, rows: Mapping[bytes, bytes | None], headers: Mapping[str, str]) -> None:
        """Write rows, None for one that is gone: all of them or, if this raises, none or (the broker knows) all.

        Raises `SinkUnavailable`, `UnusableSource`.
        """
        topic, about = self._address.topic, [(name, text.encode()) for name, text in headers.items()]
        try:
            self._producer.begin_transaction()
            sent = [self._producer.send(topic, key=k, value=v, headers=about) for k, v in rows.items()]
            self._producer.commit_transaction()
            for each in sent:
                each.get(0)
        except FOR_GOOD as error:
            raise UnusableSource(self._line(error)) from error
        except errors.KafkaError as error:
            raise SinkUnavailable(self._line(error)) from error

    def close(self) -> None:
        """Within seconds."""
        with suppress(errors.KafkaError, AttributeError):
            self._producer.close(timeout=1)

    def _look(self) -> None:
        reader = KafkaPython(self._address, {**consumer_options(self._options), "group_id": None}, "json")
        try:
            reader.open()
            if not reader.look_for_topic():
                raise UnusableSource(f"{self._address}: no such topic; create it with cleanup.policy=compact")
        except (BrokerUnavailable, ClientFailed, Refused) as error:
            raise SinkUnavailable(self._line(error)) from error
        finally:
            reader.close()

    def _line(self, error: object) -> str:
        return f"{self._address}: {scrubbed(error, self._options) or type(error).__name__}"
