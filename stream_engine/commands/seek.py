"""`stream-engine seek` and `skip`: a position moved on purpose, which is noted in the state for ever."""

from collections.abc import Callable

import click

from connectors import Position
from stream_engine.commands import state_option
from stream_engine.formats import FORMATS
from stream_engine.service.repair.move_position import Move, move
from stream_engine.service.repair.places import Place, place_at, place_behind
from stream_engine.state.store import Lock, NoSuchSnapshot, Store

_format = click.option("--format", type=click.Choice(list(FORMATS)), help="Of a file, instead of going by its name.")


@click.command("seek")
@state_option
@click.option("--count-again", is_flag=True, help="Go back, though what lies between is then counted a second time.")
@_format
@click.argument("partition")
@click.argument("offset", type=int)
def seek(state: str, count_again: bool, format: str | None, partition: str, offset: int) -> None:
    """Go on at OFFSET of PARTITION (TOPIC/NUMBER, a file): what is passed over is counted as lost."""
    _say(_moved(state, partition, lambda name, now: place_at(name, now, offset, format), count_again))


@click.command("skip")
@state_option
@click.option(
    "--from", "since", type=int, metavar="OFFSET", help="Only if it stands there; then a second call is safe."
)
@_format
@click.argument("partition")
@click.argument("records", type=int)
def skip(state: str, since: int | None, format: str | None, partition: str, records: int) -> None:
    """Pass over the next RECORDS messages, rows or lines of PARTITION, counted as lost."""
    _say(_moved(state, partition, lambda name, now: place_behind(name, now, records, format), since=since))


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
