"""Dead letters: rejected events are written to their folder before their neighbours are learned."""

import os
import time
from collections import Counter, deque
from collections.abc import Callable, Collection, Iterator, Mapping, MutableMapping
from concurrent.futures import Executor
from pathlib import Path
from typing import Any

from connectors import DeadLetter, SinkUnavailable, split_uri
from connectors.disk import Disk
from connectors.files import expand
from connectors.files.dead_letters import (
    SEGMENT_BYTES,
    DeadLetterFile,
    StoredLine,
    letters_before,
)
from connectors.files.readers import LineNumbers, place
from connectors.files.readers import partition_of as partition_of_file
from connectors.kafka.client import parse_address, partition_of
from stream_engine.data.rate_limit import RateLimit
from stream_engine.formats.encodings import encoding_in_words
from stream_engine.input.decoding import Block
from stream_engine.input.record_units import unit_of
from stream_engine.input.settings import Settings
from stream_engine.service.context import Context, RunFailed
from stream_engine.service.dead_letter_limit import limit_folder, remove_segments
from stream_engine.service.source_health import POLL_SECONDS, SourceHealth
from stream_engine.state.engine import Engine

ENCODING = "--encoding"  # in the message about a row in another encoding
MIN_EVENTS = 100  # of an input, from which the rejected share indicates a wrong format
MIN_EVENTS_OF_WHOLE = 10  # the same, of an input that was read to its end
ELSEWHERE = "elsewhere"  # among the sinks of a sum: the letters that are in the folders of the states
WAITING_FOR = "dead letters"  # the name of the wait for a disk that does not take them


def letters_of(
    sinks: Mapping[str, Any], folder: str | os.PathLike[str], disk: Disk | None = None
) -> Iterator[StoredLine]:
    """The dead letters of a state; `sinks` are the sinks recorded in its snapshot. Dead letters that `dead-letters
    replay` of version 0.1.0 has counted are excluded."""
    n_replayed = sinks.get("replayed", {})
    for line in letters_before(folder, sinks.get("file", 0), disk):
        if line.letter is None or line.at >= n_replayed.get(line.letter.reason, 0):
            yield line


def letters_in_folders(counters: Mapping[str, Any]) -> int:
    """How many rejected events of a state have a dead letter somewhere."""
    letters = counters.get("dead_letters", {})
    gone = letters.get("removed", 0) + letters.get("lost", 0) + forgotten_letters(counters)
    return sum(counters["rejected"].values()) - gone


def forgotten_letters(counters: Mapping[str, Any]) -> int:
    """How many dead letters `forget` has deleted."""
    return sum(deed.get("dead_letters", 0) for deed in counters.get("history", ()) if deed["did"] == "forget")


def folder_of(settings: Settings, directory: Path) -> Path:
    """The folder of a state's dead letters."""
    return Path(settings.dead_letters) if settings.dead_letters else directory / "dead_letters"


