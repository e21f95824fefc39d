"""The engine that a run resumes from: its newest intact snapshot, if the state was created with the requested
settings."""

import json
import time
from collections.abc import Mapping
from contextlib import ExitStack
from typing import Any, NamedTuple

from msgspec import structs
from structlog.typing import FilteringBoundLogger

from stream_engine.counts import Forgetting
from stream_engine.data import mapped_arrays
from stream_engine.data.mapped_arrays import IN_MEMORY, Allocation
from stream_engine.input.settings import BadSettings, Settings
from stream_engine.input.sources import LATER_DEFAULTS, accumulators_in_use
from stream_engine.input.stored_options import PreparedSettings, agreed_options, merge_stored_options
from stream_engine.order.stored_states import FORMER, POLICY
from stream_engine.service.context import RunFailed
from stream_engine.service.partition_share import agreed_share
from stream_engine.state.engine import Engine
from stream_engine.state.event_time import newest_time
from stream_engine.state.snapshot import Snapshot
from stream_engine.state.store import Store


# Positions, counts and dead letters depend on how the events were read. So a run need not repeat the options of its
# state, and a run with different ones is refused before anything is read. States created before options or shares were
# stored take those of the first run that resumes them.
class ResumedState(NamedTuple):
    """The engine, the snapshot that it resumes from, and the settings with the options stored in the state."""

    engine: Engine
    newest: Snapshot | None
    settings: Settings


def resume(
    settings: Settings,
    store: Store,
    stack: ExitStack,
    log: FilteringBoundLogger,
    start_over: bool = False,
    prepared: PreparedSettings | None = None,
) -> ResumedState:
    """The engine at the newest intact snapshot, with its large arrays where the settings say; with `start_over` an
    empty one, and all published files removed. A new state stores the reading that was `prepared`. Raises
    `BadSettings`, `RunFailed` if every snapshot is damaged."""
    if start_over:
        _start_over(store, log)
    allocation = IN_MEMORY
    if settings.counts.on_disk_above:
        allocation = mapped_arrays.on_disk(store.directory / "scratch", settings.counts.on_disk_above)
        stack.callback(allocation.close)
    engines: list[Engine] = []
    newest, problems = store.latest(lambda snapshot: engines.append(restore_engine(settings, snapshot, allocation)))
    for problem in problems:
        log.error("snapshot damaged; using the previous one", problem=problem)
    if problems and newest is None:
        raise RunFailed(
            f"{store.directory}: every snapshot is damaged ({problems[0]}); restore one from a backup, "
            "or start with another --state"
        )
    engine = engines[-1] if newest else restore_engine(settings, None, allocation)
    _log_old_features(settings, newest, engine, log)
    read_before = any(not name.startswith("labels:") for name in engine.positions)
    prepared = prepared or PreparedSettings(settings)
    made_with = engine.counters["input"]
    settings = (
        merge_stored_options(settings, made_with, prepared) if read_before else prepared.raise_if_undecided().settings
    )
    engine.counters["input"] = agreed_options(settings, engine.counters["input"], read_before)
    if prepared.line and not read_before:
        engine.counters["input"]["inferred"] = True
    if read_before and settings.input.drop_duplicates:
        log.warning(
            "copies of responses that an earlier run read are counted: they are not remembered",
            option="--drop-duplicates",
            instead="read the input again with --start-over",
        )
    return ResumedState(engine, newest, settings)


def _start_over(store: Store, log: FilteringBoundLogger) -> None:
    """Remove the published files, the newest snapshot first, so that a crash leaves an earlier state."""
    numbers = store.sequences()
    for sequence in reversed(numbers):
        store.disk.remove(store.snapshot_path(sequence))
    store.remove_orders()
    for kind in store.kinds():
        for sequence in store.artifact_sequences(kind):
            store.disk.remove(store.artifact_path(kind, sequence))
    log.warning("started over: the content of the state was removed", snapshots=numbers)


def _log_old_features(settings: Settings, newest: Snapshot | None, engine: Engine, log: FilteringBoundLogger) -> None:
    """Log what a state of an older version, or of other settings, does not have."""
    if newest and newest.ignored:
        log.warning(
            "statistics of an older version are ignored",
            names=", ".join(newest.ignored),
            instead="stream-engine refit reliability, export workers",
        )
    if newest and newest.settings["guard"] in FORMER:
        fact = "the comparisons that it kept; everything else is unchanged"
        log.info(
            "the partial order was built with a policy that no longer exists",
            policy=newest.settings["guard"],
            resumes_from=fact,
        )
    latest = newest_time(newest) if newest else None
    if latest is not None and latest > time.time() + settings.input.max_time_ahead:
        log.error(
            "the state holds an event from the future: all answers up to then count as old",
            newest_time=latest,
            instead="read the input again with --start-over",
        )
    names = set(accumulators_in_use(settings, None))
    for name in sorted(LATER_DEFAULTS & set(settings.accumulators) - engine.accumulators.keys()):
        reason = (
            "the state was created without them"
            if name in names
            else "disabled by a setting, or not contained in deltas"
        )
        log.info(f"no {name.replace('_', ' ')} are kept", because=reason)


def restore_engine(settings: Settings, snapshot: Snapshot | None, allocation: Allocation = IN_MEMORY) -> Engine:
    """The engine of a snapshot, or an empty one. Raises `BadSettings` if the state was created with other settings."""
    forgetting = Forgetting(*structs.astuple(settings.forgetting))
    fresh = Engine(accumulators_in_use(settings, snapshot), settings.guard, forgetting, allocation)
    if snapshot is None:
        fresh.share = agreed_share(settings, None, {})
        return fresh
    is_former = snapshot.settings["guard"] in FORMER
    with_guard = {**snapshot.settings, **({"guard": POLICY} if is_former else {})}
    if with_guard != fresh.settings():
        stored, requested = _as_settings(with_guard), _as_settings(fresh.settings())
        keys = [key for key in stored | requested if stored.get(key) != requested.get(key)]
        differences = [f"{key} = {stored.get(key, 'not set')}, got {requested.get(key, 'not set')}" for key in keys]
        raise BadSettings(
            f"{settings.state}: created with {'; '.join(differences)}; use the same settings, or another --state"
        )
    engine = Engine.restore(snapshot, allocation)
    engine.share = agreed_share(settings, engine.share, engine.positions)
    return engine


def _as_settings(stored: Mapping[str, Any]) -> dict[str, str]:
    """The settings of a state by their keys, as they are written in the configuration.

    >>> _as_settings({"accumulators": ["adds3"], "guard": None, "forgetting": {"by": "time"}})
    {'accumulators': '["adds3"]', 'guard': 'false', 'forgetting.by': '"time"'}
    """
    forgetting = {f"forgetting.{key}": value for key, value in stored.get("forgetting", {}).items()}
    plain = {**stored, "guard": stored["guard"] is not None} | forgetting
    return {key: json.dumps(value) for key, value in plain.items() if key != "forgetting"}
