"""kafka-python's producer for one topic: idempotent, bounded in what is not acknowledged, one line for what fails."""

import threading
from typing import Any

from kafka import KafkaProducer, errors

from connectors import SinkUnavailable, UnusableSource
from connectors.kafka.client import Address, scrubbed
from connectors.kafka.kafka_python_internals import producer_options

OPEN_MESSAGES = 20_000  # sent and not acknowledged
NO_TOPIC = (
    "the topic does not exist, or none of its brokers answers (waited {:g} s); "
    "create it, or check the name and the permission to see it"
)


class Sender:
    """kafka-python's producer for one topic, idempotent with acks=all. `send` waits while `OPEN_MESSAGES` are not
    acknowledged. Used in a `with` block, whose end lets go of what is not acknowledged."""

    def __init__(self, address: Address, options: dict[str, Any], patience: float):
        self._address, self._options, self._patience = address, options, patience
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
        mapped = producer_options(options)
        try:
            self._producer = KafkaProducer(**{**defaults, **mapped, "bootstrap_servers": list(address.servers)})
        except errors.RetriableError as error:
            raise SinkUnavailable(self._line(error)) from error
        except (errors.KafkaError, ValueError, AssertionError, OSError) as error:  # an option's value, a missing file
            raise UnusableSource(f"{address}: {scrubbed(error, options)}; check the [kafka] options") from error
        self._open = threading.BoundedSemaphore(OPEN_MESSAGES)
        self._failure: Exception | None = None

    def __enter__(self) -> "Sender":
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
        except errors.KafkaError as error:
            problem = NO_TOPIC.format(self._patience) if "metadata" in str(error) else error  # nobody leads the topic
            raise SinkUnavailable(self._line(problem)) from error
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
        except errors.KafkaTimeoutError as error:
            raise SinkUnavailable(self._line(error)) from error
        self._check()
