"""`stream-engine backup`: a consistent copy of a state, also while a run is at work. Copying it back restores it."""

from pathlib import Path

import click

from stream_engine.commands import state_option
from stream_engine.state.backup import backup
from stream_engine.state.store import Store


@click.command("backup")
@state_option
@click.option("--to", required=True, metavar="FOLDER", help="Folder of backups; each backup gets its own subfolder.")
@click.option("--dead-letters", metavar="FOLDER", help="Folder of the dead letters. Default: DIR/dead_letters.")
def command(state: str, to: str, dead_letters: str | None) -> None:
    """Make a consistent copy of a state, even while a run is writing to it."""
    result = backup(Store(state), Path(to), dead_letters)
    files = "existed already" if result.before else f"{result.files} files"
    click.echo(f"{result.folder}: snapshot {result.snapshot} of {state}, {files}")
    click.echo(f"to restore it: cp -r {result.folder} DIR && stream-engine verify --state DIR")
