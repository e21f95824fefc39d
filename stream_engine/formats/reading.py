"""A reading of records: the options of events, and the decisions behind them; what layouts propose on the way there."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple, TypeAlias

from stream_engine.formats.answers import Answer
from stream_engine.formats.explanation import Rival


class Decision(NamedTuple):
    """One decision: about what, what was decided, and why."""

    topic: str
    choice: str
    why: str


IN_DOUBT = "in doubt"  # the topic of rows that count, and perhaps should not
FLIPPED = "--answer-is OTHER"  # in words about a reading; who knows the input writes the command of the other direction
DOUBTFUL_ROWS = "doubtful_rows"  # DIR/doubtful_rows.json: their texts, for a page


def in_doubt(evidence: Sequence[Decision]) -> list[str]:
    """What to say of rows that count, and perhaps should not."""
    return [decision.why for decision in evidence if decision.topic == IN_DOUBT]


def excluding(evidence: Sequence[Decision]) -> list[Decision]:
    """The decisions that leave out rows of the table, or judge participants by them."""
    decisions = ("questions", "practice", "catch trials", "invalid trials", "no answers", "empty cells")
    return [decision for decision in evidence if decision.topic in decisions]


class Reading(NamedTuple):
    """How records are read: the options of events, and the evidence for them; `doubt` is not empty where a choice was
    made that the records do not decide."""

    type: str
    columns: dict[str, tuple[str, ...]]
    answers_by: str = "name"
    codes: Mapping[str, Mapping[str, str]] = {}
    where: Mapping[str, str] = {}
    evidence: tuple[Decision, ...] = ()
    doubt: str = ""  # what the records do not decide
    answer_is: str = "nearer"
    separator: str | None = None


def flipped(reading: Reading) -> Reading:
    """The reading in which answers name the objects at the other end."""
    return reading._replace(answer_is="nearer" if reading.answer_is == "farther" else "farther")


Fields: TypeAlias = Mapping[str, tuple[str, ...]]  # of an event -> columns


class Proposal(NamedTuple):
    """A reading that a layout proposes: a type, the columns of its fields, and what the answers mean."""

    kind: str
    fields: Fields
    answer: Answer
    why: str
    rank: tuple[int, ...] = ()
    doubt: str = ""
    farther: bool = False
    field: str = ""  # of the answer


Ranked: TypeAlias = tuple[tuple[int, ...], Reading]


class Obstacle(NamedTuple):
    """Why a proposal is not taken: a fact; a column that could bear on the answer, the reading without it, and the
    `offers` if it does; or the readings of which one is right. Each offer may be for some rows alone (`by_rows`); a
    `note` on them."""

    fact: str
    rival: Rival | None = None
    reading: Reading | None = None
    offers: tuple[Reading, ...] = ()
    by_rows: bool = False
    note: str = ""
