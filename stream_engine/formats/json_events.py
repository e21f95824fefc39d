"""JSON events with msgspec: one event, an array of events, or JSON lines in one value.

A line is valid by itself: blank, one event, or one array of events. msgspec's `decode_lines` is lenient about line ends
(it takes two values on a line, and a value over two lines), so its answer for many lines counts only when each of them
begins with `{` and ends with `}` and there are as many values as lines: `}` newline `{` cannot stand inside a JSON
value, hence every line then is one value. Otherwise lines are taken a few at a time, then one by one, then by the plain
definition in `validate`, which finds the reason. A value that is one array or one object over several lines (a message,
pretty-printed) is read as that. A line holds UTF-8; a byte order mark at its start is passed over.

Fields that no one asked for are ignored and named (see `json_structs`). O(bytes).
"""

from bisect import bisect_right
from collections.abc import Callable, Sequence
from typing import Any

import msgspec
import numpy as np

from stream_engine.data.comparisons import Decoded, InvalidEvent, Label, Quadruplet, Triplet
from stream_engine.formats.event_columns import Block, joined, nothing
from stream_engine.formats.event_fields import fields_of
from stream_engine.formats.json_lines import ERRORS, Items, ends_if_plain, is_utf8, items_of, locator
from stream_engine.formats.json_structs import Structs, add_structs, where_decoder
from stream_engine.formats.options import Accepts, EventOptions, Rejects
from stream_engine.formats.validate import MISSING, Caught, Said, read_event

ARROW_STREAM = b"\xff\xff\xff\xff"  # how an Arrow IPC stream begins; no JSON text does
_FEW = 64  # lines decoded at a time around a bad one
_FIELDS = msgspec.json.Decoder(dict[str, msgspec.Raw])
_ANY = msgspec.json.Decoder()


class Filtered(Exception):
    """The event is not among those that `--where` keeps."""


class Decoder:
    """Decodes values of JSON events. Holds the structs, which grow by the unknown fields that turn up; results other
    than `unknown_fields` do not depend on them (law: the fast paths accept nothing that `validate` refuses, and read
    the same)."""

    lines_at_once = 4096  # what is made of them stays in the cache until it is columns: a third less time a line

    def __init__(self, options: EventOptions):
        self.options = options
        self.event_fields = fields_of(options)
        self.structs = Structs(self.event_fields)
        self.where = where_decoder(self.event_fields)
        self.same: list[dict[bytes, bool]] = [{} for _ in self.event_fields.where]
        self._arrow: Callable[..., Decoded] | None = None

    def __call__(self, value: bytes | None, header: bytes = b"") -> Decoded:
        """The events of `value` (see the module); `header` has no meaning here. An empty value counts as `empty`."""
        if not value:
            return nothing(1, frozenset(self.structs.unknown), self.options.judges)
        if value[:4] == ARROW_STREAM:
            return self._arrow_decoder()(value)
        read = _Reading(self, Block(self.options.judges))
        items = read.value(value)
        return read.block.decoded(locator(items, value), frozenset(self.structs.unknown))

    def many(self, values: Sequence[bytes | None]) -> tuple[Decoded, list[int]]:
        """Many values at once, and for every refusal which value it was in; see `formats.decode_many`."""
        if any(value and value[:4] == ARROW_STREAM for value in values):
            parts = [self(value) for value in values]
            return joined(parts), [at for at, part in enumerate(parts) for _ in part.rejected]
        read = _Reading(self, Block(self.options.judges))
        items, first = read.values(values)
        done = read.block.decoded(
            lambda row: (items.starts[row], items.texts[row]) if items else (0, values[row]),
            frozenset(self.structs.unknown),
        )
        of = (
            [bisect_right(first, one.index) - 1 for one in done.rejected] if items else [r.index for r in done.rejected]
        )
        rejected = [
            one._replace(index=one.index - (first[at] if items else at))
            for at, one in zip(of, done.rejected, strict=True)
        ]
        return done._replace(rejected=rejected, empty=sum(not value for value in values)), of

    def _arrow_decoder(self) -> Callable[..., Decoded]:
        if self._arrow is None:
            from stream_engine.formats.arrow_events import Decoder as ArrowDecoder  # pyarrow only when it is met

            self._arrow = ArrowDecoder(self.options)
        return self._arrow


