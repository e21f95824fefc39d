"""Whether a dead letter names an object or a worker.

A refused event need not be readable, so its text is searched: for the name as it is and as JSON escapes it, standing by
itself, so that "car-1" is not found in "car-12". A name with other letters than a-z is found anywhere, because where
its words end depends on the language. Bytes that are no text (a compressed table) are searched as they are.
"""

import re
from base64 import b64decode
from collections.abc import Callable, Mapping

import msgspec

_ESCAPED = re.compile(r"(?:\\u[0-9a-fA-F]{4})+")


def naming(*names: str) -> Callable[[bytes], bool]:
    r"""A function that says of a line of a dead-letter file whether the letter names one of `names`.

    >>> about = naming("car-1")
    >>> about(b'{"value":"car-12,x","message":""}'), about(b'{"value":"{\\"near\\":\\"car-1\\"","message":""}')
    (False, True)
    >>> naming("Vélo")(rb'{"value":"{\"near\":\"V\\u00e9lo\"","message":""}')
    True
    """
    found = re.compile("|".join(map(_pattern, names))).search

    def about(line: bytes) -> bool:
        try:
            letter = msgspec.json.decode(line)
        except (msgspec.DecodeError, UnicodeDecodeError):
            return bool(found(line.decode("utf-8", "replace")))
        texts = [text for text in letter.values() if isinstance(text, str)] if isinstance(letter, Mapping) else []
        texts += [_bytes_in(letter, key) for key in ("value_base64", "key_base64")] if texts else []
        return any(found(text) or ("\\u" in text and found(_unescaped(text))) for text in texts)

    return about


def _pattern(name: str) -> str:
    word = re.escape(name)
    if name.isascii():
        word = rf"(?<![\w.-]){word}(?![\w-]|\.\w)" if re.fullmatch(r"[\w.-]+", name) else rf"(?<!\w){word}(?!\w)"
    return word


def _unescaped(text: str) -> str:
    return _ESCAPED.sub(lambda match: _decoded(match[0]), text)


def _decoded(escapes: str) -> str:
    units = bytes.fromhex(escapes.replace("\\u", ""))
    return units.decode("utf-16-be", "replace")


def _bytes_in(letter: Mapping[str, object], key: str) -> str:
    value = letter.get(key)
    try:
        return b64decode(value).decode("utf-8", "replace") if isinstance(value, str) else ""
    except ValueError:
        return ""
