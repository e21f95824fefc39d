"""The engine that a run resumes from: its newest intact snapshot, if the state was created with the requested settings.

Positions, counts and dead letters depend on how the events were read, and two states of one topic must never read the
same partition. Therefore, a state stores its accumulators, the options of its input and its share of the partitions: a
run need not repeat the options, and a run with different ones is refused before anything is read. States created before
options or shares were stored take those of the first run that resumes them. `stream-engine merge --into N` creates
states for other shares.

The options by which a state reads its input: inferred or said once, remembered, and never contradicted silently.
"""

import json
import time
from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from shlex import quote
from typing import Any, NamedTuple

import msgspec
from msgspec import structs
from structlog.typing import FilteringBoundLogger

from connectors import Position, split_uri
from connectors.kafka.client import parse_address, partition_of
from stream_engine.counts import DEFAULT_ACCUMULATORS, Forgetting
from stream_engine.data import mapped_arrays
from stream_engine.data.mapped_arrays import IN_MEMORY, Allocation
from stream_engine.formats.reading import Decision
from stream_engine.order.stored_states import FORMER, POLICY
from stream_engine.service.context import RunFailed
from stream_engine.service.settings import BadSettings, Input, Settings
from stream_engine.service.settings.loading import shard
from stream_engine.state.engine import Engine
from stream_engine.state.event_time import newest_time
from stream_engine.state.snapshot import Snapshot
from stream_engine.state.store import Store

KEYS = (
    *("type", "columns", "where", "format", "delimiter", "encoding", "header", "skip_rows", "answers_by", "codes"),
    *("answer_is", "separator", "participant_from", "drop_duplicates"),
)
_DEFAULTS = msgspec.to_builtins(Input())


class PreparedSettings(NamedTuple):
    """The settings of a run with the reading that was inferred of its first records, where that was `attempted`."""

    settings: Settings
    attempted: bool = False
    evidence: tuple[Decision, ...] = ()
    said: str = ""  # one line about the reading; "" where there is nothing to say
    doubt: str = ""  # why there is no single reading
    rivals: tuple[Settings, ...] = ()  # the readings that fit equally well
    problem: str = ""  # in one line: the doubt with the command of each of them, or why nothing fits

    def decided(self) -> "PreparedSettings":
        """The same; raises `BadSettings` with both readings where the records do not decide, and for preferences."""
        if self.problem:
            raise BadSettings(self.problem)
        return self


def merge_stored_options(settings: Settings, made_with: Mapping[str, Any], inferred: PreparedSettings) -> Settings:
    """The settings with the options of a state. Raises `BadSettings` where the state inferred them, and what was
    inferred of this input contradicts them."""
    before = made_with.get("options", {})
    has_options = bool(asked_options(settings))
    if (
        inferred.attempted
        and not has_options
        and made_with.get("inferred")
        and not inferred.rivals
        and contradiction(before, inferred)
    ):
        raise BadSettings(
            f"{settings.source[0]}: {settings.state} reads {as_arguments(before)}, this input looks like "
            f"{as_arguments(asked_options(inferred.settings))}; say one of them, or use another --state"
        )
    return with_options_of(settings, made_with)


def contradiction(before: Mapping[str, Any], inferred: PreparedSettings) -> bool:
    """Whether the options that a state remembers read something else than those that were inferred: filters of empty
    cells apart, which do no harm where they are missing."""
    options = asked_options(inferred.settings)
    if any(options.get(key) != before.get(key) for key in ("type", "answers_by", "answer_is", "skip_rows")):
        return True
    for key in ("columns", "codes"):
        new, old = options.get(key, {}), before.get(key, {})
        if any(new[field] != old[field] for field in new.keys() & old.keys() - {"worker"}):
            return True
    where = before.get("where", {})
    return any(
        key not in where and not (key.endswith("!=") and "" in wanted.split("|"))
        for key, wanted in options.get("where", {}).items()
    )


def asked_options(settings: Settings) -> dict[str, Any]:
    """The input options of a run that differ from the defaults, as JSON values.

    >>> asked_options(Settings(input=Input(type_="triplet", columns={"anchor": "probe"})))
    {'type': 'triplet', 'columns': {'anchor': 'probe'}}
    """
    inputs = msgspec.to_builtins(settings.input)
    return {key: inputs[key] for key in KEYS if inputs[key] != _DEFAULTS[key]}


