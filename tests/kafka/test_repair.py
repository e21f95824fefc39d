"""Repair on a real topic: what is recounted, cut anew and moved is what a run of its own would have counted."""

import time
from contextlib import closing

import pytest
from kafka import KafkaConsumer, TopicPartition
from kafka.admin import ConfigResource, ConfigResourceType

from stream_engine.state.store import Store
from tests.support.facts import states
from tests.support.kafka_runs import run, values
from tests.support.process import engine, summary, until

pytestmark = pytest.mark.kafka


@pytest.fixture
def topic(broker, new_topic, send):
    name = new_topic(partitions=2)
    for partition, n in ((0, 40), (1, 30)):
        send(name, values(n), partition=partition)
    return f"kafka://{broker.bootstrap}/{name}"


def test_one_state_becomes_the_states_of_two_shares_and_one_again(topic, send, tmp_path):
    run(topic, tmp_path / "one", 70)
    for share, n in ((0, 40), (1, 30)):
        run(topic, tmp_path / f"s{share}", n, **{"input.shard": f"{share}/2"})
    send(topic.rpartition("/")[2], values(3), partition=0)  # it goes on meanwhile
    for state, said in (("one", "the order of arrival"), ("s0", "to the last byte")):
        assert said in engine("verify", "--state", tmp_path / state, topic).stdout
    said = engine("merge", tmp_path / "one", "--into", 2, "--out", tmp_path / "two").stdout
    assert "share 0/2, 1 partition" in said
    said = engine("verify", "--state", tmp_path / "two" / "shard-0", topic, status=1).stdout
    assert "reshard" in said and "shard-0" in said
    run(topic, tmp_path / "two" / "shard-0", 73, **{"input.shard": "0/2"})
    back = (tmp_path / "two" / "shard-0", tmp_path / "two" / "shard-1")
    engine("merge", *back, "--into", 1, "--out", tmp_path / "back")
    found, one = (summary(tmp_path / state) for state in ("back/shard-0", "one"))
    assert "share" not in found and found["records"] == one["records"] + 3


def test_what_is_skipped_and_what_retention_took_is_counted_noted_and_known_to_a_recount(topic, admin, send, tmp_path):
    name = topic.rpartition("/")[2]
    first = f"{topic}?partitions=0"
    run(first, tmp_path / "s", 40)
    send(name, values(20), partition=0)
    assert "3 records " in engine("seek", "--state", tmp_path / "s", f"{name}/0", "+3").stdout
    metrics = run(first, tmp_path / "s", 57)
    value = metrics.registry.get_sample_value
    assert value("stream_engine_records_lost_total", {"partition": f"{name}/0"}) == 3
    assert " 57 records " in engine("verify", "--state", tmp_path / "s", topic).stdout
    send(name, values(10), partition=0)
    admin.delete_records({TopicPartition(name, 0): 65})
    metrics = run(first, tmp_path / "s", 62, **{"input.on_offset_loss": "earliest"})
    assert metrics.registry.get_sample_value("stream_engine_records_lost_total", {"partition": f"{name}/0"}) == 8
    found = summary(tmp_path / "s")
    assert found["lost"] == {f"{name}/0": 8} and found["positions"] == {f"{name}/0": 70}
    assert [(deed["did"], deed["at"], deed["to"]) for deed in found["history"]] == [
        ("seek", 40, 43),
        ("offsets lost", 60, 65),
    ]
    said = engine("verify", "--state", tmp_path / "s", topic, status=1).stdout
    assert states(said, f"{name}/0 … 0 … 64")


def test_a_compacted_topic_is_said_to_be_one_and_what_is_left_of_it_is_checked(
    broker, admin, new_topic, send, tmp_path
):
    name = new_topic(segment_ms="50", min_cleanable_dirty_ratio="0.01")
    keyed = [(f"question-{number % 5}".encode(), value) for number, value in enumerate(values(60))]
    for first in range(0, 60, 10):
        send(name, keyed[first : first + 10])
        time.sleep(0.1)  # each in a segment of its own
    topic, place = f"kafka://{broker.bootstrap}/{name}", TopicPartition(name, 0)
    run(topic, tmp_path / "s", 60)
    admin.alter_configs([ConfigResource(ConfigResourceType.TOPIC, name, configs={"cleanup.policy": "compact"})])
    with closing(KafkaConsumer(bootstrap_servers=broker.bootstrap)) as consumer:
        consumer.assign([place])

        def left() -> int:
            consumer.seek(place, 0)
            return sum(len(records) for _ in range(5) for records in consumer.poll(100).values())

        until(lambda: 0 < left() < 50, what="compaction")
    verify = ["verify", "--config", tmp_path / "e.toml", "--state", tmp_path / "s", topic]
    for client, option in (("kafka-python", ""), ("confluent", '"socket.timeout.ms" = 10000')):
        (tmp_path / "e.toml").write_text(f'[kafka]\nclient = "{client}"\n{option}\n')
        said = engine(*verify).stdout
        assert "compacted" in said
        assert "60 records" in said
        assert "no problem found" in said
        assert "WRONG" not in said
    store = Store(tmp_path / "s")
    snapshot = store.latest().snapshot
    store.publish(snapshot._replace(sequence=snapshot.sequence + 1, digest="", objects=snapshot.objects[::-1]))
    assert "WRONG" in engine(*verify, status=1).stdout  # counts of other objects
