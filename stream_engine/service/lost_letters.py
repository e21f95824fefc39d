"""A folder of dead letters that is gone or was cut, and an operator who goes on without it: counted, for ever."""

from collections.abc import Mapping
from pathlib import Path

from structlog.typing import FilteringBoundLogger

from connectors import Sink
from stream_engine.service.letters_replay import live_letters
from stream_engine.state.engine import Engine


def note(engine: Engine, sinks: Mapping[str, Sink], folder: Path, log: FilteringBoundLogger) -> None:
    """Count what the folder has lost, where that was accepted: the refusals of the state that have no letter there.

    At least 1; too many where old segments were moved away by hand, or letters of merged states are elsewhere.
    """
    lost = getattr(sinks["file"], "lost", "")
    if not lost:
        return
    gone = engine.counters["dead_letters"]
    there = sum(1 for _ in live_letters(engine.sinks, folder))
    refused = sum(engine.counters["rejected"].values())
    n = max(1, refused - there - gone.get("removed", 0) - gone.get("lost", 0))
    gone["lost"] = gone.get("lost", 0) + n
    engine.note("dead letters lost", letters=n, problem=lost)
    log.warning("dead letters are lost, going on without them as was asked", letters=n, problem=lost)
