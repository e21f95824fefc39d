"""The input options that a state is made with: remembered in it, and used by later runs.

Positions, counts and dead letters mean something only together with how the events were read. So a state keeps its
options: a run need not repeat them, and one that asks for others is refused before anything is read. States of before
options were remembered take those of the first run that goes on with them.
"""

from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import structs

from stream_engine.service.settings import BadSettings, Input, Settings

KEYS = ("type", "columns", "where", "format", "delimiter", "encoding", "header", "skip_rows", "answers_by")
_DEFAULTS = msgspec.to_builtins(Input())


def asked_options(settings: Settings) -> dict[str, Any]:
    """The input options of a run that differ from the defaults, as JSON values.

    >>> asked_options(Settings(input=Input(type_="triplet", columns={"anchor": "probe"})))
    {'type': 'triplet', 'columns': {'anchor': 'probe'}}
    """
    given = msgspec.to_builtins(settings.input)
    return {key: given[key] for key in KEYS if given[key] != _DEFAULTS[key]}


def with_options_of(settings: Settings, made_with: Mapping[str, Any]) -> Settings:
    """The settings with the input options of a state, where they contradict none of them."""
    before = made_with.get("options")
    if not isinstance(before, dict) or any(value != before.get(key) for key, value in asked_options(settings).items()):
        return settings
    try:
        events = msgspec.convert({**msgspec.to_builtins(settings.input), **before}, Input)
    except msgspec.ValidationError:  # options of a newer engine
        return settings
    return structs.replace(settings, input=events)


def agreed_options(settings: Settings, made_with: Mapping[str, Any], read_before: bool) -> dict[str, Any]:
    """What the state is to remember: {"options": ...}. Raises `BadSettings` where it was made with others and has read
    something with them."""
    asked = asked_options(settings)
    before = made_with.get("options")
    if isinstance(before, dict) and read_before and before != asked:
        raise BadSettings(
            f"{settings.state}: made with {said(before)}, asked for {said(asked)}; use the same options, another "
            "--state (`stream-engine merge` sums both: so for files that need other options, as answers to questions "
            "of `ask` do), or --start-over to read all anew"
        )
    return {**made_with, "options": asked}


def said(options: Mapping[str, Any]) -> str:
    """Options as they are written on a command line.

    >>> said({"columns": {"anchor": "probe", "near": "chosen"}, "header": False, "skip_rows": 2}), said({})
    ('--columns anchor=probe,near=chosen --no-header --skip-rows 2', 'no options of input')
    """
    words = []
    for key, value in options.items():
        if key == "header":
            words.append("--no-header")
        elif key == "where":
            words += [f"--where {field}={text}" for field, text in value.items()]
        elif isinstance(value, Mapping):
            words.append(f"--{key} " + ",".join(f"{field}={names}" for field, names in value.items()))
        else:
            words.append(f"--{key.replace('_', '-')} {'tab' if value == chr(9) else value}")
    return " ".join(words) or "no options of input"
