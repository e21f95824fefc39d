"""The configuration read again while a run is under way (SIGHUP): what can change is changed, all of it or nothing.

What decides how records are read and counted cannot change in the middle of a stream; neither can what was opened at
the start.
"""

from collections.abc import Callable
from typing import Any

import msgspec

from stream_engine.service import logs
from stream_engine.service.open_run import OpenRun
from stream_engine.service.settings import BadSettings, Settings, params_of

CAN_CHANGE = (
    "http.wedged_after",
    "input.max_reject_ratio",
    "input.stall_after",
    "log.level",
    "refits.also",
    "refits.enabled",
    "refits.kinds",
    "refits.params",
    "snapshot.every",
    "snapshot.interval",
    "snapshot.keep",
)


class Reread:
    """`read` loads the settings again, from the same file, environment and command line as at the start."""

    def __init__(self, settings: Settings, read: Callable[[], Settings] | None):
        self._settings, self._read = settings, read

    def look(self, run: OpenRun) -> None:
        """Read again if someone asked; says in one line what changed, or why nothing does."""
        if not run.requests.reread or self._read is None:
            return
        run.requests.reread = False
        taken = self._taken(run, self._read)
        run.metrics.configuration_reread.labels("taken" if taken else "refused").inc()

    def _taken(self, run: OpenRun, read: Callable[[], Settings]) -> bool:
        try:
            settings = read()
            params = {kind: params_of(settings, kind) for kind in settings.refits.wanted}
        except BadSettings as error:
            run.log.error("configuration not taken, the one before it stays", problem=str(error))
            return False
        changed = changed_keys(self._settings, settings)
        fixed = [key for key in changed if key not in CAN_CHANGE]
        if fixed:
            run.log.error("configuration not taken: needs a new start, nothing was changed", keys=fixed)
            return False
        _apply(settings, params, run)
        self._settings = settings
        run.log.info("configuration read again", changed=changed)
        return True


def changed_keys(old: Settings, new: Settings) -> list[str]:
    """Keys that differ, as section.key."""
    before, after = (msgspec.to_builtins(settings, enc_hook=str) for settings in (old, new))
    return [key for key in _keys(before) if _value(before, key) != _value(after, key)]


def _keys(tree: dict[str, Any]) -> list[str]:
    """Every key that the schema has: those of its sections, and those that stand by themselves."""
    sections = {name for name, kind in Settings.__annotations__.items() if _is_section(kind)}
    return [
        dotted
        for name, value in tree.items()
        for dotted in ([f"{name}.{key}" for key in value] if name in sections else [name])
    ]


def _is_section(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, msgspec.Struct)


def _value(tree: Any, dotted: str) -> Any:
    for key in dotted.split("."):
        tree = tree.get(key) if isinstance(tree, dict) else None
    return tree


def _apply(settings: Settings, params: dict[str, dict[str, Any]], run: OpenRun) -> None:
    """Hand the new values to those who use them; nothing here can fail."""
    logs.set_level(settings.log.level)
    run.publisher.follow(settings.snapshot)
    run.dead_letters.max_ratio = settings.input.max_reject_ratio
    run.health.watchdog.after = settings.input.stall_after
    run.heartbeat.after = settings.http.wedged_after
    run.refits.follow(settings.refits, params)
