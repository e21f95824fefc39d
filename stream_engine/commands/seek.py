"""`stream-engine seek`: a position moved on purpose, which is noted in the state for ever."""

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
        raise NoSuchSnapshot(f"{state}: no snapshot there; name the --state of a run")
    lock = Lock(state)
    try:
        return move(store, partition, find, count_again, since)
    finally:
        lock.release()


def _say(moved: Move) -> None:
    if moved.at == moved.to:
        click.echo(f"{moved.partition}: stands at {moved.at:,} already; nothing was moved")
        return
    records = "an unknown number of records" if moved.records is None else f"{moved.records:,} records"
    then = f"{records} passed over, counted as lost" if moved.to > moved.at else f"{records} will be counted again"
    click.echo(f"{moved.partition}: moved from {moved.at:,} to {moved.to:,} in snapshot {moved.sequence}; {then}")
