"""Two producers under one roof: `send` values without waiting for each, `flush` to know that all are acknowledged.

Both are idempotent with acks=all; memory is bounded by the messages that may be unacknowledged.
"""

import threading
from collections.abc import Callable
from typing import Any, Protocol

from connectors import SinkUnavailable, UnusableSource
from connectors.kafka.address import Address, confluent_options, scrubbed

OPEN_MESSAGES = 20_000  # sent and not acknowledged


NO_TOPIC = (
    "the topic does not exist, or none of its brokers answers (waited {:g} s); "
    "create it, or check the name and the permission to see it"
)


class Sender(Protocol):
    """A producer for one topic; used in a `with` block, whose end lets go of what is not acknowledged."""

    def __enter__(self) -> "Sender": ...

    def __exit__(self, *_: object) -> None: ...

    def send(self, value: bytes) -> None:
        """Hand over a message; waits while too many are open. Raises `SinkUnavailable`."""

    def flush(self) -> None:
        """Wait until everything is acknowledged. Raises `SinkUnavailable`."""


class PythonSender:
    """kafka-python's producer. `send` waits while `OPEN_MESSAGES` are not acknowledged."""

    def __init__(self, address: Address, options: dict[str, Any], patience: float):
        from kafka import KafkaProducer, errors

        from connectors.kafka.kafka_python_internals import producer_options

        self._errors, self._address, self._options, self._patience = errors, address, options, patience
        defaults = {
            "linger_ms": 20,
            "batch_size": 256 << 10,
            "max_request_size": 16 << 20,
            "acks": "all",
            "allow_auto_create_topics": False,
            "delivery_timeout_ms": int(1000 * patience),
            "request_timeout_ms": int(500 * patience),
            "max_block_ms": int(1000 * patience),
        }
        given = producer_options(options)
        try:
            self._producer = KafkaProducer(**{**defaults, **given, "bootstrap_servers": list(address.servers)})
        except errors.RetriableError as error:
            raise SinkUnavailable(self._line(error)) from error
        except (errors.KafkaError, ValueError, AssertionError, OSError) as error:  # an option's value, a missing file
            raise UnusableSource(f"{address}: {scrubbed(error, options)}; check the [kafka] options") from error
        self._open = threading.BoundedSemaphore(OPEN_MESSAGES)
        self._failure: Exception | None = None

    def __enter__(self) -> "PythonSender":
        return self

    def __exit__(self, *_: object) -> None:
        self._producer.close(timeout=1)

    def _line(self, error: object) -> str:
        return f"{self._address}: {scrubbed(error, self._options)}; the events since the last acknowledged are not sent"

    def _acknowledged(self, _: object) -> None:
        self._open.release()

    def _failed(self, error: Exception) -> None:
        self._failure = error
        self._open.release()

    def send(self, value: bytes) -> None:
        """Hand over an event; waits while `OPEN_MESSAGES` are not acknowledged. Raises `SinkUnavailable`."""
        if not self._open.acquire(timeout=self._patience):
            raise SinkUnavailable(self._line(f"nothing acknowledged for {self._patience:g} s"))
        try:
            future = self._producer.send(self._address.topic, value=value)
        except self._errors.KafkaError as error:
            told = NO_TOPIC.format(self._patience) if "metadata" in str(error) else error  # nobody leads the topic
            raise SinkUnavailable(self._line(told)) from error
        future.add_callback(self._acknowledged)
        future.add_errback(self._failed)
        self._check()

    def _check(self) -> None:
        if self._failure is not None:
            raise SinkUnavailable(self._line(self._failure))

    def flush(self) -> None:
        """Wait until all is acknowledged. Raises `SinkUnavailable`."""
        try:
            self._producer.flush(timeout=self._patience)
        except self._errors.KafkaTimeoutError as error:
            raise SinkUnavailable(self._line(error)) from error
        self._check()


class ConfluentSender:
    """librdkafka's producer; its queue is the bound."""

    def __init__(self, address: Address, options: dict[str, Any], patience: float):
        import confluent_kafka

        self._address, self._options, self._patience = address, options, patience
        defaults = {
            "linger.ms": 20,
            "batch.size": 1 << 20,
            "message.max.bytes": 16 << 20,
            "enable.idempotence": True,
            "allow.auto.create.topics": False,
            "message.timeout.ms": int(1000 * patience),
            "log_level": 2,
        }
        named = {**defaults, **confluent_options(options), "bootstrap.servers": ",".join(address.servers)}
        named = {key: value for key, value in named.items() if key not in _CONSUMERS}
        try:
            self._producer = confluent_kafka.Producer(named)
        except (confluent_kafka.KafkaException, ValueError, TypeError) as error:
            raise UnusableSource(f"{address}: {scrubbed(error, options)}; check the [kafka] options") from error
        self._failure: object = None

    def __enter__(self) -> "ConfluentSender":
        return self

    def __exit__(self, *_: object) -> None:
        self._producer.purge()

    def _delivered(self, error: object, _: object) -> None:
        self._failure = self._failure or error

    def send(self, value: bytes) -> None:
        """Hand over an event; waits while the client's queue is full. Raises `SinkUnavailable`."""
        while True:
            try:
                self._producer.produce(self._address.topic, value, on_delivery=self._delivered)
                break
            except BufferError:
                self._producer.poll(0.1)
        self._producer.poll(0)
        self._check()

    def _check(self) -> None:
        if self._failure is not None:
            raise SinkUnavailable(
                f"{self._address}: {scrubbed(self._failure, self._options)}; the events since the "
                "last acknowledged are not sent"
            )

    def flush(self) -> None:
        """Wait until all is acknowledged. Raises `SinkUnavailable`."""
        left = self._producer.flush(self._patience)
        self._check()
        if left:
            raise SinkUnavailable(
                f"{self._address}: {left} messages are not acknowledged after {self._patience:g} s; "
                "does the topic exist, and may it be written to?"
            )


_CONSUMERS = {
    "group.id",
    "isolation.level",
    "fetch.wait.max.ms",
    "max.partition.fetch.bytes",
    "max.poll.records",
    "bootstrap.timeout.ms",
}
SENDERS: dict[str, Callable[[Address, dict[str, Any], float], Sender]] = {
    "kafka-python": PythonSender,
    "confluent": ConfluentSender,
}
