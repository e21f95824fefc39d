"""The input of a run: its sources, and the stage that decodes their records ahead of the main loop."""

from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass

from connectors import Position, Source, split_uri
from stream_engine.service.in_flight import InFlight
from stream_engine.service.ingest import Ingest
from stream_engine.service.settings import Settings
from stream_engine.service.source_health import SourceHealth
from stream_engine.service.sources import event_options, source
from stream_engine.service.stages import DecodeStage, cpus


@dataclass(frozen=True, slots=True)
class Reading:
    """The sources, the decoders, and the stage in which they run; `following`: the sources do not end, so they are
    read in turn."""

    sources: list[Source]
    ingest: Ingest
    ahead: DecodeStage
    following: bool


def open_reading(
    settings: Settings,
    positions: Mapping[str, Position],
    in_flight: InFlight,
    health: SourceHealth,
    stack: ExitStack,
) -> Reading:
    """Open the sources at the positions of the state, and the decoding thread; `stack` closes them."""
    sources = []
    for uri in settings.source:
        opened = source(settings, uri, positions)
        stack.callback(opened.close)
        health.add(uri, opened)
        sources.append(opened)
    ingest = Ingest(event_options(settings), settings.input.format, in_flight)
    # one by one until it is known which record crashes the process
    ahead = DecodeStage(ingest.blocks, beside=cpus() > 1 and not in_flight.suspected)
    stack.callback(ahead.close)
    following = settings.follow or any(split_uri(uri)[0] == "kafka" for uri in settings.source)
    return Reading(sources, ingest, ahead, following)
