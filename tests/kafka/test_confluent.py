"""What librdkafka hands over, told message by message: nothing behind an error is taken for what follows."""

from collections import Counter
from typing import NamedTuple

import pytest
from confluent_kafka import KafkaError

from connectors.kafka.client import ClientFailed, OffsetsLost, Progress, Refused, parse_address
from connectors.kafka.confluent_client import Confluent


class Message(NamedTuple):
    """A message or an error, with librdkafka's accessors."""

    at: tuple[int, int]
    code: int | None = None

    def partition(self):
        return self.at[0]

    def offset(self):
        return self.at[1]

    def error(self):
        return None if self.code is None else KafkaError(self.code)

    def value(self):
        return b"v%d" % self.at[1]

    def key(self):
        return None

    def timestamp(self):
        return (1, 1500) if self.at[0] else (0, -1)


class Scripted:
    """A consumer that hands out the batches it was given."""

    def __init__(self, *batches):
        self.batches = list(batches)

    def incremental_unassign(self, places):
        assert places == []

    def incremental_assign(self, places):
        pass

    def get_watermark_offsets(self, place, cached):
        return 0, 10

    def consume(self, limit, timeout):
        return self.batches.pop(0) if self.batches else []


def reading(*batches) -> Confluent:
    """A client that reads from offset 0 of two partitions, and gets these batches."""
    client = Confluent(parse_address("h:1/t"), {}, None)
    client._consumer = Scripted(*batches)
    client.assign({0: 0, 1: 0})
    return client


def offsets(found) -> dict[int, list[int]]:
    return {partition: [record.offset for record in records] for partition, records in found.items()}


@pytest.mark.parametrize(
    "code, raised",
    [
        (KafkaError._BAD_MSG, ClientFailed),
        (KafkaError._AUTO_OFFSET_RESET, OffsetsLost),
        (KafkaError.TOPIC_AUTHORIZATION_FAILED, Refused),
    ],
)
def test_what_comes_before_an_error_is_delivered_and_what_comes_behind_is_not(code, raised):
    client = reading([Message((0, 5)), Message((0, 6), code), Message((1, 3)), Message((0, 7))])
    assert offsets(client.poll(0.1, 10)) == {0: [5], 1: [3]}
    assert client.progress() == {0: Progress(6, 10), 1: Progress(4, 10)}
    with pytest.raises(raised) as error:
        client.poll(0.1, 10)
    if raised is OffsetsLost:
        assert error.value.partitions == {0} and not error.value.cut
    assert offsets(client.poll(0.1, 10)) == {}


def test_an_error_alone_is_raised_at_once_and_a_passing_one_never():
    client = reading(
        [Message((0, 5), KafkaError._BAD_MSG)], [Message((1, 5), KafkaError._ALL_BROKERS_DOWN), Message((1, 5))]
    )
    with pytest.raises(ClientFailed, match="partition 0"):
        client.poll(0.1, 1)
    assert offsets(client.poll(0.1, 10)) == {1: [5]}


def test_messages_become_records():
    client = reading([Message((1, 2)), Message((0, 9))])
    found = client.poll(0.1, 10)
    assert found[1][0][:6] == (b"v2", "t/1", 2, 3, 0, "json")
    assert found[1][0].time == 1.5
    assert found[0][0].time is None
    assert Counter(record.unit for records in found.values() for record in records) == {"message": 2}
