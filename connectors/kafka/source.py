"""A topic as a source: `kafka://host:port[,host:port]/topic[?partitions=0,1,2]`.

Partitions are assigned by hand and sought to the positions inside the snapshot; the consumer group is only told
afterwards. Invariant: every message is delivered once and in order within its partition, or the source stops with a
line that says what is missing; positions never jump unless `on_offset_loss` says so, and then a notice says how far.

Opening (and opening again after trouble) happens in a thread, so that `poll` keeps its timeout while a broker is down.
The broker's absence is no error: `poll` returns nothing, `ready` is False, and a notice says so once.

Partitions are named "topic/number"; offsets count messages; a record's `mark` is a check value of the topic's id, by
which a topic that was deleted and made anew under the same name is recognised (0 on brokers before 2.8: not checked).
"""

import threading
import time
from collections.abc import Callable, Collection, Mapping
from importlib import import_module
from types import MappingProxyType
from typing import Any

from connectors import Position, Record, SourceFailed, UnusableSource
from connectors.kafka.address import parse_address, partition_name, partition_of, scrubbed
from connectors.kafka.client import Client, OffsetsLost, Progress, Range, Refused, Trouble, Unavailable
from connectors.kafka.connecting import Opening
from connectors.kafka.start_offsets import Loss, chosen_partitions, loss_of

CLIENTS = {
    "kafka-python": "connectors.kafka.kafka_python_client:KafkaPython",
    "confluent": "connectors.kafka.confluent_client:Confluent",
}
STARTS = ("none", "earliest", "latest")
LOSSES = ("fail", "earliest")
MAX_POLL_RECORDS = 20_000
POLL_BYTES = 32 << 20  # what one poll may bring, roughly: the next limit follows the size of the last records
PATIENCE = 5  # fresh clients in a row without a single record before trouble stops the source
BACK_OFF = (0.05, 5.0)  # seconds between attempts to open, doubling
LAG_SECONDS = 0.25  # end offsets are looked up at most so often; what was delivered counts at once
_LOOK = 1.0  # seconds between looks at connection and partitions


