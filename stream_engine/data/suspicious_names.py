"""Names that may mean one object: they differ only in capitals, spaces, invisible characters or Unicode form."""

import re
import unicodedata
from collections.abc import Iterable

_SPACES = re.compile(r"\s+")


def suspicious_names(names: Iterable[str]) -> list[list[str]]:
    """Groups of names that differ only in capitals, spaces, invisible characters (such as marks of the direction of
    writing) and Unicode normalization.

    >>> suspicious_names(["b", "Lemon", " b", "c", "lemon", "lemon tree", "lemon  tree", "\u200fc"])
    [['b', ' b'], ['Lemon', 'lemon'], ['c', '\u200fc'], ['lemon tree', 'lemon  tree']]
    """
    alike: dict[str, list[str]] = {}
    for name in names:
        visible = name if name.isascii() else "".join(letter for letter in name if unicodedata.category(letter) != "Cf")
        key = _SPACES.sub(" ", unicodedata.normalize("NFKC", visible).strip()).casefold()
        alike.setdefault(key, []).append(name)
    return [group for group in alike.values() if len(group) > 1]
