"""`stream-engine backup`: a consistent copy of a state, also while a run is at work. `restore` makes it a state."""

from contextlib import ExitStack

import click

from connectors.disk import FolderInUse, FolderLock
from connectors.targets import open_target
from stream_engine.commands import state_option
from stream_engine.state.backup import Copied, backup
from stream_engine.state.manifest import BadBackup
from stream_engine.state.store import Store


@click.command("backup")
@state_option
@click.option("--to", required=True, metavar="TARGET", help="A folder, or s3://, gs://, abfs://, fsspec+NAME://...")
@click.option("--snapshots", default=1, type=click.IntRange(1), metavar="K", help="The newest K of them.")
@click.option("--dead-letters", metavar="FOLDER", help="Where they are, if not in DIR/dead_letters.")
def command(state: str, to: str, snapshots: int, dead_letters: str | None) -> None:
    """A consistent copy of a state, also while a run is at work in it."""
    with ExitStack() as stack:
        target = open_target(to, lambda folder: _locked(folder, stack))
        copied = backup(Store(state), target, to, snapshots, dead_letters)
    click.echo(_said(copied, state, to))


def _locked(folder: str, stack: ExitStack) -> None:
    try:
        stack.callback(FolderLock(folder).release)
    except FolderInUse as error:
        raise BadBackup(f"{folder}: process {error.owner} is writing a backup there; wait for it") from None


def _said(copied: Copied, state: str, to: str) -> str:
    files = copied.manifest.files
    size = sum(file.size for file in files)
    return (
        f"snapshot {copied.manifest.snapshot} of {state} is in {to}: {len(files)} files, {size:,} bytes; "
        f"{copied.files} files, {copied.bytes:,} bytes were copied, the others were there already"
    )
