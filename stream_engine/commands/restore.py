"""`stream-engine restore`: a state directory from a backup, every byte checked, whole or not at all."""

import click

from connectors.targets import open_target
from stream_engine.state.restored_backup import restore
from stream_engine.state.store import Lock


@click.command("restore")
@click.option("--from", "source", required=True, metavar="TARGET", help="What `backup --to` was given.")
@click.option("--state", required=True, metavar="DIR", help="State directory; missing or empty.")
def command(source: str, state: str) -> None:
    """A state directory from a backup: every byte checked, whole or not at all."""
    target = open_target(source)
    lock = Lock(state)
    try:
        manifest = restore(target, source, state)
    finally:
        lock.release()
    size = sum(file.size for file in manifest.files)
    click.echo(
        f"{state} is snapshot {manifest.snapshot} as backed up at {manifest.time}: {len(manifest.files)} files, "
        f"{size:,} bytes; go on with `stream-engine run SOURCE --state {state}`"
    )