def with_options_of(settings: Settings, made_with: Mapping[str, Any]) -> Settings:
    """The settings with the input options of a state, where they contradict none of them."""
    before = made_with.get("options")
    if not isinstance(before, dict) or any(value != before.get(key) for key, value in asked_options(settings).items()):
        return settings
    try:
        events = msgspec.convert({**msgspec.to_builtins(settings.input), **before}, Input)
    except msgspec.ValidationError:  # options of a newer engine
        return settings
    return structs.replace(settings, input=events)


def agreed_options(settings: Settings, made_with: Mapping[str, Any], read_before: bool) -> dict[str, Any]:
    """What the state is to remember: {"options": ...}. Raises `BadSettings` where it was made with others and has read
    something with them."""
    requested = asked_options(settings)
    before = made_with.get("options")
    if isinstance(before, dict) and read_before and before != requested:
        raise BadSettings(
            f"{settings.state}: created with {as_arguments(before)}, requested {as_arguments(requested)}; use the same "
            "options, another --state (for files that need other options, such as answers to questions of `ask`; "
            "`stream-engine merge` adds the states), or --start-over to read everything again"
        )
    return {**made_with, "options": requested}


def as_arguments(options: Mapping[str, Any]) -> str:
    """Options as they are written on a command line.

    >>> as_arguments({"columns": {"anchor": "probe", "near": "chosen"}, "header": False, "skip_rows": 2})
    '--columns anchor=probe,near=chosen --no-header --skip-rows 2'
    """
    words = []
    for key, value in options.items():
        if isinstance(value, bool):
            words.append("--no-header" if key == "header" else f"--{key.replace('_', '-')}")
        elif key == "where":
            words += [f"--where {quote(key + '=' * (key[-1] not in '=<>') + text)}" for key, text in value.items()]
        elif key == "codes":
            words += [f"--codes {quote(f'{field}:' + _pairs(codes))}" for field, codes in value.items()]
        elif isinstance(value, Mapping):
            words.append(f"--{key} {quote(_pairs(value))}")
        else:
            words.append(f"--{key.replace('_', '-')} {'tab' if value == chr(9) else quote(str(value))}")
    return " ".join(words) or "no input options"


def _pairs(values: Mapping[str, str]) -> str:
    return ",".join(f"{key}={value}" for key, value in values.items())


LATER = {"worker_votes", "response_patterns", "judgements"}  # defaults that older states and deltas do not have


class ResumedState(NamedTuple):
    """The engine, the snapshot that it resumes from, and the settings with the options stored in the state."""

    engine: Engine
    newest: Snapshot | None
    settings: Settings


def resumed(
    settings: Settings,
    store: Store,
    stack: ExitStack,
    log: FilteringBoundLogger,
    start_over: bool = False,
    inferred: PreparedSettings | None = None,
) -> ResumedState:
    """The engine at the newest intact snapshot, with its large arrays where the settings say; with `start_over` an
    empty one, and all published files removed. A new state stores the reading that was `inferred`. Raises
    `BadSettings`, `RunFailed` if every snapshot is damaged."""
    if start_over:
        _start_over(store, log)
    allocation = IN_MEMORY
    if settings.counts.on_disk_above:
        allocation = mapped_arrays.on_disk(store.directory / "scratch", settings.counts.on_disk_above)
        stack.callback(allocation.close)
    engines: list[Engine] = []
    newest, damaged = store.latest(lambda each: engines.append(restored(settings, each, allocation)))
    for problem in damaged:
        log.error("snapshot damaged; using the previous one", problem=problem)
    if damaged and newest is None:
        raise RunFailed(
            f"{store.directory}: every snapshot is damaged ({damaged[0]}); restore one from a backup, "
            "or start with another --state"
        )
    engine = engines[-1] if newest else restored(settings, None, allocation)
    _tell_what_is_old(settings, newest, engine, log)
    read_before = any(not name.startswith("labels:") for name in engine.positions)
    inferred = inferred or PreparedSettings(settings)
    made_with = engine.counters["input"]
    settings = merge_stored_options(settings, made_with, inferred) if read_before else inferred.decided().settings
    engine.counters["input"] = agreed_options(settings, engine.counters["input"], read_before)
    if inferred.said and not read_before:
        engine.counters["input"]["inferred"] = True
    return ResumedState(engine, newest, settings)


def _start_over(store: Store, log: FilteringBoundLogger) -> None:
    """Remove the published files, the newest snapshot first, so that a crash leaves an earlier state."""
    numbers = store.sequences()
    for sequence in reversed(numbers):
        store.disk.remove(store.snapshot_path(sequence))
    for kind in store.kinds():
        for sequence in store.artifact_sequences(kind):
            store.disk.remove(store.artifact_path(kind, sequence))
    log.warning("started over: the content of the state was removed", snapshots=numbers)


