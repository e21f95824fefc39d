"""Connectors carry bytes and positions: nothing in their text knows what a comparison is.

Read as Python reads it: identifiers, string literals and docstrings, comments. What an event means may change without a
connector being touched, and a connector may be used for something else than comparisons.
"""

import io
import keyword
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import ROOT

# Nobody speaks of these who does not mean comparisons: not as a part of a name, not in a sentence.
WORDS = {
    "triplet", "triplets", "quadruplet", "quadruplets", "anchor", "anchors", "comparison", "comparisons",
    "odd_one_out", "most_central", "ranking", "rankings", "near_i", "near_j", "far_i", "far_j",
}  # fmt: skip
# Fields of events that are English words too ("as far as", "the chosen partitions"): not as a whole string.
FIELDS = {"near", "far", "odd", "central", "objects", "shown", "chosen", "ranked", "pick", "label", "judges", "worker"}
NAMES = WORDS | {"near", "far"}
ALLOWED = {"__triplets.errors."}  # the headers of dead letters, by which other programs know whose they are
DOCSTRINGS_OF_ALLOWED = re.compile(r"`__triplets\.errors\.\w+`")


def words_of_comparisons(source: str) -> Iterator[str]:
    """Words that do not belong into a connector, each with its line."""
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        kind = tokenize.tok_name[token.type]
        text, line = token.string, token.start[0]
        if kind == "NAME" and not keyword.iskeyword(text):
            parts = {text, *re.split(r"_|(?<=[a-z])(?=[A-Z])", text)}
            wrong = {each for each in parts if each.lower() in NAMES}
        elif kind in ("STRING", "FSTRING_MIDDLE", "COMMENT"):
            inside = re.sub(r"^[rbfRBF]*[\"']+|[\"']+$", "", text)
            text = "" if inside in ALLOWED else DOCSTRINGS_OF_ALLOWED.sub("", text)
            wrong = {word for word in re.findall(r"\w+", text) if word.lower() in WORDS} | ({inside} & FIELDS)
        else:
            continue
        yield from (f"line {line}: {word}" for word in sorted(wrong))


@pytest.mark.parametrize("path", sorted((ROOT / "connectors").rglob("*.py")), ids=lambda p: str(p.relative_to(ROOT)))
def test_a_connector_names_nothing_of_comparisons(path: Path):
    assert list(words_of_comparisons(path.read_text())) == []
