"""`stream-engine dead-letters`: the rejected events of a state, grouped (`list`) or one by one (`show`).

Both read only and take no lock; a run may be at work.
"""

import json
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import click

from connectors import DeadLetter, Position, SourceFailed, UnusableSource
from connectors.arrow_headers import STREAM_START
from connectors.files.dead_letters import StoredLine
from connectors.files.readers import LineNumbers, Sizes, kind_of, open_reader
from stream_engine.data.comparisons import REASONS
from stream_engine.data.numbers_in_words import amount
from stream_engine.input.record_units import MAX_STORED_BYTES
from stream_engine.input.settings import Settings
from stream_engine.input.sources import text_layout_of
from stream_engine.input.stored_options import with_options_of
from stream_engine.service.dead_letters import forgotten_letters, letters_in_folders, letters_of
from stream_engine.state.snapshot import Snapshot
from stream_engine.state.store import Store

CHARACTERS = 200  # of a value in a list


def _options(command: Any) -> Any:
    for option in (
        click.option("--dead-letters", metavar="FOLDER", help="Folder of the dead letters. Default: DIR/dead_letters."),
        click.option("--state", required=True, metavar="DIR", help="State directory."),
    ):
        command = option(command)
    return command


@click.group("dead-letters")
def command() -> None:
    """Show rejected events: grouped by reason (list), or one by one (show)."""


def _opened(state: str, dead_letters: str | None) -> tuple[Snapshot, Path]:
    return Store(state).named("latest"), Path(dead_letters) if dead_letters else Path(state) / "dead_letters"


@command.command("list")
@_options
@click.option("--json", "as_json", is_flag=True, help="Machine-readable output.")
def list_letters(state: str, dead_letters: str | None, as_json: bool) -> None:
    """Count rejected events by reason and partition, and show the first of each."""
    contents = grouped(*_opened(state, dead_letters))
    contents["in_use"] = Store(state).in_use
    click.echo(json.dumps(contents, indent=1, ensure_ascii=False) if as_json else _table(contents))


def grouped(snapshot: Snapshot, folder: Path) -> dict[str, Any]:
    """The letters of a state by reason and partition; and those that are not there any more."""
    groups: dict[tuple[str, str], dict[str, Any]] = {}
    damaged = 0
    with closing(lines_of(snapshot)) as lines:
        for stored in letters_of(snapshot.counters.get("sinks", {}), folder):
            letter = stored.letter
            if letter is None:
                damaged += 1
                continue
            group = groups.setdefault(
                (letter.reason, letter.partition),
                {"reason": letter.reason, "partition": letter.partition, "letters": 0, "bytes": 0, "first": {}},
            )
            group["first"] = group["first"] or letter_fields(letter, lines)
            group["letters"] += 1
            group["bytes"] += stored.size
    n_removed = snapshot.counters.get("dead_letters", {})
    return {
        "folder": str(folder),
        "snapshot": snapshot.sequence,
        "letters": sum(group["letters"] for group in groups.values()),
        "groups": sorted(groups.values(), key=lambda group: (-group["letters"], group["reason"], group["partition"])),
        "damaged": damaged,
        "elsewhere": letters_in_folders(snapshot.counters)
        - sum(group["letters"] for group in groups.values())
        - damaged,
        "lost": n_removed.get("lost", 0),
        "removed": n_removed.get("removed", 0),
        "removed_bytes": n_removed.get("removed_bytes", 0),
        "forgotten": forgotten_letters(snapshot.counters),
    }


def lines_of(snapshot: Snapshot) -> LineNumbers:
    """The numbers of lines of the files that a state has read."""
    settings = with_options_of(Settings(), snapshot.counters.get("input", {}))
    return LineNumbers(settings.input.format, text_layout_of(settings))


def letter_fields(letter: DeadLetter, lines: LineNumbers) -> dict[str, Any]:
    """A letter for people and programs; `line` is null where its input has no lines, or is not there any more."""
    return {
        "partition": letter.partition,
        "offset": letter.offset,
        "line": lines.at(letter.partition, letter.offset),
        "index": letter.event_index,
        "reason": letter.reason,
        "message": letter.message,
        "value": letter.value.decode("utf-8", "backslashreplace"),
    }


def _table(contents: Mapping[str, Any]) -> str:
    lines = [f"{amount(contents['letters'], 'dead letter')} in {contents['folder']} (snapshot {contents['snapshot']})"]
    if contents["in_use"]:
        lines[0] += "; newer ones of the run at work are listed after its next snapshot"
    for group in contents["groups"]:
        first = group["first"]
        lines += [
            f"{group['letters']:12,}  {group['reason']:20}{group['partition']}",
            f"{'':14}first at {_place(first)}: {first['message']}: {_short(first['value'])}",
        ]
    if contents["damaged"]:
        lines.append(f"{contents['damaged']:12,}  damaged lines; `verify` names their files")
    if contents["removed"]:
        lines.append(f"{contents['removed']:12,}  removed by the size limit ({contents['removed_bytes']:,} bytes)")
    if contents["forgotten"]:
        lines.append(f"{contents['forgotten']:12,}  deleted by `forget`")
    if contents["elsewhere"] > 0:
        elsewhere = "rejected events have their dead letters elsewhere: name the folder, if a run had --dead-letters"
        lines.append(f"{contents['elsewhere']:12,}  {elsewhere}")
    if contents["lost"]:
        lines.append(f"{contents['lost']:12,}  lost with their folder")
    return "\n".join(lines)


