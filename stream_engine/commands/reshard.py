"""`stream-engine reshard`: from states of N shares to states of M shares."""

from contextlib import ExitStack
from pathlib import Path

import click

from connectors.disk import Disk
from stream_engine.service.repair.reshard import old_states, reshard
from stream_engine.state.store import Lock


@click.command("reshard")
@click.option("--state", "first", required=True, multiple=True, metavar="A [B ...]", help="Old state (repeatable).")
@click.option("--into", required=True, type=click.IntRange(1, 10_000), metavar="N", help="Number of new states.")
@click.option("--out", required=True, metavar="DIR", help="Folder for the new states: DIR/shard-0 ...")
@click.argument("more", nargs=-1, metavar="[B ...]")
def command(first: tuple[str, ...], into: int, out: str, more: tuple[str, ...]) -> None:
    """Redistribute a complete set of states over N shards."""
    states = (*first, *more)
    with ExitStack() as stack:
        old = old_states(states)
        for state, _ in old:
            stack.callback(Lock(state).release)
        old = old_states(states)  # as they are now that nobody writes
        made = reshard(old, into, Path(out).absolute(), Disk())
    for each in made:
        counted, read = each.snapshot.counters["comparisons"], len(each.snapshot.positions)
        click.echo(f"{each.directory}: share {each.share or 'of all'}, {read:,} partitions, {counted:,} comparisons")
    click.echo("shard-0 has all counts; the other states start empty at their positions. `merge` gives the sum.")
