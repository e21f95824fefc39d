"""Everything of kafka-python that is used here and that the library does not promise to keep.

Its public face (`from kafka import ...`, `kafka.errors`) may be imported anywhere in this folder; the modules below it,
private attributes and the names of its options only here. pyproject.toml has a ceiling for the version: read that
library's changes and run tests/kafka on a real broker, then raise it.
"""

import gc
import secrets
import zlib
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from typing import Any
from uuid import UUID

from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, OffsetAndMetadata, codec, errors
from kafka.admin import ConfigResource, ConfigResourceType
from kafka.net.compat import KafkaNetClient
from kafka.net.manager import KafkaConnectionManager
from kafka.net.selector import NetworkSelector
from kafka.record import default_records
from kafka.record.default_records import DefaultRecordBatch

from connectors.kafka.client import known_to

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


def topic_setting(servers: list[str], topic: str, options: Mapping[str, Any], key: str) -> str:
    """A setting of a topic, by its name at the broker."""
    admin_options = {name: value for name, value in options.items() if name in KafkaAdminClient.DEFAULT_CONFIG}
    admin = KafkaAdminClient(**admin_options, bootstrap_servers=servers)
    try:
        resource = ConfigResource(ConfigResourceType.TOPIC, topic)
        (settings,) = next(iter(admin.describe_configs([resource], config_filter="all").values())).values()
        return str(settings[key]["value"])
    finally:
        admin.close()


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
        self._clients: list[tuple[KafkaNetClient, _Manager]] = []  # one, once the consumer has asked for it

    def __call__(self, **config: Any) -> KafkaNetClient:
        loop = NetworkSelector(**config)
        manager = _Manager(loop, **config)
        client = KafkaNetClient(net=loop, manager=manager, **config)
        self._clients.append((client, manager))
        return client

    def refused(self) -> Exception | None:
        """Why the broker refuses this client for good; None while it does not."""
        return next((manager.refused for _, manager in self._clients if manager.refused is not None), None)

    def topic_id(self, topic: str) -> UUID | None:
        """The topic's id where the broker gives one."""
        return next((client.cluster.topic_id(topic) for client, _ in self._clients), None)

    def partitions(self, topic: str) -> frozenset[int]:
        """The topic's partitions in the metadata at hand."""
        return frozenset(
            number for client, _ in self._clients for number in client.cluster.partitions_for_topic(topic) or ()
        )

    def connected(self) -> bool:
        """Whether any broker is."""
        return any(
            client.connected(broker.node_id) for client, _ in self._clients for broker in client.cluster.brokers()
        )

    def close(self) -> None:
        """End the thread; what waits for an answer fails.

        A thread that is just being started cannot be ended by the library: it ends by itself when its time to find a
        broker is over.
        """
        for client, _ in self._clients:
            with suppress(RuntimeError):
                client.close()


# ---- batches that hold more than they may

_MARK = secrets.token_bytes(16)  # begins the value of the one message that stands for such a batch; nobody can send it


class _TooLarge(Exception):
    """A batch holds more than it may."""


class LargeBatches:
    """Which batches were not unpacked because they hold more than `most` bytes; by the value of the message that stands
    for each. One for a process: the library unpacks by functions of its modules, which this takes the place of."""

    def __init__(self) -> None:
        self.most = 0
        self.met: dict[bytes, str] = {}  # value -> what is wrong with it

    def bound(self, most: int) -> None:
        """From now on no batch is unpacked that holds more than `most` bytes (snappy makes 21 of one at most)."""
        if not self.most:
            self._unpack = DefaultRecordBatch._maybe_uncompress
            default_records.gzip_decode = lambda data: _unpacked(bytes(data), _gzip, self.most)
            default_records.zstd_decode = lambda data: _zstd(data, self.most)
            default_records.lz4_decode = lambda data: _unpacked(data, _lz4, self.most)
            DefaultRecordBatch._maybe_uncompress = lambda batch: self.unpack(batch)
        self.most = most

    def unpack(self, batch: Any) -> None:
        """Unpack a batch, or make it one message at its last offset, whose value is the batch as it came."""
        try:
            self._unpack(batch)
        except _TooLarge:
            first, last, packed = batch.base_offset, batch.last_offset_delta, bytes(batch._buffer[batch._pos :])
            value = _MARK + first.to_bytes(8, "big") + packed
            self.met[value] = (
                f"a compressed batch of {batch.records_count:,} messages, offsets {first} to {first + last}, of "
                f"{len(packed):,} bytes holds more than {self.most:,} (input.max_message_bytes); none of them was read"
            )
            body = b"\0" + _varint(0) + _varint(last) + _varint(-1) + _varint(len(value)) + value + _varint(0)
            batch._buffer, batch._pos = bytearray(_varint(len(body)) + body), 0
            batch._num_records, batch._decompressed = 1, True

    def problem(self, value: bytes | None) -> tuple[bytes, str]:
        """A value as it is to be delivered, and what is wrong with it; "" with nearly all of them."""
        why = self.met.pop(value, "") if value and value.startswith(_MARK) else ""
        return (value[len(_MARK) + 8 :], why) if why and value else (value or b"", "")


LARGE_BATCHES = LargeBatches()


def _unpacked(data: bytes, open_decoder: Callable[[], Any], most: int) -> bytes:
    """One gzip member or lz4 frame after the other. Raises `_TooLarge`."""
    pieces, size = [], 0
    while data:
        decoder = open_decoder()
        pieces.append(decoder.decompress(data, most + 1 - size))
        size += len(pieces[-1])
        if size > most:
            raise _TooLarge
        if not decoder.eof:
            raise errors.CorruptRecordError("compressed data that are cut short")
        data = decoder.unused_data
    return pieces[0] if len(pieces) == 1 else b"".join(pieces)


def _gzip() -> Any:
    return zlib.decompressobj(wbits=31)


def _lz4() -> Any:
    return codec.lz4.LZ4FrameDecompressor()  # the package lz4, where it is installed


def _zstd(data: bytes, most: int) -> bytes:
    import zstandard

    with zstandard.ZstdDecompressor().stream_reader(data, read_across_frames=True) as reader:
        unpacked = reader.read(most + 1)
    if len(unpacked) > most:
        raise _TooLarge
    return unpacked


def _varint(number: int) -> bytes:
    """A signed number as Kafka's records have them: zigzag, seven bits a byte.

    >>> _varint(0), _varint(-1), _varint(150)
    (b'\\x00', b'\\x01', b'\\xac\\x02')
    """
    unencoded = number << 1 if number >= 0 else ((-number) << 1) - 1
    digits = bytearray()
    while unencoded > 127:
        digits.append(unencoded & 127 | 128)
        unencoded >>= 7
    digits.append(unencoded)
    return bytes(digits)
