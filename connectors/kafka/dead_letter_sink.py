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
from typing import Any

from kafka import KafkaConsumer, KafkaProducer, TopicPartition, errors

from connectors import DeadLetter, SinkUnavailable, UnusableSource
from connectors.kafka.address import known_to, parse_address, scrubbed
from connectors.kafka.client import Refused, Unavailable
from connectors.kafka.kafka_python_client import KafkaPython

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
        self._options = {key: value for key, value in (options or {}).items() if key != "client"}
        known_to(KafkaProducer.DEFAULT_CONFIG, KafkaConsumer.DEFAULT_CONFIG, self._options)
        self._version, self._patience = version.encode(), patience
        self._position = {int(partition): offset for partition, offset in (position or {}).items()}
        self._there: set[bytes] = set()  # letters found on the topic, by `_key`
        self._waiting: list[DeadLetter] = []
        self._sent: list[tuple[DeadLetter, Any]] = []
        self._bytes = 0
        self._producer: KafkaProducer | None = None
        try:
            self._open()
        except Unavailable:
            pass  # the source may be another cluster, and the first letter may be far away

    def __repr__(self) -> str:
        return f"KafkaDeadLetters({str(self.address)!r})"

    def append(self, letters: list[DeadLetter]) -> None:
        """Take letters; waits for acknowledgements only when many are open. Raises `SinkUnavailable`."""
        self._waiting += letters
        self._bytes += sum(len(letter.value) for letter in letters)
        if len(self._waiting) + len(self._sent) > PENDING or self._bytes > PENDING_BYTES:
            self.flush()

    def flush(self) -> dict[str, int]:
        """Wait until every letter is acknowledged; the topic's end offsets then. Raises `SinkUnavailable`."""
        deadline = time.monotonic() + self._patience
        problem: object = "no answer"
        while self._waiting or self._sent:
            try:
                self._open()
                self._send()
                self._producer.flush(max(0.1, min(1.0, deadline - time.monotonic())))
            except (Unavailable, errors.KafkaTimeoutError) as error:
                problem = error
            problem = self._collect() or problem
            if time.monotonic() > deadline and (self._waiting or self._sent):
                open_letters = len(self._waiting) + len(self._sent)
                raise SinkUnavailable(
                    f"{self.address}: {open_letters} dead letters are not acknowledged after "
                    f"{self._patience:g} s: {scrubbed(problem, self._options)}"
                )
        self._bytes = 0
        return {str(partition): offset for partition, offset in sorted(self._position.items())}

    def close(self) -> None:
        """Within seconds; letters that no `flush` acknowledged may be lost, and no snapshot relies on them."""
        self._drop_producer()

    def _send(self) -> None:
        waiting, self._waiting = self._waiting, []
        for at, letter in enumerate(waiting):
            if _key(letter.partition, letter.offset, letter.event_index, letter.value[:VALUE_BYTES]) in self._there:
                continue
            try:
                future = self._producer.send(
                    self.address.topic, value=letter.value[:VALUE_BYTES], key=letter.key, headers=self._headers(letter)
                )
            except errors.KafkaTimeoutError:
                self._waiting = waiting[at:]
                raise
            self._sent.append((letter, future))

    def _collect(self) -> object:
        """Note acknowledgements; after a failure everything open is decided by reading the topic again."""
        problem = None
        still = []
        for letter, future in self._sent:
            if not future.is_done:
                still.append((letter, future))
            elif future.succeeded():
                metadata = future.value
                self._position[metadata.partition] = max(self._position.get(metadata.partition, 0), metadata.offset + 1)
            else:
                problem = future.exception
                still.append((letter, future))
        self._sent = still
        if problem is not None:
            if isinstance(problem, errors.AuthorizationError | errors.MessageSizeTooLargeError):
                raise UnusableSource(
                    f"{self.address}: {scrubbed(problem, self._options)}; the topic must take "
                    f"messages of {VALUE_BYTES} bytes from this user"
                )
            self._drop_producer()
            self._waiting = [letter for letter, _ in self._sent] + self._waiting
            self._sent = []
        return problem

    def _drop_producer(self) -> None:
        producer, self._producer = self._producer, None
        if producer is not None:
            producer.close(timeout=1)

    # ---- opening: what is on the topic already, then a producer

    def _open(self) -> None:
        """Raises `Unavailable`, `UnusableSource`."""
        if self._producer is not None:
            return
        options = known_to(KafkaConsumer.DEFAULT_CONFIG, KafkaProducer.DEFAULT_CONFIG, self._options)
        reader = KafkaPython(self.address, {**options, "group_id": None}, None)
        try:
            reader.connect()
            self._read_what_is_there(reader)
            options = known_to(KafkaProducer.DEFAULT_CONFIG, KafkaConsumer.DEFAULT_CONFIG, self._options)
            self._producer = KafkaProducer(**{**PRODUCER, **options, "bootstrap_servers": list(self.address.servers)})
        except Refused as refused:
            line = f"{self.address}: {scrubbed(refused, self._options)}; check the [kafka] options"
            raise UnusableSource(line) from None
        except errors.KafkaTimeoutError as error:
            raise Unavailable(error) from error
        finally:
            reader.close()

    def _read_what_is_there(self, reader: KafkaPython) -> None:
        partitions = reader.look_for_topic()
        if not partitions:
            raise UnusableSource(f"{self.address}: the dead-letter topic does not exist; create it, or check its name")
        ends = {}
        for partition, (first, end) in reader.ranges(partitions).items():
            start = self._position.get(partition, 0)
            start = first if start > end else max(start, first)  # behind the end: the topic was made anew
            self._position[partition] = start
            if start < end:
                ends[partition] = end
        reader.assign({partition: self._position[partition] for partition in ends})
        deadline = time.monotonic() + self._patience
        while ends:
            found = self._poll(reader)
            for place, records in found.items():
                self._there.update(filter(None, (_key_of(record) for record in records)))
            for partition in list(ends):
                at = reader.consumer.position(TopicPartition(self.address.topic, partition), timeout_ms=0)
                if at is not None and at >= ends[partition]:
                    self._position[partition] = ends.pop(partition)
            if found:
                deadline = time.monotonic() + self._patience
            elif time.monotonic() > deadline:
                raise Unavailable(f"reading what is on it stopped at partitions {sorted(ends)}")

    @staticmethod
    def _poll(reader: KafkaPython) -> dict:
        try:
            return reader.consumer.poll(timeout_ms=500, max_records=5000)
        except errors.KafkaError as error:
            raise Unavailable(error) from error

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
    """The key of a letter that was found; None for a message that is none of ours."""
    headers = {
        name[len(PREFIX) :]: field.decode(errors="replace") for name, field in record.headers if name.startswith(PREFIX)
    }
    try:
        partition = f"{headers['topic']}/{headers['partition']}" if "topic" in headers else headers["partition"]
        return _key(partition, int(headers["offset"]), int(headers["index"]), record.value or b"")
    except (KeyError, ValueError):
        return None
