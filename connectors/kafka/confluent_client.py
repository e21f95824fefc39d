"""The Kafka source's client on confluent-kafka (librdkafka), the extra `confluent`: `KafkaPython` says what its methods
answer and raise.

Connection, end offsets and the next fetch offset come from librdkafka's statistics, once a second; they alone know the
control records behind the last message. No consumer group is joined; librdkafka only wants a name for one.
"""

import json
import logging
import time
import zlib
from collections.abc import Callable, Collection, Mapping, Sequence
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
    "logger": logging.getLogger("librdkafka"),
}
OWN_OPTIONS = {"client", "max_batch_bytes", "max_poll_records"}  # options that are not a library's
ANSWER_SECONDS = 5.0  # how long a question is asked
SLICE_SECONDS = 0.5  # in slices, so that a refusal is noticed
STALE_SECONDS = 3.0
_FATAL = {
    KafkaError._AUTHENTICATION,
    KafkaError._SSL,
    KafkaError._INVALID_ARG,
    KafkaError.SASL_AUTHENTICATION_FAILED,
    KafkaError.UNSUPPORTED_SASL_MECHANISM,
    KafkaError.TOPIC_AUTHORIZATION_FAILED,
    KafkaError.GROUP_AUTHORIZATION_FAILED,
    KafkaError.CLUSTER_AUTHORIZATION_FAILED,
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
Answer = TypeVar("Answer")


def librdkafka_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """Those options of the [kafka] section that are librdkafka's, whose names have dots. Raises `UnusableSource` where
    there are kafka-python's alone: the source would connect without the credentials, or the encryption, that they name.

    >>> librdkafka_options({"client": "confluent", "ssl.ca.location": "ca.pem", "ssl_cafile": "ca.pem"})
    {'ssl.ca.location': 'ca.pem'}
    """
    named = {key: value for key, value in options.items() if "." in key or key == "debug"}
    if not named and (others := options.keys() - OWN_OPTIONS):
        raise UnusableSource(
            f"kafka options: got {', '.join(sorted(others))} with the client confluent, expected librdkafka's names, "
            "such as security.protocol (quoted in TOML)"
        )
    return named


class Confluent:
    """One librdkafka consumer with its partitions assigned by hand, made from an `Address`, options and a format."""

    _consumer: Consumer  # once it is open

    def __init__(self, address: Address, options: Mapping[str, Any], format: str | None):
        self._topic, self._format = address.topic, format
        mapped = librdkafka_options(options)
        self._options = {**DEFAULTS, **mapped, "bootstrap.servers": ",".join(address.servers)}
        self._has_group = "group.id" in mapped
        self._mark, self._was_gone = 0, False
        self._names: dict[int, str] = {}
        self._following: dict[int, int] = {}  # behind the last delivered message
        self._errors: dict[int, KafkaError] = {}  # behind what was delivered: raised by the next poll
        self._reported: dict[str, Any] = {}  # statistics of the topic's partitions, by their number as text
        self._up = False
        self._refused: KafkaError | None = None
        self._committed: Callable[[str], object] = str  # called with the reason of a refusal, or ""

    @staticmethod
    def check(options: Mapping[str, Any]) -> None:
        """Set up a client that is never connected. Raises `UnusableSource` for an option that librdkafka refuses."""
        try:
            Consumer({**DEFAULTS, "log_level": 0, **librdkafka_options(options)}).close()
        except (KafkaException, ValueError, TypeError) as error:
            raise UnusableSource(f"kafka options: {scrubbed(_text(error), options)}; see librdkafka's names") from None

    def open(self) -> None:
        """Set up the client; it is `look_for_topic` that reaches a broker."""
        try:
            self._consumer = Consumer(
                {
                    **self._options,
                    "stats_cb": self._on_statistics,
                    "error_cb": self._on_error,
                    "on_commit": self._on_commit,
                }
            )
        except (KafkaException, ValueError, TypeError) as error:
            raise Refused(_text(error)) from error

    def _on_statistics(self, text: str) -> None:
        statistics = json.loads(text)
        if time.time() - statistics["time"] > STALE_SECONDS:
            return  # they queue up while nobody polls
        self._reported = statistics.get("topics", {}).get(self._topic, {}).get("partitions", {})
        self._up = any(broker["state"] == "UP" for broker in statistics["brokers"].values() if broker["nodeid"] >= 0)

    def _on_commit(self, error: KafkaError | None, places: Sequence[TopicPartition]) -> None:
        errors = [problem for problem in (error, *(place.error for place in places)) if problem is not None]
        self._committed(errors[0].str() if errors else "")

    def _on_error(self, error: KafkaError) -> None:
        if error.code() in _FATAL:
            self._refused = error
        elif error.code() == KafkaError._ALL_BROKERS_DOWN:
            self._up = False

    def _ask(self, question: Callable[[float], Answer]) -> Answer:
        """Ask the brokers for some seconds. Raises `BrokerUnavailable`, `Refused`."""
        deadline = time.monotonic() + ANSWER_SECONDS
        while True:
            try:
                return question(SLICE_SECONDS)
            except KafkaException as error:
                if not self._names:  # until partitions are assigned, a poll brings no messages
                    self._consumer.poll(0)  # lets librdkafka call `_on_error`, which knows why it cannot connect
                if self._refused is not None or error.args[0].code() in _FATAL:
                    raise Refused(_text(self._refused or error)) from error
                if time.monotonic() > deadline:
                    raise BrokerUnavailable(_text(error)) from error

    def look_for_topic(self) -> frozenset[int]:
        """The partitions of the topic, asked of the broker now."""
        topic = self._ask(lambda seconds: self._consumer.list_topics(self._topic, timeout=seconds)).topics[self._topic]
        if topic.error is not None:
            if topic.error.code() in _FATAL:
                raise Refused(_text(topic.error))
            return frozenset()
        self._mark = self._asked_mark()
        return frozenset(topic.partitions)

    def _asked_mark(self) -> int:
        admin, topic = AdminClient(self._options), TopicCollection([self._topic])
        topic_id = self._ask(
            lambda seconds: admin.describe_topics(topic, request_timeout=seconds)[self._topic].result().topic_id
        )
        high, low = topic_id.get_most_significant_bits(), topic_id.get_least_significant_bits()
        whole = b"".join(half.to_bytes(8, "big", signed=True) for half in (high, low))
        return zlib.crc32(whole) if any(whole) else 0

    def topic_mark(self) -> int:
        """A check value of the topic's id, the same as `KafkaPython`'s."""
        if self._was_gone and self.partitions() >= set(self._names):  # it is back, perhaps as another one
            self._mark, self._was_gone = self._asked_mark(), False
        return self._mark

    def partitions(self) -> frozenset[int]:
        """Those that the topic has, as last heard of."""
        # -1 is where librdkafka keeps what has no partition yet; "unknown" ones were asked for, but do not exist.
        each_of = self._reported.values()
        numbers = frozenset(
            partition["partition"] for partition in each_of if partition["partition"] >= 0 and not partition["unknown"]
        )
        self._was_gone |= bool(each_of) and not numbers >= set(self._names)
        return numbers

    def ranges(self, partitions: Collection[int]) -> dict[int, Range]:
        """The first and the next offset of each partition."""
        return {partition: self._ask(partial(self._range, partition)) for partition in partitions}

    def _range(self, partition: int, seconds: float) -> Range:
        place = TopicPartition(self._topic, partition)
        return Range(*self._consumer.get_watermark_offsets(place, timeout=seconds))

    def offsets_at(self, times: Mapping[int, int]) -> dict[int, int]:
        """The first offset of each partition at a time or later."""
        wanted = self._places(times)
        offsets = self._ask(lambda seconds: self._consumer.offsets_for_times(wanted, timeout=seconds)) if wanted else []
        for place in offsets:
            if place.error is not None:
                raise BrokerUnavailable(_text(place.error))
        return {place.partition: place.offset for place in offsets if place.offset >= 0}

    def _places(self, offsets: Mapping[int, int]) -> list[TopicPartition]:
        return [TopicPartition(self._topic, partition, offset) for partition, offset in offsets.items()]

    def assign(self, offsets: Mapping[int, int]) -> None:
        """Read these partitions from these offsets on, besides those assigned before."""
        places = self._places(offsets)
        self._consumer.incremental_unassign([place for place in places if place.partition in self._names])
        self._consumer.incremental_assign(places)
        self._names |= {partition: partition_name(self._topic, partition) for partition in offsets}
        self._following |= offsets
        self._up = True

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
        if self._refused is not None:
            raise Refused(_text(self._refused))
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
        text = "; ".join(f"partition {partition}: {error.str()}" for partition, error in sorted(errors.items()))
        if codes & _FATAL:
            raise Refused(text)
        if codes == {KafkaError._AUTO_OFFSET_RESET}:
            raise OffsetsLost(errors, {number: -1 for number in errors if "truncat" in errors[number].str().lower()})
        raise ClientFailed(text)

    def progress(self) -> dict[int, Progress]:
        """How far each partition is, and how far it reaches, from what is known here."""
        progress = {}
        for partition, following in self._following.items():
            figures = self._reported.get(str(partition))
            _, end = self._consumer.get_watermark_offsets(TopicPartition(self._topic, partition), cached=True)
            if figures is not None and not figures["fetchq_cnt"] and figures["next_offset"] > following:
                # nothing waits here: what was skipped are control records
                following = min(figures["next_offset"], max(end, following))
            if end >= 0:
                progress[partition] = Progress(following, end)
        return progress

    def connected(self) -> bool:
        """Whether any broker is."""
        return self._up

    def commit(self, offsets: Mapping[int, int], committed: Callable[[str], None]) -> None:
        """Tell the group, for lag tools alone; nothing is read back. `committed` is called later, with why it was
        refused or ""."""
        if self._has_group:
            self._committed = committed
            self._consumer.commit(offsets=self._places(offsets), asynchronous=True)

    def close(self) -> None:
        """Within seconds, whatever state the broker is in."""
        close_within(self._consumer.close)  # waits for commits that an absent broker does not answer


def _text(error: object) -> str:
    inner = error.args[0] if isinstance(error, KafkaException) else error
    return inner.str() if isinstance(inner, KafkaError) else str(inner)
