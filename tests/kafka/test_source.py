"""The topic source against the real broker, with both client libraries.

What can be caught here: a message lost, repeated or out of order over restarts, transactions and lost offsets; a jump
without a word; a secret in a message. What cannot: what only several brokers do (leader moves, unclean elections).
"""

import time
from datetime import UTC, datetime, timedelta

import pytest
from kafka import KafkaProducer, TopicPartition

from connectors import Position, SourceFailed, UnusableSource
from connectors.kafka.source import KafkaSource
from tests.kafka.conftest import collect_sockets
from tests.support.facts import states, stating
from tests.support.kafka_broker import PASSWORD
from tests.support.kafka_reading import idle, named_for, positions, read, until
from tests.support.process import until as eventually

pytestmark = pytest.mark.kafka
FAST = {
    "metadata_max_age_ms": 300,
    "fetch_max_wait_ms": 50,
    "reconnect_backoff_max_ms": 300,
    "bootstrap_timeout_ms": 2000,
}


@pytest.fixture(params=["kafka-python", "confluent"])
def client(request) -> str:
    return request.param


@pytest.fixture
def open_source(broker, client):
    """`open_source(topic, positions, **options of the source)`; closed at the end of the test."""
    made = []

    def make(topic, stored=None, start="earliest", rest=None, options=None, **more):
        source = KafkaSource(
            rest or f"{broker.bootstrap}/{topic}",
            stored or {},
            start=start,
            options=named_for(client, {**FAST, **(options or {})}),
            **more,
        )
        made.append(source)
        return source

    yield make
    for source in made:
        source.close()


def test_resumes_after_every_record(new_topic, send, open_source):
    topic = new_topic(2)
    for partition in (0, 1):
        send(topic, [b"%d-%d" % (partition, i) for i in range(6)], partition)
    whole = read(open_source(topic), 12)
    by_partition = {p: [r for r in whole if r.partition == f"{topic}/{p}"] for p in (0, 1)}
    for p, records in by_partition.items():
        assert [r.value for r in records] == [b"%d-%d" % (p, i) for i in range(6)]
        assert [(r.offset, r.next_offset) for r in records] == [(i, i + 1) for i in range(6)]
        assert {(r.unit, r.format, r.key) for r in records} == {("message", "json", None)}
    start = {f"{topic}/{p}": Position(0, whole[0].mark) for p in (0, 1)}
    for cut in range(1, 13):
        source = open_source(topic, start | positions(whole[:cut]), start="none")
        rest = read(source, 12 - cut) + idle(source, 0.05)
        source.close()
        together = whole[:cut] + rest
        for p in (0, 1):
            assert [r for r in together if r.partition == f"{topic}/{p}"] == by_partition[p]


def test_a_poll_brings_at_most_the_asked_for_and_keys_times_and_tombstones(new_topic, send, open_source):
    topic = new_topic()
    send(topic, [(b"k", b"v"), (b"gone", None), (None, b"")] + [b"x"] * 20)
    source = open_source(topic, options={"max_poll_records": 4})
    groups = []
    while sum(map(len, groups)) < 23:
        groups.append(source.poll(0.5))
    assert max(map(len, groups)) == 4
    first, tombstone, empty = [record for group in groups for record in group][:3]
    assert (first.key, first.value) == (b"k", b"v") and first.time > 1.6e9
    assert (tombstone.key, tombstone.value, empty.value) == (b"gone", b"", b"")


@pytest.mark.parametrize("compression", ["gzip", "snappy", "lz4", "zstd"])
def test_compressions(new_topic, send, open_source, compression):
    topic = new_topic()
    values = [b'{"anchor": %d}' % i * 20 for i in range(500)]
    send(topic, values, compression_type=compression, linger_ms=50)
    assert [r.value for r in read(open_source(topic), 500)] == values


