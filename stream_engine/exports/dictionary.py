"""What every array of every export holds: the manual's page, the writers and the laws read it here.

Whoever adds an export adds its arrays to `COUNTS` or `MODELS`, and the columns of its tables to `TABLE_COLUMNS`.
"""

from stream_engine.data.array_checks import pattern_of
from stream_engine.exports.dictionary_entries import Entries, Held
from stream_engine.exports.dictionary_of_counts import COUNTS
from stream_engine.exports.dictionary_of_models import MODELS


def entries(what: str) -> Entries:
    """What the export `what` may hold; empty for one that declares nothing."""
    return COUNTS.get(what) or MODELS.get(what) or {}


def described(what: str, array: str) -> Held | None:
    """The entry of an array; of one whose name is a pattern ("map_*"), the pattern's."""
    known = entries(what)
    pattern = pattern_of(array, known)
    return None if pattern is None else known[pattern]
