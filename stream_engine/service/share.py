"""The share of a topic's partitions that a state is made with: remembered in it, and compared with what a run asks for.

Two states of one topic must never read the same partition, or its events count twice when they are merged. So a state
keeps its share for good; `stream-engine reshard` makes states of other shares out of it.
"""

from collections.abc import Iterable, Mapping

from connectors import Position, split_uri
from connectors.kafka.address import parse_address, partition_of
from stream_engine.service.settings import BadSettings, Settings, shard


def asked_share(settings: Settings) -> str | None:
    """The share that a run asks for, "i/n" in plain digits; None for all partitions, which 0/1 is too."""
    asked = shard(settings.input.shard)
    return None if asked is None or asked == (0, 1) else f"{asked[0]}/{asked[1]}"


def agreed_share(settings: Settings, made_with: str | None, positions: Mapping[str, Position]) -> str | None:
    """The share of a state that was made with `made_with` when a run goes on with it. Raises `BadSettings` where the
    run asks for another one.

    States of before shares were remembered have none: they take the one that is asked for, if all that they have read
    of the topics is in it. A run without a topic reads no partitions and leaves the share as it is.
    """
    asked = asked_share(settings)
    if not topics(settings.source) or asked == made_with:
        return made_with
    if made_with is None and asked is not None and _all_in(asked, partition_numbers(settings, positions).values()):
        return asked
    raise BadSettings(
        f"{settings.state}: made with {_told(made_with)}, asked for {_told(asked)}: partitions would count twice or "
        "never; use the same --shard, or make states of other shares: stream-engine reshard"
    )


def topics(sources: Iterable[str]) -> list[str]:
    """The topics among the sources of a run.

    >>> topics(["kafka://h:9092/votes?partitions=0", "more.jsonl"])
    ['votes']
    """
    return [parse_address(rest).topic for scheme, rest in map(split_uri, sources) if scheme == "kafka"]


def partition_numbers(settings: Settings, positions: Iterable[str]) -> dict[str, int]:
    """The partitions that are of the topics of a run, each with its number."""
    numbered = [(name, partition_of(topic, name)) for topic in topics(settings.source) for name in positions]
    return {name: number for name, number in numbered if number is not None}


def _all_in(share: str, numbers: Iterable[int]) -> bool:
    index, count = map(int, share.split("/"))
    return all(number % count == index for number in numbers)


def _told(share: str | None) -> str:
    return f"the share {share} of the partitions" if share else "all partitions"