class KafkaSource:
    """A `Source` of messages. See the module for what it promises.

    `options` are the client's, under kafka-python's names; a `client` among them wins over the argument. `start` is for
    the first start only, when no position of the topic is known: "none" refuses to guess. `on_offset_loss` says what to
    do when a stored offset is not there any more: "fail" or "earliest". `partitions` or `shard` = (i, n), the partitions
    p with p % n == i, take a part of the topic. `format` is that of every value; by default each value says whether it
    is an Arrow stream, else JSON. A topic that does not exist for `topic_seconds` is an error. After `stall_seconds`
    with unread messages and none delivered the client is replaced.
    """

    def __init__(
        self,
        rest: str,
        positions: Mapping[str, Position],
        *,
        options: Mapping[str, Any] | None = None,
        start: str = "none",
        on_offset_loss: str = "fail",
        partitions: Collection[int] | None = None,
        shard: tuple[int, int] | None = None,
        format: str | None = None,
        client: str = "kafka-python",
        topic_seconds: float = 30.0,
        stall_seconds: float = 120.0,
    ):
        self.address = parse_address(rest)
        self._options = dict(options or {})
        self._most = int(self._options.pop("max_poll_records", MAX_POLL_RECORDS))
        self._limit = 1  # until the size of messages is known
        self._chosen = chosen_partitions(self.address, partitions, shard)
        self._start, self._on_loss = _one_of("start", start, STARTS), _one_of("on_offset_loss", on_offset_loss, LOSSES)
        self._make = _client_class(self._options.pop("client", client))  # [kafka] client = "confluent"
        self._format, self._topic_seconds, self._stall_seconds = format, topic_seconds, stall_seconds
        known = {partition_of(self.address.topic, name): position for name, position in positions.items()}
        self._stored = {partition: position for partition, position in known.items() if partition is not None}
        if not self._stored and start == "none":
            raise UnusableSource(
                f"{self.address}: no position of this topic is stored and none was chosen to begin at;"
                " choose start = earliest or latest"
            )
        self._opened: dict[str, Position] = {}
        self._notices: list[str] = []
        self._progress: dict[int, Progress] = {}
        self._asked = 0.0  # when `_progress` was
        self._last_time: dict[str, float] = {}
        self._failures = self._stalls = 0  # fresh clients since the last record
        self._gone_since: float | None = None
        self._moved = self._looked = time.monotonic()
        self._away_since: float | None = None
        self._closing = threading.Event()
        self._client: Client | None = None  # once it is open
        self._opening = Opening(self._open)

    def __repr__(self) -> str:
        return f"KafkaSource({str(self.address)!r})"

    # ---- the Source protocol

    def poll(self, timeout: float) -> list[Record]:
        """At most `max_poll_records` records; `[]` while the broker is away. Raises `SourceFailed`."""
        if self._client is None and not self._finish_opening(timeout):
            return []
        try:
            found = self._client.poll(timeout, self._limit)
            if found:
                return self._take(found)
            self._look_after()
        except OffsetsLost as lost:
            self._meet_loss(lost)
        except Trouble as trouble:
            self._bear(trouble)
        except Refused as refused:
            line = f"{self.address}: {self._scrubbed(refused)}; check credentials and permissions"
            raise SourceFailed(line) from None
        return []

    def finished(self) -> bool:
        """Never: a topic has no end."""
        return False

    def ready(self) -> bool:
        """True while partitions are assigned and a broker is connected."""
        return self._client is not None and self._client.connected()

    def lag(self) -> Mapping[str, int]:
        """Messages between what was delivered and the end of each partition, as the broker last told.

        Open transactions count until they are decided; control records behind the last message do not.
        """
        now = time.monotonic()
        if self._client is not None and now - self._asked > LAG_SECONDS:
            self._progress |= self._client.progress()
            self._asked = now
        return {
            self._name(partition): max(0, end - max(at, self._stored[partition].offset))
            for partition, (at, end) in self._progress.items()
        }

    def lag_seconds(self) -> Mapping[str, float]:
        """Age of the last delivered message of each partition with unread ones; 0 where all is read."""
        now = time.time()
        return {
            name: max(0.0, now - self._last_time[name]) if lag else 0.0
            for name, lag in self.lag().items()
            if not lag or name in self._last_time
        }

    def opened(self) -> dict[str, Position]:
        """Starting points given since the last call to partitions without a stored position (or with a lost one).

        They belong into the snapshot like the positions of records: else a partition in which nothing was read before
        a restart would be taken for a new one, and read from its beginning.
        """
        opened, self._opened = self._opened, {}
        return opened

    def published(self, positions: Mapping[str, Position]) -> None:
        """Commit to the group named by the option `group_id`, if any; for lag tools, never read back."""
        offsets = {partition_of(self.address.topic, name): position.offset for name, position in positions.items()}
        mine = {partition: offset for partition, offset in offsets.items() if partition in self._stored}
        if self._client is not None and mine:
            self._client.commit(mine)

    def notices(self) -> list[str]:
        """Connection lost and regained, partitions added, offsets lost, clients replaced; each once."""
        notices, self._notices = self._notices, []
        return notices

    def close(self) -> None:
        """Within seconds, also while a broker is down."""
        self._closing.set()
        client, self._client = self._client, None
        if client is not None:
            client.close()
        self._opening.end()

    # ---- records

    def _take(self, found: Mapping[int, list[Record]]) -> list[Record]:
        records, size = [], 0
        for partition, group in found.items():
            last = group[-1]
            self._stored[partition] = Position(last.next_offset, last.mark)
            if last.time is not None:
                self._last_time[last.partition] = last.time
            size += sum([len(record.value) for record in group])
            records += group
        # The next poll brings about POLL_BYTES: messages of a thousand events are not asked for by the ten thousand.
        self._limit = max(1, min(self._most, 8 * self._limit, POLL_BYTES * len(records) // max(size, 1)))
        self._moved, self._failures, self._stalls = time.monotonic(), 0, 0
        if self._moved - self._looked > _LOOK:
            self._look_after()
        return records

    def _look_after(self) -> None:
        """About once a second: is the broker there, are there more partitions, does reading make progress?"""
        now = time.monotonic()
        if now - self._looked < _LOOK:
            return
        self._looked = now
        connected = self._client.connected()
        self._tell_connection(connected, now)
        if connected:
            self._look_for_partitions()
            if now - self._moved > self._stall_seconds * 2**self._stalls and any(self.lag().values()):
                self._stalls += 1
                self._replace_client(
                    f"no message for {now - self._moved:.0f} s although some are unread (an open "
                    "transaction, or a stuck client)"
                )

    def _tell_connection(self, connected: bool, now: float) -> None:
        if not connected and self._away_since is None:
            self._away_since = now
            self._notices.append(f"{self.address}: no broker is connected; trying again until one is")
        elif connected and self._away_since is not None:
            self._notices.append(f"{self.address}: connected again after {now - self._away_since:.0f} s")
            self._away_since = None
        if not connected:
            self._moved = now  # silence of an absent broker is no stall

    def _look_for_partitions(self) -> None:
        """New ones are read; a topic that is gone, or is another one by now, is an error."""
        known = self._client.partitions()
        now = time.monotonic()
        if self._mine(self._stored) <= known:
            self._gone_since = None
        elif self._gone_since is None:
            self._gone_since = now
        elif now - self._gone_since > self._topic_seconds:
            raise SourceFailed(
                f"{self.address}: partitions {_listed(self._mine(self._stored) - known)} are gone since "
                f"{self._topic_seconds:g} s; was the topic deleted?"
            )
        added = self._mine(known) - set(self._stored)
        try:
            mark = self._client.topic_mark()
            ranges = self._client.ranges(added) if added else {}
        except Unavailable:
            return  # seen again at the next look
        if mark and any(position.mark not in (0, mark) for position in self._stored.values()):
            raise OffsetsLost(self._mine(self._stored))
        if not added:
            return
        self._client.assign(self._starting_points(ranges, mark, fresh=False))
        self._notices.append(f"{self.address}: reading added partitions {_listed(added)} from their beginning")

    # ---- opening

    def _finish_opening(self, timeout: float) -> bool:
        """True when the client is open; errors of the opening are raised here, in the thread that polls."""
        client = self._opening.wait(timeout)
        if client is None:
            return False
        self._client = client
        self._moved = self._looked = time.monotonic()
        self._tell_connection(True, self._moved)
        return True

    def _open(self, opening: Opening) -> Client | None:
        """Until it works: connect, find the topic, decide where to begin. None when closing."""
        waited = BACK_OFF[0]
        while not self._closing.is_set():
            client = opening.client = self._make(self.address, self._options, self._format)
            try:
                client.connect()
                mine = self._find_partitions(client)
                offsets = self._starting_points(client.ranges(mine), client.topic_mark(), fresh=not self._stored)
                client.assign(offsets)
                return client
            except Unavailable as away:
                client.close()
                if self._away_since is None and not self._closing.is_set():
                    self._away_since = time.monotonic()
                    self._notices.append(f"{self.address}: no broker answers ({self._scrubbed(away)}); trying again")
            except Refused as refused:
                client.close()
                raise UnusableSource(f"{self.address}: {self._scrubbed(refused)}; check the [kafka] options") from None
            except BaseException:
                client.close()
                raise
            self._closing.wait(waited)
            waited = min(2 * waited, BACK_OFF[1])
        return None

    def _find_partitions(self, client: Client) -> frozenset[int]:
        """The partitions to read, waiting `topic_seconds` for the topic. Raises `UnusableSource`, `Unavailable`."""
        deadline = time.monotonic() + self._topic_seconds
        while not (known := client.look_for_topic()):
            if time.monotonic() > deadline:
                raise UnusableSource(
                    f"{self.address}: the topic does not exist (waited {self._topic_seconds:g} s); "
                    "create it, or check the name and the permission to see it"
                )
            if self._closing.wait(0.5):
                raise Unavailable("closing")
        if self.address.partitions is not None or isinstance(self._chosen, frozenset):
            if missing := self._chosen - known:
                raise UnusableSource(
                    f"{self.address}: partitions {_listed(missing)} do not exist; the topic has {_listed(known)}"
                )
        if gone := self._mine(self._stored) - known:
            raise SourceFailed(
                f"{self.address}: partitions {_listed(gone)} of the stored positions do not exist; the "
                f"topic has {_listed(known)}. Was it made anew? Use a new state directory for it"
            )
        return self._mine(known)

    def _starting_points(
        self, ranges: Mapping[int, Range], mark: int, fresh: bool, cut: Mapping[int, int] = MappingProxyType({})
    ) -> dict[int, int]:
        """Where to begin in each partition; keeps the answers in `_stored` and `_opened`. Raises `SourceFailed`."""
        offsets = {}
        for partition, span in sorted(ranges.items()):
            stored = self._stored.get(partition)
            if stored is None:
                offsets[partition] = span.end if fresh and self._start == "latest" else span.first
            elif (loss := loss_of(stored, span, mark, cut.get(partition))) is None:
                offsets[partition] = stored.offset
                continue
            else:
                offsets[partition] = loss.go_on_at
                self._report_loss(partition, stored, span, loss)
            self._opened[self._name(partition)] = Position(offsets[partition], mark)
        self._stored |= {partition: Position(offset, mark) for partition, offset in offsets.items()}
        self._progress |= {partition: Progress(offset, ranges[partition].end) for partition, offset in offsets.items()}
        return offsets

    # ---- loss and trouble

    def _meet_loss(self, lost: OffsetsLost) -> None:
        try:
            ranges = self._client.ranges(lost.partitions)
        except Unavailable as away:
            self._replace_client(str(away))
            return
        self._client.assign(self._starting_points(ranges, self._client.topic_mark(), False, lost.cut))

    def _report_loss(self, partition: int, stored: Position, span: Range, loss: Loss) -> None:
        """Raise, or note where reading goes on."""
        left = f"offsets {span.first} to {span.end - 1} are left" if span.end > span.first else "nothing is left"
        what = f"{self.address}: partition {partition}: wanted offset {stored.offset}, but {loss.why}; {left}"
        if self._on_loss == "fail":
            raise SourceFailed(f"{what}. To go on with what is left: --on-offset-loss earliest")
        gone = f"{loss.go_on_at - stored.offset} offsets are lost, " if loss.go_on_at > stored.offset else ""
        self._notices.append(f"{what}; {gone}reading on from {loss.go_on_at} (on-offset-loss is earliest)")

    def _bear(self, trouble: Trouble) -> None:
        """A fresh client, unless several in a row brought nothing."""
        self._failures += 1
        if self._failures > PATIENCE:
            places = ", ".join(f"{self._name(p)}@{position.offset}" for p, position in sorted(self._stored.items()))
            raise SourceFailed(
                f"{self.address}: {PATIENCE} fresh clients in a row could not read on from {places}: "
                f"{self._scrubbed(trouble)}. "
                "Delete the records that cannot be read (kafka-delete-records) and start with "
                "--on-offset-loss earliest"
            )
        self._replace_client(str(trouble))

    def _replace_client(self, why: str) -> None:
        """Close this client and open a fresh one at the same positions."""
        self._notices.append(f"{self.address}: {self._scrubbed(why)}; going on with a fresh client")
        client, self._client = self._client, None
        client.close()
        self._opening = Opening(self._open, delay=min(BACK_OFF[0] * 2 ** (self._failures + self._stalls), BACK_OFF[1]))

    # ---- small questions

    def _mine(self, partitions: Collection[int]) -> frozenset[int]:
        if isinstance(self._chosen, frozenset):
            return self._chosen & frozenset(partitions)
        index, count = self._chosen
        return frozenset(partition for partition in partitions if partition % count == index)

    def _name(self, partition: int) -> str:
        return partition_name(self.address.topic, partition)

    def _scrubbed(self, text: object) -> str:
        return scrubbed(text, self._options)


def _client_class(name: str) -> Callable[..., Client]:
    module, _, attribute = CLIENTS[_one_of("client", name, tuple(CLIENTS))].partition(":")
    try:
        return getattr(import_module(module), attribute)
    except ImportError as error:
        raise UnusableSource(f"kafka client {name}: {error}; install stream-engine[{name}]") from error


def _one_of(what: str, got: str, known: tuple[str, ...]) -> str:
    if got not in known:
        raise UnusableSource(f"kafka {what}: got {got!r}, expected one of {', '.join(known)}")
    return got


def _listed(partitions: Collection[int]) -> str:
    return ",".join(map(str, sorted(partitions)))
