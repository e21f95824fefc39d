"""Messages to a Kafka topic, at most so many items a second.

What a message holds is the caller's affair: `send` gets bytes. Invariant: messages keep their order within each
partition of the topic, and what is counted is acknowledged by all in-sync replicas; the idempotent producer's retries
repeat none.
"""

import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from connectors import UnusableSource
from connectors.kafka.client import parse_address


class Message(NamedTuple):
    """The value of a message, and how many items are in it."""

    value: bytes
    items: int = 1


class SendReport(NamedTuple):
    """What was acknowledged."""

    items: int
    messages: int
    bytes: int
    seconds: float


def send(
    messages: Iterable[Message],
    uri: str,
    *,
    options: Mapping[str, Any] | None = None,
    rate: float | None = None,
    progress: Callable[[int], object] | None = None,
    patience: float = 60.0,
) -> SendReport:
    """Send messages to `uri`, "kafka://host:port/topic".

    `rate` limits items per second. `progress(n)` hears of n items more. `options` are those of the [kafka] section.
    Raises `UnusableSource`, what `messages` raises, and `SinkUnavailable` when nothing is acknowledged for `patience`
    seconds.
    """
    from connectors.kafka.sender import Sender  # it loads the client

    address = parse_address(uri.removeprefix("kafka://"))
    if rate is not None and rate <= 0:
        raise UnusableSource(f"produce: got rate {rate}, expected more than 0")
    began = time.monotonic()
    items = size = count = 0
    with Sender(address, dict(options or {}), patience) as sender:
        for message in messages:
            if rate is not None:
                time.sleep(max(0.0, began + items / rate - time.monotonic()))
            sender.send(message.value)
            items, size, count = items + message.items, size + len(message.value), count + 1
            if progress is not None:
                progress(message.items)
        sender.flush()
    return SendReport(items, count, size, time.monotonic() - began)
