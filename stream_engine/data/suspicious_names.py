"""Names that may mean one object: they differ only in capitals, spaces or Unicode form."""

import re
import unicodedata
from collections.abc import Iterable

_SPACES = re.compile(r"\s+")


def suspicious_names(names: Iterable[str]) -> list[list[str]]:
    """Groups of names that differ only in capitals, spaces and Unicode normalization.

    >>> suspicious_names(["b", "Lemon", " b", "c", "lemon", "lemon tree", "lemon  tree"])
    [['b', ' b'], ['Lemon', 'lemon'], ['lemon tree', 'lemon  tree']]
    """
    alike: dict[str, list[str]] = {}
    for name in names:
        key = _SPACES.sub(" ", unicodedata.normalize("NFKC", name).strip()).casefold()
        alike.setdefault(key, []).append(name)
    return [group for group in alike.values() if len(group) > 1]
