"""Kafka: source + decoding + engine, beside the bare client's poll loop and the least decoding, on the same topics.

    python -m tests.benchmarks.kafka [--full] [--client kafka-python|confluent]

Starts a broker (or uses KAFKA_BOOTSTRAP_SERVERS), fills three topics from a seed (single JSON events; JSON lines and
Arrow streams of 1,000), and reads each in fresh processes, way after way and that in several turns, of which the best
counts. Figures are events per CPU second of the reading process, all its threads; the collector runs rarely in all of
them (`COLLECTOR`; for single events worth 20 to 40 % by itself). Before the clock starts, each has read a topic of two
messages: imports, compiled code and all that is made once are not in the figures.
"bare + decode" polls and turns values into ids with msgspec or pyarrow and a dict. It validates nothing, keeps no
positions, counts nothing and judges nothing: that flatters it.
"""

import argparse
import gc
import io
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from connectors import Record
from tests.support.generators import planted_triplets

OBJECTS, NOISE, BATCH = 100, 0.15, 1000
SIZES = {"single": (200_000, 1_000_000), "json": (500_000, 5_000_000), "arrow": (2_000_000, 20_000_000)}
COLLECTOR = 100_000, 50, 1000
WAYS = ("bare + decode", "engine")
TARGETS = {"kafka-python": ">= 0.85", "confluent": ">= 0.7"}  # of the engine
TURNS = 3
WARM = 50_000  # events that an engine has learned before the clock starts


# ---- filling topics


def events(size: int):
    """`(triplets (size, 3), names)` of a food-like stream."""
    rng = np.random.default_rng(0)
    return planted_triplets(rng, rng.normal(size=(OBJECTS, 5)), size, NOISE), [f"dish-{i:03d}" for i in range(OBJECTS)]


def values(kind: str, size: int):
    """The message values of a topic."""
    import pyarrow as pa

    triplets, names = events(size)
    if kind == "arrow":
        columns = [pa.array(names).take(pa.array(column)) for column in triplets.T]
        table = pa.table(columns, names=["anchor", "near", "far"])
        for at in range(0, size, BATCH):
            sink = io.BytesIO()
            with pa.ipc.new_stream(sink, table.schema) as writer:
                writer.write_table(table.slice(at, BATCH).combine_chunks())
            yield sink.getvalue()
        return
    lines = [
        f'{{"anchor":"{names[a]}","near":"{names[b]}","far":"{names[c]}"}}'.encode() for a, b, c in triplets.tolist()
    ]
    if kind == "single":
        yield from lines
    else:
        yield from (b"\n".join(lines[at : at + BATCH]) for at in range(0, size, BATCH))


def fill(bootstrap: str, topic: str, kind: str, size: int) -> int:
    """Make the topic and write it; returns the number of messages."""
    from confluent_kafka import Producer
    from kafka import KafkaAdminClient

    admin = KafkaAdminClient(bootstrap_servers=bootstrap)
    admin.create_topics({topic: {"num_partitions": 2, "replication_factor": 1}})
    admin.close()
    time.sleep(0.5)
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 20, "batch.size": 1 << 20})
    count = 0
    for value in values(kind, size):
        while True:
            try:
                producer.produce(topic, value, partition=count % 2)
                break
            except BufferError:
                producer.poll(0.1)
        count += 1
    assert producer.flush(60) == 0
    return count


# ---- reading them, in a process of its own


def polled(bootstrap: str, topic: str, client: str, messages: int):
    """Lists of values from the bare client, configured as the source configures it."""
    if client == "confluent":
        from confluent_kafka import Consumer, TopicPartition

        consumer = Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": "b",
                "isolation.level": "read_committed",
                "enable.auto.commit": False,
                "check.crcs": True,
            }
        )
        consumer.assign([TopicPartition(topic, p, 0) for p in (0, 1)])
        while messages > 0:
            found = [message.value() for message in consumer.consume(20_000, 0.1)]
            messages -= len(found)
            yield found
        return
    from kafka import KafkaConsumer, TopicPartition

    consumer = KafkaConsumer(
        bootstrap_servers=bootstrap,
        isolation_level="read_committed",
        enable_auto_commit=False,
        auto_offset_reset="none",
        max_poll_records=20_000,
    )
    consumer.assign([TopicPartition(topic, p) for p in (0, 1)])
    for p in (0, 1):
        consumer.seek(TopicPartition(topic, p), 0)
    while messages > 0:
        found = [record.value for some in consumer.poll(timeout_ms=1000).values() for record in some]
        messages -= len(found)
        yield found


