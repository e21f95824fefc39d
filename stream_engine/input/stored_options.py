"""The options by which a state reads its input: inferred or given once, stored, and never contradicted silently."""

from collections.abc import Mapping
from shlex import quote
from typing import Any, NamedTuple

import msgspec
from msgspec import structs

from stream_engine.formats.options import in_words
from stream_engine.formats.reading import Decision
from stream_engine.input.settings import BadSettings, Input, Settings

KEYS = (
    *("type", "columns", "where", "format", "delimiter", "encoding", "header", "skip_rows", "answers_by", "codes"),
    *("answer_is", "separator", "participant_from", "drop_duplicates"),
)


_DEFAULTS = msgspec.to_builtins(Input())


class PreparedSettings(NamedTuple):
    """The settings of a run with the reading that was inferred from its first records, if that was tried
    (`is_inferred`)."""

    settings: Settings
    is_inferred: bool = False
    evidence: tuple[Decision, ...] = ()
    line: str = ""  # one line about the reading; "" where there is nothing to say
    doubt: str = ""  # why there is no single reading
    rivals: tuple[Settings, ...] = ()  # the readings that fit equally well
    problem: str = ""  # in one line: the doubt with the command of each of them, or why nothing fits

    def raise_if_undecided(self) -> "PreparedSettings":
        """These settings. Raises `BadSettings` with the rival readings if the records do not decide."""
        if self.problem:
            raise BadSettings(self.problem)
        return self


def merge_stored_options(settings: Settings, made_with: Mapping[str, Any], inferred: PreparedSettings) -> Settings:
    """The settings with the options of a state. Raises `BadSettings` if the state's options were inferred and
    contradict those inferred from this input."""
    stored = made_with.get("options", {})
    has_options = bool(asked_options(settings))
    if (
        inferred.is_inferred
        and not has_options
        and made_with.get("inferred")
        and not inferred.rivals
        and contradiction(stored, inferred)
    ):
        raise BadSettings(
            f"{settings.source[0]}: {settings.state} reads {as_arguments(stored)}, this input looks like "
            f"{as_arguments(asked_options(inferred.settings))}; say one of them, or use another --state"
        )
    return with_options_of(settings, made_with)


def contradiction(stored: Mapping[str, Any], inferred: PreparedSettings) -> bool:
    """Whether the stored options of a state read something else than the inferred ones. Filters of empty cells do not
    count: without them, nothing else is read."""
    options = asked_options(inferred.settings)
    if any(options.get(key) != stored.get(key) for key in ("type", "answers_by", "answer_is", "skip_rows")):
        return True
    for key in ("columns", "codes"):
        new, old = options.get(key, {}), stored.get(key, {})
        if any(new[field] != old[field] for field in new.keys() & old.keys() - {"worker"}):
            return True
    where = stored.get("where", {})
    return any(
        key not in where and not (key.endswith("!=") and "" in value.split("|"))
        for key, value in options.get("where", {}).items()
    )


def asked_options(settings: Settings) -> dict[str, Any]:
    """The input options of a run that differ from the defaults, as JSON values.

    >>> asked_options(Settings(input=Input(type_="triplet", columns={"anchor": "probe"})))
    {'type': 'triplet', 'columns': {'anchor': 'probe'}}
    """
    inputs = msgspec.to_builtins(settings.input)
    return {key: inputs[key] for key in KEYS if inputs[key] != _DEFAULTS[key]}


def with_options_of(settings: Settings, made_with: Mapping[str, Any]) -> Settings:
    """The settings with the input options of a state, unless they contradict them."""
    stored = made_with.get("options")
    if not isinstance(stored, dict) or any(value != stored.get(key) for key, value in asked_options(settings).items()):
        return settings
    try:
        events = msgspec.convert({**msgspec.to_builtins(settings.input), **stored}, Input)
    except msgspec.ValidationError:  # options of a newer engine
        return settings
    return structs.replace(settings, input=events)


def agreed_options(settings: Settings, made_with: Mapping[str, Any], read_before: bool) -> dict[str, Any]:
    """What a state stores about its options: {"options": ...}. Raises `BadSettings` if it has read something with
    others."""
    options = asked_options(settings)
    stored = made_with.get("options")
    if isinstance(stored, dict) and read_before and stored != options:
        raise BadSettings(
            f"{settings.state}: created with {as_arguments(stored)}, requested {as_arguments(options)}; use the same "
            "options, another --state (for files that need other options, such as answers to questions of `ask`; "
            "`stream-engine merge` adds the states), or --start-over to read everything again"
        )
    return {**made_with, "options": options}


def as_arguments(options: Mapping[str, Any]) -> str:
    """Options as they are written on a command line.

    >>> as_arguments({"columns": {"anchor": "probe", "near": "chosen"}, "header": False, "skip_rows": 2})
    '--columns anchor=probe,near=chosen --no-header --skip-rows 2'
    """
    words = []
    for key, value in options.items():
        if isinstance(value, bool):
            words.append("--no-header" if key == "header" else f"--{key.replace('_', '-')}")
        elif key == "where":
            words += [f"--where {quote(key + '=' * (key[-1] not in '=<>') + text)}" for key, text in value.items()]
        elif key == "codes":
            words += [f"--codes {quote(f'{field}:' + _pairs(codes))}" for field, codes in value.items()]
        elif isinstance(value, Mapping):
            words.append(f"--{key} {quote(_pairs(in_words(value)))}")
        else:
            words.append(f"--{key.replace('_', '-')} {'tab' if value == chr(9) else quote(str(value))}")
    return " ".join(words) or "no input options"


def _pairs(values: Mapping[str, str]) -> str:
    return ",".join(f"{key}={value}" for key, value in values.items())