class _Reading:
    """One value on its way: events that the structs took, events read one by one, and the block they go to."""

    def __init__(self, decoder: Decoder, block: Block):
        self.decoder, self.block = decoder, block
        self.events: list = []
        self.rows: list[int] = []
        self.said: list[Said] = []
        self.said_rows: list[int] = []

    def value(self, value: bytes) -> Items | None:
        """Read all events; returns their places where they had to be told apart."""
        if not self.decoder.event_fields.where:
            ends = ends_if_plain(value)
            if len(ends):
                return self._lines(value, ends)
            events = self._array(value)
            if events is not None:
                return self._add(np.arange(len(events)), events)
        items = items_of(value)
        self._rows(items)
        self._finish()
        return items

    def values(self, values: Sequence[bytes | None]) -> tuple[Items | None, list[int]]:
        """The same for many values as if they were one: their events, and the number of each one's first event; None
        where every value is one event."""
        if not self.decoder.event_fields.where and all(values) and values[-1].endswith(b"}"):
            text = b"\n".join(values)
            ends = ends_if_plain(text)
            if len(ends) == len(values):
                return self._lines(text, ends), []
        items, first = Items([], [], []), []
        for value in values:
            first.append(len(items.texts))
            if value:
                for have, new in zip(items, items_of(value), strict=True):
                    have.extend(new)
        self._rows(items)
        self._finish()
        return items, first

    def _lines(self, text: bytes, ends: np.ndarray) -> None:
        """Lines that begin with { and end with }, each one event: many at once; a part that is not plain, by the few."""
        begin, many = 0, self.decoder.lines_at_once
        for row in range(0, len(ends), many):
            size = min(many, len(ends) - row)
            end = int(ends[row + size - 1])
            part = text[begin:end]
            events = self._many(part, size)
            if events is None:
                self._rows(items_of(part), row)
            else:
                self._add(np.arange(row, row + size), events)
            begin = end
        self._finish()

    def _finish(self) -> None:
        """Hand what was read by the few to the block."""
        self.block.add_said(self.said_rows, self.said)
        for kind, rows, events in self._by_kind(np.array(self.rows, np.int64), self.events):
            add_structs(self.block, self.decoder.event_fields, kind, rows, events)

    def _add(self, rows: np.ndarray, events: list) -> None:
        """Hand structs that were decoded at once to the block."""
        alone = self.decoder.structs.alone.get(type(events[0])) if events else None
        for kind, which, of_kind in self._by_kind(rows, events) if alone is None else [(alone, rows, events)]:
            add_structs(self.block, self.decoder.event_fields, kind, which, of_kind)

    def _array(self, value: bytes) -> list | None:
        """Structs of all events of one array that holds nothing but plain ones."""
        if value[:1] == b"[" and is_utf8(value):
            for position, (_, array) in enumerate(self.decoder.structs.shapes):
                try:
                    events = array.decode(value)
                except ERRORS:
                    continue
                self.decoder.structs.promote(position)
                return events
        return None

    def _rows(self, items: Items, before: int = 0) -> None:
        """Events told apart, which are number `before` and on of the value."""
        kept = range(len(items.texts))
        if self.decoder.event_fields.where:
            kept = self._kept(items)
        for at in range(0, len(kept), _FEW):
            self._some(items, kept[at : at + _FEW], before)

    def _some(self, items: Items, rows, before: int) -> None:
        """A few events at once or, if that fails, one by one."""
        texts = [items.texts[row] for row in rows]
        plain = all(map(items.plain.__getitem__, rows))
        events = self._many(b"\n".join(texts), len(texts)) if plain else None
        if events is not None:
            self.events += events
            self.rows += [before + row for row in rows]
        else:
            for row, text in zip(rows, texts, strict=True):
                self._one(before + row, text, items.plain[row])

    def _many(self, text: bytes, lines: int) -> list | None:
        """Structs of `lines` events, one a line; None where any of them is not plain."""
        if not is_utf8(text):
            return None
        for position, (shape, _) in enumerate(self.decoder.structs.shapes):
            try:
                events = shape.decode_lines(text)
            except ERRORS:
                continue
            if len(events) == lines:
                self.decoder.structs.promote(position)
                return events
        return None

    def _one(self, row: int, text: bytes, plain: bool) -> None:
        events = self._many(text, 1) if plain else None
        if events is not None:
            self.events += events
            self.rows.append(row)
            return
        try:
            said = self._plainly(text)
        except InvalidEvent as fault:
            self.block.refused.append((row, fault))
        except Filtered:
            self.block.filtered += 1
        except Caught as catch:
            self.block.caught(row, catch)
        else:
            self.said.append(said)
            self.said_rows.append(row)

    def _plainly(self, text: bytes) -> Said:
        """An event by the definition; raises `InvalidEvent` with the reason, or `Filtered`."""
        fields = _fields(text)
        for source, wanted in self.decoder.event_fields.where:
            if source not in fields or not _is_text(bytes(fields[source]), wanted):
                raise Filtered
        self.decoder.structs.learn(fields)
        return read_event(lambda source: _cell(fields, source), self.decoder.event_fields, text=False)

    def _kept(self, items: Items) -> list[int]:
        """Rows that `--where` keeps, and those that cannot be read far enough to tell."""
        kept = []
        for row, text in enumerate(items.texts):
            try:
                found = self.decoder.where.decode(text) if is_utf8(text) else None
            except ERRORS:
                found = None
            if found is None or self._matches(found):
                kept.append(row)
            else:
                self.block.filtered += 1
        return kept

    def _matches(self, found) -> bool:
        for (_, wanted), cache, raw in zip(
            self.decoder.event_fields.where, self.decoder.same, msgspec.structs.astuple(found), strict=True
        ):
            text = bytes(raw)
            if text not in cache:
                if len(cache) > 10_000:
                    cache.clear()
                cache[text] = _is_text(text, wanted)
            if not cache[text]:
                return False
        return True

    def _by_kind(self, rows: np.ndarray, events: list):
        """(kind, rows, events) of the events of each struct."""
        classes = dict.fromkeys(map(type, events))
        if len(classes) <= 1:
            for only in classes:
                yield self.decoder.structs.kind_of[only], rows, events
            return
        places: dict[type, list[int]] = {cls: [] for cls in classes}
        for place, event in enumerate(events):
            places[type(event)].append(place)
        for cls, at in places.items():
            yield self.decoder.structs.kind_of[cls], rows[at], [events[i] for i in at]


