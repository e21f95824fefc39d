"""Options that set keys of `Settings`, and those of several verbs: how input is read, and who is excluded."""

from collections.abc import Callable, Mapping, Sequence
from types import UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import click
from click.core import ParameterSource
from msgspec import structs

from connectors import SourceFailed
from stream_engine.data.numbers_in_words import amount
from stream_engine.formats.event_fields import where_of
from stream_engine.input.settings import Settings
from stream_engine.input.settings import loading as configuration
from stream_engine.state.exclusion import BadExclusion, check_known, check_some_remain, participants_in
from stream_engine.state.forgetting import CannotForget
from stream_engine.state.store import Store

Command = Callable[..., Any]


def setting(
    key: str, help: str, metavar: str | None = None, name: str = "", **more: Any
) -> Callable[[Command], Command]:
    """An option that sets a key of `Settings` and takes the values that the key takes.

    It is called like the last part of the key, or by `name`; `more` is for `click.option`.
    """
    kind: Any = Settings
    for part in key.split("."):
        kind = {field.encode_name: field.type for field in structs.fields(kind)}[part]
    while get_origin(kind) in (Annotated, Union, UnionType):  # T with bounds, T | None
        kind = get_args(kind)[0]
    if get_origin(kind) is Literal:
        more["type"] = click.Choice(get_args(kind))
    elif kind in (int, float):
        more["type"] = kind
    elif kind is bool and "type" not in more:
        more = {"is_flag": True, "flag_value": True, **more}
    option = name or f"--{key.rpartition('.')[2].replace('_', '-')}"
    return click.option(option, key.replace(".", "__"), default=None, metavar=metavar, help=help, **more)


_READING = (
    setting("input.type", "Type of all events."),
    setting("input.columns", "Map fields to columns: anchor=probe,objects=a|b|c.", "A=B,..."),
    setting("input.format", "File format. Default: by file name."),
    setting("input.schema", "Kafka: Avro schema of the messages; with a registry, the schema to read them as.", "FILE"),
    setting("input.delimiter", "Column separator in text tables: , ; | tab. Default: detected from the header.", "C"),
    setting("input.encoding", "Text encoding, such as latin-1 or utf-16. Default: UTF-8.", "NAME"),
    setting(
        "input.header",
        "Treat the first row as data and name the columns 1, 2, 3.",
        name="--no-header",
        flag_value=False,
    ),
    setting("input.skip_rows", "Number of lines to skip before the header.", "N"),
    setting(
        "input.answers_by",
        "How odd, central and chosen name an object: by name, position (from 1), index (from 0), flag (0/1).",
    ),
    setting("input.answer_is", "Which object an answer names. Default: the nearer one."),
    setting("input.codes", "What the codes of an answer mean, as in chosen:f=left,j=right.", "FIELD:A=B,..."),
    setting("input.separator", "Separator of lists in cells. Default: a bar.", "C"),
    setting("input.participant_from", "file: each file holds one participant, named like the file."),
    setting("input.drop_duplicates", "Count a response that was sent twice (same times) once."),
)
_LABELS = (
    setting("input.labels", "Table of labels with the columns object, label.", "FILE"),
    setting("input.labels_columns", "Map fields to columns of the table of labels: label=sweet.", "A=B,..."),
)
_MAPPINGS = {"input.columns": "--columns", "input.labels_columns": "--labels-columns"}


def reading_options(command: Command) -> Command:
    """Add the options that say how events are read."""
    registry = "Kafka: schema registry of the messages (Avro or JSON Schema)."
    command = setting("schema_registry.url", registry, "URL", "--schema-registry")(_with(_READING, command))
    where = "Read only matching events (also A!=B, A>N, A=B|C); count the others as filtered."
    return click.option("--where", multiple=True, metavar="FIELD=VALUE", help=where)(command)


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


def _with(options: Sequence[Callable[[Command], Command]], command: Command) -> Command:
    for option in reversed(options):
        command = option(command)
    return command


def overrides_of(options: Mapping[str, Any]) -> dict[str, Any]:
    """The keys of settings that options set (`input__type` is `input.type`), mappings and `--where` read. Raises
    `BadSettings`."""
    overrides = {name.replace("__", "."): value for name, value in options.items() if name != "where"}
    for key, option in _MAPPINGS.items():
        if overrides.get(key) is not None:
            overrides[key] = configuration.mapping(overrides[key], option)
    if overrides.get("input.codes") is not None:
        field, _, codes = overrides["input.codes"].partition(":")
        overrides["input.codes"] = {field: configuration.mapping(codes, "--codes")}
    where = dict(map(where_of, options["where"]))
    return overrides | {"input.where": where or None}


def settings_of(options: Mapping[str, Any], **more: Any) -> Settings:
    """The settings that the options of `input_options` ask for. Raises `BadSettings`."""
    chosen = {
        name: value
        for name, value in options.items()
        if name.startswith(("input__", "schema_registry__")) or name == "where"
    }
    sources = {"source": list(options["source"]) or None}
    return configuration.load(options["config"], overrides_of(chosen) | sources | more)


def no_answers(source: Sequence[str], excluded: int = 0) -> SourceFailed:
    """What to say of sources without a single answer."""
    got = f"got 0 answers, {excluded:,} rows excluded" if excluded else "got 0 answers"
    next_step = "check --where and catch trials" if excluded else "check that these are the files with the answers"
    return SourceFailed(f"{', '.join(source)}: {got}, expected at least one; next: {next_step}")


MAX_NAMED = 5  # of the participants who are excluded
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


def apply_exclusion(store: Store, exclude: Sequence[str], include: Sequence[str], start_over: bool = False) -> str:
    """Note who is excluded from now on, and say who. Raises `click.UsageError` for somebody whom the data do not name,
    or where the state cannot tell who answered; a state that is about to start over says nothing of the data to come.
    """
    if not exclude and not include:
        return ""
    try:
        out, back = participants_in(exclude), participants_in(include, "--include")
        if strangers := set(back) - set(store.excluded()):
            raise BadExclusion(f"--include: {sorted(strangers)[0]!r} is not excluded")
        if store.sequences() and not start_over:
            whole = store.named("latest")
            check_known(out, whole)
            check_some_remain(whole, (set(store.excluded()) - set(back)) | set(out))
        store.directory.mkdir(parents=True, exist_ok=True)
        before = {*store.excluded()}
        store.exclude(out, back)
        now = sorted(store.excluded())
        same = "; nothing changed" if {*now} == before else ""
        named = ", ".join([*now[:MAX_NAMED], *(["…"] if now[MAX_NAMED:] else [])])
        return f"excluded: {amount(len(now), 'participant')}{f' ({named})' if now else ''}{same}"
    except (BadExclusion, CannotForget) as error:
        raise click.UsageError(str(error)) from None
