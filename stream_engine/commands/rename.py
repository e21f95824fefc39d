"""`stream-engine rename`: call an object of a state otherwise. Names only; every count stays what it is."""

from datetime import UTC, datetime

import click

from stream_engine.commands import state_option
from stream_engine.data.comparisons import MAX_NAME_BYTES
from stream_engine.state.forgetting import noted, rename_object
from stream_engine.state.store import Lock, Store


@click.command("rename")
@state_option
@click.argument("old")
@click.argument("new")
def command(state: str, old: str, new: str) -> None:
    """Call an object of a state otherwise: names only, so every count stays what it is."""
    lock = Lock(state)
    try:
        store = Store(state)
        time = datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
        renamed = rename_object(store.named("latest"), old, checked(new))
        published, _ = store.publish(noted(renamed, time, "rename", old=old, new=new))
    finally:
        lock.release()
    click.echo(
        f"snapshot {published.sequence}: {old} is called {new}. An event that names {old} from now on brings it in as "
        "a new object; older snapshots, artifacts made with names as parameters and files of yours keep the old name"
    )


def checked(name: str) -> str:
    """A name that events could give. Raises `click.UsageError`."""
    size = len(name.encode("utf-8", "replace"))
    if not 0 < size <= MAX_NAME_BYTES:
        raise click.UsageError(f"NEW: got a name of {size:,} bytes, expected 1 to {MAX_NAME_BYTES:,}")
    try:
        name.encode()
    except UnicodeEncodeError:
        raise click.UsageError("NEW: got bytes that are no UTF-8, expected a name as events give it") from None
    return name
