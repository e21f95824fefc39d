"""`stream-engine seek`: move a position in a topic; the history of the state records it."""

import click

from stream_engine.commands import state_option
from stream_engine.service.repair.seek import Target, seek
from stream_engine.state.store import Lock, NoSuchSnapshot, Store


@click.command("seek")
@state_option
@click.option("--count-again", is_flag=True, help="Allow moving backward; the records in between are counted again.")
@click.option(
    "--from",
    "since",
    type=int,
    metavar="OFFSET",
    help="Move only if the current position is OFFSET; this makes a repeated call safe.",
)
@click.argument("partition")
@click.argument("offset")
def command(state: str, count_again: bool, since: int | None, partition: str, offset: str) -> None:
    """Move the position in PARTITION to OFFSET, or N records forward with +N. Skipped records count as lost.

    PARTITION is TOPIC/NUMBER: positions in files cannot be moved.
    """
    digits = offset.removeprefix("+")
    if not (digits.isascii() and digits.removeprefix("-").isdigit()):
        raise click.UsageError(f"OFFSET: got {offset!r}, expected a number, or +N to skip the next N records")
    store = Store(state)
    if not store.sequences():
        raise NoSuchSnapshot(f"{state}: has no snapshot; expected the --state of a run")
    lock = Lock(state)
    try:
        moved = seek(store, partition, Target(int(digits), offset.startswith("+"), count_again), since)
    finally:
        lock.release()
    if moved.at == moved.to:
        click.echo(f"{moved.partition}: is at {moved.at:,} already; nothing changed")
        return
    then = "skipped and counted as lost" if moved.to > moved.at else "will be counted again"
    click.echo(
        f"{moved.partition}: moved from {moved.at:,} to {moved.to:,} in snapshot {moved.sequence}; "
        f"{abs(moved.to - moved.at):,} records {then}"
    )
