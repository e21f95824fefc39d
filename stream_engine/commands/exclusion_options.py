"""`--exclude participant=NAME` and `--include participant=NAME`: who is excluded from what is fitted and reported.

The state keeps all answers; DIR/excluded.json says who is excluded (`state.exclusion`), until somebody is included.
"""

from collections.abc import Callable, Sequence
from typing import Any

import click

from stream_engine.state.exclusion import BadExclusion, check_known, participants_in, without
from stream_engine.state.forgetting import CannotForget
from stream_engine.state.store import Store

Command = Callable[..., Any]
_WHAT = "participant=NAME|@FILE"


def exclusion_options(command: Command) -> Command:
    """Add `--exclude` and `--include`."""
    command = click.option(
        "--include", multiple=True, metavar=_WHAT, help="Include an excluded participant again (repeatable)."
    )(command)
    return click.option(
        "--exclude",
        multiple=True,
        metavar=_WHAT,
        help=(
            "Leave a participant out of models, reports and exports; the state keeps the answers (repeatable; @FILE: "
            "one name per line)."
        ),
    )(command)


def apply_exclusion(store: Store, exclude: Sequence[str], include: Sequence[str], start_over: bool = False) -> None:
    """Note who is excluded from now on. Raises `click.UsageError` for somebody whom the data do not name, or where the
    state cannot tell who answered; a state that is about to start over says nothing of the data to come."""
    if not exclude and not include:
        return
    try:
        out, back = participants_in(exclude), participants_in(include, "--include")
        if strangers := set(back) - set(store.excluded()):
            raise BadExclusion(f"--include: {sorted(strangers)[0]!r} is not excluded")
        if store.sequences() and not start_over:
            whole = store.named("latest")
            check_known(out, whole)
            without(whole, out)
        store.directory.mkdir(parents=True, exist_ok=True)
        store.exclude(out, back)
    except (BadExclusion, CannotForget) as error:
        raise click.UsageError(str(error)) from None
