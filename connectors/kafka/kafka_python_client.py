"""The Kafka source's client on kafka-python (>= 3.0.9; 3.0.7 and 3.0.8 could stop returning records silently)."""

import gc
import zlib
from collections.abc import Collection, Mapping
from functools import partial
from typing import Any

from kafka import KafkaConsumer, TopicPartition, errors
from kafka.net.compat import KafkaNetClient
from kafka.net.manager import KafkaConnectionManager
from kafka.net.selector import NetworkSelector
from kafka.structs import OffsetAndMetadata

from connectors import Record
from connectors.kafka.address import Address, partition_name
from connectors.kafka.client import OffsetsLost, Progress, Range, Refused, Trouble, Unavailable, close_within, sniff

DEFAULTS: dict[str, Any] = {
    "enable_auto_commit": False,  # positions live in the snapshot
    "auto_offset_reset": "none",  # never a silent jump
    "isolation_level": "read_committed",
    "allow_auto_create_topics": False,  # a misspelt topic is an error, not a new topic
    "metadata_max_age_ms": 30_000,  # how soon added partitions are seen
    "reconnect_backoff_max_ms": 5_000,
    "bootstrap_timeout_ms": 5_000,
}
ANSWER_MS = 10_000  # how long a question of `ranges` may take
COLLECT_AFTER = 50
HANG_UPS = 3
_FATAL = (
    errors.AuthorizationError,
    errors.SaslAuthenticationFailedError,
    errors.UnsupportedSaslMechanismError,
    errors.IllegalSaslStateError,
    errors.KafkaConfigurationError,
    errors.IncompatibleBrokerVersion,
    errors.InvalidTopicError,
)


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
        known = set(self._conns.values())
        connection = super().get_connection(*args, **more)
        if connection not in known:
            connection.init_future.add_callback(self._succeeded)
            connection.init_future.add_errback(partial(self._failed, connection))
        return connection

    def _succeeded(self, _: Any) -> None:
        self.refused, self.hang_ups = None, 0

    def _failed(self, connection: Any, error: Exception) -> None:
        self.failures += 1
        if self.failures % COLLECT_AFTER == 0:
            gc.collect()
        if isinstance(error, _FATAL) or "certificate" in str(error).lower():
            self.refused = error
        elif connection.sasl_enabled and connection.broker_version_data is not None and "disconnected" in str(error):
            self.hang_ups += 1
            if self.hang_ups >= HANG_UPS and self.refused is None:
                self.refused = errors.SaslAuthenticationFailedError("the broker hangs up during authentication")