def _is_text(raw: bytes, wanted: str) -> bool:
    """Whether a JSON value is this text: a string by its characters, a number as written, true, false; never null.

    >>> _is_text(b'"a"', "a"), _is_text(b"1.50", "1.50"), _is_text(b"1.5", "1.50"), _is_text(b"null", "null")
    (True, True, False, False)
    """
    if raw[:1] == b'"':
        return _ANY.decode(raw) == wanted
    return raw[:1] not in (b"", b"n", b"[", b"{") and raw.decode() == wanted


def _fields(text: bytes) -> dict[str, msgspec.Raw]:
    """The fields of a JSON object, their values unread. Raises `InvalidEvent` with what is wrong."""
    try:
        text.decode()
        return _FIELDS.decode(text)
    except UnicodeDecodeError as error:
        raise InvalidEvent("not_parseable", f"not UTF-8: {error.reason} (byte {error.start})") from None
    except RecursionError:
        raise InvalidEvent("not_parseable", "not JSON that can be read: nested too deeply") from None
    except msgspec.ValidationError as error:
        raise InvalidEvent("not_parseable", f"an event must be a JSON object ({error})") from None
    except msgspec.DecodeError as error:
        raise InvalidEvent("not_parseable", f"not JSON: {str(error).removeprefix('JSON is malformed: ')}") from None


def _cell(fields: dict[str, msgspec.Raw], source: str) -> Any:
    if source not in fields:
        return MISSING
    try:
        return _ANY.decode(fields[source])
    except msgspec.ValidationError:  # a number beyond all bounds, 1e999: no name, no weight, no time
        return np.inf


