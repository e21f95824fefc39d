"""`stream-engine seek`: a position moved on purpose, which is noted in the state for ever."""

import click

from stream_engine.commands import state_option
from stream_engine.formats import FORMATS
from stream_engine.service.repair.seek import Target, records_told, seek
from stream_engine.state.store import Lock, NoSuchSnapshot, Store


@click.command("seek")
@state_option
@click.option("--count-again", is_flag=True, help="Go back, though what lies between is then counted a second time.")
@click.option(
    "--from", "since", type=int, metavar="OFFSET", help="Only if it stands there; then a second call is safe."
)
@click.option("--format", type=click.Choice(list(FORMATS)), help="Of a file, instead of going by its name.")
@click.argument("partition")
@click.argument("offset")
def command(state: str, count_again: bool, since: int | None, format: str | None, partition: str, offset: str) -> None:
    """Move PARTITION to OFFSET, or past its next N records with +N; records passed over are counted as lost.

    PARTITION is TOPIC/NUMBER or a file.
    """
    digits = offset.removeprefix("+")
    if not (digits.isascii() and digits.removeprefix("-").isdigit()):
        raise click.UsageError(f"OFFSET: got {offset!r}, expected a number, or +N to pass over the next N records")
    store = Store(state)
    if not store.sequences():
        raise NoSuchSnapshot(f"{state}: no snapshot there; name the --state of a run")
    lock = Lock(state)
    try:
        moved = seek(store, partition, Target(int(digits), offset.startswith("+"), format, count_again), since)
    finally:
        lock.release()
    if moved.at == moved.to:
        click.echo(f"{moved.partition}: stands at {moved.at:,} already; nothing was moved")
        return
    then = "passed over, counted as lost" if moved.to > moved.at else "will be counted again"
    click.echo(
        f"{moved.partition}: moved from {moved.at:,} to {moved.to:,} in snapshot {moved.sequence}; "
        f"{records_told(moved.records)} {then}"
    )