def open_file(settings: Settings, directory: Path, sinks: Mapping[str, Any]) -> DeadLetterFile:
    """The folder of dead letters, opened at the position in `sinks`, the sinks of the snapshot."""
    keep = settings.dead_letters_keep_bytes
    size = min(SEGMENT_BYTES, keep // 4) if keep else SEGMENT_BYTES  # whole segments are removed
    return DeadLetterFile(folder_of(settings, directory), sinks.get("file", 0), segment_bytes=size)


def _commonest(letters: list[DeadLetter]) -> DeadLetter:
    """The first dead letter with the commonest message."""
    ((message, _),) = Counter(letter.message for letter in letters).most_common(1)
    return next(letter for letter in letters if letter.message == message)


class RecentEvents:
    """The share of rejected events among the newest `MIN_EVENTS` of an input, or in its last block if it is larger. Of
    the oldest block that is partly among them, rejected events are in proportion."""

    def __init__(self) -> None:
        self._blocks: deque[tuple[int, int]] = deque()  # events rejected, and all
        self._n_seen = 0

    def add(self, rejected: int, accepted: int) -> None:
        if not rejected + accepted:
            return
        self._blocks.append((rejected, rejected + accepted))
        self._n_seen += rejected + accepted
        while self._n_seen - self._blocks[0][1] >= MIN_EVENTS:
            self._n_seen -= self._blocks.popleft()[1]

    def share(self) -> float:
        """The share of rejected ones; 0 as long as there are fewer than `MIN_EVENTS`.

        >>> recent = RecentEvents()
        >>> for refused, accepted in ((50, 0), (100, 900), (30, 0), (20, 0), (0, 50), (0, 40)):
        ...     recent.add(refused, accepted)
        ...     print(round(recent.share(), 3))
        0.0
        0.1
        0.37
        0.55
        0.5
        0.1
        """
        if self._n_seen < MIN_EVENTS:
            return 0.0
        (oldest_rejected, oldest), *newer = self._blocks
        n_of_oldest = MIN_EVENTS - (self._n_seen - oldest)
        return (oldest_rejected * n_of_oldest / oldest + sum(rejected for rejected, _ in newer)) / MIN_EVENTS


def proven_inputs(settings: Settings, engine: Engine) -> Callable[[str], bool]:
    """A function: whether a state has counted events of an input when a run resumes it. If the state has read every
    source of the run, new files of them count too."""
    names = set(engine.positions) if engine.counters["events"] else set[str]()
    if not names:
        return lambda where: False
    inputs = names | {name.rpartition("/")[0] for name in names}  # of the partitions of a topic
    if all(_is_known(uri, names) for uri in settings.source):
        return lambda where: True
    return inputs.__contains__


def _is_known(uri: str, names: Collection[str]) -> bool:
    """Whether some partition of a source is among these."""
    scheme, address = split_uri(uri)
    if scheme == "kafka":
        return any(partition_of(parse_address(address).topic, name) is not None for name in names)
    if scheme == "file":
        return any(partition_of_file(path) in names for path in expand(address))
    stem = uri.partition("?")[0].partition("*")[0].partition("[")[0]
    return any(name.startswith(stem) for name in names)


# A full disk applies backpressure: dead letters wait, and the stream waits with them. When the folder exceeds its
# limit, the oldest segments are removed. A snapshot records the decision and the count; the removal happens once that
# snapshot is durable, in this process or the next one, so the count is always exact.
#
# If most events of an input are rejected, the options are probably wrong, and the run ends and keeps nothing. That
# holds only until a snapshot has counted events of the input. From then on, a burst of rejected events is a burst of
# dead letters, with a log line and a metric: a run that ended there would meet the same events at each start.
class DeadLetters:
    """The folder of one run's dead letters, and the number of rejected events of each input. `keep_bytes` limits the
    folder (0: no limit). `proven`: whether the state has counted events of an input."""

    def __init__(
        self,
        file: DeadLetterFile,
        max_reject_ratio: float,
        health: SourceHealth,
        context: Context,
        keep_bytes: int = 0,
        lines: LineNumbers | None = None,
        proven: Callable[[str], bool] = lambda where: False,
    ):
        self._lines = lines or LineNumbers()
        self.first = ""  # first rejected event of this run that has the commonest reason: location and reason
        self.not_utf8 = 0  # rows of this run that were rejected because of their encoding
        self.encoding = ""  # of the first of these, as `encoding_in_words`
        self._keep_bytes = keep_bytes
        self._file, self.max_ratio = file, max_reject_ratio
        self._health, self._requests, self._log = health, context.requests, context.log
        self._n_rejected: dict[str, int] = {}  # input -> events rejected in this run
        self._n_seen: dict[str, int] = {}  # input -> events seen in this run
        self._is_proven_at_start, self._proven = proven, set[str]()
        self._recent: dict[str, RecentEvents] = {}
        self._metrics = context.metrics
        self._limit = RateLimit()
        self._logged_inputs: set[str] = set()  # inputs whose first rejected event was logged

    def keep(self, block: Block, last_snapshot: int) -> None:
        """Write a block's dead letters. Raises `RunFailed` if too many events of an input were rejected."""
        letters = block.dead_letters
        commonest = _commonest(letters) if letters else None
        if letters:
            self._append(letters)
            not_utf8 = [letter for letter in letters if ENCODING in letter.message]
            if not_utf8 and not self.not_utf8:
                self.encoding = encoding_in_words(bytes(block.records[0].value))
                location = place(not_utf8[0].partition, not_utf8[0].offset, self._lines)
                how = f"the row is not UTF-8; specify {self.encoding}"
                self._log.warning(f"{location}: {how}; rows in another encoding are not read")
            self.not_utf8 += len(not_utf8)
        record = block.records[0]
        input_name = unit_of(record).input_of(record.partition)
        if commonest and input_name not in self._logged_inputs:
            self._logged_inputs.add(input_name)
            location = place(commonest.partition, commonest.offset, self._lines)
            self.first = self.first or f"{location}: {commonest.message}"
            self._log.info(
                "event rejected and stored as a dead letter (logged once per input)",
                at=location,
                reason=commonest.reason,
                message=commonest.message,
            )
        self._n_rejected[input_name] = self._n_rejected.get(input_name, 0) + len(letters)
        events = self._n_seen[input_name] = (
            self._n_seen.get(input_name, 0) + len(letters) + sum(block.decoded.events.values())
        )
        if events >= MIN_EVENTS:
            self._raise_if_too_many(input_name, commonest.message if commonest else self.first, last_snapshot)
        self._note_share(input_name, letters, sum(block.decoded.events.values()))

    def _is_proven(self, where: str) -> bool:
        return where in self._proven or self._is_proven_at_start(where)

    def _note_share(self, input_name: str, letters: list[DeadLetter], n_accepted: int) -> None:
        """Log when most of the newest events of an input are rejected, and when they are accepted again."""
        recent = self._recent.setdefault(input_name, RecentEvents())
        exceeded = recent.share() > self.max_ratio
        recent.add(len(letters), n_accepted)
        exceeds = recent.share() > self.max_ratio
        self._metrics.rejected_share.set(max(recent_events.share() for recent_events in self._recent.values()))
        if exceeds and not exceeded and self._limit.due(f"share {input_name}"):
            details: dict[str, object] = {}
            if letters:  # a block without any can be the one that completes the first `MIN_EVENTS` events
                reason, n = Counter(letter.reason for letter in letters).most_common(1)[0]
                message = next(letter.message for letter in letters if letter.reason == reason)
                details = {"reason": reason, "n": n, "message": message}
            self._log.error(
                "most of the newest events are rejected; they are dead letters, and the run continues",
                input=input_name,
                share=round(recent.share(), 3),
                **details,
                next="stream-engine dead-letters list",
            )
        elif exceeded and not exceeds:
            self._log.info("the newest events are accepted again", input=input_name, share=round(recent.share(), 3))

    def check_something_was_right(self, last_snapshot: int) -> None:
        """Called at the end of all inputs. Raises `RunFailed` if all events were rejected, however few there were, or
        too many of one input."""
        inputs = [input_name for input_name in self._n_seen if not self._is_proven(input_name)]
        n_rejected, events = (
            sum(counts[input_name] for input_name in inputs) for counts in (self._n_rejected, self._n_seen)
        )
        if n_rejected and n_rejected == events and self.max_ratio < 1:
            advice = "; use another --state for files that need other options; `stream-engine "
            advice += "merge` adds the two states"
            raise RunFailed(
                f"all {n_rejected:,} events were rejected (first: {self.first}). Nothing after snapshot "
                f"{last_snapshot} is kept; correct --type, --columns or --format (stream-engine preview shows what is "
                f"read) and run again{advice if last_snapshot else ''}"
            )
        for input_name in inputs:
            if self._n_seen[input_name] >= MIN_EVENTS_OF_WHOLE:
                self._raise_if_too_many(input_name, self.first, last_snapshot)

    def _raise_if_too_many(self, input_name: str, message: str, last_snapshot: int) -> None:
        """Raises `RunFailed` if too many events of an input were rejected."""
        n_rejected, events = self._n_rejected[input_name], self._n_seen[input_name]
        if n_rejected > self.max_ratio * events and not self._is_proven(input_name):
            raise RunFailed(
                f"{input_name}: {n_rejected} of {events} events were rejected ({message}), more than "
                f"--max-reject-ratio {self.max_ratio:g}: another format? Nothing after snapshot {last_snapshot} is "
                "kept; correct --type, --columns, --where, --encoding or --format (stream-engine preview shows what "
                "is read) and run again"
            )

    def _append(self, letters: list[DeadLetter]) -> None:
        """Write dead letters; wait until the disk accepts them, or until a stop is requested."""
        patience, since = 0.0, time.monotonic()
        while True:
            try:
                self._file.append(letters)
                break
            except SinkUnavailable as error:
                letters = []  # they are kept; nothing is published before it is flushed
                if self._requests.stop:
                    return
                if not patience:
                    self._log.error("cannot write dead letters, waiting", problem=str(error))
                patience = min(5.0, patience + 0.5)
                next_attempt = time.monotonic() + patience
                while not self._requests.stop and time.monotonic() < next_attempt:
                    time.sleep(POLL_SECONDS)
                    self._health.held_up(WAITING_FOR, since)
        self._health.goes_on(WAITING_FOR)

    def flush(self, executor: Executor, sinks: MutableMapping[str, Any], counts: MutableMapping[str, int]) -> None:
        """Make all dead letters durable. Writes to `sinks` the position that the snapshot must hold, and to
        `counts` the number of dead letters to remove once it is published. Raises `SinkUnavailable`, `OSError`."""
        flushing = executor.submit(self._flush, sinks, counts)
        self._health.wait_for(WAITING_FOR, flushing)
        flushing.result()

    def _flush(self, sinks: MutableMapping[str, Any], counts: MutableMapping[str, int]) -> None:
        """`flush`, in its thread; then choose the oldest segments for removal, never the one that is being written."""
        sinks["file"] = self._file.flush()
        removed_letters, _ = limit_folder(self._file, self._keep_bytes, sinks, counts)
        if removed_letters and self._limit.due(WAITING_FOR):
            self._log.warning(
                "dead letters exceed dead_letters_keep_bytes; snapshots remove the oldest",
                first_segment=next(iter(removed_letters)),
                letters=sum(removed_letters.values()),
                removed_in_total=counts["removed"],
            )

    def after_publishing(self, sinks: Mapping[str, Any]) -> None:
        """Remove what a snapshot counts as removed, now that it is durable, and trust the inputs that it has counted.
        Never fails."""
        n_seen = list(self._n_seen.items())  # at once: the main thread adds inputs meanwhile
        right = (where for where, n in n_seen if n >= MIN_EVENTS and self._n_rejected[where] <= self.max_ratio * n)
        self._proven.update(right)
        try:
            remove_segments(self._file, sinks)
        except OSError as error:  # tried again after the next one
            self._log.warning("could not remove dead letters above the limit", problem=str(error))

    def count_lost(self, engine: Engine) -> None:
        """Count the rejected events of the state whose dead letters are missing from the folder.

        At least 1. Too many if old segments were moved away by hand.
        """
        file = self._file
        if not file.lost:
            return
        counts = engine.counters["dead_letters"]
        n_stored = sum(1 for _ in letters_of(engine.sinks, file.directory, file.disk))
        n = max(1, letters_in_folders(engine.counters) - n_stored - engine.sinks.get(ELSEWHERE, 0))
        counts["lost"] = counts.get("lost", 0) + n
        engine.note("dead letters lost", letters=n, problem=file.lost)
        self._log.error("dead letters are missing; continuing without them", letters=n, problem=file.lost)