_ABC = Triplet("a", "b", "c")
ACCEPTS = [
    Accepts(b'{"anchor":"a","near":"b","far":"c"}', [_ABC]),
    Accepts(b'{"type":"triplet","anchor":"a","near":"b","far":"c"}\r\n\r\n  \n', [_ABC]),
    Accepts(b'{"type":null,"far":"c","near":"b","anchor":"a","weight":null,"worker":null}', [_ABC]),
    Accepts(
        b' {"anchor":"a", "near" :"b","far":"c", "id":1, "worker":"w", "time":"2024-05-01T12:00:00Z", "weight":0}\t\n',
        [_ABC],
    ),
    Accepts(b'{"anchor":"a","near":"b","far":"c","time":1714564800.5,"weight":1e300,"rt":{"deep":[1,{}]}}', [_ABC]),
    Accepts(b'{"anchor":5,"near":-7,"far":"05"}', [Triplet("5", "-7", "05")]),
    Accepts(
        b'{"anchor":123456789012345678901234567890,"near":"b","far":"c"}',
        [Triplet("123456789012345678901234567890", "b", "c")],
    ),
    Accepts(
        '{"anchor":"\u00e9","near":"e\u0301","far":"\\u0041"}'.encode(), [Triplet("\u00e9", "e\u0301", "A")]
    ),  # NFC, NFD
    Accepts(b'{"anchor":"z","anchor":"a","near":"b","far":"c"}', [_ABC]),  # the last of equal fields holds
    Accepts(b'\xef\xbb\xbf{"anchor":"a","near":"b","far":"c"}', [_ABC]),
    Accepts(
        b'[{"anchor":"a","near":"b","far":"c"},\n {"anchor":"b","near":"a","far":"c"}]', [_ABC, Triplet("b", "a", "c")]
    ),
    Accepts(b'{\n "anchor": "a",\n "near": "b", "far": "c"\n}\n', [_ABC]),  # a message, pretty-printed
    Accepts(b"[]", []),
    Accepts(
        b'{"anchor":"a","near":"b","far":"c"}\n[{"anchor":"b","near":"a","far":"c"}]\n', [_ABC, Triplet("b", "a", "c")]
    ),
    Accepts(b'{"type":"quadruplet","near":["a","b"],"far":["c","d"]}', [Quadruplet(("a", "b"), ("c", "d"))]),
    Accepts(b'{"type":"quadruplet","near":["b","a"],"far":["c","a"]}', [_ABC]),
    Accepts(
        b'{"type":"odd_one_out","objects":["c","a","b"],"odd":"c"}', [Triplet("a", "b", "c"), Triplet("b", "a", "c")]
    ),
    Accepts(
        b'{"type":"most_central","objects":["a","b","c"],"central":"a"}',
        [Triplet("b", "a", "c"), Triplet("c", "a", "b")],
    ),
    Accepts(
        b'{"type":"pick","anchor":"a","shown":["b","c","d"],"chosen":["d","b"]}',
        [Triplet("a", "d", "c"), Triplet("a", "b", "c")],
    ),
    Accepts(
        b'{"type":"ranking","anchor":"a","ranked":["b","c","d"]}',
        [Triplet("a", "b", "c"), Triplet("a", "b", "d"), Triplet("a", "c", "d")],
    ),
    Accepts(
        b'{"type":"label","object":"a","label":3}\n{"type":"label","object":"a","label":null}',
        [Label("a", "3"), Label("a", None)],
    ),
    Accepts(
        b'{"l":"a","m":"b","r":"c","mid":"b","type":"ignored"}',
        [Triplet("a", "b", "c"), Triplet("c", "b", "a")],
        EventOptions("most_central", {"objects": ("l", "m", "r"), "central": ("mid",)}),
    ),
    Accepts(
        b'{"a":1,"b":2,"odd":3}',
        [Triplet("1", "2", "3"), Triplet("2", "1", "3")],
        EventOptions("odd_one_out", {"objects": ("a", "b", "odd")}),
    ),
    Accepts(
        b'{"anchor":"a","near":"b","far":"c","ok":true,"n":1.50}\n{"ok":true,"anchor":5.5}\n{"ok":true,"n":1.5}',
        [_ABC],
        EventOptions(where={"ok": "true", "n": "1.50"}),
    ),
]
_PICK = b'{"type":"pick","anchor":"a","shown":["b","c"],"chosen":%s}'
REJECTS = [
    Rejects(b'{"anchor":"a","near":"b"', "not_parseable", "not JSON"),
    Rejects(b'{"anchor":"a","near":"b","far":"c"} {}', "not_parseable", "trailing characters"),
    Rejects(b'[{"anchor":"a"}', "not_parseable", "must be a JSON object"),
    Rejects(b"null", "not_parseable", "must be a JSON object"),
    Rejects(b'{"anchor":"\xff","near":"b","far":"c"}', "not_parseable", "not UTF-8"),
    Rejects(b'{"anchor":"a","near":"b","far":"c","x":"\xff"}', "not_parseable", "not UTF-8"),
    Rejects(b'{"anchor":"\\ud800","near":"b","far":"c"}', "not_parseable", "not JSON"),
    Rejects(b'{"anchor":"a","near":"b","far":"c","x":NaN}', "not_parseable", "not JSON"),
    Rejects(b'{"x":' + b"[" * 5000 + b"]" * 5000 + b"}", "not_parseable", "nested too deeply"),
    Rejects(b"\x00\x01\x02", "not_parseable", "not JSON"),
    Rejects(b'{"type":"duel"}', "unknown_type", "type 'duel' is unknown; known: triplet, quadruplet"),
    Rejects(b'{"type":1,"anchor":"a"}', "unknown_type", "type 1 is unknown"),
    Rejects(b'{"anchor":"a","near":"b"}', "missing_field", "far is missing; triplet needs it"),
    Rejects(b"{}", "missing_field", "probe (as anchor) is missing", EventOptions(columns={"anchor": ("probe",)})),
    Rejects(b'{"type":"label","object":"a"}', "missing_field", "label is missing"),
    Rejects(
        b'{"anchor":1.0,"near":"b","far":"c"}',
        "wrong_type",
        "anchor holds a number (1.0); a name is a string or an integer",
    ),
    Rejects(b'{"anchor":true,"near":"b","far":"c"}', "wrong_type", "anchor holds a boolean"),
    Rejects(b'{"anchor":"a","near":null,"far":"c"}', "wrong_type", "near holds null"),
    Rejects(b'{"anchor":1e999,"near":"b","far":"c"}', "wrong_type", "anchor holds a number"),
    Rejects(b'{"anchor":"a","near":"b","far":"c","worker":1.5}', "wrong_type", "worker holds a number (1.5)"),
    Rejects(_PICK % b'"b"', "wrong_type", "chosen holds a string ('b'); it must be a list of names"),
    Rejects(_PICK % b"[null]", "wrong_type", "chosen holds null"),
    Rejects(
        b'{"type":"quadruplet","near":["a","b","c"],"far":["c","d"]}',
        "wrong_type",
        "near holds 3 names; quadruplet needs 2",
    ),
    Rejects(b'{"anchor":"","near":"b","far":"c"}', "empty_name", "anchor is empty"),
    Rejects(b'{"anchor":"' + b"x" * 1025 + b'","near":"b","far":"c"}', "name_too_long", "1,025 bytes"),
    Rejects(_PICK % b"[" + b",".join([b"1"] * 10_001) + b"]}", "not_parseable", "not JSON"),
    Rejects(
        _PICK % (b"[" + b",".join([b"1"] * 10_001) + b"]"),
        "list_too_long",
        "chosen holds 10,001 entries; the limit is 10,000",
    ),
    Rejects(
        b'{"anchor":"a","near":"a","far":"c"}',
        "not_distinct",
        "anchor equals near ('a'); a triplet needs three distinct",
    ),
    Rejects(b'{"anchor":5,"near":"b","far":"5"}', "not_distinct", "anchor equals far ('5')"),
    Rejects(b'{"type":"quadruplet","near":["a","a"],"far":["c","d"]}', "not_distinct", "near holds 'a' twice"),
    Rejects(
        b'{"type":"quadruplet","near":["a","b"],"far":["b","a"]}',
        "not_distinct",
        "near and far are the same pair ('a', 'b')",
    ),
    Rejects(
        b'{"type":"pick","anchor":"a","shown":["b","a"],"chosen":["b"]}', "not_distinct", "anchor equals shown[1] ('a')"
    ),
    Rejects(_PICK % b'["b","b"]', "not_distinct", "chosen[0] equals chosen[1] ('b')"),
    Rejects(
        b'{"type":"ranking","anchor":"a","ranked":["b","c","b"]}', "not_distinct", "ranked[0] equals ranked[2] ('b')"
    ),
    Rejects(
        b'{"type":"odd_one_out","objects":["a","b","c"],"odd":"d"}', "not_shown", "odd ('d') is not among the objects"
    ),
    Rejects(_PICK % b'["b","a"]', "not_shown", "chosen[1] ('a') is not among the objects shown"),
    Rejects(_PICK % b"[]", "nothing_chosen", "chosen is empty"),
    Rejects(b'{"type":"ranking","anchor":"a","ranked":["b"]}', "nothing_chosen", "ranked holds 1 object"),
    Rejects(_PICK % b'["c","b"]', "everything_chosen", "chosen holds all 2 objects shown"),
    Rejects(
        b'{"anchor":"a","near":"b","far":"c","weight":-1}',
        "bad_weight",
        "weight is -1; it must be a finite number >= 0",
    ),
    Rejects(b'{"anchor":"a","near":"b","far":"c","weight":"1"}', "bad_weight", "weight is '1'"),
    Rejects(b'{"anchor":"a","near":"b","far":"c","weight":1e999}', "bad_weight", "weight is inf"),
    Rejects(
        b'{"anchor":"a","near":"b","far":"c","time":"2024-05-01T12:00:00"}', "bad_time", "time is '2024-05-01T12:00:00'"
    ),
    Rejects(b'{"anchor":"a","near":"b","far":"c","time":"12"}', "bad_time", "must be RFC 3339"),
]
