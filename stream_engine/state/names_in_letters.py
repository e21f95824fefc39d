"""Whether a dead letter names an object or a participant.

A rejected event may be unreadable, so its text is searched for the name as it is and as JSON escapes it, as a whole
word ("car-1" is not in "car-12"); a name with letters other than a-z is found anywhere.
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
    >>> naming("Vélo")(rb'{"near":"V\u00e9lo"'), naming("ada")(DeadLetter("t/0", 3, 0, "not_json", "cut", b"{", b"ada"))
    (True, True)
    """
    search = re.compile("|".join(map(_pattern, names))).search

    def about(letter: DeadLetter | bytes) -> bool:
        if isinstance(letter, bytes):
            texts = [letter.decode("utf-8", "replace")]
        else:
            values = [part.decode("utf-8", "replace") for part in (letter.value, letter.key or b"")]
            texts = [letter.partition, letter.message, *values]
        return any(search(text) or ("\\u" in text and search(_unescaped(text))) for text in texts)

    return about


def _pattern(name: str) -> str:
    word = re.escape(name)
    if name.isascii():
        word = rf"(?<![\w.-]){word}(?![\w-]|\.\w)" if re.fullmatch(r"[\w.-]+", name) else rf"(?<!\w){word}(?!\w)"
    return word


def _unescaped(text: str) -> str:
    return _ESCAPED.sub(lambda match: bytes.fromhex(match[0].replace("\\u", "")).decode("utf-16-be", "replace"), text)
