"""A state recounted from its sources, from their beginning up to its positions, and what differs.

The order is always the same: the file of labels; then source by source as they are named, files in the order of their
names, the partitions of a topic by number. Offsets that a state was moved over (`seek`, offsets lost) are excluded, and
those that it was moved back to are counted twice.

A compacted topic lacks messages that the state has counted, and a time that was in the future when it was read may be
in the past by now. Then the state cannot equal the recount, but what is in the sources must be in the state.
"""

import os
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing
from typing import Any, NamedTuple

import numpy as np
from msgspec import structs

from connectors import STORES, Position, Source, SourceFailed, UnusableSource, open_source, split_uri
from connectors.files import expand
from connectors.files.readers import partition_of as partition_of_file
from connectors.kafka.cleanup_policy import cleanup_policy
from connectors.kafka.client import parse_address, partition_of
from connectors.stores.objects import address_of
from stream_engine.counts import Forgetting, accumulator
from stream_engine.counts.removal import COUNTS, TRIPLET, triplet_rows
from stream_engine.counts.worker_votes import WorkerVotes, holds_nobody
from stream_engine.input import decoding, label_files
from stream_engine.input.decoding import Block
from stream_engine.input.record_units import part_inside
from stream_engine.input.settings import Settings
from stream_engine.input.source_checks import object_names
from stream_engine.input.sources import event_options, registry_of, source
from stream_engine.order.stored_states import always_first
from stream_engine.state.engine import Engine
from stream_engine.state.object_index import ObjectIndex
from stream_engine.state.snapshot import Snapshot, encode

PATIENCE = 60.0  # seconds without a record until offsets that a state has read are taken for missing
MOVES = ("seek", "offsets lost")  # deeds of the history that moved a position: they have `partition`, `at`, `to`
TOTALS = ("records", "events", "comparisons", "triplets", "quadruplets", "labels", "filtered", "empty")
NOT_OF_SOURCES = ("progressive", "sinks", "history", "lost", "dead_letters", "share", "input")  # other counters


class Recount(NamedTuple):
    """`problems`: what could not be read again; `differing`: where the state is not what was recounted.

    `one_order`: everything came from one partition, and the guard never had a former policy, so that what depends on
    the order of arrival was compared too;
    `same_bytes`: then, and nothing differs, whether the snapshots are the same to the last byte.
    `limits`: why the sources cannot give the same state any more; then `differing` is where they hold more than it.
    """

    problems: list[str]
    differing: list[str]
    one_order: bool
    same_bytes: bool
    records: int
    manual_changes: list[str]  # what was done to the state that no source knows of
    limits: tuple[str, ...] = ()


def recount(settings: Settings, snapshot: Snapshot, starts: Mapping[str, int] = {}) -> Recount:
    """Recount everything that a snapshot has counted, and compare. `starts`: where the first run began in a partition,
    if not at its beginning. Raises `UnusableSource`, `SourceFailed`."""
    history = list(snapshot.counters.get("history", ()))
    accumulators = tuple(snapshot.settings["accumulators"])  # some need to know who answered
    again = _ReadAgain(structs.replace(settings, follow=False, accumulators=accumulators), snapshot, history, starts)
    engine = empty_like(snapshot)
    for block in again.blocks():
        engine.learn(block.decoded, block.positions(), block.counts().total())
    one_order = len([name for name in snapshot.positions if not name.startswith("labels:")]) <= 1
    one_order &= always_first(snapshot.settings["guard"], history)
    limits = tuple(_limits(settings, snapshot, engine, again.missing)) if not again.problems else ()
    differing = list(excess(snapshot, engine) if limits else differences(snapshot, engine, one_order))
    same = one_order and not differing and not again.problems and _equal_bytes(snapshot, engine)
    manual_changes = [f"{change['did']} ({change['time']})" for change in history if change["did"] not in MOVES]
    return Recount(again.problems, differing, one_order, same, engine.counters["records"], manual_changes, limits)


def empty_like(snapshot: Snapshot) -> Engine:
    """An engine of the same kind that has counted nothing. One that was made when votes of workers were nobody's too,
    beside triplet counts, keeps them so."""
    kind = snapshot.settings
    engine = Engine(kind["accumulators"], bool(kind["guard"]), Forgetting(**kind.get("forgetting", {})))
    votes = engine.accumulators.get("worker_votes")
    if isinstance(votes, WorkerVotes):
        votes.keeps_nobody |= holds_nobody(snapshot.section("worker_votes"))
    return engine


# ---- reading again


class Stretch(NamedTuple):
    """Offsets from `begin` up to, not including, `end`."""

    begin: int
    end: int


