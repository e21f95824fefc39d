"""Dead letters decoded once more, with other options or a better engine: what is right now is counted, once.

A replay takes letters out of the dead letters, as a run takes records out of a source. What is right is learned, what
fails again becomes a new letter behind the others, and both enter one snapshot together with the place up to which
letters were taken, by reason. So a replay that dies is as if it had not begun, and a second one finds no letter twice.

The state is the one that had read these events right the first time, as far as it does not depend on order: the
accumulators and the counters. Ids, the guard, and how predictions went are those of events that came later.
Letters that do not hold all of their event stay. O(letters).
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

from connectors import DeadLetter, Record
from connectors.disk import Disk
from connectors.files.dead_letter_reader import Kept, letters_before
from connectors.files.dead_letter_sink import DeadLetterFile
from connectors.files.text_layout import PLAIN_TEXT, TextLayout
from stream_engine.data.comparisons import Decoded
from stream_engine.formats import Decoder, decoder
from stream_engine.formats.options import EventOptions, UnreadableHeader
from stream_engine.service.letters_origin import Origin, Origins
from stream_engine.service.quarantine import failure_of, many_apart
from stream_engine.service.record_bounds import SHOWN
from stream_engine.state.engine import Engine
from stream_engine.state.snapshot import Snapshot
from stream_engine.state.store import Store

AT_ONCE = 10_000  # letters
NEVER_WHOLE = "incomplete"


class Report(NamedTuple):
    """What a replay did, or would do. `again` counts refusals by reason, `problems` what hindered whole inputs."""

    letters: int = 0  # that were tried
    right: int = 0  # letters that are refused no more
    events: int = 0  # in them
    filtered: int = 0
    again: Mapping[str, int] = {}
    examples: Mapping[str, str] = {}  # reason of a new refusal -> the first one, in a line
    not_whole: int = 0
    problems: tuple[str, ...] = ()
    snapshot: int | None = None  # that was published


def live_letters(sinks: Mapping[str, Any], folder: Path, disk: Disk | None = None) -> Iterator[Kept]:
    """The letters of a state that were not replayed; `sinks` is what its snapshot says of them."""
    replayed = sinks.get("replayed", {})
    for kept in letters_before(folder, sinks.get("file", 0), disk):
        if kept.at >= replayed.get(kept.letter.reason, 0):
            yield kept


def replay(
    store: Store,
    snapshot: Snapshot,
    folder: Path,
    options: EventOptions,
    *,
    format: str | None = None,
    header: str | None = None,
    reason: str | None = None,
    dry_run: bool = False,
    layout: TextLayout = PLAIN_TEXT,
) -> Report:
    """Decode the letters of a state again, all or those of one reason, and publish what came of it.

    The caller holds the state's lock. Raises `UnusableSource`, `UnusableOptions`, `OSError`.
    """
    engine = Engine.restore(snapshot)
    again = _Again(engine, Origins(options, engine.positions, format, header, layout))
    here = engine.sinks.get("file", 0)
    sink = None if dry_run else DeadLetterFile(folder, here, disk=store.disk)
    wanted = (each for each in live_letters(engine.sinks, folder, store.disk) if reason in (None, each.letter.reason))
    keep = sink.append if sink is not None else len  # what stays has its new place behind the others
    for group in _groups(again.whole_ones(wanted, keep), again.origins):
        keep(again.take(*group))
    report = again.report()
    if sink is None or not report.right:
        return report
    engine.sinks["file"] = sink.flush()
    engine.sinks["replayed"] = {**engine.sinks.get("replayed", {}), **dict.fromkeys(sorted(again.reasons), here)}
    engine.note("replay", reason=reason, letters=report.letters, right=report.right, again=dict(report.again))
    published, _ = store.publish(engine.snapshot())
    return report._replace(snapshot=published.sequence)


def _groups(letters: Iterator[DeadLetter], origins: "Origins") -> Iterator[tuple[Origin, list[DeadLetter]]]:
    """Letters in order, those that are read alike together."""
    for partition, group in groupby(letters, key=lambda letter: letter.partition):
        origin, some = origins.of(partition), []
        for letter in group:
            some.append(letter)
            if len(some) == AT_ONCE:
                yield origin, some
                some = []
        if some:
            yield origin, some


class _Again:
    """An engine that learns from letters what is right now, and what is to be said of it."""

    def __init__(self, engine: Engine, origins: "Origins"):
        self.engine, self.origins = engine, origins
        self.reasons: set[str] = set()  # of the letters that were taken
        self._decoders: dict[Origin, Decoder] = {}
        self._again: Counter[str] = Counter()
        self._examples: dict[str, str] = {}
        self._letters = self._right = self._not_whole = 0
        self._before = dict(engine.counters)

    def whole_ones(self, kept: Iterator[Kept], keep: Callable[[list[DeadLetter]], object]) -> Iterator[DeadLetter]:
        """The letters that can be tried; the others stay: where letters of their reason are taken, as new ones."""
        for each in kept:
            if _is_whole(each.letter):
                yield each.letter
                continue
            self._not_whole += 1
            if each.letter.reason != NEVER_WHOLE:
                self.reasons.add(each.letter.reason)
                keep([each.letter])

    def take(self, origin: Origin, letters: list[DeadLetter]) -> list[DeadLetter]:
        """Learn what is right in letters of one origin; the letters that take the place of those that are not."""
        failed: list[DeadLetter] = []
        while letters:
            taken, again = self._take_some(origin, letters)
            failed += again
            letters = letters[taken:]
        return failed

    def _take_some(self, origin: Origin, letters: list[DeadLetter]) -> tuple[int, list[DeadLetter]]:
        """The same for the first of them, which are as many as may be unpacked at once; how many these were."""
        try:
            decoded, refused_in = self._decoded(origin, letters)
        except UnreadableHeader as error:
            self.origins.problem(f"{letters[0].partition}: {error}")
            decoded = None
        if decoded is not None and decoded.values is not None:
            letters = letters[: decoded.values]
        self._letters += len(letters)
        self.reasons.update(letter.reason for letter in letters)
        if decoded is None or origin.problem:
            self._again.update(letter.reason for letter in letters)
            return len(letters), letters
        engine, rejected = self.engine, self.engine.counters["rejected"]
        for letter in letters:
            rejected[letter.reason] = max(0, rejected.get(letter.reason, 0) - 1)
        engine.learn(decoded, records=0 if origin.is_message else _items(decoded) - len(letters))
        for reason in [reason for reason, n in rejected.items() if not n]:
            del rejected[reason]
        failed = [origin.letter(letters[n], each) for n, each in zip(refused_in, decoded.rejected, strict=True)]
        self._right += len(letters) - len(set(refused_in))
        for letter in failed:
            self._again[letter.reason] += 1
            self._examples.setdefault(letter.reason, f"{letter.partition}@{letter.offset}: {letter.message}")
        return len(letters), failed

    def _decoded(self, origin: Origin, letters: list[DeadLetter]) -> tuple[Decoded, list[int]]:
        decode = self._decoders.setdefault(origin, decoder(origin.format, origin.options))
        values = [origin.prefix + letter.value for letter in letters]
        try:
            return decode.many(values)
        except Exception as error:
            failure_of(error)
        records = [Record(value, "", 0, 0, unit="message") for value in values]
        decoded, refused_in = many_apart(decode.many, records, origin.options.provenance)
        return decoded, refused_in

    def report(self) -> Report:
        """What was done."""
        now = self.engine.counters
        return Report(
            self._letters,
            self._right,
            now["events"] - self._before["events"],
            now["filtered"] - self._before["filtered"],
            dict(sorted(self._again.items())),
            self._examples,
            self._not_whole,
            tuple(self.origins.problems),
        )


def _is_whole(letter: DeadLetter) -> bool:
    """Whether a letter holds all of its event: of what was too large, only the beginning or nothing may be kept."""
    if letter.reason == "too_large":
        return 0 < len(letter.value) < SHOWN
    return letter.reason != NEVER_WHOLE


def _items(decoded: Decoded) -> int:
    return sum(decoded.events.values()) + len(decoded.rejected) + decoded.filtered + decoded.empty