def test_latest_begins_at_the_end_and_an_unread_partition_keeps_its_start(new_topic, send, open_source):
    topic = new_topic(2)
    send(topic, [b"old"] * 3, 0)
    send(topic, [b"old"] * 2, 1)
    source = open_source(topic, start="latest")
    until(source.ready, source)
    opened = source.opened()
    assert {name: p.offset for name, p in opened.items()} == {f"{topic}/0": 3, f"{topic}/1": 2}
    assert source.opened() == {}
    send(topic, [b"new"], 0)
    [record] = read(source, 1)
    assert (record.value, record.offset) == (b"new", 3)
    source.close()
    send(topic, [b"later"], 1)
    again = open_source(topic, opened | positions([record]), start="none")
    assert [r.value for r in read(again, 1) + idle(again, 0.1)] == [b"later"]


def test_a_start_at_a_time_skips_what_is_older_by_partition_and_only_once(broker, new_topic, open_source, client):
    topic, begin = new_topic(3), 1_790_000_000_000
    producer = KafkaProducer(bootstrap_servers=broker.bootstrap)
    for partition in range(3):
        for i in range(4):
            value = b"%d-%d" % (partition, i)
            producer.send(topic, value, partition=partition, timestamp_ms=begin + 1000 * i + partition)
    producer.close()
    second = datetime.fromtimestamp(begin / 1000 + 1, UTC)
    starts = {f"{topic}/1": "earliest", f"{topic}/2": (second + timedelta(days=1)).isoformat()}
    source = open_source(topic, start=second.isoformat(), start_partitions=starts)
    records = read(source, 7)
    assert sorted(record.value for record in records) == [b"0-1", b"0-2", b"0-3", b"1-0", b"1-1", b"1-2", b"1-3"]
    stored = source.opened()
    assert stored[f"{topic}/2"].offset == 4  # nothing is as young: it begins at its end
    assert stored[f"{topic}/0"].offset == 1
    source.close()
    again = open_source(topic, stored, start=second.isoformat(), start_partitions=starts)
    assert sorted(record.value for record in read(again, 7)) == sorted(record.value for record in records)
    with pytest.raises(UnusableSource, match=stating("start_partitions … 3")):
        read(open_source(topic, start="latest", start_partitions={f"{topic}/3": "earliest"}), 1)


def test_aborted_transactions_are_invisible_and_control_records_leave_no_lag(broker, new_topic, open_source):
    topic = new_topic()
    producer = KafkaProducer(bootstrap_servers=broker.bootstrap, transactional_id=f"tx-{topic}")
    producer.init_transactions()
    for round_ in range(6):
        producer.begin_transaction()
        for i in range(3):
            producer.send(topic, value=b"%d-%d" % (round_, i))
        producer.flush()
        producer.abort_transaction() if round_ % 2 else producer.commit_transaction()
    expected = [b"%d-%d" % (round_, i) for round_ in (0, 2, 4) for i in range(3)]
    source = open_source(topic)
    records = read(source, 9)
    assert [r.value for r in records] == expected
    until(lambda: source.lag() == {f"{topic}/0": 0}, source)  # behind the last message stand an abort and its marker
    assert source.lag_seconds() == {f"{topic}/0": 0.0}
    for cut in range(1, 9):
        again = open_source(topic, positions(records[:cut]))
        assert read(again, 9 - cut) == records[cut:]
        again.close()
    producer.begin_transaction()
    producer.send(topic, value=b"open")
    producer.flush()
    assert idle(source, 0.3) == []
    until(lambda: source.lag()[f"{topic}/0"] >= 1, source)
    assert source.lag_seconds()[f"{topic}/0"] > 0
    producer.commit_transaction()
    assert [r.value for r in read(source, 1)] == [b"open"]
    producer.close()


