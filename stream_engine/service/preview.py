"""How the first events of files would be read, and what about them a person should look at. Nothing is written.

Suspicious names are those that differ in capitals, spaces or the Unicode form of their letters alone: two objects to
the engine, most often one to whoever typed them. A question is repeated when the same objects were asked about before.
O(events that are looked at).
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from statistics import median
from typing import Any, NamedTuple

from msgspec import structs

from connectors import split_uri
from connectors.files.line_numbers import LineNumbers, place
from stream_engine.data.comparisons import Decoded
from stream_engine.service.ingest import Block, Ingest
from stream_engine.service.settings import Settings
from stream_engine.service.sources import event_options, first_columns, prepared, source, text_layout_of

FIRST = 5  # events that are shown
_SPACES = re.compile(r"\s+")


class Preview(NamedTuple):
    """What was found, as JSON values."""

    read_as: str
    columns: list[str]
    ignored: list[str]
    first: list[str]
    events: int
    comparisons: int
    whole: bool  # the end of the input was reached
    refused: dict[str, int]
    first_refused: list[str]
    filtered: int
    objects: int
    names: list[str]
    suspicious: list[list[str]]
    workers: int
    questions_per_worker: list[float]  # least, median, most
    repeated: int
    repeated_alike: int


def preview(settings: Settings, most: int) -> Preview:
    """The first `most` events of the sources. Raises what a run with these settings would raise before it reads, and
    `connectors.SourceFailed`."""
    settings, read_as = prepared(settings)
    settings = structs.replace(settings, follow=False)
    options = event_options(settings)._replace(provenance=True)
    lines = LineNumbers(settings.input.format, text_layout_of(settings))
    found = _Found(lines)
    whole = True
    for uri in settings.source:
        if split_uri(uri)[0] == "file":
            whole = _read(settings, uri, Ingest(options, settings.input.format), found, most)
        if not whole:
            break
    lines.close()
    return found.preview(read_as, list(first_columns(settings)), whole)


def _read(settings: Settings, uri: str, ingest: Ingest, found: "_Found", most: int) -> bool:
    """Read a source until `most` events were found; whether its end was reached."""
    opened = source(settings, uri, {})
    try:
        while not opened.finished():
            for block in ingest.blocks(opened.poll(1.0)):
                found.add(block)
            if found.events >= most:
                return opened.finished()
    finally:
        opened.close()
    return True


class _Found:
    """What was found so far."""

    def __init__(self, lines: LineNumbers):
        self._lines = lines
        self.events = self._comparisons = self._filtered = self._repeated = self._alike = 0
        self._first: list[str] = []
        self._refused: Counter[str] = Counter()
        self._first_refused: list[str] = []
        self._names: dict[str, None] = {}
        self._workers: Counter[str] = Counter()
        self._asked: dict[Any, frozenset[Any]] = {}  # question -> its last answer
        self._ignored: set[str] = set()

    def add(self, block: Block) -> None:
        """A block of the input."""
        decoded = block.decoded
        self.events += sum(decoded.events.values())
        self._filtered += decoded.filtered
        self._ignored |= decoded.unknown_fields
        for letter in block.dead_letters:
            self._refused[letter.reason] += 1
            if len(self._first_refused) < FIRST:
                at = place(letter.partition, letter.offset, self._lines)
                self._first_refused.append(f"{at}: {letter.message}")
        for piece in (decoded, *decoded.rest):
            self._add_comparisons(piece)

    def _add_comparisons(self, piece: Decoded) -> None:
        self._comparisons += len(piece.triplets) + len(piece.quadruplets)
        self._names |= dict.fromkeys(piece.names)
        workers = piece.provenance
        if workers is not None and not workers.continues:
            self._workers.update(workers.workers[number] for number in workers.worker.tolist() if number >= 0)
        for answer in _answers(piece):
            if len(self._first) < FIRST:
                self._first.append("; ".join(map(_told, answer)))
            question = _asked(answer)
            if question in self._asked:
                self._repeated += 1
                self._alike += self._asked[question] == frozenset(answer)
            self._asked[question] = frozenset(answer)

    def preview(self, read_as: str, columns: list[str], whole: bool) -> Preview:
        """All of it."""
        numbers = sorted(self._workers.values())
        return Preview(
            read_as,
            columns,
            sorted(self._ignored),
            self._first,
            self.events,
            self._comparisons,
            whole,
            dict(self._refused.most_common()),
            self._first_refused,
            self._filtered,
            len(self._names),
            list(self._names)[:20],
            suspicious_names(self._names),
            len(numbers),
            [numbers[0], median(numbers), numbers[-1]] if numbers else [],
            self._repeated,
            self._alike,
        )


def _answers(piece: Decoded) -> Iterator[list[tuple[str, ...]]]:
    """The comparisons of each event, by name."""
    if piece.kinds is None:
        return
    of_event: dict[int, list[tuple[str, ...]]] = {}
    parts = ((piece.kinds.of_triplet, piece.triplets), (piece.kinds.of_quadruplet, piece.quadruplets))
    names = list(piece.names)
    for events, rows in parts:
        for event, row in zip(events.tolist(), rows.tolist(), strict=True):
            of_event.setdefault(event, []).append(tuple(names[i] for i in row))
    for event in sorted(of_event):
        yield of_event[event]


def _asked(answer: list[tuple[str, ...]]) -> Any:
    """The question that an event of these comparisons answers, whatever was answered.

    >>> odd_is_c, odd_is_a = [("a", "b", "c"), ("b", "a", "c")], [("b", "c", "a"), ("c", "b", "a")]
    >>> _asked(odd_is_c) == _asked(odd_is_a), _asked([("a", "b", "c")]) == _asked([("a", "c", "b")])
    (True, True)
    >>> _asked([("a", "b", "c")]) == _asked([("b", "a", "c")])
    False
    """
    if len(answer[0]) == 4:
        return frozenset([frozenset(answer[0][:2]), frozenset(answer[0][2:])])
    anchors = {comparison[0] for comparison in answer}
    return anchors.pop() if len(anchors) == 1 else "", frozenset(name for comparison in answer for name in comparison)


def _told(comparison: tuple[str, ...]) -> str:
    """A comparison in words.

    >>> _told(("a", "b", "c"))
    "'a' is nearer to 'b' than to 'c'"
    """
    if len(comparison) == 3:
        anchor, near, far = comparison
        return f"{anchor!r} is nearer to {near!r} than to {far!r}"
    i, j, k, l = comparison
    return f"{i!r} and {j!r} are nearer than {k!r} and {l!r}"


def suspicious_names(names: Iterable[str]) -> list[list[str]]:
    """Names that are the same but for capitals, spaces and the Unicode form of their letters.

    >>> suspicious_names(["b", "Lemon", " b", "c", "lemon", "lemon tree", "lemon  tree"])
    [['b', ' b'], ['Lemon', 'lemon'], ['lemon tree', 'lemon  tree']]
    """
    alike: dict[str, list[str]] = {}
    for name in names:
        key = _SPACES.sub(" ", unicodedata.normalize("NFKC", name).strip()).casefold()
        alike.setdefault(key, []).append(name)
    return [group for group in alike.values() if len(group) > 1]


def as_text(found: Preview, where: str) -> str:
    """What a person reads."""
    of = "all of it" if found.whole else "its beginning"
    rows: Mapping[str, str] = {
        "read as": found.read_as.removeprefix("read as "),
        "columns": ", ".join(found.columns),
        "ignored": ", ".join(found.ignored),
        "events": f"{found.events:,} ({of}), {found.comparisons:,} comparisons"
        + (f", {found.filtered:,} left out" if found.filtered else ""),
        "refused": ", ".join(f"{n:,} {reason}" for reason, n in found.refused.items()),
        "objects": f"{found.objects:,}: " + ", ".join(found.names) + (", …" if found.objects > 20 else ""),
        "suspicious": ", ".join(" and ".join(f'"{name}"' for name in group) for group in found.suspicious),
        "people": _people(found),
        "repeated": f"{found.repeated:,} questions were asked before, {found.repeated_alike:,} answered as before"
        if found.repeated
        else "",
    }
    lines = [where, *(f"  {name:11}{text}" for name, text in rows.items() if text)]
    lines += ["  first events:", *(f"    {each}" for each in found.first)] if found.first else []
    lines += ["  first refused:", *(f"    {each}" for each in found.first_refused)] if found.first_refused else []
    return "\n".join([*lines, "nothing was written"])


def _people(found: Preview) -> str:
    if not found.workers:
        return ""
    least, middle, most = found.questions_per_worker
    if least == most:
        return f"{found.workers:,}, who answered {most:,} questions each"
    return f"{found.workers:,}, who answered {least:,} to {most:,} questions, half of them {middle:,g} or more"
