"""`stream-engine forget`: permanently delete an object or a participant from a state, exactly or not at all."""

from collections.abc import Collection
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click

from connectors.files.dead_letters import overwrite
from stream_engine.commands import state_option
from stream_engine.state.forgetting import (
    ForgetResult,
    UnknownName,
    forget_object,
    forget_worker,
    with_history,
    without_aliases,
    workers_of,
)
from stream_engine.state.names_in_letters import naming
from stream_engine.state.snapshot import Snapshot
from stream_engine.state.store import Lock, NoSuchSnapshot, Store

_ELSEWHERE = (
    "Older snapshots and all artifacts were removed; the next run fits its models again. Delete the data yourself "
    "from backups, exports, logs and sources"
)


@click.command("forget")
@state_option
@click.option("--object", "name", metavar="O", help="Object to delete, with its comparisons, label and name.")
@click.option(
    "--participant",
    "--worker",
    "worker",
    metavar="P",
    help="Participant to delete: all answers if worker_votes counts them, otherwise the name.",
)
@click.option("--keep-answers", is_flag=True, help="Delete only the participant's name.")
@click.option(
    "--drop",
    multiple=True,
    metavar="ACCUMULATOR",
    help="Remove an accumulator that cannot delete exactly (repeatable).",
)
@click.option("--dead-letters", metavar="FOLDER", help="Folder of the dead letters. Default: DIR/dead_letters.")
def command(
    state: str,
    name: str | None,
    worker: str | None,
    keep_answers: bool,
    drop: tuple[str, ...],
    dead_letters: str | None,
) -> None:
    """Permanently delete an object or a participant: counts, name, label, dead letters, snapshots."""
    if (name is None) == (worker is None):
        raise click.UsageError("forget: expected either --object or --participant")
    if keep_answers and worker is None:
        raise click.UsageError("--keep-answers: expected --participant")
    store = Store(state)
    if not store.sequences():
        raise NoSuchSnapshot(f"{state}: has no snapshot; expected the --state of a run")
    lock = Lock(state)
    try:
        click.echo(_forget(store, name, worker, keep_answers, drop, dead_letters))
    finally:
        lock.release()


def _forget(
    store: Store, name: str | None, worker: str | None, keep_answers: bool, drop: Collection[str], folder: str | None
) -> str:
    """Forget, and what to say."""
    before = store.named("latest")
    unknown = None
    try:
        if name is not None:
            result = forget_object(before, name, drop)
        else:
            result = forget_worker(before, worker or "", drop, keep_answers)
    except UnknownName as error:
        if drop:
            raise
        unknown, result = error, ForgetResult(before._replace(sequence=before.sequence + 1), 0, 0)
    after, names = without_aliases(result.snapshot, name) if name is not None else (result.snapshot, {worker or ""})
    letters = overwrite(
        Path(folder) if folder else store.directory / "dead_letters", naming(*sorted(names)), store.disk
    )
    if unknown and not letters:
        raise UnknownName(f"{store.directory}: {unknown}, nor in its dead letters; nothing to delete") from None
    if worker in store.excluded():
        store.exclude(workers_of(after) - workers_of(before), (worker,))  # under the new name, if the answers stay
    after = with_history(after, _now(), "forget", **_details(result, name is not None, letters, drop, bool(unknown)))
    return _report(store.replace(after), letters, before, result, drop, name is not None)


def _details(
    outcome: ForgetResult, of_object: bool, letters: int, drop: Collection[str], unknown: bool
) -> dict[str, Any]:
    """What the history says: never the name."""
    return {
        "what": "dead letters" if unknown else "object" if of_object else "worker",
        **({"comparisons": outcome.comparisons} if outcome.comparisons is not None else {}),
        "dead_letters": letters,
        **({"dropped": sorted(drop)} if drop else {}),
        **({"answers": "stay"} if outcome.answers_stay else {}),
    }


def _report(
    after: Snapshot, letters: int, before: Snapshot, result: ForgetResult, drop: Collection[str], of_object: bool
) -> str:
    n_left = "an unknown number of" if result.comparisons is None else f"{result.comparisons:,}"
    lines = [
        f"snapshot {after.sequence}: {n_left} comparisons and {letters:,} dead letters were deleted; "
        f"{len(after.objects):,} objects and {after.counters['comparisons']:,} comparisons remain"
    ]
    if result.answers_stay:
        lines.append(
            "The name was deleted. The answers remain, because of --keep-answers or because this state does not "
            "count them by worker (worker_votes does)"
        )
    if before.settings["guard"] and not result.answers_stay:
        lines.append(
            f"The partial order lost {result.order_lost:,} comparisons; comparisons that it dropped earlier because of "
            "these stay dropped"
        )
    if drop:
        lines.append(
            f"The state no longer has {', '.join(sorted(drop))}: remove them from `accumulators` before the next run"
        )
    lines.append("A later event that names it adds it again as new. " + _ELSEWHERE)
    return "\n".join(lines)


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
