"""The states of a Kafka source, each with what it alone needs. `KafkaSource` says what leads from one to another."""

from dataclasses import dataclass

from connectors import SourceFailed, UnusableSource
from connectors.kafka.client import Client
from connectors.kafka.connecting import OpeningThread


@dataclass(frozen=True)
class Connecting:
    """A thread opens a client. `pause`: seconds to wait before the next attempt when no broker answers this one."""

    thread: OpeningThread
    pause: float


@dataclass(frozen=True)
class Waiting:
    """No client: the next attempt, with this `pause`, begins at `until` (monotonic seconds)."""

    until: float
    pause: float


@dataclass
class Reading:
    """A client with its partitions assigned. Times are monotonic seconds."""

    client: Client
    moved: float  # when records came, or no broker was connected: silence of an absent broker is no stall
    looked: float  # when connection and partitions were looked after
    gone_since: float | None = None  # since when partitions that are read are not in the topic any more


@dataclass(frozen=True)
class Failed:
    """For good: every poll raises it."""

    failure: SourceFailed | UnusableSource


@dataclass(frozen=True)
class FailedReading(Failed):
    """The same while reading; the client is still there to tell the group what is published."""

    client: Client


@dataclass(frozen=True)
class Closed:
    """Nothing is open, nothing comes."""


State = Connecting | Waiting | Reading | Failed | Closed
