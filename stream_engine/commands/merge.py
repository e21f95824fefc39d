"""`stream-engine merge`: states of disjoint partitions become the one that a single process would have counted.

With `--into N` they become the states of N shares (`service.repair.reshard`). States are taken in the order of their
first partition, so the order in which they are named does not matter.
"""

from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from os.path import normpath
from pathlib import Path

import click

from stream_engine.data.numbers_in_words import amount
from stream_engine.service.dead_letters import ELSEWHERE, letters_in_folders
from stream_engine.state.engine import Engine, OverlappingStates, order_of
from stream_engine.state.snapshot import Snapshot, encode
from stream_engine.state.store import Lock, NoSuchSnapshot, Store


# Accumulators are summed and names united exactly. The guard depends on the order: the kept comparisons of one are
# offered to the other. A participant who is excluded in one of the states is excluded in the sum.
@click.command("merge")
@click.argument("states", nargs=-1, required=True, metavar="STATE...")
@click.option("--out", required=True, metavar="STATE", help="State directory for the sum; with --into, its parent.")
@click.option(
    "--into", type=click.IntRange(1, 10_000), metavar="N", help="Redistribute a complete set of states over N shards."
)
@click.option(
    "--dead-letters",
    "folders",
    multiple=True,
    metavar="FOLDER",
    help="With --into: folder of the dead letters of each STATE, in the same order. Default: STATE/dead_letters.",
)
def command(states: tuple[str, ...], out: str, into: int | None, folders: tuple[str, ...]) -> None:
    """Sum states that read disjoint partitions, or redistribute them over N shards.

    The sum equals the state of a single process. With --into, STATE... is a complete set of shards of topics, and the
    new states are OUT/shard-0, OUT/shard-1, and so on. States that have read files cannot be divided. A participant
    who is excluded in one of the states is excluded in all new ones.
    """
    if folders and (into is None or len(folders) != len(states)):
        raise click.UsageError(
            f"--dead-letters: got {amount(len(folders), 'folder')} for {amount(len(states), 'state')}, expected one "
            "for each, with --into; a sum leaves the dead letters where they are"
        )
    if into is not None:
        _redistribute(states, into, Path(out).absolute(), dict(zip(map(normpath, states), map(Path, folders))))
        return
    merged, new = merge(states, out)
    excluded = _excluded_in(states)
    existed = "" if new else "; it existed already"
    click.echo(
        f"snapshot {merged.sequence} of {out}: {amount(merged.counters['comparisons'], 'comparison')} over "
        f"{amount(len(merged.objects), 'object')} from {amount(len(set(states)), 'state')}"
        f"{existed}"
    )
    _say_excluded(excluded)
    if only_here := sorted(set(Store(out).excluded()) - set(excluded)):
        click.echo(f"Excluded in {out} only: {', '.join(only_here)}")


def merge(states: Iterable[str], out: str) -> tuple[Snapshot, bool]:
    """Publish the sum of the newest snapshots of `states` in `out`; returns it, and whether it was new there.

    Raises NoSuchSnapshot, Corrupt, StateInUse, OverlappingStates.
    """
    states = tuple(dict.fromkeys(states))
    if any(Path(state).resolve() == Path(out).resolve() for state in states):
        raise OverlappingStates(f"--out {out}: is one of the states; choose another, as its dead letters would be lost")
    snapshots = [_newest(state) for state in states]
    if not snapshots:
        raise NoSuchSnapshot("merge: no state given")
    snapshots.sort(key=lambda s: (min(s.positions, default=""), s.digest))
    engine = Engine.restore(snapshots[0])
    for snapshot in snapshots[1:]:
        engine.merge(Engine.restore(snapshot))
    engine.sinks = {ELSEWHERE: n} if (n := letters_in_folders(engine.counters)) else {}
    engine.sequence = 0
    lock = Lock(out)
    try:
        published = _published(Store(out), engine)
        Store(out).exclude_as_merged(_excluded_in(states))
        return published
    finally:
        lock.release()


def _redistribute(states: tuple[str, ...], into: int, out: Path, folders: Mapping[str, Path]) -> None:
    from connectors.disk import Disk
    from stream_engine.service.repair.reshard import old_states, reshard

    with ExitStack() as stack:
        for state, _ in old_states(states):
            stack.callback(Lock(state).release)
        shards = reshard(old_states(states), into, out, Disk(), folders)  # as they are now that nobody writes
    excluded = _excluded_in(states)
    for shard in shards:
        Store(shard.directory).exclude(excluded)
        counted, inputs = shard.snapshot.counters["comparisons"], len(shard.snapshot.positions)
        click.echo(
            f"{shard.directory}: share {shard.share or 'of all'}, {amount(inputs, 'partition')}, "
            f"{amount(counted, 'comparison')}"
        )
    click.echo("shard-0 has all counts; the other states start empty at their positions. `merge` gives the sum.")
    _say_excluded(excluded)


def _excluded_in(states: Iterable[str]) -> tuple[str, ...]:
    """The participants who are excluded in any of the states."""
    return tuple(sorted({name for state in states for name in Store(state).excluded()}))


def _say_excluded(names: tuple[str, ...]) -> None:
    if names:
        click.echo(
            f"Excluded, as in the states: {', '.join(names)}. To include them: report or refit --include "
            "participant=NAME"
        )


def _newest(state: str) -> Snapshot:
    store = Store(state)
    if not store.sequences():
        raise NoSuchSnapshot(f"{state}: has no snapshot")
    return store.newest(order_of)


def _published(store: Store, engine: Engine) -> tuple[Snapshot, bool]:
    """Publish the engine's state, unless the newest snapshot there holds it; the snapshot, and whether it is new."""
    newest = store.latest().snapshot
    if newest is None:
        return store.publish(engine.snapshot())[0], True
    strangers = sorted(newest.positions.keys() - engine.positions.keys())
    if strangers:
        raise OverlappingStates(
            f"{store.directory}: holds {', '.join(strangers)}, which none of the given states has read; choose "
            "another --out"
        )
    engine.sequence = newest.sequence - 1  # so that equal states have equal bytes
    merged = engine.snapshot()
    if encode(merged)[1].digest == newest.digest:  # of the content, which no key changes
        return newest, False
    engine.sequence = newest.sequence
    return store.publish(engine.snapshot())[0], True
