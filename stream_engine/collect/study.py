"""What a study asks and shows: a TOML file in which every key has a default, so that a study needs no file."""

import tomllib
from collections.abc import Collection
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Literal

import msgspec
from msgspec import Meta, Struct

from stream_engine.asking import BY_MODEL, DEFAULT, RANDOM_SHARE, STRATEGIES
from stream_engine.input.settings import BadSettings
from stream_engine.input.settings.conversion import in_one_line

_Count = Annotated[int, Meta(ge=0)]


_Positive = Annotated[int, Meta(ge=1)]


_Share = Annotated[float, Meta(ge=0, le=1)]


_Rate = Annotated[float, Meta(gt=0)]


_Text = Annotated[str, Meta(max_length=20_000)]


Kind = Literal["pick", "triplet", "odd_one_out"]


class _Section(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Keys of a TOML table; unknown keys are errors."""


class Asking(_Section, frozen=True):
    """Kind and choice of questions."""

    type: Kind = "pick"
    shown: Annotated[int, Meta(ge=2, le=20)] = 2  # number of choices in a pick
    choose: Annotated[int, Meta(ge=1, le=19)] = 1  # number of choices to select
    strategy: str = DEFAULT  # once there is an embedding
    start: str = "random"  # until then: random, coverage, landmark or landmark-k2
    random_share: _Share = RANDOM_SHARE  # share of random questions
    repeat_share: _Share = 0.0  # share of questions that a participant has answered before
    repeat_after: _Count = 10  # answers between a question and its repetition
    picture_size: Literal["equal", "natural"] = "equal"  # the same area for all pictures, or the size of the files

    def __post_init__(self):
        for name, models in (("strategy", True), ("start", False)):
            strategies = [strategy for strategy in STRATEGIES if models or strategy not in BY_MODEL]
            if getattr(self, name) not in strategies:
                raise ValueError(f"{name}: got {getattr(self, name)!r}, expected one of {', '.join(strategies)}")
        if self.choose >= self.shown:
            raise ValueError(f"choose: got {self.choose} of {self.shown} shown, expected fewer")
        if self.shown > 2 and self.type != "pick":
            raise ValueError(f"shown: got {self.shown} with {self.type}, expected type = 'pick'")


class Quota(_Section, frozen=True):
    """When the study ends; 0: no limit."""

    person: _Count = 60  # answers per participant
    total: _Count = 0  # answers in total
    ellipse: Annotated[float, Meta(ge=0)] = 0.0  # median 95 % region, as a share of the map's size
    answer_within: _Rate = 86_400.0  # seconds from question to answer


class Texts(_Section, frozen=True):
    """Texts for participants; empty: the default texts of the page."""

    title: _Text = ""
    consent: _Text = ""  # if set, participants see no questions before they have agreed to it
    instructions: _Text = ""
    question: _Text = ""
    end: _Text = ""
    excluded: _Text = ""  # for participants who failed too many catch trials
    language: Annotated[str, Meta(pattern="^[A-Za-z]{2,3}(-[A-Za-z0-9]{1,8})*$")] = "en"
    code: Annotated[str, Meta(max_length=100)] = ""  # completion code for all; empty: one per participant
    link: Annotated[str, Meta(max_length=2000, pattern="^(https?://.*)?$")] = ""  # link on the end page


class CatchTrial(_Section, frozen=True):
    """A question whose answer is known."""

    shown: tuple[str, ...]
    right: str
    anchor: str = ""  # none for odd_one_out

    def __post_init__(self):
        if self.right not in self.shown or len({*self.shown, self.anchor}) != len(self.shown) + 1:
            got = f"anchor {self.anchor!r}, shown {', '.join(self.shown)}, right {self.right!r}"
            raise ValueError(f"got {got}; expected distinct objects, with the right one among those shown")


class Catching(_Section, frozen=True):
    """Frequency of catch trials, and the consequence of failing them."""

    every: _Count = 15  # answers between two catch trials; 0: none
    most_failed: _Count = 0  # participants who fail more get no more questions; 0: no limit


class Access(_Section, frozen=True):
    """Who can take part, and rate limits."""

    invited_only: bool = False  # admit only participants with their own link
    worker_from: Annotated[str, Meta(min_length=1, max_length=50)] = "worker"  # URL parameter with the worker code
    requests_a_second: _Rate = 20.0  # per participant, on average
    requests_a_second_from_address: _Rate = 1000.0  # per address, which a whole class may share
    new_people_a_minute: _Rate = 600.0
    most_open: _Positive = 200  # unanswered questions per participant
    body_bytes: Annotated[int, Meta(ge=1024)] = 64 << 10  # maximum size of a POST


class Study(_Section, frozen=True):
    """All settings of a study."""

    asking: Asking = Asking()
    quota: Quota = Quota()
    texts: Texts = Texts()
    catch: tuple[CatchTrial, ...] = ()
    catching: Catching = Catching()
    access: Access = Access()

    def __post_init__(self):
        for trial in self.catch:
            anchored, wanted = bool(trial.anchor), self.asking.type != "odd_one_out"
            if anchored != wanted or len(trial.shown) < 3 - wanted:
                raise ValueError(
                    f"catch: got anchor {trial.anchor!r} and {len(trial.shown)} shown, expected for type "
                    f"{self.asking.type} {'an anchor and at least 2' if wanted else 'no anchor and 3'}"
                )
        if self.catching.most_failed and not (self.catch and self.catching.every):
            raise ValueError(
                f"catching.most_failed: got {self.catching.most_failed} without catch trials, expected a table "
                "[[catch]], and every above 0"
            )


def load(path: str | None) -> Study:
    """A study from its file; without one the defaults. Raises `BadSettings`: file, key, what was got and expected."""
    if path is None:
        return Study()
    try:
        return msgspec.convert(tomllib.loads(Path(path).read_text("utf-8")), Study)
    except OSError as error:
        raise BadSettings(f"--study {path}: {error.strerror}") from None
    except msgspec.ValidationError as error:
        raise BadSettings(f"--study {path}: {in_one_line(error, Study).removeprefix('settings: ')}") from None
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise BadSettings(f"--study {path}: {error}") from None


def check_objects(study: Study, objects: Collection[str], path: str | None) -> None:
    """Raise `BadSettings` where the study, from the file at `path`, cannot be about these objects: one line."""
    where = f"--study {path}: "
    for trial in study.catch:
        for name in filter(None, (trial.anchor, *trial.shown)):
            if name not in objects:
                near = get_close_matches(name, objects, 1)
                meant = f"did you mean {near[0]!r}?" if near else f"expected one of the {len(objects):,} of --objects"
                raise BadSettings(f"{where}catch: there is no object {name!r}; {meant}")
    most = len(objects) - 1  # beside the anchor
    if study.asking.shown > most:
        raise BadSettings(
            f"{where}asking.shown: got {study.asking.shown}, expected at most {most}: there are {len(objects)} "
            "objects, one of which is the anchor"
        )
