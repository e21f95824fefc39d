"""What all of the Kafka connectors say: addresses, options under the names of their library, how far reading is, and
what can go wrong.

Invariant: no message that leaves the Kafka connectors holds the value of a secret option (`scrubbed`).
"""

import contextlib
import re
import threading
from collections.abc import Callable, Collection, Iterable, Mapping
from difflib import get_close_matches
from typing import Any, NamedTuple
from urllib.parse import parse_qsl

from connectors import Record, UnusableSource
from connectors.arrow_headers import STREAM_START

SECRET = re.compile(r"password|passwd|secret|token|oauth|jaas|ssl_?\.?key_?\.?pem|credential|proxy_url", re.IGNORECASE)
_TOPIC = re.compile(r"[A-Za-z0-9._-]{1,249}")
_SERVER = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[^:\[\]]+):\d{1,5}")


class Address(NamedTuple):
    """`kafka://host:port[,host:port]/topic[?partitions=0,1,2]`."""

    servers: tuple[str, ...]
    topic: str
    partitions: frozenset[int] | None = None  # None: all of them, also those to come

    def __str__(self) -> str:
        return f"kafka://{','.join(self.servers)}/{self.topic}"


def parse_address(location: str) -> Address:
    """The address behind `kafka://`. Raises `UnusableSource`.

    >>> parse_address("a:9092,b:9092/votes?partitions=2,0")
    Address(servers=('a:9092', 'b:9092'), topic='votes', partitions=frozenset({0, 2}))
    >>> parse_address("votes")
    Traceback (most recent call last):
    connectors.UnusableSource: kafka://votes: got no topic, expected kafka://host:port[,host:port]/topic
    """
    place, _, query = location.partition("?")
    hosts, slash, topic = place.partition("/")
    servers = tuple(server.strip() for server in hosts.split(","))
    if not slash or not topic:
        raise UnusableSource(f"kafka://{location}: got no topic, expected kafka://host:port[,host:port]/topic")
    for server in servers:
        if not _SERVER.fullmatch(server):
            raise UnusableSource(f"kafka://{location}: got server {server!r}, expected host:port")
    if not _TOPIC.fullmatch(topic) or topic in (".", ".."):
        raise UnusableSource(f"kafka://{location}: got topic {topic!r}, expected up to 249 of A-Z a-z 0-9 . _ -")
    partitions = None
    for key, value in parse_qsl(query, keep_blank_values=True):
        if key != "partitions":
            raise UnusableSource(f"kafka://{location}: unknown parameter {key!r}; known: partitions")
        partitions = partition_numbers(value.split(","), f"kafka://{location}")
    return Address(servers, topic, partitions)


def partition_numbers(values: Iterable[Any], where: str) -> frozenset[int]:
    """Partition numbers as a set; raises `UnusableSource` when there are none or one is not a number."""
    values = [str(value).strip() for value in values]
    if not values or not all(value.isdecimal() for value in values):
        raise UnusableSource(f"{where}: got partitions {','.join(values)!r}, expected numbers like 0,1,2")
    return frozenset(map(int, values))


def partition_name(topic: str, partition: int) -> str:
    """The name under which a partition's position is kept; a topic name holds no slash, so it can be taken apart.

    >>> partition_name("votes", 3), partition_of("votes", "votes/3"), partition_of("votes", "other/3")
    ('votes/3', 3, None)
    """
    return f"{topic}/{partition}"


def partition_of(topic: str, name: str) -> int | None:
    """The inverse of `partition_name`; None for a partition of something else."""
    prefix, slash, number = name.rpartition("/")
    return int(number) if slash and prefix == topic and number.isdecimal() else None


def scrubbed(text: object, options: Mapping[str, Any]) -> str:
    """`text` as one line, with the value of every secret option taken out.

    >>> scrubbed("login with s3cret failed", {"sasl_plain_password": "s3cret"})
    'login with *** failed'
    """
    line = " ".join(str(text).split())
    for key, value in options.items():
        if SECRET.search(key) and isinstance(value, str) and value:
            line = line.replace(value, "***")
    return line


def known_to(defaults: Mapping[str, Any], others: Mapping[str, Any], options: Mapping[str, Any]) -> dict[str, Any]:
    """Those options that `defaults` names; one that only `others` name belongs to another client of the same section,
    as does with `client` = "confluent" one with a dot.

    Raises `UnusableSource` for an option that neither names.

    >>> known_to({"acks": 1}, {"group_id": None}, {"acks": "all", "group_id": "g", "client": "kafka-python"})
    {'acks': 'all'}
    >>> known_to({"acks": 1}, {}, {"acks": "all", "group.id": "g", "client": "confluent"})
    {'acks': 'all'}
    """
    theirs = {"client", *(key for key in options if "." in key and options.get("client") == "confluent")}
    if unknown := [key for key in options if key not in defaults and key not in others and key not in theirs]:
        names = ", ".join(f"kafka.{key}" for key in sorted(unknown))
        near = [name for key in unknown for name in get_close_matches(key.replace(".", "_"), {*defaults, *others}, 1)]
        meant = f"; did you mean {', '.join(near)}?" if near else ""
        raise UnusableSource(f"{names}: unknown option{meant}; expected kafka-python's names")
    return {key: value for key, value in options.items() if key in defaults}


def one_of(what: str, got: str, choices: tuple[str, ...]) -> str:
    """`got`, which is among `choices`. Raises `UnusableSource`."""
    if got not in choices:
        raise UnusableSource(f"kafka {what}: got {got!r}, expected one of {', '.join(choices)}")
    return got


def commas(partitions: Collection[int]) -> str:
    """Partition numbers for people."""
    return ",".join(map(str, sorted(partitions)))


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


CLOSE_SECONDS = 2.0


def close_within(close: Callable[[], object]) -> None:
    """Close a client, and leave it to itself when that takes longer: both libraries can wait on a network thread for
    answers of a broker that is gone, and nothing that is promised depends on their last words."""

    def closed() -> None:
        with contextlib.suppress(Exception):  # of a client that nobody uses any more
            close()

    closing = threading.Thread(target=closed, name="kafka-closing", daemon=True)
    closing.start()
    closing.join(CLOSE_SECONDS)


# `Record(*fields)` with every field given, in half the time: there are as many of them as messages.
new_record: Callable[[type[Record], tuple], Record] = tuple.__new__


def sniff(value: bytes | None) -> str:
    """The format of a message value: an Arrow IPC stream says so in its first four bytes, all else is JSON.

    >>> sniff(b'{"id": 1}'), sniff(STREAM_START + b" and the rest"), sniff(None)
    ('json', 'arrow', 'json')
    """
    return "arrow" if value and value[0] == 0xFF and value.startswith(STREAM_START) else "json"