def stretches(name: str, position: int, history: Iterable[Mapping[str, Any]], start: int = 0) -> list[Stretch]:
    """The stretches of a partition in the order in which they were counted; one that was counted twice comes twice.

    What is gone altogether, of a file or topic made anew under the same name, is excluded.

    >>> moved = [{"did": "seek", "partition": "t/0", "at": at, "to": to} for at, to in ((5, 8), (9, 2))]
    >>> stretches("t/0", 4, moved)
    [Stretch(begin=0, end=5), Stretch(begin=8, end=9), Stretch(begin=2, end=4)]
    """
    found: list[Stretch] = []
    begin = start
    for change in history:
        if change["did"] in MOVES and change.get("partition") == name:
            found = [] if _gone(change) else [*found, Stretch(begin, change["at"])]
            begin = change["to"]
    found.append(Stretch(begin, position))
    return [each for each in found if each.end > each.begin]


def _gone(change: Mapping[str, Any]) -> bool:
    return change["did"] == "offsets lost" and change["to"] < change["at"]


class _ReadAgain:
    """The blocks that a state has counted. `problems` gets what could not be read any more, one line each."""

    def __init__(
        self, settings: Settings, snapshot: Snapshot, history: list[dict[str, Any]], starts: Mapping[str, int]
    ):
        self._settings, self._until, self._history, self._starts = settings, snapshot.positions, history, starts
        self._ingest = decoding.RecordDecoder(event_options(settings), settings.input.format)
        self._begun: set[str] = set()  # partitions
        self.problems: list[str] = []
        self.missing: dict[str, int] = {}  # topic -> offsets without a message: control records, or compacted away

    def blocks(self) -> Iterator[Block]:
        """All of them. Raises `UnusableSource`, `SourceFailed`."""
        if self._settings.input.labels:
            yield from self._labels(self._settings.input.labels)
        for uri in self._settings.source:
            scheme, rest = split_uri(uri)
            if scheme == "stdin":
                raise UnusableSource("-: standard input cannot be read again; name the files or the topic")
            yield from {"kafka": self._topic, "file": self._files, **dict.fromkeys(STORES, self._files)}.get(
                scheme, self._deltas
            )(uri, rest)
        for name in self._until.keys() - self._begun:
            self.problems.append(f"{name}: read by the state, not among the sources")

    def _labels(self, path: str) -> Iterator[Block]:
        name = f"labels:{os.path.abspath(path)}"
        if not self._wanted(name):
            return
        columns = {field: tuple(names.split("|")) for field, names in self._settings.input.labels_columns.items()}
        blocks, position = label_files.read_labels(path, columns)
        if position != self._until[name]:
            self.problems.append(f"{path}: the file of labels is not the one that was read last")
        for block in blocks:
            yield block._replace(records=[record._replace(partition=name) for record in block.records])

    def _files(self, uri: str, rest: str) -> Iterator[Block]:
        if split_uri(uri)[0] in STORES:
            paths = {name: address_of(name, uri) for name in object_names(uri)}
        else:
            paths = {partition_of_file(path): path for path in expand(rest)}
        if not paths:
            raise UnusableSource(f"{rest}: no file matches")
        for name, path in paths.items():
            wanted = self._wanted(name)
            if wanted:
                with closing(source(self._settings, path, self._until)) as opened:
                    opened.poll(float("inf"))  # fails when the file is not the one that the state has read
            for stretch in wanted:
                yield from self._read(stretch, name, source(self._settings, path, {}))

    def _deltas(self, uri: str, rest: str) -> Iterator[Block]:
        with closing(source(self._settings, uri, {})) as opened:
            name = next(iter(opened.lag()), "")
        for stretch in self._wanted(name):
            yield from self._read(stretch, name, source(self._settings, uri, {}))

    def _topic(self, uri: str, rest: str) -> Iterator[Block]:
        address = parse_address(rest)
        numbered = ((partition_of(address.topic, name), name) for name in self._until)
        for number, name in sorted((number, name) for number, name in numbered if number is not None):
            if address.partitions is None or number in address.partitions:
                for stretch in self._wanted(name):
                    topic = open_source(
                        f"{address}",
                        {name: Position(stretch.begin, self._until[name].mark)},
                        options=self._settings.kafka,
                        on_offset_loss="earliest",
                        partitions=[number],
                        format=self._settings.input.format,
                        schema=self._settings.input.schema,
                        registry=registry_of(self._settings),
                    )
                    yield from self._read(stretch, name, topic)

    def _wanted(self, name: str) -> list[Stretch]:
        """The stretches to read of a partition; none when the state does not know it, or it was read before."""
        if name not in self._until or name in self._begun:
            return []
        self._begun.add(name)
        for change in self._history:
            if change.get("partition") == name and _gone(change):
                self.problems.append(f"{name}: what was read up to {change['at']:,} is gone: {change['why']}")
        return stretches(name, self._until[name].offset, self._history, self._starts.get(name, 0))

    def _read(self, stretch: Stretch, name: str, opened: Source) -> Iterator[Block]:
        """The blocks of one stretch of one partition; it is closed."""
        at, moved, topic = stretch.begin, time.monotonic(), name.rpartition("/")[0]
        with closing(opened):
            while at < stretch.end and not opened.finished():
                records = opened.poll(0.2)
                for lost in opened.losses():
                    first, there = stretch.begin, lost.going_on_at
                    missing = f"offsets {first:,} to {there - 1:,} are not there any more: " if there > first else ""
                    self.problems.append(f"{name}: {missing}{lost.why}")
                    at = max(at, there)
                if records:
                    if records[0].unit == "message":
                        inside = sum(at <= record.offset < stretch.end for record in records)
                        span = min(records[-1].next_offset, stretch.end) - at
                        self.missing[topic] = self.missing.get(topic, 0) + span - inside
                    at, moved = records[-1].next_offset, time.monotonic()
                    yield from self._ingest.blocks([part for each in records if (part := part_inside(each, *stretch))])
                elif opened.ready() and opened.lag().get(name) == 0:
                    self.missing[topic] = self.missing.get(topic, 0) + stretch.end - at
                    return  # behind the control records of a topic, or where the log ends
                elif time.monotonic() - moved > PATIENCE:
                    raise SourceFailed(
                        f"{name}: nothing came for {PATIENCE:g} s from offset {at}, the state has read up to "
                        f"{stretch.end}; is the broker there, is a transaction open?"
                    )
        if at < stretch.end:
            self.problems.append(f"{name}: ends at {at:,}, the state has read {stretch.end:,}")


