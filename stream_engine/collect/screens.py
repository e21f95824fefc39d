"""Screens: what one person is asked at one moment, as it is shown, stored, and counted once it is answered.

A screen's objects are in the order in which they are shown, from left to right: sides are at random and part of the
event. Its id is random, so nobody answers what another was asked, and begins with the study's, so an answer to another
study is distinguished from one to a question that was never asked.
"""

import secrets
from collections.abc import Sequence
from typing import Any

import msgspec

from stream_engine.collect.study import Kind

REPEAT, CATCH = "repeat", "catch"  # samplers of their own, beside those of the room `asking`


class Screen(msgspec.Struct, tag="asked", tag_field="what", frozen=True, omit_defaults=True):
    """A screen. `anchor` is empty for an odd-one-out; `right` is the known answer of a catch trial."""

    id: str
    worker: str
    type: Kind
    shown: tuple[str, ...]
    time: float
    anchor: str = ""
    sampler: str = ""
    propensity: float | None = None
    choose: int = 1
    right: str = ""
    repeats: str = ""  # id of the screen that is asked again

    def key(self) -> int:
        """One number a question, the same for every order of what is shown; of this process only."""
        return question_key(self.anchor, self.shown)

    def objects(self) -> tuple[str, ...]:
        """All that it shows, the anchor first."""
        return (self.anchor, *self.shown) if self.anchor else self.shown

    def public(self) -> dict[str, Any]:
        """What is sent to who is asked: nothing that tells a catch trial from others."""
        body: dict[str, Any] = {"id": self.id, "type": self.type}
        body |= {"anchor": self.anchor, "shown": self.shown} if self.anchor else {"objects": self.shown}
        return body | {"choose": self.choose}


def question_key(anchor: str, shown: Sequence[str]) -> int:
    """The key of a screen with this anchor and these objects, in any order."""
    return hash((anchor, *sorted(shown)))


class CatchResult(msgspec.Struct, tag="caught", tag_field="what", frozen=True):
    """A catch trial was answered."""

    id: str
    worker: str
    passed: bool
    time: float


class Consent(msgspec.Struct, tag="consented", tag_field="what", frozen=True):
    """A person has agreed to take part."""

    worker: str
    time: float


Line = Screen | CatchResult | Consent


def new_id(study: str) -> str:
    """An id that nobody guesses.

    >>> len(new_id("abcdef"))
    23
    """
    return f"{study}-{secrets.token_hex(8)}"


def event(asked: Screen, chosen: Sequence[str], time: float, seconds: float | None) -> dict[str, Any]:
    """The event of an answer, complete: `chosen` holds what was clicked, the odd one for an odd-one-out.

    >>> event(Screen("s-1", "w", "triplet", ("b", "c"), 0.0, "a", "random"), ["c"], 1.0, None)["near"]
    'c'
    """
    body: dict[str, Any] = {"id": asked.id, "type": asked.type}
    if asked.type == "odd_one_out":
        body |= {"objects": asked.shown, "odd": chosen[0]}
    elif asked.type == "triplet":
        other = asked.shown[chosen[0] == asked.shown[0]]
        body |= {"anchor": asked.anchor, "near": chosen[0], "far": other, "shown": asked.shown}
    else:
        body |= {"anchor": asked.anchor, "shown": asked.shown, "chosen": list(chosen)}
    body |= {"worker": asked.worker, "time": round(time, 3), "sampler": asked.sampler}
    if asked.propensity is not None:
        body["propensity"] = asked.propensity
    if asked.repeats:
        body["repeats"] = asked.repeats
    if seconds is not None:
        body["seconds"] = seconds
    return body
