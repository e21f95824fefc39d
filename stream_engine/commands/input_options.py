"""The options that say how input is read, as `run` has them, for verbs that read the same sources again.

`--exclude participant=NAME` and `--include participant=NAME`: who is excluded from what is fitted and reported.

The state keeps all answers; DIR/excluded.json says who is excluded (`state.exclusion`), until somebody is included.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import click
from click.core import ParameterSource

from connectors import SourceFailed
from stream_engine.data.comparisons import READABLE_TYPES
from stream_engine.formats import INPUT_FORMATS
from stream_engine.formats.event_fields import where_of
from stream_engine.formats.options import ANSWER_IS, FIRST_OF, PARTICIPANT_FROM
from stream_engine.input.settings import Settings
from stream_engine.input.settings import loading as configuration
from stream_engine.state.exclusion import BadExclusion, check_known, participants_in, without
from stream_engine.state.forgetting import CannotForget
from stream_engine.state.store import Store

_READING = (
    ("--type", "type", dict(type=click.Choice(READABLE_TYPES), help="Type of all events.")),
    (
        "--columns",
        "columns",
        dict(metavar="A=B,...", help="Map fields to columns: anchor=probe,objects=a|b|c."),
    ),
    ("--format", "format", dict(type=click.Choice(INPUT_FORMATS), help="File format. Default: by file name.")),
    (
        "--schema",
        "schema",
        dict(metavar="FILE", help="Kafka: Avro schema of the messages; with a registry, the schema to read them as."),
    ),
    (
        "--delimiter",
        "delimiter",
        dict(metavar="C", help="Column separator in text tables: , ; | tab. Default: detected from the header."),
    ),
    ("--encoding", "encoding", dict(metavar="NAME", help="Text encoding, such as latin-1 or utf-16. Default: UTF-8.")),
    (
        "--no-header",
        "header",
        dict(is_flag=True, flag_value=False, help="Treat the first row as data and name the columns 1, 2, 3."),
    ),
    (
        "--skip-rows",
        "skip_rows",
        dict(type=click.IntRange(0), metavar="N", help="Number of lines to skip before the header."),
    ),
    (
        "--answers-by",
        "answers_by",
        dict(
            type=click.Choice(list(FIRST_OF)),
            help="How odd, central and chosen name an object: by name, position (from 1), index (from 0), flag (0/1).",
        ),
    ),
    (
        "--answer-is",
        "answer_is",
        dict(type=click.Choice(ANSWER_IS), help="Which object an answer names. Default: the nearer one."),
    ),
    (
        "--codes",
        "codes",
        dict(metavar="FIELD:A=B,...", help="What the codes of an answer mean, as in chosen:f=left,j=right."),
    ),
    ("--separator", "separator", dict(metavar="C", help="Separator of lists in cells. Default: a bar.")),
    (
        "--participant-from",
        "participant_from",
        dict(type=click.Choice(PARTICIPANT_FROM), help="file: each file holds one participant, named like the file."),
    ),
    (
        "--drop-duplicates",
        "drop_duplicates",
        dict(is_flag=True, flag_value=True, help="Count a response that was sent twice (same times) once."),
    ),
)
_WHERE = "Read only matching events (also A!=B, A>N, A=B|C); count the others as filtered."
_REGISTRY = "Kafka: schema registry of the messages (Avro or JSON Schema)."
_LABELS = (
    ("--labels", "labels", dict(metavar="FILE", help="Table of labels with the columns object, label.")),
    (
        "--labels-columns",
        "labels_columns",
        dict(metavar="A=B,...", help="Map fields to columns of the table of labels: label=sweet."),
    ),
)
_MAPPINGS = {"input.columns": "--columns", "input.labels_columns": "--labels-columns"}

Command = Callable[..., Any]


def reading_options(command: Command) -> Command:
    """Add the options that say how events are read; each sets the key of [input] of its name."""
    command = _with(_READING, command)
    registry = click.option("--schema-registry", "schema_registry__url", metavar="URL", help=_REGISTRY)
    command = registry(command)
    return click.option("--where", multiple=True, metavar="FIELD=VALUE", help=_WHERE)(command)


def labels_options(command: Command) -> Command:
    """Add the options that name a file of labels."""
    return _with(_LABELS, command)


def input_options(command: Command) -> Command:
    """Add SOURCE..., a run's configuration and all that says how it reads; `settings_of` makes settings of them."""
    command = reading_options(labels_options(command))
    command = click.option("--config", metavar="FILE", help="TOML configuration file of the run.")(command)
    return click.argument("source", nargs=-1)(command)


