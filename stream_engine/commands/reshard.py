"""`stream-engine reshard`: from states of N shares to states of M shares, with the sources or without."""

from contextlib import ExitStack
from pathlib import Path
from typing import Any

import click

from connectors.disk import Disk
from stream_engine.commands.input_options import input_options, settings_of
from stream_engine.service.repair.reshard import old_states, reshard
from stream_engine.state.store import Lock


@click.command("reshard")
@click.option(
    "--state", "states", required=True, multiple=True, metavar="A [B ...]", help="The old states (repeatable)."
)
@click.option("--into", required=True, type=click.IntRange(1, 10_000), metavar="N", help="How many new ones.")
@click.option("--out", required=True, metavar="DIR", help="Folder for them: DIR/shard-0 ...")
@input_options
def command(states: tuple[str, ...], into: int, out: str, **given: Any) -> None:
    """Make states of N shares out of a whole set of states; with SOURCE... counted from its beginning."""
    given["source"], more = _sources(given["source"])
    states = (*states, *more)
    wanted = given["source"] or given["config"] or given["input__labels"]
    settings = settings_of(given) if wanted else None
    if settings is not None and not settings.source and not settings.input.labels:
        settings = None
    with ExitStack() as stack:
        old = old_states(states)
        for state in old.states:
            stack.callback(Lock(state).release)
        old = old_states(states)  # as they are now that nobody writes
        made, new = reshard(old, into, Path(out).absolute(), settings, Disk())
    for each in made:
        counted, read = each.snapshot.counters["comparisons"], len(each.snapshot.positions)
        click.echo(f"{each.directory}: share {each.share or 'of all'}, {read:,} partitions, {counted:,} comparisons")
    if settings is None:
        click.echo("without SOURCE: the counts of all are in shard-0, the others begin empty at their positions; merge")
        click.echo("gives what a merge of the old states gives, one shard alone does not tell what its partitions hold")
    if not new:
        click.echo(f"{out}: it was there already")


def _sources(named: tuple[str, ...]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """SOURCE... and, behind `--state A`, further states B ...: folders that hold snapshots."""
    states = tuple(each for each in named if (Path(each) / "snapshots").is_dir())
    return tuple(each for each in named if each not in states), states