def _place(letter: Mapping[str, Any]) -> str:
    return f"{letter['offset']}" if letter["line"] is None else f"line {letter['line']:,}"


def _short(value: str) -> str:
    return (value[:CHARACTERS] + " …" if len(value) > CHARACTERS else value).replace("\n", "\\n")


@command.command("show")
@_options
@click.option("--reason", type=click.Choice(list(REASONS)), help="Show only events rejected for this reason.")
@click.option("--partition", metavar="NAME", help="Show only events of this partition, as `list` names it.")
@click.option("--limit", type=int, metavar="N", help="Number of events to show (0: all).  [default: 20; --raw: 0]")
@click.option("--json", "as_json", is_flag=True, help="Write one JSON object per line.")
@click.option(
    "--raw",
    is_flag=True,
    help="Write the original events, one per line, CSV rows below their header, for `stream-engine run`.",
)
def show(
    state: str,
    dead_letters: str | None,
    reason: str | None,
    partition: str | None,
    limit: int | None,
    as_json: bool,
    raw: bool,
) -> None:
    """Show rejected events, oldest first: position, reason, message and value."""
    if limit is not None and limit < 0:
        raise click.UsageError(f"--limit: got {limit}, expected 0 or more")
    snapshot, folder = _opened(state, dead_letters)
    skipped: Counter[str] = Counter()
    stored = _readable(letters_of(snapshot.counters.get("sinks", {}), folder), skipped)
    chosen = (letter for letter in stored if reason in (None, letter.reason) and partition in (None, letter.partition))
    letters = islice(chosen, (limit if limit is not None else 0 if raw else 20) or None)
    if raw:
        _write_raw(
            letters, skipped, partial(_header_of, with_options_of(Settings(), snapshot.counters.get("input", {})))
        )
    else:
        with closing(lines_of(snapshot)) as lines:
            for letter in letters:
                _write(letter_fields(letter, lines), as_json)
    for why, n in skipped.items():
        click.echo(f"{n:,} skipped: {why}", err=True)


def _readable(letters: Iterator[StoredLine], skipped: Counter[str]) -> Iterator[DeadLetter]:
    for letter in letters:
        if letter.letter is None:
            skipped["damaged lines; `stream-engine verify` names their files"] += 1
        else:
            yield letter.letter


def _write(letter: Mapping[str, Any], as_json: bool) -> None:
    if as_json:
        click.echo(json.dumps(letter, ensure_ascii=False))
        return
    click.echo(as_text(letter))


def as_text(letter: Mapping[str, Any]) -> str:
    """Where it was, why it was rejected, and below the event itself."""
    at = f"@{_place(letter)} event {letter['index'] + 1}" if letter["line"] is None else f" {_place(letter)}"
    value = letter["value"].rstrip("\n").replace("\n", "\n    ")
    return f"{letter['partition']}{at}  {letter['reason']}: {letter['message']}\n    {value}"


def _header_of(settings: Settings, partition: str) -> bytes:
    """The header of a CSV file; b"" where it has none. Raises `OSError`, `UnusableSource`, `SourceFailed`."""
    if not partition.startswith("/") or not settings.input.header:
        return b""
    kind = kind_of(partition, settings.input.format, text_layout_of(settings))
    if kind.name != "csv":
        return b""
    with closing(open_reader(partition, kind, Position(0), Sizes(1 << 20))) as reader:
        record = reader.read()
    return bytes(record.header).rstrip(b"\r\n") if record is not None else b""


def _write_raw(letters: Iterator[DeadLetter], skipped: Counter[str], header_of: Callable[[str], bytes]) -> None:
    """Write the bytes of whole events, a line each: what holds only a part of one could be read as another event. Rows
    of CSV follow the header of their file."""
    headers: dict[str, bytes] = {}  # by partition
    for letter in letters:
        if letter.partition not in headers:
            try:
                header = header_of(letter.partition)
            except (OSError, UnusableSource, SourceFailed):
                header = b""
                skipped[f"the header of {letter.partition}, which cannot be read any more"] += 1
            if header and header not in headers.values():
                if any(headers.values()):
                    skipped["--partition selects the rows of one file; these files have different headers"] += 1
                sys.stdout.buffer.write(header + b"\n")
            headers[letter.partition] = header
        value = letter.value
        if letter.reason == "incomplete" or (letter.reason == "too_large" and not 0 < len(value) < MAX_STORED_BYTES):
            skipped["the stored event is truncated"] += 1
        elif value.startswith(STREAM_START):
            skipped["Arrow messages are not lines of text; read their topic again"] += 1
        else:
            json_text = value.lstrip()[:1] in (b"{", b"[")  # where a line break is white space
            sys.stdout.buffer.write((value.replace(b"\n", b" ") if json_text else value) + b"\n")
    sys.stdout.flush()
