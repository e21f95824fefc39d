"""Which parts of a partition a state has counted: from its beginning to its position, without what it was moved over.

What moved a position on purpose stands in the history of the state, with the place before and after.
"""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

MOVES = ("seek", "offsets lost")  # deeds that have `partition`, `at`, `to`


class Stretch(NamedTuple):
    """Offsets from `begin` up to, not including, `end`."""

    begin: int
    end: int


def gone(deed: Mapping[str, Any]) -> bool:
    """Whether what had been read before is not there any more: a file or a topic made anew under the same name."""
    return deed["did"] == "offsets lost" and deed["to"] < deed["at"]


def stretches(name: str, position: int, history: Iterable[Mapping[str, Any]], start: int = 0) -> list[Stretch]:
    """The stretches of a partition in the order in which they were counted; one that was counted twice comes twice.

    `start` is where the first run began. What is gone altogether is left out.

    >>> moved = [{"did": "seek", "partition": "t/0", "at": at, "to": to} for at, to in ((5, 8), (9, 2))]
    >>> stretches("t/0", 4, moved)
    [Stretch(begin=0, end=5), Stretch(begin=8, end=9), Stretch(begin=2, end=4)]
    """
    found, begin = [], start
    for deed in history:
        if deed["did"] in MOVES and deed.get("partition") == name:
            found.append(Stretch(begin, deed["at"]))
            begin = deed["to"]
            if gone(deed):
                found.clear()
    found.append(Stretch(begin, position))
    return [each for each in found if each.end > each.begin]
