"""The states of a Kafka source, each with what it alone needs. `KafkaSource` says what leads from one to another.

A client is opened in a thread, so that who polls keeps its timeout while a broker does not answer.
"""

import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from connectors import SourceFailed, UnusableSource
from connectors.kafka.client import CLOSE_SECONDS
from connectors.kafka.start_offsets import StartingPoints

if TYPE_CHECKING:  # they load their libraries, which only a run with a topic needs
    from connectors.kafka.confluent_client import Confluent
    from connectors.kafka.kafka_python_client import KafkaPython

Client: TypeAlias = "KafkaPython | Confluent"


class Opened(NamedTuple):
    """A client that reads, and from where on."""

    client: Client
    start: StartingPoints


class OpeningThread:
    """One attempt to open a client and to assign it its partitions; whoever asks decides whether there is another one.

    `assign(client)` assigns the partitions and says where reading begins; it may wait for the network.
    """

    def __init__(self, client: Client, assign: Callable[[Client], StartingPoints]):
        self._client, self._assign = client, assign
        self._outcome: Opened | Exception | None = None  # once the thread is over
        self._is_ended = False
        self._thread = threading.Thread(target=self._run, name="kafka-opening", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            self._outcome = self._opened()
        except Exception as error:  # raised again by `wait`, in the thread that asked
            self._outcome = error
        if self._is_ended:
            self._close()

    def _opened(self) -> Opened:
        self._client.open()
        try:
            return Opened(self._client, self._assign(self._client))
        except BaseException:
            self._client.close()
            raise

    def wait(self, timeout: float) -> Opened | None:
        """The open client, which is then the caller's to close; None when it is not open within `timeout` seconds.

        Raises what went wrong, once.
        """
        self._thread.join(timeout)
        if self._thread.is_alive():
            return None
        outcome, self._outcome = self._outcome, None
        if isinstance(outcome, Exception):
            try:
                raise outcome
            finally:
                del outcome  # an error and the frames it came through must not hold each other, and what is in them
        return outcome

    def end(self) -> None:
        """Wait a moment; a client that opens later is closed at once, one that still waits dies with the process."""
        self._is_ended = True
        self._thread.join(CLOSE_SECONDS)
        if not self._thread.is_alive():
            self._close()

    def _close(self) -> None:
        if isinstance(self._outcome, Opened):
            self._outcome.client.close()


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
