"""The Kafka source's client on kafka-python (>= 3.0.9; 3.0.7 and 3.0.8 could stop returning records silently).

It is opened by a thread (`open`, `look_for_topic`, `ranges`, `offsets_at`, `assign` may wait for the network) and then
used by the thread that polls. Offsets are per partition number.
"""

import time
import zlib
from collections.abc import Callable, Collection, Iterator, Mapping
from functools import partial
from typing import Any, TypeVar

from kafka import KafkaConsumer, TopicPartition, errors

from connectors import Record
from connectors.kafka.client import (
    Address,
    BrokerUnavailable,
    ClientFailed,
    OffsetsLost,
    Progress,
    Range,
    Refused,
    close_within,
    new_record,
    partition_name,
    sniff,
)
from connectors.kafka.kafka_python_internals import FATAL, LARGE_BATCHES, Network, commit_of, consumer_options

DEFAULTS: dict[str, Any] = {
    "enable_auto_commit": False,  # positions live in the snapshot
    "auto_offset_reset": "none",  # never a silent jump
    "isolation_level": "read_committed",
    "allow_auto_create_topics": False,  # a misspelt topic is an error, not a new topic
    "metadata_max_age_ms": 30_000,  # how soon added partitions are seen
    "reconnect_backoff_max_ms": 5_000,
    "bootstrap_timeout_ms": 5_000,
}
MAX_BATCH_BYTES = 64 << 20  # that a compressed batch may hold, unless told otherwise
ANSWER_MS = 10_000  # how long a question of `ranges` may take
Answer = TypeVar("Answer")


