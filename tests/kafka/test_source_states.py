"""What leads a Kafka source from one state to another, told by a scripted client; no broker.

Each attempt to open a client takes the next item of the script: an exception, or what its polls then bring.
"""

import pytest

from connectors import Position, Record, SourceFailed
from connectors.kafka import source as kafka_source
from connectors.kafka.client import ClientFailed, Progress, Range, TopicMissing
from connectors.kafka.source import MAX_FRESH_CLIENTS, KafkaSource
from connectors.kafka.source_states import Connecting, FailedReading, Reading, Waiting
from stream_engine.service.context import Context, HttpContext
from stream_engine.service.http.live_metrics import LiveMetrics
from stream_engine.service.metrics import Metrics
from stream_engine.service.source_health import SourceHealth
from stream_engine.state.engine import Engine
from tests.support import facts
from tests.support.served import Lines


def record(offset: int, mark: int = 7) -> Record:
    return Record(b"%d" % offset, "t/0", offset, offset + 1, mark, unit="message")


class Scripted:
    """A client whose polls bring what the script says: records, or an exception."""

    def __init__(self, *polls: object, first: int = 0, mark: int = 7):
        self.polls, self.first, self.mark = list(polls), first, mark
        self.assigned: list[dict[int, int]] = []
        self.committed: list[dict[int, int]] = []
        self.is_closed, self.is_connected = False, True

    def topic_mark(self):
        return self.mark

    def partitions(self):
        return frozenset({0})

    look_for_topic = partitions

    def ranges(self, partitions):
        return {partition: Range(self.first, 9) for partition in partitions}

    def offsets_at(self, times):
        return {}

    def assign(self, offsets):
        self.assigned.append(dict(offsets))

    def poll(self, timeout, limit):
        brought = self.polls.pop(0) if self.polls else []
        if isinstance(brought, Exception):
            raise brought
        return {0: brought} if brought else {}

    def progress(self):
        return {0: Progress(0, 9)}

    def connected(self):
        return self.is_connected

    def commit(self, offsets, committed):
        self.committed.append(dict(offsets))
        self.tell_committed = committed

    def close(self):
        self.is_closed = True


class Unopened:
    """An item of the script: a client, or why there is none."""

    def __init__(self, client):
        self._client = client

    def open(self):
        if isinstance(self._client, Exception):
            raise self._client

    def __getattr__(self, name):
        return getattr(self._client, name)


@pytest.fixture
def open_source(monkeypatch):
    """`open_source(script, stored)`: a source whose attempts to open follow the script, without pauses."""
    monkeypatch.setattr(kafka_source, "BACK_OFF", (0.01, 0.04))
    monkeypatch.setattr(kafka_source, "_LOOK_SECONDS", 0.0)
    sources = []

    def make(script, stored=None, **more):
        left = list(script)
        monkeypatch.setattr(kafka_source, "_client", lambda *given: Unopened(left.pop(0)))
        sources.append(KafkaSource("h:1/t", stored or {}, start="earliest", **more))
        return sources[-1]

    yield make
    for source in sources:
        source.close()


def states(source: KafkaSource, until: type) -> list[type]:
    """The states that polls lead through, each once, up to one of the wanted kind."""
    seen = [type(source._state)]
    for _ in range(1000):
        if isinstance(source._state, until):
            return seen
        source._move_on(source._state, 1.0)
        seen += [type(source._state)] if type(source._state) is not seen[-1] else []
    raise AssertionError(seen)


def test_a_missing_topic_is_said_at_once_by_readiness_log_metric_and_live_page(open_source, tmp_path):
    script = Scripted([record(0)])
    source = open_source([TopicMissing()] * 3 + [script])
    metrics, log = Metrics(), Lines()
    health = SourceHealth(Engine(), Context(metrics, log))
    health.add("kafka://h:1/t", source)
    page = LiveMetrics(HttpContext(tmp_path, metrics, lambda: None, ready=health.not_ready))
    states(source, Waiting)
    assert source.away()
    health.look(source)
    (told,) = source.notices()
    for said in (told, health.not_ready(), page.now()["wrong"][0]):
        assert source.away() in said and "h:1/t" in said
    assert metrics.registry.get_sample_value("stream_engine_ready") == 0 and page.now()["lag"] is None
    states(source, Reading)
    health.look(source)
    assert health.not_ready() == "" and metrics.registry.get_sample_value("stream_engine_ready") == 1
    metrics.lag.set("t/0", 0)
    assert page.now()["lag"] == 0
    script.is_connected = False  # the broker goes away when all was read
    assert page.now()["lag"] is None and not page.now()["ready"]


def test_a_failed_client_is_replaced_at_the_same_position(open_source):
    first, second = Scripted([record(0)], ClientFailed("its thread died")), Scripted([record(1)])
    source = open_source([first, second])
    assert states(source, Reading) == [Connecting, Reading]
    assert source.poll(1) == [record(0)] and source.poll(1) == []
    assert first.is_closed and "its thread died" in source.notices()[0]
    assert states(source, Reading) == [Waiting, Connecting, Reading]
    assert source.poll(1) == [record(1)] and second.assigned == [{0: 1}]


def test_clients_that_fail_in_a_row_stop_the_source_for_good(open_source):
    clients = [Scripted(ClientFailed("bad batch")) for _ in range(MAX_FRESH_CLIENTS + 1)]
    source = open_source(clients, {"t/0": Position(3, 7)})
    with pytest.raises(SourceFailed, match=facts.stating(f"{MAX_FRESH_CLIENTS} … t/0@3 … bad batch")):
        while True:
            source.poll(0.1)
    assert isinstance(source._state, FailedReading) and not source.ready()
    with pytest.raises(SourceFailed, match="bad batch"):
        source.poll(0)
    source.published({"t/0": Position(3, 7)})
    source.close()
    assert clients[-1].committed == [{0: 3}] and all(client.is_closed for client in clients)


def test_refused_commits_are_counted_and_said_once_until_one_is_taken(open_source):
    client = Scripted([record(0)])
    source = open_source([client], {"t/0": Position(0, 7)})
    states(source, Reading)
    source.published({"t/0": Position(0, 7)})
    for refused in ("not authorized", "not authorized", "", "not authorized"):
        client.tell_committed(refused)
    assert source.refused_commits() == 3 and source.refused_commits() == 0
    assert ["not authorized" in notice for notice in source.notices()] == [True, True]


def test_records_in_hand_are_delivered_when_the_topic_turns_out_to_be_another_one(open_source):
    client = Scripted([record(0)], [record(0, mark=8)])
    source = open_source([client], on_offset_loss="earliest")
    states(source, Reading)
    client.mark = 8  # deleted and made anew, after the poll that brought the last records of the old one
    assert source.poll(1) == [record(0)]
    assert client.assigned == [{0: 0}, {0: 0}] and source.poll(1) == [record(0, mark=8)]
