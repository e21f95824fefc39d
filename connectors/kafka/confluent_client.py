"""The Kafka source's client on confluent-kafka (librdkafka): the optional extra `confluent`, about ten times as fast.

Connection, end offsets and the next fetch offset come from librdkafka's statistics, once a second; they alone know the
control records behind the last message. No consumer group is joined; librdkafka only wants a name for one.
"""

import json
import logging
import time
import zlib
from collections.abc import Callable, Collection, Mapping
from functools import partial
from typing import Any, TypeVar

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicCollection, TopicPartition
from confluent_kafka.admin import AdminClient

from connectors import Record, UnusableSource
from connectors.kafka.client import (
    Address,
    BrokerUnavailable,
    ClientFailed,
    OffsetsLost,
    Progress,
    Range,
    Refused,
    close_within,
    librdkafka_options,
    new_record,
    partition_name,
    scrubbed,
    sniff,
)

DEFAULTS: dict[str, Any] = {
    "enable.auto.commit": False,  # positions live in the snapshot
    "enable.auto.offset.store": False,
    "auto.offset.reset": "error",  # never a silent jump
    "isolation.level": "read_committed",
    "allow.auto.create.topics": False,
    "group.id": "stream-engine",
    "statistics.interval.ms": 1000,
    "topic.metadata.refresh.interval.ms": 30_000,  # how soon added partitions are seen
    "topic.metadata.propagation.max.ms": 1_000,  # a deleted topic is seen as such; the source has its own patience
    "reconnect.backoff.max.ms": 5_000,
    "queued.max.messages.kbytes": 32_768,
    "check.crcs": True,
    "log_level": 2,  # a broker that is away is told by a notice, once, not by a line for every attempt
}
ANSWER_SECONDS = 5.0
STALE_SECONDS = 3.0
SLICE_SECONDS = 0.5  # a question is asked in slices, so that a refusal is noticed
_FATAL = {
    KafkaError._AUTHENTICATION,
    KafkaError.SASL_AUTHENTICATION_FAILED,
    KafkaError.TOPIC_AUTHORIZATION_FAILED,
    KafkaError.GROUP_AUTHORIZATION_FAILED,
    KafkaError.CLUSTER_AUTHORIZATION_FAILED,
    KafkaError._INVALID_ARG,
    KafkaError.UNSUPPORTED_SASL_MECHANISM,
    KafkaError.TOPIC_EXCEPTION,
}
# Found by the broker or on the way, mended by librdkafka itself.
_PASSING = {
    KafkaError._TRANSPORT,
    KafkaError._ALL_BROKERS_DOWN,
    KafkaError._TIMED_OUT,
    KafkaError._RESOLVE,
    KafkaError._PARTITION_EOF,
    KafkaError.UNKNOWN_TOPIC_OR_PART,
    KafkaError._UNKNOWN_TOPIC,
    KafkaError._UNKNOWN_PARTITION,
    KafkaError.LEADER_NOT_AVAILABLE,
    KafkaError.NOT_LEADER_FOR_PARTITION,
}
_SSL = KafkaError._SSL
Answer = TypeVar("Answer")


class Reports:
    """What librdkafka reports on its own: statistics once a second, and errors of connections."""

    def __init__(self, topic: str):
        self._topic = topic
        self.partitions: dict[str, Any] = {}  # statistics of the topic's partitions, by their number as text
        self.up = False
        self.refused: KafkaError | None = None

    def statistics(self, text: str) -> None:
        """librdkafka's `stats_cb`."""
        statistics = json.loads(text)
        if time.time() - statistics["time"] > STALE_SECONDS:
            return  # they queue up while nobody polls
        self.partitions = statistics.get("topics", {}).get(self._topic, {}).get("partitions", {})
        self.up = any(broker["state"] == "UP" for broker in statistics["brokers"].values() if broker["nodeid"] >= 0)

    def error(self, error: KafkaError) -> None:
        """librdkafka's `error_cb`."""
        if error.code() in _FATAL or error.code() == _SSL:
            self.refused = error
        elif error.code() == KafkaError._ALL_BROKERS_DOWN:
            self.up = False

    def raise_refused(self, cause: Exception | None = None) -> None:
        """Raise `Refused` if that is what librdkafka has reported."""
        if self.refused is not None:
            raise Refused(_text(self.refused)) from cause


