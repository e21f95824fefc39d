"""Dead letters: refused events go into every sink before anything is learned from their neighbours.

A full sink applies backpressure: the letters stay with it, and the stream waits until it can take more.
"""

import time
from collections.abc import Mapping, MutableMapping
from concurrent.futures import Executor
from typing import Any

from structlog.typing import FilteringBoundLogger

from connectors import DeadLetter, Sink, SinkUnavailable
from connectors.files.dead_letter_sink import DeadLetterFile
from connectors.files.line_numbers import LineNumbers, place
from stream_engine.service.ingest import Block
from stream_engine.service.letters_kept import LettersKept
from stream_engine.service.requests import Requests
from stream_engine.service.run_failed import RunFailed
from stream_engine.service.source_health import POLL_SECONDS, SourceHealth
from stream_engine.service.triggers import too_many_rejected

ENCODING = "--encoding"  # what the message about a row in another encoding names


class DeadLetters:
    """The sinks of one run, by scheme, and how much of each input was refused."""

    def __init__(
        self,
        sinks: Mapping[str, Sink],
        max_reject_ratio: float,
        health: SourceHealth,
        requests: Requests,
        log: FilteringBoundLogger,
        limits: LettersKept | None = None,
        lines: LineNumbers | None = None,
    ):
        self._lines = lines or LineNumbers()
        self.first = ""  # refusal of this run: where it stands, and why
        self.not_utf8 = 0  # rows of this run that were refused because they are in another encoding
        self._limits = limits  # of the folder
        self._sinks, self.max_ratio = sinks, max_reject_ratio
        self._health, self._requests, self._log = health, requests, log
        self._refused: dict[str, int] = {}  # input -> events refused in this run
        self._seen: dict[str, int] = {}  # input -> events seen in this run
        self._logged: set[str] = set()  # inputs whose first refusal was logged

    def keep(self, block: Block, last_snapshot: int) -> None:
        """Hand a block's dead letters to every sink. Raises `RunFailed` when too much of an input was refused."""
        letters = block.dead_letters
        if letters:
            for name, sink in self._sinks.items():
                self._append(name, sink, letters)
            self.not_utf8 += sum(ENCODING in letter.message for letter in letters)
        record = block.records[0]
        where = record.partition.rpartition("/")[0] if record.unit == "message" else record.partition
        if letters and where not in self._logged:
            self._logged.add(where)
            at = place(letters[0].partition, letters[0].offset, self._lines)
            self.first = self.first or f"{at}: {letters[0].message}"
            self._log.warning(
                "event refused, kept in the dead letters (said once per input)",
                at=at,
                reason=letters[0].reason,
                message=letters[0].message,
            )
        refused = self._refused[where] = self._refused.get(where, 0) + len(letters)
        seen = self._seen[where] = self._seen.get(where, 0) + len(letters) + sum(block.decoded.events.values())
        if too_many_rejected(self.max_ratio, refused, seen):
            raise RunFailed(
                f"{where}: {refused} of {seen} events were refused ({letters[0].message if letters else ''}), more "
                f"than --max-reject-ratio {self.max_ratio:g}: another format? Nothing since snapshot {last_snapshot} "
                "is kept; correct --type, --columns, --encoding or --format and run again"
            )

    def check_something_was_right(self, last_snapshot: int) -> None:
        """At the end of an input. Raises `RunFailed` where all that came was refused, however little it was."""
        refused, seen = sum(self._refused.values()), sum(self._seen.values())
        if refused and refused == seen and self.max_ratio < 1:
            more = "; files that need other options than the state has go into another --state, and `stream-engine "
            more += "merge` sums both"
            raise RunFailed(
                f"all of the {refused:,} events were refused (first: {self.first}). Nothing since snapshot "
                f"{last_snapshot} is kept; correct --type, --columns or --format (stream-engine preview shows what is "
                f"read) and run again{more if last_snapshot else ''}"
            )

    def _append(self, name: str, sink: Sink, letters: list[DeadLetter]) -> None:
        """Hand letters over; waits until the sink can take them, or until someone asks to stop."""
        patience, began = 0.0, time.monotonic()
        while True:
            try:
                sink.append(letters)
                break
            except SinkUnavailable as error:
                letters = []  # the sink has them; without it being flushed nothing is published
                if self._requests.stop:
                    return
                if not patience:
                    self._log.error("dead letters cannot be kept, waiting", sink=name, problem=str(error))
                patience = min(5.0, patience + 0.5)
                next_attempt = time.monotonic() + patience
                while not self._requests.stop and time.monotonic() < next_attempt:
                    time.sleep(POLL_SECONDS)
                    self._health.held_up(_named(name), began)
        self._health.goes_on(_named(name))

    def flush(
        self,
        executor: Executor,
        remembered: MutableMapping[str, Any],
        counts: MutableMapping[str, int] | None = None,
    ) -> None:
        """Make all letters durable; `remembered` gets the positions that the snapshot is to hold, by sink, and with
        `counts` what is to be removed then.

        Raises `SinkUnavailable`, `OSError`.
        """
        for name, sink in self._sinks.items():
            flushed = executor.submit(sink.flush)
            self._health.wait_for(_named(name), flushed)
            remembered[name] = flushed.result()
        file = self._sinks.get("file")
        if self._limits is not None and counts is not None and isinstance(file, DeadLetterFile):
            decided = executor.submit(self._limits.decide, file, remembered, counts)
            self._health.wait_for(_named("file"), decided)
            decided.result()

    def published(self, remembered: Mapping[str, Any]) -> None:
        """A snapshot that remembers this is durable: what it counts as removed goes now. Never fails."""
        try:
            if self._limits is not None:
                self._limits.carry_out(remembered)
        except OSError as error:  # tried again after the next one
            self._log.warning("dead letters over their limits could not be removed", problem=str(error))


def _named(sink: str) -> str:
    return f"dead letters ({sink})"