class KafkaPython:
    """One KafkaConsumer with its partitions assigned by hand, made from an `Address`, options and a format."""

    consumer: KafkaConsumer  # once it is open
    check = staticmethod(consumer_options)

    def __init__(self, address: Address, options: Mapping[str, Any], format: str | None):
        self._address, self._format, self._network = address, format, Network()
        servers = list(address.servers)
        options = dict(options)
        LARGE_BATCHES.bound(options.pop("max_batch_bytes", MAX_BATCH_BYTES))
        self._options = {
            **DEFAULTS,
            **consumer_options(options),
            "bootstrap_servers": servers,
            "kafka_client": self._network,
        }
        self._has_group = self._options.get("group_id") is not None
        self._assigned: dict[int, TopicPartition] = {}
        self._names: dict[int, str] = {}
        self._mark = 0

    def open(self) -> None:
        """Reach a broker and learn about the topic. Raises `BrokerUnavailable`, `Refused`: nothing is open then."""
        try:
            self.consumer = self._consumer()
        except BaseException:
            close_within(self._network.close)
            raise

    def _consumer(self) -> KafkaConsumer:
        try:
            return KafkaConsumer(**self._options)
        except (errors.KafkaTimeoutError, errors.KafkaConnectionError) as error:
            if (refused := self._network.refused()) is not None:
                raise Refused(refused) from error
            raise BrokerUnavailable(error) from error
        except FATAL as error:
            raise Refused(error) from error
        except (ValueError, TypeError, AssertionError, ImportError, OSError) as error:  # an option, a missing file
            raise Refused(f"{type(error).__name__}: {error}") from error

    def topic_mark(self) -> int:
        """A check value of the topic's id, 0 where the broker has none; a topic made anew has another."""
        topic_id = self._network.topic_id(self._address.topic)
        return zlib.crc32(topic_id.bytes) if topic_id is not None and topic_id.int else 0

    def partitions(self) -> frozenset[int]:
        """Those that the topic has, as last heard of; none where it is unknown."""
        return self._network.partitions(self._address.topic)

    def look_for_topic(self) -> frozenset[int]:
        """The partitions of the topic, asked of the broker now; none where it does not exist. Raises as `open`."""
        return frozenset(_ask(lambda: self.consumer.partitions_for_topic(self._address.topic)))

    def ranges(self, partitions: Collection[int]) -> dict[int, Range]:
        """The first and the next offset of each partition. Raises as `open`."""
        places = [TopicPartition(self._address.topic, partition) for partition in partitions]
        first = _ask(lambda: self.consumer.beginning_offsets(places, ANSWER_MS))
        end = _ask(lambda: self.consumer.end_offsets(places, ANSWER_MS))
        return {place.partition: Range(first[place], end[place]) for place in places}

    def offsets_at(self, times: Mapping[int, int]) -> dict[int, int]:
        """The first offset of each partition with a message of that time (milliseconds since 1970) or later; nothing
        for a partition without one. Raises as `open`."""
        places = {TopicPartition(self._address.topic, partition): moment for partition, moment in times.items()}
        offsets = _ask(lambda: self.consumer.offsets_for_times(places, ANSWER_MS)) if places else {}
        return {place.partition: at.offset for place, at in offsets.items() if at is not None}

    def assign(self, offsets: Mapping[int, int]) -> None:
        """Read these partitions from these offsets on, besides those assigned before."""
        self._mark = self.topic_mark()
        for partition in offsets:
            self._assigned[partition] = TopicPartition(self._address.topic, partition)
            self._names[partition] = partition_name(self._address.topic, partition)
        if set(self._assigned.values()) != self.consumer.assignment():
            self.consumer.assign(list(self._assigned.values()))  # keeps the positions of those assigned before
        for partition, offset in offsets.items():
            self.consumer.seek(self._assigned[partition], offset)

    def poll(self, timeout: float, limit: int) -> dict[int, list[Record]]:
        """Records by partition that came within `timeout` seconds, at most `limit`. Raises `OffsetsLost`,
        `ClientFailed`, `Refused`."""
        return {number: self._records(number, messages) for number, messages in self._messages(timeout, limit).items()}

    def _messages(self, timeout: float, limit: int) -> dict[int, list[Any]]:
        """The same as the library has them."""
        try:
            polled = self.consumer.poll(timeout_ms=int(timeout * 1000), max_records=limit)
        except errors.OffsetOutOfRangeError as error:
            raise OffsetsLost({place.partition for place in error.args[0]}) from error
        except errors.LogTruncationError as error:
            cut = {
                place.partition: -1 if divergent is None else divergent.offset
                for place, divergent in error.divergent_offsets.items()
            }
            raise OffsetsLost(cut, cut) from error
        except FATAL as error:
            raise Refused(error) from error
        except MemoryError:  # no failure of the client: the next run goes on
            raise
        except Exception as error:  # also what a crash of its network thread left: only a fresh client can go on
            raise ClientFailed(f"{type(error).__name__}: {error}") from error
        return {place.partition: messages for place, messages in polled.items()}

    def messages_to(self, ends: Mapping[int, int], start: Mapping[int, int], patience: float) -> Iterator[Any]:
        """Messages as the library has them, of each partition from its `start` to its end; control records are passed
        over. Raises `BrokerUnavailable` when none comes for `patience` seconds, and what `poll` raises."""
        unread = {partition: end for partition, end in ends.items() if start[partition] < end}
        self.assign({partition: start[partition] for partition in unread})
        deadline = time.monotonic() + patience
        while unread:
            for messages in self._messages(0.5, 5000).values():
                yield from messages
                deadline = time.monotonic() + patience
            for partition, (following, _) in self.progress().items():
                if following >= unread.get(partition, following + 1):
                    del unread[partition]
            if unread and time.monotonic() > deadline:
                raise BrokerUnavailable(f"{self._address}: reading it stopped at partitions {sorted(unread)}")

    def _records(self, partition: int, messages: list) -> list[Record]:
        name, mark, format = self._names[partition], self._mark, self._format
        records = []
        for message in messages:
            value, offset, stamp = message.value or b"", message.offset, message.timestamp
            moment = stamp / 1000 if stamp >= 0 else None
            kind = format or sniff(value)
            records.append(
                new_record(
                    Record,
                    (value, name, offset, offset + 1, mark, kind, "message", b"", message.key, moment, "", False),
                )
            )
        return [self._large_or_not(record) for record in records] if LARGE_BATCHES.met else records

    def _large_or_not(self, record: Record) -> Record:
        """A record; one that stands for a batch that was not unpacked gets its problem."""
        value, problem = LARGE_BATCHES.problem(record.value)
        if not problem:
            return record
        format = self._format or sniff(value)
        return record._replace(value=value, format=format, problem=problem, too_large=True)

    def progress(self) -> dict[int, Progress]:
        """How far each partition is, and how far it reaches, from what is known here."""
        progress = {}
        for partition, place in self._assigned.items():
            following, end = self.consumer.position(place, timeout_ms=0), self.consumer.highwater(place)
            if following is not None and end is not None:
                progress[partition] = Progress(following, end)
        return progress

    def connected(self) -> bool:
        """Whether any broker is."""
        return self._network.connected()

    def commit(self, offsets: Mapping[int, int], committed: Callable[[str], None]) -> None:
        """Tell the group, for lag tools alone; nothing is read back. `committed` is called later, with why it was
        refused or ""."""
        if self._has_group:
            self.consumer.commit_async(
                {self._assigned[partition]: commit_of(offset) for partition, offset in offsets.items()},
                lambda offsets, answer: committed(str(answer) if isinstance(answer, Exception) else ""),
            )

    def close(self) -> None:
        """Within seconds, whatever state the broker is in."""
        close_within(partial(self.consumer.close, autocommit=False, timeout_ms=1000))


def _ask(question: Callable[[], Answer]) -> Answer:
    try:
        return question()
    except FATAL as error:
        raise Refused(error) from error
    except errors.KafkaError as error:
        raise BrokerUnavailable(error) from error
