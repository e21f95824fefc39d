"""`--where` for JSON events: which events are kept, by the text of some of their fields."""

from collections.abc import Mapping, Sequence

import msgspec

from stream_engine.formats.event_fields import EventFields
from stream_engine.formats.json_lines import ERRORS, is_utf8

MAX_REMEMBERED = 10_000  # values of a field whose answer is remembered
_ANY = msgspec.json.Decoder()


class WhereFilter:
    """Keeps events whose fields have the wanted text. Remembers values that it met, as they were written."""

    def __init__(self, event_fields: EventFields):
        self._wanted = event_fields.where
        self._decoder = _decoder([source for source, _ in self._wanted])
        self._answers: list[dict[bytes, bool]] = [{} for _ in self._wanted]

    def possible(self, texts: Sequence[bytes]) -> list[int]:
        """Numbers of the events that may be kept: without those that are surely left out; an event that cannot be read
        far enough to tell is among them."""
        numbers = []
        for number, text in enumerate(texts):
            try:
                fields = self._decoder.decode(text) if is_utf8(text) else None
            except ERRORS:
                fields = None
            if fields is None or self._match(msgspec.structs.astuple(fields)):
                numbers.append(number)
        return numbers

    def keeps(self, fields: Mapping[str, msgspec.Raw]) -> bool:
        """Whether an event with these fields is kept: the definition."""
        return all(source in fields and _has_text(bytes(fields[source]), wanted) for source, wanted in self._wanted)

    def _match(self, values: tuple[msgspec.Raw, ...]) -> bool:
        for (_, wanted), answers, value in zip(self._wanted, self._answers, values, strict=True):
            raw = bytes(value)
            if raw not in answers:
                if len(answers) > MAX_REMEMBERED:
                    answers.clear()
                answers[raw] = _has_text(raw, wanted)
            if not answers[raw]:
                return False
        return True


def _decoder(sources: list[str]) -> msgspec.json.Decoder:
    """Reads these fields alone, as they are written; an absent one is empty."""
    if not all(map(can_be_field, sources)):  # a struct that takes no event: all are left to the definition
        return msgspec.json.Decoder(msgspec.defstruct("Never", ["c0"], forbid_unknown_fields=True))
    fields = [(f"c{i}", msgspec.Raw, msgspec.Raw()) for i in range(len(sources))]
    rename = {f"c{i}": source for i, source in enumerate(sources)}
    return msgspec.json.Decoder(msgspec.defstruct("Where", fields, rename=rename, eq=False))


def can_be_field(name: str) -> bool:
    """Whether msgspec takes this as the name of a struct's field: no quote, no backslash, no control character."""
    return not any(c in '"\\' or c < " " for c in name)


def _has_text(raw: bytes, wanted: str) -> bool:
    """Whether a JSON value is this text: a string by its characters, a number as written, true, false; never null.

    >>> _has_text(b'"a"', "a"), _has_text(b"1.50", "1.50"), _has_text(b"1.5", "1.50"), _has_text(b"null", "null")
    (True, True, False, False)
    """
    if raw[:1] == b'"':
        return _ANY.decode(raw) == wanted
    return raw[:1] not in (b"", b"n", b"[", b"{") and raw.decode() == wanted
