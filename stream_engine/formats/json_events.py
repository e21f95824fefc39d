"""JSON events with msgspec: one event, an array of events, or JSON lines in one value.

A line is valid by itself: blank, one event, or one array of events. msgspec's `decode_lines` is lenient about line ends
(it takes two values on a line, and a value over two lines), so its answer for many lines counts only when each of them
begins with `{` and ends with `}` and there are as many values as lines: `}` newline `{` cannot stand inside a JSON
value, hence every line then is one value. Otherwise lines are taken a few at a time, then one by one, then by the plain
definition in `validate`, which finds the reason (`json_unsure`). A value that is one array or one object over several
lines (a message, pretty-printed) is read as that. A line holds UTF-8; a byte order mark at its start is passed over.

Fields that no one asked for are ignored and named (see `json_structs`). O(bytes).
"""

from bisect import bisect_right
from collections.abc import Sequence
from typing import cast

import numpy as np

from stream_engine import formats
from stream_engine.data.comparisons import Decoded
from stream_engine.formats.bounds import OverBound
from stream_engine.formats.event_block import Block, nothing, unreadable
from stream_engine.formats.event_fields import fields_of
from stream_engine.formats.joined_blocks import one_by_one
from stream_engine.formats.json_examples import ACCEPTS, REJECTS
from stream_engine.formats.json_lines import Items, LinesOfMany, document_in, ends_if_plain, items_of, locator
from stream_engine.formats.json_plain_lines import Matched, PlainLines
from stream_engine.formats.json_structs import Structs, add_structs
from stream_engine.formats.json_unsure import UnsureEvents
from stream_engine.formats.json_where import WhereFilter
from stream_engine.formats.options import EventOptions

__all__ = ["ACCEPTS", "REJECTS", "Decoder"]

ARROW_STREAM = b"\xff\xff\xff\xff"  # how an Arrow IPC stream begins; no JSON text does


