"""The share of a topic's partitions that a state reads: two states of one topic never read the same partition."""

from collections.abc import Iterable, Mapping

from connectors import Position, split_uri
from connectors.kafka.client import parse_address, partition_of
from stream_engine.input.settings import BadSettings, Settings
from stream_engine.input.settings.loading import shard


def asked_share(settings: Settings) -> str | None:
    """The share that a run requests, "i/n" in plain digits; None for all partitions (also 0/1)."""
    share = shard(settings.input.shard)
    return None if share is None or share == (0, 1) else f"{share[0]}/{share[1]}"


def agreed_share(settings: Settings, made_with: str | None, positions: Mapping[str, Position]) -> str | None:
    """The share of a state created with `made_with`, when a run resumes it. A run without a topic reads no
    partitions and leaves the share unchanged. Raises `BadSettings` if the run requests another share."""
    share_of_run = asked_share(settings)
    if not _topics(settings) or share_of_run == made_with:
        return made_with
    if made_with is None and share_of_run is not None:
        index, count = map(int, share_of_run.split("/"))
        if all(number % count == index for number in partition_numbers(settings, positions).values()):
            return share_of_run
    owners = (made_with, share_of_run)
    shares = [f"the share {share} of the partitions" if share else "all partitions" for share in owners]
    raise BadSettings(
        f"{settings.state}: created with {shares[0]}, requested {shares[1]}: partitions would be counted twice "
        "or never; use the same --shard, or create states for other shares: stream-engine merge --into N"
    )


def partition_numbers(settings: Settings, positions: Iterable[str]) -> dict[str, int]:
    """The partitions of a run's topics, each with its number."""
    numbers = [(name, partition_of(topic, name)) for topic in _topics(settings) for name in positions]
    return {name: number for name, number in numbers if number is not None}


def _topics(settings: Settings) -> list[str]:
    return [parse_address(address).topic for scheme, address in map(split_uri, settings.source) if scheme == "kafka"]
