"""The options that say how input is read, as `run` has them, for verbs that read the same sources again."""

from collections.abc import Callable, Mapping
from typing import Any

import click

from stream_engine.data.comparisons import EVENT_TYPES
from stream_engine.formats import FORMATS
from stream_engine.formats.options import FIRST_OF
from stream_engine.service import settings as configuration
from stream_engine.service.settings import Settings

_COLUMNS = "Names of fields in the input, as given to run."


_TEXT = (
    (
        "--delimiter",
        "delimiter",
        dict(metavar="C", help="Of text tables: , ; | tab. Default: as the header shows."),
    ),
    ("--encoding", "encoding", dict(metavar="NAME", help="Of text: latin-1, utf-16. Default: UTF-8.")),
    ("--no-header", "header", dict(is_flag=True, flag_value=False, help="Columns have no names: call them 1, 2, 3.")),
    ("--skip-rows", "skip_rows", dict(type=click.IntRange(0), metavar="N", help="Lines before the header.")),
    (
        "--answers-by",
        "answers_by",
        dict(type=click.Choice(list(FIRST_OF)), help="odd, central, chosen: names, places from 1, or from 0."),
    ),
)


def text_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that say how tables of text are laid out; each sets the key of [input] of its name."""
    for option, key, more in reversed(_TEXT):
        command = click.option(option, f"input__{key}", default=None, **more)(command)
    return command


def input_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add SOURCE... and the options; `settings_of` makes settings of them."""
    options = [
        click.argument("source", nargs=-1),
        click.option("--config", metavar="FILE", help="TOML file of the run."),
        click.option("--type", "input__type", type=click.Choice(EVENT_TYPES), help="The type of every event."),
        click.option("--columns", "input__columns", metavar="A=B,...", help=_COLUMNS),
        click.option("--where", multiple=True, metavar="FIELD=VALUE", help="Only matching events, as given to run."),
        click.option("--format", "input__format", type=click.Choice(list(FORMATS)), help="Instead of by file name."),
        click.option("--labels", "input__labels", metavar="FILE", help="File of object,label."),
        click.option("--labels-columns", "input__labels_columns", metavar="A=B,...", help="Names of its columns."),
    ]
    command = text_options(command)
    for option in reversed(options):
        command = option(command)
    return command


def settings_of(given: Mapping[str, Any], **more: Any) -> Settings:
    """The settings that the options of `input_options` ask for. Raises `BadSettings`."""
    overrides = {name.replace("__", "."): value for name, value in given.items() if name.startswith("input__")}
    for option in ("input.columns", "input.labels_columns"):
        if overrides[option] is not None:
            overrides[option] = configuration.mapping(overrides[option], "--" + option.split(".")[1].replace("_", "-"))
    where = dict(kv for text in given["where"] for kv in configuration.mapping(text, "--where", "\0").items())
    return configuration.load(
        given["config"], overrides | {"input.where": where or None, "source": list(given["source"]) or None} | more
    )