class Confluent:
    """A `Client`: one librdkafka consumer with its partitions assigned by hand."""

    _consumer: Consumer  # once it is open

    def __init__(self, address: Address, options: Mapping[str, Any], format: str | None):
        self._address, self._topic, self._format = address, address.topic, format
        options = {key: value for key, value in options.items() if key != "max_batch_bytes"}  # for kafka-python
        self._patience = options.pop("bootstrap_timeout_ms", 1000 * ANSWER_SECONDS) / 1000
        self._options = {**DEFAULTS, **librdkafka_options(options), "bootstrap.servers": ",".join(address.servers)}
        self._has_group = "group.id" in options
        self._reports, self._mark = Reports(address.topic), 0
        self._names: dict[int, str] = {}
        self._following: dict[int, int] = {}  # behind the last delivered message
        self._was_gone = False
        self._errors: dict[int, KafkaError] = {}  # behind what was delivered: raised by the next poll

    @staticmethod
    def check(options: Mapping[str, Any]) -> None:
        """Set up a client that is never connected. Raises `UnusableSource` for an option that librdkafka refuses."""
        named = librdkafka_options({key: value for key, value in options.items() if key != "bootstrap_timeout_ms"})
        try:
            Consumer({"group.id": "stream-engine", "log_level": 0, **named}).close()
        except (KafkaException, ValueError, TypeError) as error:
            raise UnusableSource(f"kafka options: {scrubbed(error, options)}; the names are librdkafka's") from None

    def open(self) -> None:
        """Reach a broker and learn about the topic; see `Client`."""
        callbacks = {
            "stats_cb": self._reports.statistics,
            "error_cb": self._reports.error,
            "logger": logging.getLogger("librdkafka"),
        }
        try:
            self._consumer = Consumer({**self._options, **callbacks})
        except (KafkaException, ValueError, TypeError) as error:
            raise Refused(_text(error)) from error
        try:
            self._ask(self._partitions)  # an error of the connection shows here first, with its reason
            self._mark = self._ask(self._topic_mark)
        except BaseException:
            self.close()
            raise

    def _ask(self, question: Callable[[float], Answer]) -> Answer:
        """Ask the brokers for some seconds. Raises `BrokerUnavailable`, `Refused`."""
        deadline = time.monotonic() + self._patience
        while True:
            try:
                return question(SLICE_SECONDS)
            except KafkaException as error:
                if not self._names:  # until partitions are assigned, a poll brings no messages
                    self._consumer.poll(0)  # lets librdkafka call `error`, which knows why it cannot connect
                self._reports.raise_refused(error)
                if error.args[0].code() in _FATAL:
                    raise Refused(_text(error)) from error
                if time.monotonic() > deadline:
                    raise BrokerUnavailable(_text(error)) from error

    def _partitions(self, seconds: float) -> frozenset[int]:
        """Those that the topic has; none when it does not exist."""
        topic = self._consumer.list_topics(self._topic, timeout=seconds).topics[self._topic]
        if topic.error is not None and topic.error.code() not in _PASSING:
            raise KafkaException(topic.error)
        return frozenset() if topic.error is not None else frozenset(topic.partitions)

    def _topic_mark(self, seconds: float) -> int:
        """A check value of the topic's id; 0 when the topic does not exist or has none."""
        shared = {key: value for key, value in self._options.items() if key.startswith(_SHARED)}
        admin = AdminClient(shared, logger=logging.getLogger("librdkafka"))
        asked = admin.describe_topics(TopicCollection([self._topic]), request_timeout=seconds)
        try:
            topic_id = asked[self._topic].result().topic_id
        except KafkaException as error:
            if error.args[0].code() == KafkaError.UNKNOWN_TOPIC_OR_PART:
                return 0  # `look_for_topic` waits for it and asks again
            raise
        high, low = topic_id.get_most_significant_bits(), topic_id.get_least_significant_bits()
        whole = b"".join(half.to_bytes(8, "big", signed=True) for half in (high, low))
        return zlib.crc32(whole) if any(whole) else 0

    def topic_mark(self) -> int:
        """A number of the topic's id, 0 where the broker has none."""
        if self._was_gone and self.partitions() >= set(self._names):  # it is back, perhaps as another one
            self._mark, self._was_gone = self._ask(self._topic_mark), False
        return self._mark

    def partitions(self) -> frozenset[int]:
        """Those that the topic has now."""
        # -1 is where librdkafka keeps what has no partition yet; "unknown" ones were asked for, but do not exist.
        each_of = self._reports.partitions.values()
        numbers = frozenset(each["partition"] for each in each_of if each["partition"] >= 0 and not each["unknown"])
        self._was_gone |= bool(each_of) and not numbers >= set(self._names)
        return numbers

    def look_for_topic(self) -> frozenset[int]:
        """The partitions of the topic; none where it does not exist."""
        numbers = self._ask(self._partitions)
        if numbers and not self._mark:
            self._mark = self._ask(self._topic_mark)
        return numbers

    def ranges(self, partitions: Collection[int]) -> dict[int, Range]:
        """The first and the next offset of each partition."""
        return {partition: self._ask(partial(self._range, partition)) for partition in partitions}

    def _range(self, partition: int, seconds: float) -> Range:
        place = TopicPartition(self._topic, partition)
        return Range(*self._consumer.get_watermark_offsets(place, timeout=seconds))

    def offsets_at(self, times: Mapping[int, int]) -> dict[int, int]:
        """The first offset of each partition at a time or later."""
        found = self._ask(partial(self._offsets_at, times)) if times else []
        return {place.partition: place.offset for place in found if place.offset >= 0}

    def _offsets_at(self, times: Mapping[int, int], seconds: float) -> list[TopicPartition]:
        wanted = [TopicPartition(self._topic, partition, moment) for partition, moment in times.items()]
        found = self._consumer.offsets_for_times(wanted, timeout=seconds)
        for place in found:
            if place.error is not None:
                raise KafkaException(place.error)
        return found

    def assign(self, offsets: Mapping[int, int]) -> None:
        """Read these partitions from these offsets on."""
        for partition, offset in offsets.items():
            if partition in self._names:
                self._consumer.incremental_unassign([TopicPartition(self._topic, partition)])
            self._names[partition] = partition_name(self._topic, partition)
            self._following[partition] = offset
        if offsets:
            self._consumer.incremental_assign(
                [TopicPartition(self._topic, partition, offset) for partition, offset in offsets.items()]
            )
        self._reports.up = True

    def poll(self, timeout: float, limit: int) -> dict[int, list[Record]]:
        """Records by partition that came within `timeout` seconds, at most `limit`."""
        if self._errors:
            self._raise()
        try:
            # `consume` waits until it has `limit` messages, so it may only wait for the first.
            messages = self._consumer.consume(limit, 0) or self._consumer.consume(1, timeout)
            if len(messages) == 1 < limit:
                messages += self._consumer.consume(limit - 1, 0)
        except (KafkaException, RuntimeError) as error:
            raise ClientFailed(_text(error)) from error
        self._reports.raise_refused()
        records = self._records(messages)
        for partition, some in records.items():
            self._following[partition] = some[-1].next_offset
        if self._errors and not records:
            self._raise()
        return records

    def _records(self, messages: list) -> dict[int, list[Record]]:
        """What comes before the first error of each partition; librdkafka itself would go on behind a damaged batch."""
        records: dict[int, list[Record]] = {partition: [] for partition in self._names}
        mark, format, names, errors = self._mark, self._format, self._names, self._errors
        for message in messages:
            partition = message.partition()
            if (error := message.error()) is not None:
                if error.code() not in _PASSING:
                    errors.setdefault(partition, error)
                continue
            if errors and partition in errors:
                continue
            offset, value = message.offset(), message.value() or b""
            kind, milliseconds = message.timestamp()
            stamp = milliseconds / 1000 if kind else None
            of, key = format or sniff(value), message.key()
            records[partition].append(
                new_record(
                    Record,
                    (value, names[partition], offset, offset + 1, mark, of, "message", b"", key, stamp, "", False),
                )
            )
        return {partition: some for partition, some in records.items() if some}

    def _raise(self) -> None:
        errors, self._errors = self._errors, {}
        codes = {error.code() for error in errors.values()}
        lost = {partition for partition, error in errors.items() if error.code() == KafkaError._AUTO_OFFSET_RESET}
        text = "; ".join(f"partition {partition}: {error.str()}" for partition, error in sorted(errors.items()))
        if codes & _FATAL:
            raise Refused(text)
        if codes == {KafkaError._AUTO_OFFSET_RESET}:
            raise OffsetsLost(lost, {each: -1 for each in lost if "truncat" in errors[each].str().lower()})
        raise ClientFailed(text)

    def progress(self) -> dict[int, Progress]:
        """How far each partition is, and how far it reaches."""
        progress = {}
        for partition, following in self._following.items():
            figures = self._reports.partitions.get(str(partition))
            _, end = self._consumer.get_watermark_offsets(TopicPartition(self._topic, partition), cached=True)
            if figures is not None and not figures["fetchq_cnt"] and figures["next_offset"] > following:
                # nothing waits here: what was skipped are control records
                following = min(figures["next_offset"], max(end, following))
            if end >= 0:
                progress[partition] = Progress(following, end)
        return progress

    def connected(self) -> bool:
        """Whether any broker is."""
        return self._reports.up

    def commit(self, offsets: Mapping[int, int]) -> None:
        """Tell the group, for lag tools alone; nothing is read back."""
        if self._has_group:
            self._consumer.commit(
                offsets=[TopicPartition(self._topic, partition, offset) for partition, offset in offsets.items()],
                asynchronous=True,
            )

    def close(self) -> None:
        """Within seconds, whatever state the broker is in."""
        close_within(self._consumer.close)  # waits for commits that an absent broker does not answer


# options that are not the consumer's alone
_SHARED = ("bootstrap.", "security.", "sasl.", "ssl.", "client.id", "socket.", "broker.", "reconnect.", "log")


def _text(error: object) -> str:
    inner = error.args[0] if isinstance(error, KafkaException) else error
    return inner.str() if isinstance(inner, KafkaError) else str(inner)
