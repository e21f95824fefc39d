"""`stream-engine dead-letters`: what was refused, grouped or one by one, and a second try.

`list` and `show` take no lock; a run may be at work. `replay` owns the state while it works.
"""

import json
from collections.abc import Iterator, Mapping
from contextlib import closing
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import click
from msgspec import structs

from connectors import UnusableSource
from connectors.files.dead_letter_reader import Kept
from connectors.files.line_numbers import LineNumbers
from stream_engine.data.comparisons import EVENT_TYPES, REASONS
from stream_engine.formats import FORMATS
from stream_engine.service import letters_replay
from stream_engine.service import settings as configuration
from stream_engine.service.made_with import with_options_of
from stream_engine.service.settings import Settings
from stream_engine.service.wiring import event_options, text_layout_of
from stream_engine.state.snapshot import Snapshot
from stream_engine.state.store import Lock, Store

SHOWN = 200  # characters of a value in a list


class Folder(NamedTuple):
    """A state and the folder of its dead letters, as the command line names them."""

    state: str | None
    letters: str | None


def _options(command: Any) -> Any:
    """--state and --dead-letters, which may stand before or after the verb's own verb."""
    for option in (
        click.option("--dead-letters", metavar="FOLDER", help="Where they are, if not in DIR/dead_letters."),
        click.option("--state", metavar="DIR", help="State directory."),
    ):
        command = option(command)
    return command


_reason = click.option("--reason", type=click.Choice(list(REASONS)), help="Only those refused for it.")


@click.group("dead-letters")
@_options
@click.pass_context
def command(context: click.Context, state: str | None, dead_letters: str | None) -> None:
    """What was refused, grouped (list) or one by one (show), and a second try (replay)."""
    context.obj = Folder(state, dead_letters)


def _named(context: click.Context, state: str | None, dead_letters: str | None) -> tuple[Store, Path]:
    before: Folder = context.obj or Folder(None, None)
    directory = state or before.state
    if not directory:
        raise click.UsageError("Missing option '--state'.")
    folder = dead_letters or before.letters or str(Path(directory) / "dead_letters")
    if "://" in folder:
        raise UnusableSource(
            f"--dead-letters: got {folder}, expected a folder; those of a topic are in DIR/dead_letters too, and "
            "`stream-engine run` reads such a topic like any other"
        )
    return Store(directory), Path(folder)


@command.command("list")
@_options
@click.option("--json", "as_json", is_flag=True, help="For programs.")
@click.pass_context
def list_letters(context: click.Context, state: str | None, dead_letters: str | None, as_json: bool) -> None:
    """How many there are by reason and partition, with the first of each."""
    store, folder = _named(context, state, dead_letters)
    contents = grouped(store.named("latest"), folder)
    click.echo(json.dumps(contents, indent=1, ensure_ascii=False) if as_json else _table(contents))


def grouped(snapshot: Snapshot, folder: Path) -> dict[str, Any]:
    """The letters of a state that wait, by reason and partition; and those that are there no more."""
    groups: dict[tuple[str, str], dict[str, Any]] = {}
    with closing(_lines_of(snapshot)) as lines:
        for kept in letters_replay.live_letters(snapshot.counters.get("sinks", {}), folder):
            letter = kept.letter
            group = groups.setdefault(
                (letter.reason, letter.partition),
                {"reason": letter.reason, "partition": letter.partition, "letters": 0, "bytes": 0, "first": {}},
            )
            group["first"] = group["first"] or shown(kept, lines)
            group["letters"] += 1
            group["bytes"] += kept.size
    gone = snapshot.counters.get("dead_letters", {})
    return {
        "folder": str(folder),
        "snapshot": snapshot.sequence,
        "letters": sum(group["letters"] for group in groups.values()),
        "groups": sorted(groups.values(), key=lambda group: (-group["letters"], group["reason"], group["partition"])),
        "lost": gone.get("lost", 0),
        "removed": gone.get("removed", 0),
        "removed_bytes": gone.get("removed_bytes", 0),
    }


def _lines_of(snapshot: Snapshot) -> LineNumbers:
    """The numbers of lines of the files that a state has read."""
    settings = with_options_of(Settings(), snapshot.counters.get("input", {}))
    return LineNumbers(settings.input.format, text_layout_of(settings))


def shown(kept: Kept, lines: LineNumbers) -> dict[str, Any]:
    """A letter for people and programs; `line` is null where its input has no lines, or is not there any more."""
    letter = kept.letter
    value = letter.value.decode("utf-8", "backslashreplace")
    return {
        "partition": letter.partition,
        "offset": letter.offset,
        "line": lines.at(letter.partition, letter.offset),
        "index": letter.event_index,
        "reason": letter.reason,
        "message": letter.message,
        "value": value,
    }


