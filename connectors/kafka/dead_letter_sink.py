"""Dead letters on a topic: the event's bytes and key, with where it stood and why it was refused in headers.

`flush` returns when all in-sync replicas have acknowledged every letter. Invariant: a letter is on the topic once, even
when its record is read again after a crash: opening reads the topic from the position that the snapshot holds (the
dead-letter topic's own end offsets then; without one, from its beginning) and passes over letters that are there
already, by source partition, offset, index and content. While it runs, the idempotent producer's retries add none.

Headers, all text: `__triplets.errors.topic` (only if the source is a topic), `.partition`, `.offset`, `.index`,
`.reason`, `.message`, `.engine.version`, and `.value.length` when the value had to be cut to `VALUE_BYTES`.
One engine's letters may share a topic with another's; two processes on one state directory may not.
"""

import hashlib
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Any

from kafka import KafkaProducer, errors

from connectors import DeadLetter, SinkUnavailable, UnusableSource
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

PREFIX = "__triplets.errors."
VALUE_BYTES = 900_000  # a broker takes messages of 1 MiB unless told otherwise; the rest is for headers and key
PENDING = 5_000  # letters that may wait for their acknowledgement before `append` waits too
PENDING_BYTES = 16 << 20
PRODUCER: dict[str, Any] = {
    "acks": "all",
    "enable_idempotence": True,
    "allow_auto_create_topics": False,
    "delivery_timeout_ms": 2**31 - 1,  # `flush` gives up, the producer never: its own retries cannot repeat a letter
    "reconnect_backoff_max_ms": 5_000,
    "bootstrap_timeout_ms": 5_000,
    "max_block_ms": 2_000,
    "linger_ms": 5,
}


