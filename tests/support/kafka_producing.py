"""Files of events to a topic, put together as the verb `produce` does."""

from collections.abc import Iterable

from connectors import records_of
from connectors.kafka.produce import SendReport, send
from stream_engine.formats.event_messages import EventMessages


def produce(
    files: Iterable[str], uri: str, *, encoding: str = "json", batch: int = 1, format: str | None = None, **more
) -> tuple[SendReport, int]:
    """What was sent, and how many items could not be; `more` are options of `send`."""
    messages = EventMessages(records_of(files, format), encoding, batch)
    return send(messages, uri, **more), messages.skipped
