"""`stream-engine seek`: move a position; the history of the state records it."""

from collections.abc import Callable

import click

from connectors import Position
from stream_engine.commands import state_option
from stream_engine.formats import FORMATS
from stream_engine.service.repair.move_position import Move, move
from stream_engine.service.repair.places import Place, place_at, place_behind
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
@click.option("--format", type=click.Choice(list(FORMATS)), help="Format of the file. Default: by file name.")
@click.argument("partition")
@click.argument("offset")
def command(state: str, count_again: bool, since: int | None, format: str | None, partition: str, offset: str) -> None:
    """Move the position in PARTITION to OFFSET, or N records forward with +N. Skipped records count as lost.

    PARTITION is TOPIC/NUMBER or a file.
    """
    digits = offset.removeprefix("+")
    if not (digits.isascii() and digits.removeprefix("-").isdigit()):
        raise click.UsageError(f"OFFSET: got {offset!r}, expected a number, or +N to skip the next N records")
    place, number = place_behind if offset.startswith("+") else place_at, int(digits)
    _say(_moved(state, partition, lambda name, now: place(name, now, number, format), count_again, since))


def _moved(
    state: str,
    partition: str,
    find: Callable[[str, Position], Place],
    count_again: bool = False,
    since: int | None = None,
) -> Move:
    store = Store(state)
    if not store.sequences():
        raise NoSuchSnapshot(f"{state}: has no snapshot; expected the --state of a run")
    lock = Lock(state)
    try:
        return move(store, partition, find, count_again, since)
    finally:
        lock.release()


def _say(moved: Move) -> None:
    if moved.at == moved.to:
        click.echo(f"{moved.partition}: is at {moved.at:,} already; nothing changed")
        return
    records = "an unknown number of records" if moved.records is None else f"{moved.records:,} records"
    then = f"{records} skipped and counted as lost" if moved.to > moved.at else f"{records} will be counted again"
    click.echo(f"{moved.partition}: moved from {moved.at:,} to {moved.to:,} in snapshot {moved.sequence}; {then}")
