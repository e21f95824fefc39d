"""A topic as a source: `kafka://host:port[,host:port]/topic[?partitions=0,1,2]`.

Partitions are assigned and sought to the positions in the snapshot. Every message is delivered once and in order within
its partition, or the source stops and says what is missing; only `on_offset_loss` lets positions jump, with a notice.
"""

import time
from collections.abc import Collection, Mapping
from operator import itemgetter
from types import MappingProxyType
from typing import Any

from connectors import LostRecords, Position, Record, Source, SourceFailed, UnusableSource, resolve
from connectors.kafka.client import (
    Address,
    BrokerUnavailable,
    ClientFailed,
    OffsetsLost,
    Progress,
    Range,
    Refused,
    TopicMissing,
    commas,
    one_of,
    parse_address,
    partition_name,
    partition_of,
    scrubbed,
)
from connectors.kafka.source_states import (
    Client,
    Closed,
    Connecting,
    Failed,
    FailedReading,
    OpeningThread,
    Reading,
    State,
    Waiting,
)
from connectors.kafka.start_offsets import (
    EARLIEST,
    ON_OFFSET_LOSS,
    Start,
    StartingPoints,
    selected_partitions,
    start_of,
    starting_points,
)

CLIENTS = {
    "kafka-python": "connectors.kafka.kafka_python_client:KafkaPython",
    "confluent": "connectors.kafka.confluent_client:Confluent",
}
MAX_POLL_RECORDS = 20_000
POLL_BYTES = 32 << 20  # what one poll may bring, roughly: the next limit follows the size of the last records
MAX_FRESH_CLIENTS = 5  # fresh clients in a row without a single record before their failures stop the source
BACK_OFF = (0.05, 5.0)  # seconds between attempts to open, doubling
LAG_SECONDS = 0.25  # end offsets are looked up at most so often; what was delivered counts at once
_VALUE = itemgetter(Record._fields.index("value"))
_LOOK_SECONDS = 1.0  # seconds between looks at connection and partitions