def floor(kind: str):
    """The least that decoding can be: values to integer ids."""
    import msgspec
    import pyarrow as pa

    class Event(msgspec.Struct):
        anchor: str
        near: str
        far: str

    ids: dict[str, int] = {}
    decoder = msgspec.json.Decoder(Event)

    def rows(found):
        return [
            (ids.setdefault(e.anchor, len(ids)), ids.setdefault(e.near, len(ids)), ids.setdefault(e.far, len(ids)))
            for e in found
        ]

    def decode(found: list[bytes]) -> None:
        if kind == "single":
            np.array(rows(map(decoder.decode, found)), np.int32)
        elif kind == "json":
            for value in found:
                np.array(rows(decoder.decode_lines(value)), np.int32)
        else:
            for value in found:
                for column in pa.ipc.open_stream(value).read_all().columns:
                    coded = column.combine_chunks().dictionary_encode()
                    known = np.array([ids.setdefault(name, len(ids)) for name in coded.dictionary.to_pylist()])
                    known[coded.indices.to_numpy()]

    return decode


def learned(source, messages: int):
    """Source, decoding, all accumulators and the guard: what a run does, without its clock, sinks and metrics."""
    from stream_engine.formats.options import EventOptions
    from stream_engine.service.ingest import Ingest
    from stream_engine.state.engine import Engine

    engine, ingest = Engine(), Ingest(EventOptions())
    while messages > 0:
        for block in ingest.blocks(source.poll(1.0)):
            engine.learn(block.decoded, block.positions(), block.counts().total())
            messages -= len(block.records)
    assert engine.counters["rejected"] == {}
    return engine.counters["comparisons"]


class _Told:
    """A source that gives some values and no more."""

    def __init__(self, values: list[bytes], format: str):
        self.records = [Record(value, "t/0", i, i + 1, format=format, unit="message") for i, value in enumerate(values)]

    def poll(self, _: float) -> list[Record]:
        return self.records


def read(bootstrap: str, topic: str, kind: str, client: str, way: str, messages: int) -> float:
    """CPU seconds."""
    if way == "engine":  # load what is compiled before the clock starts
        told = list(values(kind, WARM))
        learned(_Told(told, "arrow" if kind == "arrow" else "json"), len(told))
    read_once(bootstrap, opening(topic), kind, client, way, 2)
    began = time.process_time()
    read_once(bootstrap, topic, kind, client, way, messages)
    return time.process_time() - began


def read_once(bootstrap: str, topic: str, kind: str, client: str, way: str, messages: int) -> None:
    """All messages of a topic."""
    from connectors.kafka.source import KafkaSource

    if way != "engine":
        decode = floor(kind)
        for found in polled(bootstrap, topic, client, messages):
            decode(found)
        return
    source = KafkaSource(f"{bootstrap}/{topic}", {}, start="earliest", client=client)
    learned(source, messages)
    source.close()


def opening(topic: str) -> str:
    """The topic of two messages beside one."""
    return f"{topic}-opening"


def in_fresh_process(*arguments) -> float:
    command = [sys.executable, "-W", "ignore", "-m", "tests.benchmarks.kafka", "--only", *map(str, arguments)]
    return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()[-1])


def rows(bootstrap: str, client: str, full: bool) -> list[dict]:
    """One row a topic and way of reading."""
    made = []
    for kind, sizes in SIZES.items():
        size = sizes[full]
        topic = f"bench-{kind}-{os.getpid()}-{client}"
        fill(bootstrap, opening(topic), kind, 2 if kind == "single" else 2 * BATCH)
        messages = fill(bootstrap, topic, kind, size)
        seconds = dict.fromkeys(WAYS, np.inf)
        for _ in range(TURNS):
            for way in WAYS:
                seconds[way] = min(seconds[way], in_fresh_process(bootstrap, topic, kind, client, way, messages))
        made.append(
            {
                "stage": "kafka",
                "case": f"{kind}, {size:,} events, {client}",
                "ours": size / seconds["engine"] / 1e6,
                "rival": size / seconds["bare + decode"] / 1e6,
                "unit": "M events/CPU-s",
                "ratio": seconds["bare + decode"] / seconds["engine"],
                "rival_name": "bare + decode",
                "target": TARGETS[client],
            }
        )
    return made


def main() -> None:
    from tests.benchmarks.__main__ import machine, table

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--full", action="store_true")
    parser.add_argument("--client", default="kafka-python", choices=("kafka-python", "confluent"))
    parser.add_argument("--only", nargs=6, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.only:
        *words, messages = given.only
        gc.set_threshold(*COLLECTOR)
        print(read(*words, int(messages)))
        return
    print("  ".join(f"{key} {value}" for key, value in machine().items()))
    bootstrap = os.environ.get("KAFKA_BOOTSTRAP_SERVERS")
    if bootstrap:
        print(table(rows(bootstrap, given.client, given.full)))
        return
    from tests.support.kafka_broker import Broker

    with tempfile.TemporaryDirectory() as folder:
        broker = Broker(Path(folder))
        broker.start()
        try:
            made = rows(broker.bootstrap, given.client, given.full)
        finally:
            broker.kill()
    print(table(made))
    with open(Path(__file__).with_name("results.jsonl"), "a") as results:
        where = {"full": given.full, "machine": machine()}
        results.writelines(json.dumps({**row, **where}, default=float) + "\n" for row in made)


if __name__ == "__main__":
    main()