def given_for_sources() -> list[str]:
    """The options that say how SOURCE... is read, of those on the command line that is being run."""
    context = click.get_current_context()
    keys = ("input__", "schema_registry__", "where", "config")
    return [
        option.opts[0]
        for option in context.command.params
        if (option.name or "").startswith(keys)
        and context.get_parameter_source(option.name or "") is ParameterSource.COMMANDLINE
    ]


def _with(options: Iterable[tuple[str, str, dict[str, Any]]], command: Command) -> Command:
    for option, key, more in reversed(list(options)):
        command = click.option(option, f"input__{key}", default=None, **more)(command)
    return command


def overrides_of(given: Mapping[str, Any]) -> dict[str, Any]:
    """The keys of settings that options set (`input__type` is `input.type`), mappings and `--where` read. Raises
    `BadSettings`."""
    overrides = {name.replace("__", "."): value for name, value in given.items() if name != "where"}
    for key, option in _MAPPINGS.items():
        if overrides.get(key) is not None:
            overrides[key] = configuration.mapping(overrides[key], option)
    if overrides.get("input.codes") is not None:
        field, _, codes = overrides["input.codes"].partition(":")
        overrides["input.codes"] = {field: configuration.mapping(codes, "--codes")}
    where = dict(map(where_of, given["where"]))
    return overrides | {"input.where": where or None}


def settings_of(given: Mapping[str, Any], **more: Any) -> Settings:
    """The settings that the options of `input_options` ask for. Raises `BadSettings`."""
    chosen = {
        name: value
        for name, value in given.items()
        if name.startswith(("input__", "schema_registry__")) or name == "where"
    }
    sources = {"source": list(given["source"]) or None}
    return configuration.load(given["config"], overrides_of(chosen) | sources | more)


def no_answers(source: Sequence[str], excluded: int = 0) -> SourceFailed:
    """What to say of sources without a single answer."""
    got = f"got 0 answers, {excluded:,} rows excluded" if excluded else "got 0 answers"
    next_step = "check --where and catch trials" if excluded else "check that these are the files with the answers"
    return SourceFailed(f"{', '.join(source)}: {got}, expected at least one; next: {next_step}")


_WHAT = "participant=NAME|@FILE"


def exclusion_options(command: Command) -> Command:
    """Add `--exclude` and `--include`."""
    command = click.option(
        "--include", multiple=True, metavar=_WHAT, help="Include an excluded participant again (repeatable)."
    )(command)
    return click.option(
        "--exclude",
        multiple=True,
        metavar=_WHAT,
        help=(
            "Leave a participant out of models, reports and exports; the state keeps the answers (repeatable; @FILE: "
            "one name per line)."
        ),
    )(command)


def apply_exclusion(store: Store, exclude: Sequence[str], include: Sequence[str], start_over: bool = False) -> None:
    """Note who is excluded from now on. Raises `click.UsageError` for somebody whom the data do not name, or where the
    state cannot tell who answered; a state that is about to start over says nothing of the data to come."""
    if not exclude and not include:
        return
    try:
        out, back = participants_in(exclude), participants_in(include, "--include")
        if strangers := set(back) - set(store.excluded()):
            raise BadExclusion(f"--include: {sorted(strangers)[0]!r} is not excluded")
        if store.sequences() and not start_over:
            whole = store.named("latest")
            check_known(out, whole)
            without(whole, out)
        store.directory.mkdir(parents=True, exist_ok=True)
        store.exclude(out, back)
    except (BadExclusion, CannotForget) as error:
        raise click.UsageError(str(error)) from None