def _table(contents: Mapping[str, Any]) -> str:
    lines = [f"{contents['letters']:,} dead letters in {contents['folder']} (snapshot {contents['snapshot']})"]
    for group in contents["groups"]:
        first = group["first"]
        lines += [
            f"{group['letters']:12,}  {group['reason']:20}{group['partition']}",
            f"{'':14}first at {_place(first)}: {first['message']}: {_short(first['value'])}",
        ]
    if contents["removed"]:
        lines.append(f"{contents['removed']:12,}  removed by the limits ({contents['removed_bytes']:,} bytes)")
    if contents["lost"]:
        lines.append(f"{contents['lost']:12,}  lost with their folder")
    return "\n".join(lines)


def _place(told: Mapping[str, Any]) -> str:
    return f"{told['offset']}" if told["line"] is None else f"line {told['line']:,}"


def _short(value: str) -> str:
    return (value[:SHOWN] + " …" if len(value) > SHOWN else value).replace("\n", "\\n")


@command.command("show")
@_options
@_reason
@click.option("--limit", default=20, show_default=True, metavar="N", help="How many (0: all).")
@click.option("--json", "as_json", is_flag=True, help="One JSON object a line.")
@click.pass_context
def show(
    context: click.Context,
    state: str | None,
    dead_letters: str | None,
    reason: str | None,
    limit: int,
    as_json: bool,
) -> None:
    """The letters, oldest first: place, reason, message and value."""
    store, folder = _named(context, state, dead_letters)
    snapshot = store.named("latest")
    letters = letters_replay.live_letters(snapshot.counters.get("sinks", {}), folder)
    chosen: Iterator[Kept] = (kept for kept in letters if reason in (None, kept.letter.reason))
    with closing(_lines_of(snapshot)) as lines:
        for kept in islice(chosen, limit or None):
            told = shown(kept, lines)
            if as_json:
                click.echo(json.dumps(told, ensure_ascii=False))
                continue
            at = f"@{_place(told)} event {told['index'] + 1}" if told["line"] is None else f" {_place(told)}"
            click.echo(f"{told['partition']}{at}  {told['reason']}: {told['message']}")
            click.echo(f"    {told['value'].replace(chr(10), chr(10) + '    ')}")


@command.command("replay")
@_options
@_reason
@click.option("--dry-run", is_flag=True, help="Say what would be counted, and change nothing.")
@click.option("--type", "type_", type=click.Choice(EVENT_TYPES), help="The type of every event.")
@click.option("--columns", metavar="A=B,...", help="Names of fields in the input: anchor=probe,objects=a|b|c.")
@click.option("--where", multiple=True, metavar="FIELD=VALUE", help="Only matching events; others are filtered.")
@click.option("--format", "format_", type=click.Choice(list(FORMATS)), help="Instead of going by the partition's name.")
@click.option("--header", metavar="A,B,...", help="Header of rows of CSV whose file is gone.")
@click.option("--config", metavar="FILE", help="TOML file; its [input] says what options above do not.")
@click.option("--json", "as_json", is_flag=True, help="For programs.")
@click.pass_context
def replay(
    context: click.Context,
    state: str | None,
    dead_letters: str | None,
    reason: str | None,
    dry_run: bool,
    type_: str | None,
    columns: str | None,
    where: tuple[str, ...],
    format_: str | None,
    header: str | None,
    config: str | None,
    as_json: bool,
) -> None:
    """Read the letters again with these options, and count what is right now; what fails again stays."""
    store, folder = _named(context, state, dead_letters)
    given = {
        "input.type": type_,
        "input.columns": None if columns is None else configuration.mapping(columns, "--columns"),
        "input.where": dict(kv for text in where for kv in configuration.mapping(text, "--where", "\0").items())
        or None,
        "input.format": format_,
    }
    settings = configuration.load(config, given)
    store.named("latest")  # before a folder is made for the lock
    lock = Lock(store.directory)
    try:
        snapshot = store.named("latest")
        settings = with_options_of(settings, snapshot.counters.get("input", {}))
        options = event_options(structs.replace(settings, accumulators=tuple(snapshot.settings["accumulators"])))
        report = letters_replay.replay(
            store,
            snapshot,
            folder,
            options,
            format=settings.input.format,
            header=header,
            reason=reason,
            dry_run=dry_run,
            layout=text_layout_of(settings),
        )
    finally:
        lock.release()
    click.echo(json.dumps(report._asdict(), indent=1, ensure_ascii=False) if as_json else _said(report, dry_run))


def _said(report: letters_replay.Report, dry_run: bool) -> str:
    counted = "would be counted" if dry_run else "counted"
    lines = [
        f"{report.letters:,} letters read again: {report.right:,} are right now, {report.events:,} events {counted}"
        + (f", {report.filtered:,} filtered" if report.filtered else "")
    ]
    for reason, n in report.again.items():
        example = report.examples.get(reason)
        lines.append(f"{n:12,}  refused again: {reason}" + (f" (first: {example})" if example else ""))
    if report.not_whole:
        lines.append(f"{report.not_whole:12,}  not tried: their bytes are not whole, they stay")
    lines += report.problems
    if report.snapshot is not None:
        lines.append(f"published as snapshot {report.snapshot}")
    elif not dry_run:
        lines.append("nothing changed")
    return "\n".join(lines)