# Partitions are named "topic/number"; offsets count messages; a record's `mark` is a check value of the topic's id,
# which reveals a topic that was deleted and created again (0 on brokers before 2.8: not checked). The states:
#
# | from | when | to |
# |---|---|---|
# | Connecting | the client is open, its partitions are assigned | Reading |
# | Connecting | no broker answers; the topic is missing, `topic_seconds` at most | Waiting, each time twice as long |
# | Connecting | refused; the topic stays missing, or a partition is; stored offsets are lost | Failed |
# | Waiting | its time is over | Connecting |
# | Reading | the client failed, returns nothing although there is something, or has no position | Waiting |
# | Reading | offsets are lost; the topic is gone; refused; several clients in a row failed | Failed |
# | any | `close` | Closed |
#
# A thread opens the client, so that `poll` keeps its timeout while a broker is down; only `poll` changes the state.
class KafkaSource(Source):
    """A `Source` of messages. See the module for what it promises.

    `options` have kafka-python's names, or librdkafka's with `client` = "confluent" among them. `start` is for the
    first start only, when no position of the topic is known: "earliest", "latest" or a time such as
    "2026-11-01T00:00Z"; "none" refuses to guess. `start_partitions` ("topic/number": the same) says it of a partition.
    `on_offset_loss` says what to do when a stored offset is not there any more: "fail" or "earliest". `partitions` or
    `shard` = (i, n), the partitions p with p % n == i, take a part of the topic. `format` is that of every value; by
    default each value says whether it is an Arrow stream, else JSON. A topic that does not exist for `topic_seconds` is
    an error. After `stall_seconds` with unread messages and none delivered the client is replaced.
    """

    def __init__(
        self,
        location: str,
        positions: Mapping[str, Position],
        *,
        options: Mapping[str, Any] | None = None,
        start: str = "none",
        start_partitions: Mapping[str, str] = MappingProxyType({}),
        on_offset_loss: str = "fail",
        partitions: Collection[int] | None = None,
        shard: tuple[int, int] | None = None,
        format: str | None = None,
        topic_seconds: float = 30.0,
        stall_seconds: float = 120.0,
    ):
        self.address = parse_address(location)
        self._options = dict(options or {})
        self._refused_commits, self._commit_problem = 0, ""
        self._most = _most(self._options.pop("max_poll_records", MAX_POLL_RECORDS))
        self._limit = 1  # until the size of messages is known
        self._selected = selected_partitions(self.address, partitions, shard)
        numbered = ((partition_of(self.address.topic, name), text) for name, text in start_partitions.items())
        self._start = Start(
            start_of(start), {number: start_of(text) for number, text in numbered if number is not None}
        )
        self._on_loss = one_of("on_offset_loss", on_offset_loss, ON_OFFSET_LOSS)
        self._format, self._topic_seconds, self._stall_seconds = format, topic_seconds, stall_seconds
        self._stored = self._of_the_topic(positions)
        if not self._stored:
            self._start.check(self.address)
        self._opened: dict[str, Position] = {}
        self._notices: list[str] = []
        self._losses: list[LostRecords] = []
        self._progress: dict[int, Progress] = {}
        self._asked = 0.0  # when `_progress` was
        self._last_time: dict[str, float] = {}
        self._failed_clients = self._stalled_clients = 0  # since the last record
        self._broker_away_since: float | None = None  # since when none is connected, once that was told
        self._missing_since: float | None = None  # since when the topic does not exist, once that was told
        self._state: State = self._connecting(BACK_OFF[0])

    def __repr__(self) -> str:
        return f"KafkaSource({str(self.address)!r})"

    # ---- the Source protocol

    def poll(self, timeout: float) -> list[Record]:
        """At most `max_poll_records` records; `[]` while the broker is away.

        Raises `SourceFailed`, and `UnusableSource` before the first record.
        """
        deadline = time.monotonic() + timeout
        while not isinstance(self._state, Reading):
            if not self._move_on(self._state, max(0.0, deadline - time.monotonic())):
                return []
        reading = self._state
        try:
            return self._read(reading, max(0.0, deadline - time.monotonic()))
        except SourceFailed as failure:
            self._state = FailedReading(failure, reading.client)
            raise

    def finished(self) -> bool:
        """Never: a topic has no end."""
        return False

    def ready(self) -> bool:
        """True while partitions are assigned and a broker is connected."""
        state = self._state
        return isinstance(state, Reading) and state.client.connected()

    def away(self) -> str:
        """The topic is missing, or no broker answers; "" otherwise."""
        if self._missing_since is not None:
            return "the topic does not exist"
        return "no broker answers" if self._broker_away_since is not None else ""

    def lag(self) -> Mapping[str, int]:
        """Messages between what was delivered and the end of each partition, as the broker last told.

        Open transactions count until they are decided; control records behind the last message do not.
        """
        now = time.monotonic()
        if isinstance(self._state, Reading) and now - self._asked > LAG_SECONDS:
            self._progress |= self._state.client.progress()
            self._asked = now
        return {
            self._name(partition): max(0, end - max(following, self._stored[partition].offset))
            for partition, (following, end) in self._progress.items()
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

    def losses(self) -> list[LostRecords]:
        """Offsets that were gone before they were read, since the last call."""
        losses, self._losses = self._losses, []
        return losses

    def published(self, positions: Mapping[str, Position]) -> None:
        """Commit to the group named by the option `group_id`, if any; for lag tools, never read back."""
        offsets = {
            partition: position.offset
            for partition, position in self._of_the_topic(positions).items()
            if partition in self._stored
        }
        if isinstance(self._state, Reading | FailedReading) and offsets:
            self._state.client.commit(offsets, self._committed)

    def _committed(self, refused: str) -> None:
        """A commit to the group was taken, or refused for this reason; said once until one is taken."""
        refused = self._scrubbed(refused)
        if refused:
            self._refused_commits += 1
            if not self._commit_problem:
                group = self._options.get("group_id") or self._options.get("group.id")
                self._notices.append(
                    f"{self.address.topic}: the group {group} does not take our offsets, so lag tools see old ones; "
                    f"nothing is lost: {refused}"
                )
        self._commit_problem = refused

    def refused_commits(self) -> int:
        """How many commits to the group were refused since the last call."""
        refused, self._refused_commits = self._refused_commits, 0
        return refused

    def notices(self) -> list[str]:
        """Connection lost and regained, partitions added, offsets lost, clients replaced; each once."""
        notices, self._notices = self._notices, []
        return notices

    def close(self) -> None:
        """Within seconds, also while a broker is down."""
        state, self._state = self._state, Closed()
        if isinstance(state, Connecting):
            state.thread.end()
        elif isinstance(state, Reading | FailedReading):
            state.client.close()

    # ---- from state to state

    def _move_on(self, state: Connecting | Waiting | Failed | Closed, seconds: float) -> bool:
        """Wait up to `seconds` for another state; whether it was reached. Raises the failure of a failed source."""
        if isinstance(state, Waiting):
            remaining = state.until - time.monotonic()
            time.sleep(max(0.0, min(remaining, seconds)))
            if remaining <= seconds:
                self._state = self._connecting(state.pause)
            return remaining <= seconds
        if isinstance(state, Connecting):
            return self._connected(state, seconds)
        if isinstance(state, Failed):
            raise state.failure
        return False

    def _connecting(self, pause: float) -> Connecting:
        return Connecting(OpeningThread(_client(self.address, self._options, self._format), self._assign), pause)

    def _connected(self, state: Connecting, seconds: float) -> bool:
        """Whether the attempt is over; what it met is raised or noted here, in the thread that polls."""
        try:
            opened = state.thread.wait(seconds)
        except BrokerUnavailable as away:
            if self._broker_away_since is None:
                self._broker_away_since = time.monotonic()
                self._notices.append(f"{self.address}: no broker answers ({self._scrubbed(away)}); trying again")
            self._state = self._waiting(state)
            return True
        except TopicMissing:
            self._wait_for_topic(state)
            return True
        except Refused as refused:
            line = f"{self.address}: {self._scrubbed(refused)}; check the [kafka] options"
            self._state = Failed(UnusableSource(line))
            raise self._state.failure from None
        except (SourceFailed, UnusableSource) as failure:
            self._state = Failed(failure)
            raise
        if opened is None:
            return False
        now = time.monotonic()
        if self._missing_since is not None:
            self._notices.append(f"{self.address}: the topic exists now")
            self._missing_since = None
        self._take_up(opened.start)
        self._tell_connection(True, now)
        self._state = Reading(opened.client, moved=now, looked=now)
        return True

    def _waiting(self, state: Connecting) -> Waiting:
        return Waiting(time.monotonic() + state.pause, min(2 * state.pause, BACK_OFF[1]))

    def _wait_for_topic(self, state: Connecting) -> None:
        """Say at once that the topic is missing, and look again for `topic_seconds`. Raises `UnusableSource`."""
        now, what = time.monotonic(), f"{self.address}: the topic does not exist"
        if self._missing_since is None:
            self._missing_since = now
            self._notices.append(f"{what}; waiting {self._topic_seconds:g} s for it")
        elif now - self._missing_since > self._topic_seconds:
            line = (
                f"{what} (waited {self._topic_seconds:g} s); create it, or check the name and the permission to see it"
            )
            self._state = Failed(UnusableSource(line))
            raise self._state.failure
        self._state = self._waiting(state)

    def _replace_client(self, reading: Reading, why: str) -> None:
        """Close this client, and open a fresh one at the same positions after a pause."""
        self._notices.append(f"{self.address}: {self._scrubbed(why)}; going on with a fresh client")
        pause = min(BACK_OFF[0] * 2 ** (self._failed_clients + self._stalled_clients), BACK_OFF[1])
        self._state = Waiting(time.monotonic() + pause, BACK_OFF[0])
        reading.client.close()

    # ---- reading

    def _read(self, reading: Reading, timeout: float) -> list[Record]:
        records: list[Record] = []
        try:
            records = self._take(reading, reading.client.poll(timeout, self._limit))
            self._look_after(reading)
        except OffsetsLost as lost:
            self._on_offset_loss(reading, lost)
        except ClientFailed as failed:
            self._on_client_failure(reading, failed)
        except Refused as refused:
            line = f"{self.address}: {self._scrubbed(refused)}; check credentials and permissions"
            raise SourceFailed(line) from None
        return records

    def _take(self, reading: Reading, messages: Mapping[int, list[Record]]) -> list[Record]:
        if not messages:
            return []
        records, size = [], 0
        for partition, group in messages.items():
            last = group[-1]
            self._stored[partition] = Position(last.next_offset, last.mark)
            if last.time is not None:
                self._last_time[last.partition] = last.time
            size += sum(map(len, map(_VALUE, group)))
            records += group
        # The next poll brings about POLL_BYTES: messages of a thousand items are not asked for by the ten thousand.
        self._limit = max(1, min(self._most, 8 * self._limit, POLL_BYTES * len(records) // max(size, 1)))
        reading.moved, self._failed_clients, self._stalled_clients = time.monotonic(), 0, 0
        return records

    def _look_after(self, reading: Reading) -> None:
        """About once a second: is the broker there, are there more partitions, does reading make progress?"""
        now = time.monotonic()
        if now - reading.looked < _LOOK_SECONDS:
            return
        reading.looked = now
        connected = reading.client.connected()
        self._tell_connection(connected, now)
        if not connected:
            reading.moved = now
            return
        self._look_for_partitions(reading)
        if now - reading.moved > self._stall_seconds * 2**self._stalled_clients and any(self.lag().values()):
            self._stalled_clients += 1
            self._replace_client(
                reading,
                f"no message for {now - reading.moved:.0f} s although some are unread (an open "
                "transaction, or a stuck client)",
            )

    def _tell_connection(self, connected: bool, now: float) -> None:
        if not connected and self._broker_away_since is None:
            self._broker_away_since = now
            self._notices.append(f"{self.address}: no broker is connected; trying again until one is")
        elif connected and self._broker_away_since is not None:
            self._notices.append(f"{self.address}: connected again after {now - self._broker_away_since:.0f} s")
            self._broker_away_since = None

    def _look_for_partitions(self, reading: Reading) -> None:
        """New ones are read; a topic that is gone, or is another one by now, is an error."""
        numbers = reading.client.partitions()
        self._check_for_gone(reading, numbers)
        added = self._selected.of(numbers) - set(self._stored)
        try:
            mark = reading.client.topic_mark()
            ranges = reading.client.ranges(added) if added else {}
        except BrokerUnavailable:
            return  # seen again at the next look
        if mark and any(position.mark not in (0, mark) for position in self._stored.values()):
            raise OffsetsLost(self._selected.of(self._stored))
        if not added:
            return
        self._take_up(self._starting_points(reading.client, ranges, mark))
        self._notices.append(f"{self.address}: reading added partitions {commas(added)} from their beginning")

    def _check_for_gone(self, reading: Reading, numbers: Collection[int]) -> None:
        gone, now = self._selected.of(self._stored) - frozenset(numbers), time.monotonic()
        if not gone:
            reading.gone_since = None
        elif reading.gone_since is None:
            reading.gone_since = now
        elif now - reading.gone_since > self._topic_seconds:
            raise SourceFailed(
                f"{self.address}: partitions {commas(gone)} are gone since {self._topic_seconds:g} s; "
                "was the topic deleted?"
            )

    def _on_offset_loss(self, reading: Reading, lost: OffsetsLost) -> None:
        """Go on with what is left, if that is wanted. Raises `SourceFailed`."""
        try:
            ranges, mark = reading.client.ranges(lost.partitions), reading.client.topic_mark()
        except BrokerUnavailable as away:
            self._replace_client(reading, str(away))
            return
        self._take_up(self._starting_points(reading.client, ranges, mark, cut=lost.cut))

    def _on_client_failure(self, reading: Reading, failed: ClientFailed) -> None:
        """A fresh client, unless several in a row brought nothing. Raises `SourceFailed`."""
        self._failed_clients += 1
        if self._failed_clients > MAX_FRESH_CLIENTS:
            places = ", ".join(f"{self._name(p)}@{position.offset}" for p, position in sorted(self._stored.items()))
            raise SourceFailed(
                f"{self.address}: {MAX_FRESH_CLIENTS} new clients in a row could not resume at {places}: "
                f"{self._scrubbed(failed)}. "
                "Delete the records that cannot be read (kafka-delete-records) and start with "
                "--on-offset-loss earliest"
            )
        self._replace_client(reading, str(failed))

    # ---- where to begin

    def _assign(self, client: Client) -> StartingPoints:
        """Find the topic and decide where to begin; in the thread that opens, so it changes nothing of the source."""
        mine = self._find_partitions(client)
        start = EARLIEST if self._stored else self._start
        return self._starting_points(client, client.ranges(mine), client.topic_mark(), start=start)

    def _find_partitions(self, client: Client) -> frozenset[int]:
        """The partitions to read. Raises `TopicMissing`, `UnusableSource`, `SourceFailed`."""
        if not (numbers := client.look_for_topic()):
            raise TopicMissing
        if missing := self._selected.missing(numbers):
            raise UnusableSource(
                f"{self.address}: partitions {commas(missing)} do not exist; the topic has {commas(numbers)}"
            )
        if not self._stored and (absent := self._start.by_partition.keys() - numbers):
            raise UnusableSource(
                f"{self.address}: start_partitions: {commas(absent)} do not exist; the topic has {commas(numbers)}"
            )
        if gone := self._selected.of(self._stored) - numbers:
            raise SourceFailed(
                f"{self.address}: partitions {commas(gone)} of the stored positions do not exist; the "
                f"topic has {commas(numbers)}. Was it recreated? Use a new state directory for it"
            )
        return self._selected.of(numbers)

    def _starting_points(
        self,
        client: Client,
        ranges: Mapping[int, Range],
        mark: int,
        *,
        start: Start = EARLIEST,
        cut: Mapping[int, int] = MappingProxyType({}),
    ) -> StartingPoints:
        """Assign partitions from where they begin. Raises `SourceFailed`."""
        at_times = client.offsets_at(start.times(ranges))
        points = starting_points(
            self.address, self._stored, ranges, mark, on_loss=self._on_loss, start=start, at_times=at_times, cut=cut
        )
        client.assign({partition: position.offset for partition, position in points.positions.items()})
        return points

    def _take_up(self, points: StartingPoints) -> None:
        self._stored |= points.positions
        self._progress |= {p: Progress(position.offset, points.ends[p]) for p, position in points.positions.items()}
        self._opened |= {self._name(partition): points.positions[partition] for partition in points.without_position}
        self._notices += points.notices
        self._losses += points.losses

    # ---- small questions

    def _of_the_topic(self, positions: Mapping[str, Position]) -> dict[int, Position]:
        """Positions of this topic by partition number."""
        numbered = ((partition_of(self.address.topic, name), position) for name, position in positions.items())
        return {partition: position for partition, position in numbered if partition is not None}

    def _name(self, partition: int) -> str:
        return partition_name(self.address.topic, partition)

    def _scrubbed(self, text: object) -> str:
        return scrubbed(text, self._options)


def check_options(options: Mapping[str, Any]) -> None:
    """Raise `UnusableSource` for an option of the [kafka] section that the client does not know, and for a client that
    is not installed."""
    _most(options.get("max_poll_records", MAX_POLL_RECORDS))
    _client_class(options).check(options)


def _client(address: Address, options: Mapping[str, Any], format: str | None) -> Client:
    return _client_class(options)(address, options, format)


def _client_class(options: Mapping[str, Any]) -> type[Client]:
    name = one_of("client", options.get("client", "kafka-python"), tuple(CLIENTS))
    try:
        client: type[Client] = resolve(name, CLIENTS)
    except ImportError as error:
        raise UnusableSource(f"kafka client {name}: {error}; pip install confluent-kafka") from error
    return client


def _most(records: Any) -> int:
    if not isinstance(records, int) or records < 1:
        raise UnusableSource(f"kafka max_poll_records: got {records!r}, expected a whole number of at least 1")
    return records