class KafkaDeadLetters:
    """A `Sink`. `position` is what `flush` returned for the snapshot that is resumed, None at the first start.

    `options` are those of the source; letters always go through kafka-python. `append` and `flush` wait up to
    `patience` seconds for the broker and then raise `SinkUnavailable`; letters stay in memory (at most `PENDING`, and
    what one `append` brings).
    A missing topic is an `UnusableSource`, at once if a broker answers.
    """

    def __init__(
        self,
        rest: str,
        position: Mapping[str, int] | None = None,
        *,
        options: Mapping[str, Any] | None = None,
        version: str = "",
        patience: float = 5.0,
    ):
        self.address = parse_address(rest)
        self._options = kafka_python_options(options or {})
        producer_options(self._options)
        self._version, self._patience = version.encode(), patience
        self._position = {int(partition): offset for partition, offset in (position or {}).items()}
        self._on_topic: set[bytes] = set()  # dead letters that the topic holds already, by `_key`
        self._unsent: list[DeadLetter] = []
        self._unacknowledged: list[tuple[DeadLetter, Any]] = []
        self._bytes = 0
        self._producer: KafkaProducer | None = None  # once the topic was read, until a failure
        with suppress(BrokerUnavailable):  # the source may be another cluster, and the first letter may be years away
            self._ready_producer()

    def __repr__(self) -> str:
        return f"KafkaDeadLetters({str(self.address)!r})"

    def append(self, letters: list[DeadLetter]) -> None:
        """Take letters; waits for acknowledgements only when many are open. Raises `SinkUnavailable`."""
        self._unsent += letters
        self._bytes += sum(len(letter.value) for letter in letters)
        if len(self._unsent) + len(self._unacknowledged) > PENDING or self._bytes > PENDING_BYTES:
            self.flush()

    def flush(self) -> dict[str, int]:
        """Wait until every letter is acknowledged; the topic's end offsets then. Raises `SinkUnavailable`."""
        deadline = time.monotonic() + self._patience
        problem: object = "no answer"
        while self._unsent or self._unacknowledged:
            try:
                producer = self._ready_producer()
                self._send(producer)
                producer.flush(max(0.1, min(1.0, deadline - time.monotonic())))
            except (BrokerUnavailable, errors.KafkaTimeoutError) as error:
                problem = error
            problem = self._collect() or problem
            if time.monotonic() > deadline and (self._unsent or self._unacknowledged):
                count = len(self._unsent) + len(self._unacknowledged)
                raise SinkUnavailable(
                    f"{self.address}: {count} dead letters are not acknowledged after "
                    f"{self._patience:g} s: {scrubbed(problem, self._options)}"
                )
        self._bytes = 0
        return {str(partition): offset for partition, offset in sorted(self._position.items())}

    def close(self) -> None:
        """Within seconds; letters that no `flush` acknowledged may be lost, and no snapshot relies on them."""
        self._drop_producer()

    def _send(self, producer: KafkaProducer) -> None:
        letters, self._unsent = self._unsent, []
        for number, letter in enumerate(letters):
            if _key(letter.partition, letter.offset, letter.event_index, letter.value[:VALUE_BYTES]) in self._on_topic:
                continue
            try:
                future = producer.send(
                    self.address.topic, value=letter.value[:VALUE_BYTES], key=letter.key, headers=self._headers(letter)
                )
            except errors.KafkaTimeoutError:
                self._unsent = letters[number:]
                raise
            self._unacknowledged.append((letter, future))

    def _collect(self) -> object:
        """Note acknowledgements; after a failure everything open is decided by reading the topic again."""
        problem = None
        still = []
        for letter, future in self._unacknowledged:
            if not future.is_done:
                still.append((letter, future))
            elif future.succeeded():
                metadata = future.value
                self._position[metadata.partition] = max(self._position.get(metadata.partition, 0), metadata.offset + 1)
            else:
                problem = future.exception
                still.append((letter, future))
        self._unacknowledged = still
        if problem is not None:
            if isinstance(problem, errors.AuthorizationError | errors.MessageSizeTooLargeError):
                raise UnusableSource(
                    f"{self.address}: {scrubbed(problem, self._options)}; the topic must take "
                    f"messages of {VALUE_BYTES} bytes from this user"
                )
            self._drop_producer()
            self._unsent = [letter for letter, _ in self._unacknowledged] + self._unsent
            self._unacknowledged = []
        return problem

    def _drop_producer(self) -> None:
        producer, self._producer = self._producer, None
        if producer is not None:
            producer.close(timeout=1)

    # ---- opening: what is on the topic already, then a producer

    def _ready_producer(self) -> KafkaProducer:
        """The producer; a fresh one only once it is known what the topic holds. Raises `BrokerUnavailable`,
        `UnusableSource`."""
        if self._producer is not None:
            return self._producer
        try:
            reader = KafkaPython(self.address, {**consumer_options(self._options), "group_id": None}, None)
            reader.open()
            try:
                self._read_topic(reader)
                servers = list(self.address.servers)
                options = {**PRODUCER, **producer_options(self._options), "bootstrap_servers": servers}
                self._producer = KafkaProducer(**options)
            finally:
                reader.close()
        except Refused as refused:
            line = f"{self.address}: {scrubbed(refused, self._options)}; check the [kafka] options"
            raise UnusableSource(line) from None
        except errors.KafkaTimeoutError as error:
            raise BrokerUnavailable(error) from error
        return self._producer

    def _read_topic(self, reader: KafkaPython) -> None:
        """Note which dead letters are on the topic already, from the position on, and where it ends."""
        partitions = reader.look_for_topic()
        if not partitions:
            raise UnusableSource(f"{self.address}: the dead-letter topic does not exist; create it, or check its name")
        ranges = reader.ranges(partitions)
        for partition, (first, end) in ranges.items():
            start = self._position.get(partition, 0)  # behind the end: the topic was made anew
            self._position[partition] = first if start > end else max(start, first)
        ends = {partition: end for partition, (_, end) in ranges.items()}
        try:
            for message in reader.messages_to(ends, self._position, self._patience):
                if key := _key_of(message):
                    self._on_topic.add(key)
        except (OffsetsLost, ClientFailed) as error:
            raise BrokerUnavailable(error) from error
        self._position |= ends

    def _headers(self, letter: DeadLetter) -> list[tuple[str, bytes]]:
        topic, slash, number = letter.partition.rpartition("/")
        from_topic = slash and number.isdecimal() and "/" not in topic
        fields: Iterable[tuple[str, object]] = [
            *([("topic", topic)] if from_topic else []),
            ("partition", number if from_topic else letter.partition),
            ("offset", letter.offset),
            ("index", letter.event_index),
            ("reason", letter.reason),
            ("message", letter.message),
            *([("value.length", len(letter.value))] if len(letter.value) > VALUE_BYTES else []),
        ]
        headers = [(PREFIX + name, str(field).encode()) for name, field in fields]
        return [*headers, (PREFIX + "engine.version", self._version)]


def _key(partition: str, offset: int, index: int, value: bytes) -> bytes:
    """What makes a letter the same letter. The content is in it: a source made anew reuses its offsets."""
    return hashlib.blake2b(f"{partition}\0{offset}\0{index}\0".encode() + value, digest_size=16).digest()


def _key_of(record: Any) -> bytes | None:
    """The key of a dead letter on the topic; None for a message that is none of ours."""
    headers = {
        name[len(PREFIX) :]: field.decode(errors="replace") for name, field in record.headers if name.startswith(PREFIX)
    }
    try:
        partition = f"{headers['topic']}/{headers['partition']}" if "topic" in headers else headers["partition"]
        return _key(partition, int(headers["offset"]), int(headers["index"]), record.value or b"")
    except (KeyError, ValueError):
        return None