def test_deleted_offsets_stop_or_are_told(admin, new_topic, send, open_source):
    topic = new_topic()
    send(topic, [b"%d" % i for i in range(10)])
    admin.delete_records({TopicPartition(topic, 0): 6})
    stored = {f"{topic}/0": Position(2)}
    with pytest.raises(
        SourceFailed,
        match=stating("0 … 2 … 6 … 9 … --on-offset-loss earliest"),
    ):
        read(open_source(topic, stored), 1)
    source = open_source(topic, stored, on_offset_loss="earliest")
    assert [r.offset for r in read(source, 4)] == [6, 7, 8, 9]
    [notice] = source.notices()
    assert states(notice, "4 offsets … 6")
    assert source.opened()[f"{topic}/0"].offset == 6


@pytest.mark.parametrize("policy", ["fail", "earliest"])
def test_offsets_deleted_under_a_running_source(admin, new_topic, send, open_source, client, policy):
    topic = new_topic()
    send(topic, [b"%d" % i * 50_000 for i in range(10)])  # one record a batch, one batch a fetch: little is read ahead
    small = {"max_poll_records": 1, "max_partition_fetch_bytes": 1000}
    source = open_source(
        topic, on_offset_loss=policy, options=small | ({"queued.min.messages": 1} if client == "confluent" else {})
    )
    records = read(source, 1)
    admin.delete_records({TopicPartition(topic, 0): 10})
    send(topic, [b"ten", b"eleven"])
    if policy == "fail":
        said = r"wanted offset \d+, but retention has deleted it; offsets 10 to 11 are left"
        with pytest.raises(SourceFailed, match=said):
            while True:
                records += read(source, 1)
        assert [r.offset for r in records] == list(range(len(records))) and len(records) < 8
    else:
        while records[-1].value != b"eleven":
            records += read(source, 1)
        before = [r.offset for r in records[:-2]]
        assert before == list(range(len(before))) and [r.offset for r in records[-2:]] == [10, 11]
        [notice] = source.notices()
        assert states(notice, f"{10 - len(before)} … 10")


def test_a_topic_made_anew_is_recognised(admin, new_topic, send, open_source):
    topic = new_topic()
    send(topic, [b"first life"] * 3)
    stored = positions(read(open_source(topic), 3))
    admin.delete_topics([topic])
    eventually(lambda: topic not in admin.list_topics(), 60, "the end of the topic")
    new_topic(name=topic)
    send(topic, [b"second life"] * 5)  # longer than the first: only the topic's id tells
    with pytest.raises(SourceFailed, match="earlier topic"):
        read(open_source(topic, stored), 1)
    source = open_source(topic, stored, on_offset_loss="earliest")
    assert [r.value for r in read(source, 5)] == [b"second life"] * 5
    beyond = {name: Position(99) for name in stored}  # an older broker, which gives no id
    said = "wanted offset 99, but the partition ends before it.*offsets 0 to 4 are left"
    with pytest.raises(SourceFailed, match=said):
        read(open_source(topic, beyond), 1)


def test_a_topic_deleted_while_it_is_read_is_an_error(admin, new_topic, send, open_source):
    topic = new_topic()
    send(topic, [b"1"])
    source = open_source(topic, topic_seconds=0.5)
    read(source, 1)
    admin.delete_topics([topic])
    with pytest.raises(SourceFailed, match="partitions 0.*0.5"):
        idle(source, 60)


def test_added_partitions_are_read_from_their_beginning(admin, new_topic, send, open_source):
    topic = new_topic()
    send(topic, [b"a"])
    source = open_source(topic, start="latest")
    until(source.ready, source)
    source.opened()
    admin.create_partitions({topic: 3})
    sent = False
    for _ in range(50):
        try:
            send(topic, [b"b", b"c"], 2)
            sent = True
            break
        except AssertionError:  # this client's metadata is older than the partition
            continue
    assert sent
    records = read(source, 2)
    assert [(r.partition, r.offset, r.value) for r in records] == [(f"{topic}/2", 0, b"b"), (f"{topic}/2", 1, b"c")]
    assert set(source.opened()) == {f"{topic}/1", f"{topic}/2"}
    assert any("partitions 1,2" in notice for notice in source.notices())


