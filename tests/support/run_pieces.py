"""The pieces of a run without the run."""

from prometheus_client import CollectorRegistry

from connectors import DeadLetter, Record, SinkUnavailable
from connectors.files.dead_letters import DeadLetterFile
from stream_engine import Engine
from stream_engine.formats.options import EventOptions
from stream_engine.input.decoding import RecordDecoder
from stream_engine.service.context import Context
from stream_engine.service.dead_letters import DeadLetters
from stream_engine.service.metrics import Metrics
from stream_engine.service.requests import Requests
from stream_engine.service.source_health import SourceHealth
from tests.support.served import Lines


class BusyFile(DeadLetterFile):
    """Keeps in memory what it is given, and refuses so many times to say that it has."""

    def __init__(self, refusals: int):
        super().__init__("no-such-folder")
        self.refusals, self.letters = refusals, []

    def append(self, letters: list[DeadLetter]) -> None:
        self.letters += letters
        if self.refusals:
            self.refusals -= 1
            raise SinkUnavailable("full")


class World:
    """An engine with what the pieces of its run share."""

    def __init__(self, file, max_reject_ratio=0.5):
        self.engine, self.requests, self.log = Engine(), Requests(), Lines()
        self.metrics = Metrics(CollectorRegistry())
        self.context = Context(self.metrics, self.log, self.requests)
        self.health = SourceHealth(self.engine, self.context)
        self.dead_letters = DeadLetters(file, max_reject_ratio, self.health, self.context)

    def said(self, field: str) -> list[dict]:
        """The fields of the log lines that have this one."""
        return [more for _, _, more in self.log.said if field in more]


def block_of(lines: list[bytes]):
    """Lines of one file as a block."""
    (block,) = RecordDecoder(EventOptions()).blocks([Record(b"\n".join(lines), "file", 0, 100)])
    return block
