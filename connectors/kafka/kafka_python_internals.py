"""Everything of kafka-python that is used here and that the library does not promise to keep.

Its public face (`from kafka import ...`, `kafka.errors`) may be imported anywhere in this folder; the modules below it,
private attributes and the names of its options only here. pyproject.toml has a ceiling for the version, and
tests/kafka/test_kafka_python_internals.py fails when one of these moves: read that library's changes, then raise it.
"""

import gc
from collections.abc import Mapping
from contextlib import suppress
from functools import partial
from typing import Any
from uuid import UUID

from kafka import KafkaConsumer, KafkaProducer, OffsetAndMetadata, errors
from kafka.net.compat import KafkaNetClient
from kafka.net.manager import KafkaConnectionManager
from kafka.net.selector import NetworkSelector

from connectors.kafka.address import known_to

COLLECT_AFTER = 50
HANG_UPS = 3
FATAL = (
    errors.AuthorizationError,
    errors.SaslAuthenticationFailedError,
    errors.UnsupportedSaslMechanismError,
    errors.IllegalSaslStateError,
    errors.KafkaConfigurationError,
    errors.IncompatibleBrokerVersion,
    errors.InvalidTopicError,
)


def consumer_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """Those options of the [kafka] section that a consumer takes. Raises `UnusableSource` for one that nobody takes."""
    return known_to(KafkaConsumer.DEFAULT_CONFIG, KafkaProducer.DEFAULT_CONFIG, options)


def producer_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """Those options of the [kafka] section that a producer takes. Raises `UnusableSource` for one that nobody takes."""
    return known_to(KafkaProducer.DEFAULT_CONFIG, KafkaConsumer.DEFAULT_CONFIG, options)


def commit_of(offset: int) -> OffsetAndMetadata:
    """What `commit_async` takes for an offset: without a note, and without the leader's epoch."""
    return OffsetAndMetadata(offset, "", -1)


class _Manager(KafkaConnectionManager):
    """Remembers why connections were refused: the library only tries again until its time is over.

    A broker that refuses credentials answers and hangs up, and the library mostly notices only the latter; so a hang-up
    after the first questions were answered, `HANG_UPS` times and never otherwise, is taken for the refusal it is.
    Sockets of failed attempts are left to the garbage collector by the library, and an idle process hardly collects:
    an outage of hours would use up the descriptors. So it is called every `COLLECT_AFTER` failures.
    """

    refused: Exception | None = None
    failures = hang_ups = 0

    def get_connection(self, *args: Any, **more: Any) -> Any:
        """The library's, watched: how a new connection ends is remembered."""
        before = set(self._conns.values())
        connection = super().get_connection(*args, **more)
        if connection not in before:
            connection.init_future.add_callback(self._succeeded)
            connection.init_future.add_errback(partial(self._failed, connection))
        return connection

    def _succeeded(self, _: Any) -> None:
        self.refused, self.hang_ups = None, 0

    def _failed(self, connection: Any, error: Exception) -> None:
        self.failures += 1
        if self.failures % COLLECT_AFTER == 0:
            gc.collect()
        if isinstance(error, FATAL) or "certificate" in str(error).lower():
            self.refused = error
        elif connection.sasl_enabled and connection.broker_version_data is not None and "disconnected" in str(error):
            self.hang_ups += 1
            if self.hang_ups >= HANG_UPS and self.refused is None:
                self.refused = errors.SaslAuthenticationFailedError("the broker hangs up during authentication")


class Network:
    """The network thread and the connections of one consumer, within reach before its constructor returns.

    The consumer gets it as its option `kafka_client` and calls it to have its network made. It is kept because a
    constructor that raises leaves the thread behind, and because it knows connections and metadata.
    """

    def __init__(self) -> None:
        self._made: list[tuple[KafkaNetClient, _Manager]] = []  # one, once the consumer has asked for it

    def __call__(self, **config: Any) -> KafkaNetClient:
        loop = NetworkSelector(**config)
        manager = _Manager(loop, **config)
        client = KafkaNetClient(net=loop, manager=manager, **config)
        self._made.append((client, manager))
        return client

    def refused(self) -> Exception | None:
        """Why the broker refuses this client for good; None while it does not."""
        return next((manager.refused for _, manager in self._made if manager.refused is not None), None)

    def topic_id(self, topic: str) -> UUID | None:
        """The topic's id where the broker gives one."""
        return next((client.cluster.topic_id(topic) for client, _ in self._made), None)

    def partitions(self, topic: str) -> frozenset[int]:
        """The topic's partitions in the metadata at hand."""
        return frozenset(
            number for client, _ in self._made for number in client.cluster.partitions_for_topic(topic) or ()
        )

    def connected(self) -> bool:
        """Whether any broker is."""
        return any(client.connected(broker.node_id) for client, _ in self._made for broker in client.cluster.brokers())

    def close(self) -> None:
        """End the thread; what waits for an answer fails.

        A thread that is just being started cannot be ended by the library: it ends by itself when its time to find a
        broker is over.
        """
        for client, _ in self._made:
            with suppress(RuntimeError):
                client.close()