def test_shards_and_chosen_partitions_share_a_topic(new_topic, send, open_source, broker):
    topic = new_topic(3)
    for p in range(3):
        send(topic, [b"%d" % p] * 2, p)
    seen = {}
    for name, more in {
        "0/2": {"shard": (0, 2)},
        "1/2": {"shard": (1, 2)},
        "=1": {"partitions": [1]},
        "?2,0": {"rest": f"{broker.bootstrap}/{topic}?partitions=2,0"},
    }.items():
        source = open_source(topic, **more)
        records = read(source, 2 if name in ("1/2", "=1") else 4) + idle(source, 0.1)
        seen[name] = sorted(r.value for r in records)
    assert seen == {
        "0/2": [b"0", b"0", b"2", b"2"],
        "1/2": [b"1", b"1"],
        "=1": [b"1", b"1"],
        "?2,0": [b"0", b"0", b"2", b"2"],
    }
    with pytest.raises(UnusableSource, match="partitions 7.*0,1,2"):
        read(open_source(topic, partitions=[0, 7]), 1)
    with pytest.raises(SourceFailed, match="partitions 3"):
        read(open_source(topic, {f"{topic}/3": Position(1)}), 1)


def test_a_missing_topic_is_waited_for_then_named(new_topic, send, open_source):
    with pytest.raises(UnusableSource, match=r"/no-such-topic.*\(waited 0.2 s\)"):
        read(open_source("no-such-topic", topic_seconds=0.2), 1)
    topic = "late-" + new_topic()
    source = open_source(topic, topic_seconds=20)
    began = time.monotonic()
    while not (said := source.notices()):
        assert source.poll(0.1) == [] and time.monotonic() - began < 10  # of a busy machine
    assert "20" in said[0] and not source.ready()
    new_topic(name=topic)
    send(topic, [b"x"])
    assert [r.value for r in read(source, 1)] == [b"x"] and "exists now" in source.notices()[0]


def test_group_commits_are_only_information(admin, new_topic, send, open_source):
    topic = new_topic()
    send(topic, [b"%d" % i for i in range(4)])
    group = f"g-{topic}"
    source = open_source(topic, options={"group_id": group})
    records = read(source, 4)
    source.published(positions(records[:3]))

    def committed():
        found = admin.list_group_offsets([group])[group].get(TopicPartition(topic, 0))
        return found is not None and found.offset == 3

    until(committed, source)
    source.close()
    again = open_source(topic, positions(records[:1]), options={"group_id": group})
    assert read(again, 3) == records[1:]


@pytest.mark.filterwarnings("ignore:.*unclosed:ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")
def test_tls_with_passwords(own_broker, new_topic, send, open_source, capfd, caplog):
    topic = new_topic()
    send(topic, [b"secret ballot"])
    rest = f"{own_broker.secure_bootstrap}/{topic}"
    source = open_source(topic, rest=rest, options=own_broker.secure_options())
    assert [r.value for r in read(source, 1)] == [b"secret ballot"]
    said = [repr(source), *source.notices()]
    wrong = own_broker.secure_options() | {"sasl_plain_password": "wr0ng-" + PASSWORD}
    with pytest.raises((UnusableSource, SourceFailed)) as refused:
        read(open_source(topic, rest=rest, options=wrong), 1)
    assert "uthentication" in str(refused.value)
    collect_sockets()
    said += [str(refused.value), *capfd.readouterr(), caplog.text]
    assert not any(PASSWORD in text for text in said)


@pytest.mark.filterwarnings("ignore:.*unclosed:ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")
def test_an_untrusted_certificate_is_not_accepted(own_broker, new_topic, open_source):
    options = {key: value for key, value in own_broker.secure_options().items() if key != "ssl_cafile"}
    topic = new_topic()
    source = open_source(topic, rest=f"{own_broker.secure_bootstrap}/{topic}", options=options)
    with pytest.raises(UnusableSource, match="certificate"):
        read(source, 1)
    assert not source.ready()
    collect_sockets()