# ---- comparing


def _limits(settings: Settings, snapshot: Snapshot, recounted: Engine, missing: Mapping[str, int]) -> Iterator[str]:
    """Why the sources cannot give the same state any more, one line each."""
    ours, theirs = snapshot.counters, recounted.counters
    fewer = ours["records"] - theirs["records"]
    if 0 < fewer <= sum(missing.values()):
        topics = {parse_address(rest).topic: rest for uri in settings.source for _, rest in [split_uri(uri)]}
        compacted = [
            topic for topic, n in missing.items() if n and "compact" in cleanup_policy(topics[topic], settings.kafka)
        ]
        if compacted:
            counted = f"{ours['records']:,} records that the state has counted"
            yield f"{', '.join(compacted)}: compacted; the broker has removed {fewer:,} of {counted}"
    late = ours["rejected"].get("bad_time", 0) - theirs["rejected"].get("bad_time", 0)
    if late > 0 and not fewer:
        yield (
            f"{late:,} events were rejected because their time was too far in the future (bad_time) when they were "
            "read; read now, it is not"
        )


def excess(snapshot: Snapshot, recounted: Engine) -> Iterator[str]:
    """One line for each counter, object and triplet of which the sources hold more than the state, events that were
    rejected for their time aside. O(n log n)."""
    ours, theirs = snapshot.counters, recounted.counters
    late = max(0, ours["rejected"].get("bad_time", 0) - theirs["rejected"].get("bad_time", 0))
    for name in ("records", "events"):
        allowed = ours[name] + (late if name == "events" else 0)
        if theirs[name] > allowed:
            yield f"counters: {name}: state {ours[name]:,}, sources {theirs[name]:,}"
    if late:
        return
    names = ObjectIndex(snapshot.objects)
    known = len(names)
    new_id = names.ids(recounted.objects.names)
    if len(names) > known:
        only = str(names.names[known])
        yield f"objects: {len(names) - known} are in the sources and not in the state, the first is {only!r}"
        return
    counts = recounted.accumulators.get("triplet_counts")
    if counts is not None and (more := _more_triplets(snapshot, counts.renamed(counts.state(), new_id))):
        yield f"triplet_counts: {more:,} triplets occur more often in the sources than in the state"


def _more_triplets(snapshot: Snapshot, theirs: Mapping[str, np.ndarray]) -> int:
    rows = [triplet_rows(snapshot.section("triplet_counts")), triplet_rows(theirs)]
    keys = np.concatenate([np.column_stack([each[name] for name in TRIPLET]) for each in rows])
    sign = np.repeat([-1, 1], [len(each["n_lo"]) for each in rows])
    _, key = np.unique(keys, axis=0, return_inverse=True)
    more = np.zeros(int(key.max(initial=-1)) + 1, bool)
    for name in COUNTS:
        counts = np.concatenate([each[name] for each in rows]).astype(np.int64) * sign
        more |= np.bincount(key.reshape(-1), counts, minlength=len(more)) > 0
    return int(more.sum())