class KafkaPython:
    """One KafkaConsumer with its partitions assigned by hand. See `kafka_client.Client`."""

    def __init__(self, address: Address, options: Mapping[str, Any], format: str | None):
        self.address, self.format = address, format
        self.options = {**DEFAULTS, **options, "bootstrap_servers": list(address.servers), "kafka_client": self._net}
        self.net: KafkaNetClient | None = None
        self.consumer: KafkaConsumer | None = None
        self.assigned: dict[int, TopicPartition] = {}
        self.names: dict[int, str] = {}
        self.mark = 0

    def _net(self, **config: Any) -> KafkaNetClient:
        # Kept because a constructor that raises leaves its network thread behind, and to see connections and metadata.
        loop = NetworkSelector(**config)
        self.manager = _Manager(loop, **config)
        self.net = KafkaNetClient(net=loop, manager=self.manager, **config)
        return self.net

    def connect(self) -> None:
        """Reach a broker and learn about the topic; see `Client`."""
        try:
            self.consumer = KafkaConsumer(**self.options)
        except (errors.KafkaTimeoutError, errors.KafkaConnectionError) as error:
            if self.manager.refused is not None:
                raise Refused(self.manager.refused) from error
            raise Unavailable(error) from error
        except _FATAL as error:
            raise Refused(error) from error
        except (ValueError, TypeError, AssertionError, ImportError, OSError) as error:  # an option, a missing file
            raise Refused(f"{type(error).__name__}: {error}") from error

    def topic_mark(self) -> int:
        topic_id = self.net.cluster.topic_id(self.address.topic)
        return zlib.crc32(topic_id.bytes) if topic_id is not None and topic_id.int else 0

    def partitions(self) -> frozenset[int]:
        """Those that the topic has now."""
        return frozenset(self.net.cluster.partitions_for_topic(self.address.topic) or ())

    def look_for_topic(self) -> frozenset[int]:
        return frozenset(self._ask(self.consumer.partitions_for_topic, self.address.topic))

    def ranges(self, partitions: Collection[int]) -> dict[int, Range]:
        """The first and the next offset of each partition."""
        topic_partitions = [TopicPartition(self.address.topic, partition) for partition in partitions]
        first = self._ask(self.consumer.beginning_offsets, topic_partitions, ANSWER_MS)
        end = self._ask(self.consumer.end_offsets, topic_partitions, ANSWER_MS)
        return {each.partition: Range(first[each], end[each]) for each in topic_partitions}

    def _ask(self, question, *args):
        try:
            return question(*args)
        except _FATAL as error:
            raise Refused(error) from error
        except errors.KafkaError as error:
            raise Unavailable(error) from error

    def assign(self, offsets: Mapping[int, int]) -> None:
        """Read these partitions from these offsets on."""
        self.mark = self.topic_mark()
        for partition in offsets:
            self.assigned[partition] = TopicPartition(self.address.topic, partition)
            self.names[partition] = partition_name(self.address.topic, partition)
        if set(self.assigned.values()) != self.consumer.assignment():
            self.consumer.assign(list(self.assigned.values()))  # keeps the positions of those assigned before
        for partition, offset in offsets.items():
            self.consumer.seek(self.assigned[partition], offset)

    def poll(self, timeout: float, limit: int) -> dict[int, list[Record]]:
        """Records by partition that came within `timeout` seconds, at most `limit`."""
        try:
            polled = self.consumer.poll(timeout_ms=int(timeout * 1000), max_records=limit)
        except errors.OffsetOutOfRangeError as error:
            raise OffsetsLost({each.partition for each in error.args[0]}) from error
        except errors.LogTruncationError as error:
            cut = {each.partition: -1 if at is None else at.offset for each, at in error.divergent_offsets.items()}
            raise OffsetsLost(cut, cut) from error
        except _FATAL as error:
            raise Refused(error) from error
        except Exception as error:  # also what a crash of its network thread left: only a fresh client can go on
            raise Trouble(f"{type(error).__name__}: {error}") from error
        return {each.partition: self._records(each.partition, found) for each, found in polled.items()}

    def _records(self, partition: int, found: list) -> list[Record]:
        name, mark, format = self.names[partition], self.mark, self.format
        return [
            Record(
                each.value or b"",
                name,
                each.offset,
                each.offset + 1,
                mark,
                format or sniff(each.value),
                "message",
                b"",
                each.key,
                each.timestamp / 1000 if each.timestamp >= 0 else None,
            )
            for each in found
        ]

    def progress(self) -> dict[int, Progress]:
        """How far each partition is, and how far it reaches."""
        found = {}
        for partition, topic_partition in self.assigned.items():
            at, end = self.consumer.position(topic_partition, timeout_ms=0), self.consumer.highwater(topic_partition)
            if at is not None and end is not None:
                found[partition] = Progress(at, end)
        return found

    def connected(self) -> bool:
        """Whether any broker is."""
        return any(self.net.connected(broker.node_id) for broker in self.net.cluster.brokers())

    def commit(self, offsets: Mapping[int, int]) -> None:
        """Tell the group, for lag tools alone; nothing is read back."""
        if self.options.get("group_id") is not None:
            self.consumer.commit_async(
                {self.assigned[partition]: OffsetAndMetadata(offset, "", -1) for partition, offset in offsets.items()}
            )

    def interrupt(self) -> None:
        """From another thread: what waits for an answer fails."""
        if self.net is not None:
            self.net.close()  # fails what waits for an answer

    def close(self) -> None:
        """Within seconds, whatever state the broker is in."""
        if self.consumer is not None:
            close_within(partial(self.consumer.close, autocommit=False, timeout_ms=1000))
        elif self.net is not None:
            close_within(self.net.close)
