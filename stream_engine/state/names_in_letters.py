"""Whether a dead letter names an object or a participant.

A rejected event need not be readable, so its text is searched: for the name as it is and as JSON escapes it, standing
by itself, so that "car-1" is not found in "car-12". A name with other letters than a-z is found anywhere, because where
its words end depends on the language. Bytes that are no text (a compressed table) are searched as they are.
"""

import re
from collections.abc import Callable

from connectors import DeadLetter

_ESCAPED = re.compile(r"(?:\\u[0-9a-fA-F]{4})+")


def naming(*names: str) -> Callable[[DeadLetter | bytes], bool]:
    r"""A function that says of a dead letter, or of a damaged line, whether it names one of `names`.

    >>> about = naming("car-1")
    >>> about(b"car-12,x"), about(DeadLetter("f", 0, 0, "incomplete", "cut", b'{"near":"car-1'))
    (False, True)
    >>> naming("Vélo")(rb'{"near":"V\u00e9lo"')
    True
    """
    found = re.compile("|".join(map(_pattern, names))).search

    def about(letter: DeadLetter | bytes) -> bool:
        if isinstance(letter, bytes):
            texts = [letter.decode("utf-8", "replace")]
        else:
            values = [each.decode("utf-8", "replace") for each in (letter.value, letter.key or b"")]
            texts = [letter.partition, letter.message, *values]
        return any(found(text) or ("\\u" in text and found(_unescaped(text))) for text in texts)

    return about


def _pattern(name: str) -> str:
    word = re.escape(name)
    if name.isascii():
        word = rf"(?<![\w.-]){word}(?![\w-]|\.\w)" if re.fullmatch(r"[\w.-]+", name) else rf"(?<!\w){word}(?!\w)"
    return word


def _unescaped(text: str) -> str:
    return _ESCAPED.sub(lambda match: bytes.fromhex(match[0].replace("\\u", "")).decode("utf-16-be", "replace"), text)
