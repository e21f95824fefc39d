"""What the Kafka source asks of a client library, so that kafka-python and confluent-kafka are interchangeable.

A client is opened by a thread (`open`, `look_for_topic`, `ranges`, `assign` may wait for the network) and then used by
the thread that polls.
"""

import contextlib
import threading
from collections.abc import Callable, Collection, Mapping
from typing import NamedTuple, Protocol

from connectors import Record


class BrokerUnavailable(RuntimeError):
    """The broker does not answer now; the same call may work later."""


class TopicMissing(RuntimeError):
    """The cluster answers and knows no such topic, or does not show it to this user."""


class Refused(RuntimeError):
    """The broker or the library refuses for good: credentials, authorization, an unknown option."""


class ClientFailed(RuntimeError):
    """The client cannot go on by itself; a fresh one may."""


class OffsetsLost(RuntimeError):
    """The next offsets of `partitions` are not there to be read.

    `cut`: where the log is another one than the one that was read, from this offset on (-1: the broker cannot say).
    """

    def __init__(self, partitions: Collection[int], cut: Mapping[int, int] | None = None):
        super().__init__(f"partitions {sorted(partitions)}")
        self.partitions, self.cut = frozenset(partitions), dict(cut or {})


class Range(NamedTuple):
    """What is left in a partition: offsets from `first` up to, not including, `end`."""

    first: int
    end: int


class Progress(NamedTuple):
    """`following`: the next offset to read, also behind control records; `end`: behind the last, as the broker last
    told."""

    following: int
    end: int


class Client(Protocol):
    """One connection to one topic, made from an `Address`, options and a format. Offsets are per partition number."""

    def open(self) -> None:
        """Reach the cluster. Raises `BrokerUnavailable`, `Refused`; then nothing of it is left open."""

    def topic_mark(self) -> int:
        """A check value of the topic's id, 0 where the broker gives none; a topic made anew has another."""

    def partitions(self) -> frozenset[int]:
        """The topic's partitions as last heard of, without waiting for the network; none: the topic is unknown."""

    def look_for_topic(self) -> frozenset[int]:
        """The topic's partitions, asked of the broker now. Raises `BrokerUnavailable`, `Refused`."""

    def ranges(self, partitions: Collection[int]) -> dict[int, Range]:
        """What can be read now. Raises `BrokerUnavailable`, `Refused`."""

    def assign(self, offsets: Mapping[int, int]) -> None:
        """Read these partitions from these offsets, besides those assigned before."""

    def poll(self, timeout: float, limit: int) -> dict[int, list[Record]]:
        """At most `limit` records, in order within a partition. Raises `OffsetsLost`, `ClientFailed`, `Refused`."""

    def progress(self) -> dict[int, Progress]:
        """How far reading got, from what is known here; no request is sent."""

    def connected(self) -> bool:
        """True while a broker of the cluster is connected."""

    def commit(self, offsets: Mapping[int, int]) -> None:
        """Tell the consumer group, without waiting for the answer."""

    def close(self) -> None:
        """Within seconds, whatever state the broker is in."""


CLOSE_SECONDS = 2.0


def close_within(close: Callable[[], object], seconds: float = CLOSE_SECONDS) -> None:
    """Close a client, and leave it to itself when that takes longer: both libraries can wait on a network thread for
    answers of a broker that is gone, and nothing that is promised depends on their last words."""

    def closed() -> None:
        with contextlib.suppress(Exception):  # of a client that nobody uses any more
            close()

    closing = threading.Thread(target=closed, name="kafka-closing", daemon=True)
    closing.start()
    closing.join(seconds)


ARROW_STREAM = b"\xff\xff\xff\xff"  # the continuation marker that every message of an Arrow IPC stream begins with


# `Record(*fields)` with every field given, in half the time: there are as many of them as messages.
new_record: Callable[[type[Record], tuple], Record] = tuple.__new__


def sniff(value: bytes | None) -> str:
    """The format of a message value: an Arrow IPC stream says so in its first four bytes, all else is JSON.

    >>> sniff(b'{"id": 1}'), sniff(ARROW_STREAM + b" and the rest"), sniff(None)
    ('json', 'arrow', 'json')
    """
    return "arrow" if value and value[0] == 0xFF and value.startswith(ARROW_STREAM) else "json"