def _tell_what_is_old(settings: Settings, newest: Snapshot | None, engine: Engine, log: FilteringBoundLogger) -> None:
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
    requested = set(accumulators_in_use(settings, None))
    for name in sorted(LATER & set(settings.accumulators) - engine.accumulators.keys()):
        because = (
            "the state was created without them"
            if name in requested
            else "disabled by a setting, or not contained in deltas"
        )
        log.info(f"no {name.replace('_', ' ')} are kept", because=because)


def restored(settings: Settings, snapshot: Snapshot | None, allocation: Allocation = IN_MEMORY) -> Engine:
    """The engine of a snapshot, or an empty one. Raises `BadSettings` if the state was created with other settings."""
    forgetting = Forgetting(*structs.astuple(settings.forgetting))
    fresh = Engine(accumulators_in_use(settings, snapshot), settings.guard, forgetting, allocation)
    if snapshot is None:
        fresh.share = agreed_share(settings, None, {})
        return fresh
    former = snapshot.settings["guard"] in FORMER
    with_guard = {**snapshot.settings, **({"guard": POLICY} if former else {})}
    if with_guard != fresh.settings():
        before, now = _as_settings(with_guard), _as_settings(fresh.settings())
        changed = [key for key in before | now if before.get(key) != now.get(key)]
        differences = [f"{key} = {before.get(key, 'not set')}, got {now.get(key, 'not set')}" for key in changed]
        raise BadSettings(
            f"{settings.state}: created with {'; '.join(differences)}; use the same settings, or another --state"
        )
    engine = Engine.restore(snapshot, allocation)
    engine.share = agreed_share(settings, engine.share, engine.positions)
    return engine


def _as_settings(made: Mapping[str, Any]) -> dict[str, str]:
    """The settings of a state by their keys, as they are written in the configuration.

    >>> _as_settings({"accumulators": ["adds3"], "guard": None, "forgetting": {"by": "time"}})
    {'accumulators': '["adds3"]', 'guard': 'false', 'forgetting.by': '"time"'}
    """
    forgetting = {f"forgetting.{key}": value for key, value in made.get("forgetting", {}).items()}
    plain = {**made, "guard": made["guard"] is not None} | forgetting
    return {key: json.dumps(value) for key, value in plain.items() if key != "forgetting"}


def accumulators_in_use(settings: Settings, snapshot: Snapshot | None) -> tuple[str, ...]:
    """The accumulators of the settings. If these are the defaults: only counts for deltas, which hold nothing else. A
    state that was created with fewer defaults keeps these."""
    if settings.accumulators != DEFAULT_ACCUMULATORS:
        return settings.accumulators
    of_deltas = any(split_uri(uri)[0] == "deltas" for uri in settings.source)
    names = tuple(name for name in DEFAULT_ACCUMULATORS if not (of_deltas and name in LATER))
    accumulators = names if snapshot is None else tuple(snapshot.settings["accumulators"])
    return accumulators if {*names} - LATER <= {*accumulators} <= {*names} else names


# ---- its share of the partitions


def asked_share(settings: Settings) -> str | None:
    """The share that a run requests, "i/n" in plain digits; None for all partitions (also 0/1)."""
    share = shard(settings.input.shard)
    return None if share is None or share == (0, 1) else f"{share[0]}/{share[1]}"


def agreed_share(settings: Settings, made_with: str | None, positions: Mapping[str, Position]) -> str | None:
    """The share of a state created with `made_with`, when a run resumes it. A run without a topic reads no
    partitions and leaves the share unchanged. Raises `BadSettings` if the run requests another share."""
    requested = asked_share(settings)
    if not _topics(settings) or requested == made_with:
        return made_with
    if made_with is None and requested is not None:
        index, count = map(int, requested.split("/"))
        if all(number % count == index for number in partition_numbers(settings, positions).values()):
            return requested
    both = (made_with, requested)
    shares = [f"the share {share} of the partitions" if share else "all partitions" for share in both]
    raise BadSettings(
        f"{settings.state}: created with {shares[0]}, requested {shares[1]}: partitions would be counted twice "
        "or never; use the same --shard, or create states for other shares: stream-engine merge --into N"
    )


def partition_numbers(settings: Settings, positions: Iterable[str]) -> dict[str, int]:
    """The partitions of a run's topics, each with its number."""
    numbered = [(name, partition_of(topic, name)) for topic in _topics(settings) for name in positions]
    return {name: number for name, number in numbered if number is not None}


def _topics(settings: Settings) -> list[str]:
    return [parse_address(address).topic for scheme, address in map(split_uri, settings.source) if scheme == "kafka"]