def differences(snapshot: Snapshot, recounted: Engine, one_order: bool) -> Iterator[str]:
    """One line for each counter, label and array that differs, the state's figure first. O(state).

    Objects are compared by name, so the order in which they came does not matter. What depends on the order of arrival
    (the guard, ledgers, object ids) is compared only where there was one order: a single partition.
    """
    ours, theirs = snapshot.counters, recounted.counters
    pairs = [(name, ours[name], theirs[name]) for name in TOTALS]
    for name in ("kinds", "rejected", "guard") if one_order else ("kinds", "rejected"):
        keys = sorted(ours[name].keys() | theirs[name].keys())
        pairs += [(f"{name} {key}", ours[name].get(key, 0), theirs[name].get(key, 0)) for key in keys]
    yield from (f"counters: {name}: state {a:,}, sources {b:,}" for name, a, b in pairs if a != b)
    if unknown := set(ours["unknown_fields"]) ^ set(theirs["unknown_fields"]):
        yield f"counters: unknown_fields: {', '.join(sorted(unknown))} in one of both"
    labels = (snapshot.labels, recounted.labels)
    unlike = {name for name in labels[0].keys() | labels[1].keys() if labels[0].get(name) != labels[1].get(name)}
    if not one_order:  # of two classes the last one holds, whichever that was
        unlike &= labels[0].keys() ^ labels[1].keys()
    if unlike:
        yield f"labels: {len(unlike):,} differ, the first of {min(unlike)!r}"
    names = ObjectIndex(snapshot.objects)
    n = len(names)
    new_id = names.ids(recounted.objects.names)
    missing = np.setdiff1d(np.arange(n), new_id)
    if len(names) > n:
        only = str(names.names[n])
        yield f"objects: {len(names) - n} are in the sources and not in the state, the first is {only!r}"
    if len(missing):
        only = names.names[int(missing[0])]
        yield f"objects: {len(missing)} are in the state and not in the sources, the first is {only!r}"
    forgetting = Forgetting(**snapshot.settings.get("forgetting", {}))
    for name, each in recounted.accumulators.items():
        kind = accumulator(name, forgetting)
        if kind.mergeable or one_order:
            skipped = () if one_order else kind.arrival
            again = {key: array for key, array in each.renamed(each.state(), new_id).items() if key not in skipped}
            stored = {key: array for key, array in snapshot.section(name).items() if key not in skipped}
            yield from _arrays(name, stored, again, kind.tolerance)
    if one_order and len(names) == n and not len(missing):
        if recounted.guard:
            yield from _arrays("partial_order", snapshot.section("partial_order"), recounted.guard.state())
        if (new_id != np.arange(n)).any():
            yield "objects: they came in another order"


def _arrays(
    name: str, ours: Mapping[str, np.ndarray], theirs: Mapping[str, np.ndarray], tolerance: float = 0.0
) -> Iterator[str]:
    """One line for each array of a section that differs; decayed counts may, by `tolerance` of the largest one."""
    for key in sorted(ours.keys() | theirs.keys()):
        a, b = ours.get(key), theirs.get(key)
        if a is None or b is None or a.shape != b.shape:
            sizes = ["none" if each is None else f"{len(each):,}" for each in (a, b)]
            yield f"{name}: {key}: state {sizes[0]}, sources {sizes[1]} entries"
        elif a.dtype.kind == "f":
            allowed = tolerance * float(np.abs(a).max(initial=1.0)) if tolerance else 0.0
            if not np.allclose(a, b, rtol=0, atol=allowed, equal_nan=True):
                yield f"{name}: {key}: differs by more than {allowed:.3g}"
        elif differ := int(np.count_nonzero(a != b)):
            yield f"{name}: {key}: {differ:,} of {a.size:,} entries differ"


def _equal_bytes(snapshot: Snapshot, recounted: Engine) -> bool:
    """Whether the recounted state, with what no source can tell taken from the snapshot, has the same bytes."""
    again = recounted.snapshot()
    counters = {name: value for name, value in again.counters.items() if name not in NOT_OF_SOURCES}
    counters |= {name: snapshot.counters[name] for name in NOT_OF_SOURCES if name in snapshot.counters}
    again = again._replace(sequence=snapshot.sequence, counters=counters, positions=snapshot.positions)
    return encode(again)[1].digest == snapshot.digest
