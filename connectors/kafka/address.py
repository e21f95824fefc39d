"""Where a topic is and how its client is set up: addresses, option names, and what must never be printed.

Options carry the names of the client's library: kafka-python's (`security_protocol`, `ssl_cafile`, ...), or with the
client "confluent" librdkafka's (`security.protocol`, `ssl.ca.location`, ...). Invariant: no message that leaves the
Kafka connectors holds the value of a secret option (`scrubbed`).
"""

import re
from collections.abc import Collection, Iterable, Mapping
from typing import Any, NamedTuple
from urllib.parse import parse_qsl

from connectors import UnusableSource

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


def parse_address(rest: str) -> Address:
    """The address behind `kafka://`. Raises `UnusableSource`.

    >>> parse_address("a:9092,b:9092/votes?partitions=2,0")
    Address(servers=('a:9092', 'b:9092'), topic='votes', partitions=frozenset({0, 2}))
    >>> parse_address("votes")
    Traceback (most recent call last):
    connectors.UnusableSource: kafka://votes: got no topic, expected kafka://host:port[,host:port]/topic
    """
    place, _, query = rest.partition("?")
    hosts, slash, topic = place.partition("/")
    servers = tuple(server.strip() for server in hosts.split(","))
    if not slash or not topic:
        raise UnusableSource(f"kafka://{rest}: got no topic, expected kafka://host:port[,host:port]/topic")
    for server in servers:
        if not _SERVER.fullmatch(server):
            raise UnusableSource(f"kafka://{rest}: got server {server!r}, expected host:port")
    if not _TOPIC.fullmatch(topic) or topic in (".", ".."):
        raise UnusableSource(f"kafka://{rest}: got topic {topic!r}, expected up to 249 of A-Z a-z 0-9 . _ -")
    partitions = None
    for key, value in parse_qsl(query, keep_blank_values=True):
        if key != "partitions":
            raise UnusableSource(f"kafka://{rest}: unknown parameter {key!r}; known: partitions")
        partitions = partition_numbers(value.split(","), f"kafka://{rest}")
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
    """Those options that `defaults` names; one that only `others` name belongs to another client of the same section.

    Raises `UnusableSource` for an option that neither names.

    >>> known_to({"acks": 1}, {"group_id": None}, {"acks": "all", "group_id": "g"})
    {'acks': 'all'}
    """
    if unknown := [key for key in options if key not in defaults and key not in others]:
        raise UnusableSource(f"kafka options: unknown {', '.join(sorted(unknown))}; the names are kafka-python's")
    return {key: value for key, value in options.items() if key in defaults}


def one_of(what: str, got: str, choices: tuple[str, ...]) -> str:
    """`got`, which is among `choices`. Raises `UnusableSource`."""
    if got not in choices:
        raise UnusableSource(f"kafka {what}: got {got!r}, expected one of {', '.join(choices)}")
    return got


def listed(partitions: Collection[int]) -> str:
    """Partition numbers for people."""
    return ",".join(map(str, sorted(partitions)))


def kafka_python_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """Those options that are kafka-python's: with the client "confluent", names with dots are librdkafka's.

    >>> kafka_python_options({"client": "confluent", "ssl_cafile": "ca.pem", "ssl.ca.location": "ca.pem"})
    {'ssl_cafile': 'ca.pem'}
    """
    confluent = options.get("client") == "confluent"
    return {key: value for key, value in options.items() if key != "client" and not (confluent and "." in key)}


def librdkafka_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """Those options that are librdkafka's, whose names have dots. Raises `UnusableSource` where there are others alone:
    they would say nothing to it.

    >>> librdkafka_options({"ssl.ca.location": "ca.pem", "ssl_cafile": "ca.pem"})
    {'ssl.ca.location': 'ca.pem'}
    """
    named = {key: value for key, value in options.items() if "." in key or key == "debug"}
    if options and not named:
        raise UnusableSource(
            f"kafka options: got {', '.join(sorted(options))} with the client confluent, expected librdkafka's names, "
            "as security.protocol (quoted in TOML); kafka-python's names serve dead-letter topics beside them"
        )
    return named