class Decoder:
    """Decodes values of JSON events. Holds the structs, which grow by the unknown fields that turn up; results other
    than `unknown_fields` do not depend on them (law: the fast paths accept nothing that `validate` refuses, and read
    the same)."""

    events_at_once = 1 << 18  # of messages that are told apart: what is held of one that is refused is a kilobyte
    lines_at_once = 4096  # what is made of them stays in the cache until it is columns: a third less time a line

    def __init__(self, options: EventOptions, fast: bool = True):
        """Without `fast` every event is read by the definition."""
        self.options, self._fast = options, fast
        event_fields = fields_of(options)
        self.structs = Structs(event_fields, fast)
        self.where = WhereFilter(event_fields) if event_fields.where else None
        self._plain = PlainLines(self.structs) if fast and self.where is None else None
        self._arrow: formats.Decoder | None = None

    def __call__(self, value: bytes | None, header: bytes = b"") -> Decoded:
        """The events of `value` (see the module); `header` has no meaning here. An empty value counts as `empty`."""
        if value and value[:4] == ARROW_STREAM:
            return self._arrow_decoder()(value)
        return self.lines(value)

    def lines(self, value: bytes | None) -> Decoded:
        """The same for a block of a stream of lines, which is no Arrow stream whatever its first line begins with."""
        if not value:
            return nothing(1, self._unknown(), self.options.provenance)
        block = Block(self.options.provenance)
        matched = self._matched(value, block)
        if matched is not None and self._read_matched(matched, value, block):
            return block.decoded(locator(None, value, self.options.bounds), self._unknown())
        block, items = Block(self.options.provenance), None
        if not self._read_at_once(value, block):
            items = items_of(value, self.options.bounds)
            self._read_told_apart(items, block)
        return block.decoded(locator(items, value, self.options.bounds), self._unknown())

    def many(self, values: Sequence[bytes | None]) -> tuple[Decoded, list[int]]:
        """Many values at once, and for every refusal which value it was in; see `formats.Decoder`."""
        filled = cast("Sequence[bytes]", values)
        if self.where is not None or not values or not all(values) or not filled[-1].endswith((b"}", b"}\n")):
            return self._told_apart(values)
        ended = filled[-1].endswith(b"\n")
        if ended and not all(value.endswith(b"\n") for value in filled):
            return self._told_apart(values)
        text = (b"" if ended else b"\n").join(filled)  # no Arrow stream is in it where it is UTF-8, as it has to be
        block = Block(self.options.provenance)
        matched = self._matched(text, block)
        if matched is not None and self._all_plain(matched, text):
            if matched.lines == len(values) and not ended:
                self._read_matched(matched, text, block)
                return self._one_event_each(filled, block)
            lines = LinesOfMany(filled, text)
            if lines.most() <= self.options.bounds.max_rows:
                self._read_matched(matched, text, block)
                return self._event_a_line(lines, block)
        ends = np.empty(0, np.int64) if ended else ends_if_plain(text)
        if len(ends) == len(values):  # every value is one event on one line
            block = Block(self.options.provenance)
            self._read_lines(text, ends, block)
            return self._one_event_each(filled, block)
        return self._told_apart(values)

    def _told_apart(self, values: Sequence[bytes | None]) -> tuple[Decoded, list[int]]:
        """Values that may be anything."""
        if any(value and value[:4] == ARROW_STREAM for value in values):
            return one_by_one(self, values)
        return self._events_of_many(values)

    def _matched(self, value: bytes, block: Block) -> Matched | None:
        """The fastest path: lines that look like others that were plain. None: nothing was read."""
        matched = None if self._plain is None else self._plain.read(value, block)
        if matched is None or (len(matched.missed) and not matched.missed[0, 0] and document_in(value)):
            return None
        return matched

    def _all_plain(self, matched: Matched, text: bytes) -> bool:
        """Whether every missed line is one that begins with { and ends with }."""
        return all(
            text[begin] == 123 and text[begin:end].endswith((b"}", b"}\n", b"}\r\n"))
            for _, begin, end in matched.missed.tolist()
        )

    def _read_matched(self, matched: Matched, text: bytes, block: Block) -> bool:
        """Add the lines that fit templates, and read the others as if there were no templates."""
        assert self._plain is not None
        rows, missed = matched.line, matched.missed
        if len(missed):
            if self._all_plain(matched, text):
                lines = b"".join([text[begin:end] for _, begin, end in missed.tolist()])
                self._read_lines(lines, np.cumsum(missed[:, 2] - missed[:, 1]), block, missed[:, 0].tolist())
            else:
                rows = self._read_told_apart_lines(matched, text, block)
        self._plain.add(matched, rows, block)
        return True

    def _read_told_apart_lines(self, matched: Matched, text: bytes, block: Block) -> np.ndarray:
        """Read missed lines that hold any number of events each; returns which events the other lines are."""
        unsure = UnsureEvents(self.structs, self.where, block, self.options.bounds)
        events, more = Items([], [], []), [0]
        numbers: list[int] = []
        for number, begin, end in matched.missed.tolist():
            items = items_of(text[begin:end], self.options.bounds)
            numbers += range(number + more[-1], number + more[-1] + len(items.texts))
            more.append(more[-1] + len(items.texts) - 1)
            events.extend(items)
        unsure.read(events, numbers)
        unsure.hand_over()
        return matched.line + np.array(more)[np.searchsorted(matched.missed[:, 0], matched.line)]

    def _read_at_once(self, value: bytes, block: Block) -> bool:
        """The fast path: a value whose lines all look plain, or one array of plain events. False: nothing was read."""
        if self.where is not None:
            return False
        ends = ends_if_plain(value)
        if len(ends):
            self._read_lines(value, ends, block)
            return True
        structs = self.structs.decode_array(value)
        if structs is not None and len(structs) > self.options.bounds.max_rows:
            return False
        if structs is not None:
            add_structs(block, self.structs, np.arange(len(structs)), structs)
        return structs is not None

    def _read_lines(self, text: bytes, ends: np.ndarray, block: Block, rows: Sequence[int] | None = None) -> None:
        """Lines that begin with { and end with }: many at once; a part with an event that is not plain, told apart."""
        rows = range(len(ends)) if rows is None else rows
        unsure = UnsureEvents(self.structs, self.where, block, self.options.bounds)
        begin = 0
        for first in range(0, len(ends), self.lines_at_once):
            of_part = rows[first : first + self.lines_at_once]
            size = len(of_part)
            end = int(ends[first + size - 1])
            part = text[begin:end]
            structs = self.structs.decode_lines(part, size)
            if structs is None:
                unsure.read(items_of(part, self.options.bounds), of_part)
            else:
                add_structs(block, self.structs, np.array(of_part, np.int64), structs)
            begin = end
        unsure.hand_over()

    def _read_told_apart(self, items: Items, block: Block) -> None:
        unsure = UnsureEvents(self.structs, self.where, block, self.options.bounds)
        unsure.read(items, range(len(items.texts)))
        unsure.hand_over()

    def _one_event_each(self, values: Sequence[bytes], block: Block) -> tuple[Decoded, list[int]]:
        """Values that are one event each, read into `block` as lines: the number of an event is that of its value."""
        done = block.decoded(lambda row: (0, values[row]), self._unknown())
        refused_in = [refused.index for refused in done.rejected]
        return done._replace(rejected=[refused._replace(index=0) for refused in done.rejected]), refused_in

    def _event_a_line(self, lines: LinesOfMany, block: Block) -> tuple[Decoded, list[int]]:
        """Values of any number of lines, each of them one event, read into `block` by the numbers of their lines."""
        done = block.decoded(lines.locate, self._unknown())
        places = [lines.place(refused.index) for refused in done.rejected]
        rejected = [refused._replace(index=n) for refused, (_, n) in zip(done.rejected, places, strict=True)]
        return done._replace(rejected=rejected), [value for value, _ in places]

    def _events_of_many(self, values: Sequence[bytes | None]) -> tuple[Decoded, list[int]]:
        """Values of any number of events each, told apart and read as if they were one; no more of them than hold
        `events_at_once`, or one."""
        items = Items([], [], [])
        first_of: list[int] = []
        for value in values:
            if items.texts and len(items.texts) + len(value or b"") // 2 > self.events_at_once:
                break
            try:
                more = items_of(value, self.options.bounds, self.options.bounds.max_rows) if value else None
            except OverBound as over:
                if first_of:
                    break  # what comes before it first
                refused = unreadable(values[0] or b"", str(over), self.options.provenance, "too_large")
                return refused._replace(values=1), [0]
            first_of.append(len(items.texts))
            if more:
                items.extend(more)
        values = values[: len(first_of)]
        block = Block(self.options.provenance)
        self._read_told_apart(items, block)
        done = block.decoded(lambda row: (items.starts[row], items.texts[row]), self._unknown())
        refused_in = [bisect_right(first_of, refused.index) - 1 for refused in done.rejected]
        rejected = [
            refused._replace(index=refused.index - first_of[number])
            for number, refused in zip(refused_in, done.rejected, strict=True)
        ]
        empty = sum(not value for value in values)
        return done._replace(rejected=rejected, empty=empty, values=len(values)), refused_in

    def _unknown(self) -> frozenset[str]:
        return frozenset(self.structs.unknown)

    def _arrow_decoder(self) -> formats.Decoder:
        if self._arrow is None:
            from stream_engine.formats.arrow_events import Decoder as ArrowDecoder  # pyarrow only when it is met

            self._arrow = ArrowDecoder(self.options, self._fast)
        return self._arrow
