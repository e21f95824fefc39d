"""Kafka: source + decoding + engine, beside the bare client's poll loop and the least decoding, on the same topics.

    python -m tests.benchmarks.kafka [--full] [--client kafka-python|confluent]

Starts a broker (or uses KAFKA_BOOTSTRAP_SERVERS), fills three topics from a seed (single JSON events; JSON lines and
Arrow streams of 1,000), and reads each in fresh processes, way after way and that in several turns, of which the best
counts. Figures are events per CPU second of the reading process, all its threads; the collector runs rarely in all of
them (`COLLECTOR`; for single events worth 20 to 40 % by itself). Before the clock starts, each has read a smaller
topic: imports, compiled code and all that is made once are not in the figures.
"bare + decode" polls and turns values into ids with msgspec or pyarrow and a dict. It validates nothing, keeps no
positions, counts nothing and judges nothing: that flatters it.
"""

import argparse
import contextlib
import gc
import io
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from tests.benchmarks.rows import row, timed
from tests.support.generators import planted_triplets

BATCH = 1000
SIZES = {"single": (200_000, 1_000_000), "json": (500_000, 5_000_000), "arrow": (2_000_000, 20_000_000)}
COLLECTOR = 100_000, 50, 1000
WAYS = ("bare + decode", "engine")
TARGETS = {"kafka-python": ">= 0.85", "confluent": ">= 0.7"}  # of the engine
TURNS = 3
OPENING = 10_000  # events of a topic that is read before the clock starts


def values(kind: str, size: int) -> Iterator[bytes]:
    """The message values of a topic: a food-like stream."""
    import pyarrow as pa

    rng = np.random.default_rng(0)
    triplets = planted_triplets(rng, rng.normal(size=(100, 5)), size, 0.15)
    names = [f"dish-{i:03d}" for i in range(100)]
    if kind == "arrow":
        columns = [pa.array(names).take(pa.array(column)) for column in triplets.T]
        table = pa.table(columns, names=["anchor", "near", "far"])
        for at in range(0, size, BATCH):
            sink = io.BytesIO()
            with pa.ipc.new_stream(sink, table.schema) as writer:
                writer.write_table(table.slice(at, BATCH).combine_chunks())
            yield sink.getvalue()
        return
    line = '{{"anchor":"{}","near":"{}","far":"{}"}}'
    lines = [line.format(names[a], names[b], names[c]).encode() for a, b, c in triplets.tolist()]
    each = 1 if kind == "single" else BATCH
    yield from (b"\n".join(lines[at : at + each]) for at in range(0, size, each))


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


def polled(bootstrap: str, topic: str, client: str, messages: int) -> Iterator[list[bytes]]:
    """Lists of values from the bare client, configured as the source configures it."""
    if client == "confluent":
        from confluent_kafka import Consumer, TopicPartition

        options = {
            "group.id": "b",
            "isolation.level": "read_committed",
            "enable.auto.commit": False,
            "check.crcs": True,
        }
        consumer = Consumer({"bootstrap.servers": bootstrap, **options})
        consumer.assign([TopicPartition(topic, p, 0) for p in (0, 1)])

        def poll():
            return [message.value() for message in consumer.consume(20_000, 0.1)]
    else:
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

        def poll():
            return [record.value for some in consumer.poll(timeout_ms=1000).values() for record in some]

    while messages > 0:
        found = poll()
        messages -= len(found)
        yield found


def floor(kind: str) -> Callable[[list[bytes]], None]:
    """The least that decoding can be: values to integer ids."""
    import msgspec
    import pyarrow as pa

    class Event(msgspec.Struct):
        anchor: str
        near: str
        far: str

    ids: dict[str, int] = {}
    number, decoder = ids.setdefault, msgspec.json.Decoder(Event)

    def decode(found: list[bytes]) -> None:
        if kind == "arrow":
            for value in found:
                for column in pa.ipc.open_stream(value).read_all().columns:
                    coded = column.combine_chunks().dictionary_encode()
                    known = np.array([number(name, len(ids)) for name in coded.dictionary.to_pylist()])
                    known[coded.indices.to_numpy()]
            return
        for events in [map(decoder.decode, found)] if kind == "single" else map(decoder.decode_lines, found):
            rows = [(number(e.anchor, len(ids)), number(e.near, len(ids)), number(e.far, len(ids))) for e in events]
            np.array(rows, np.int32)

    return decode


def learned(source, messages: int) -> None:
    """Source, decoding, all accumulators and the guard: what a run does, without its clock, sinks and metrics."""
    from stream_engine.formats.options import EventOptions
    from stream_engine.input.decoding import RecordDecoder
    from stream_engine.state.engine import Engine

    engine, ingest = Engine(), RecordDecoder(EventOptions())
    while messages > 0:
        for block in ingest.blocks(source.poll(1.0)):
            engine.learn(block.decoded, block.positions(), block.counts().total())
            messages -= len(block.records)
    assert engine.counters["rejected"] == {}


def read(bootstrap: str, topic: str, kind: str, client: str, way: str, messages: int) -> None:
    """All messages of a topic."""
    from connectors.kafka.source import KafkaSource

    if way == "engine":
        source = KafkaSource(f"{bootstrap}/{topic}", {}, start="earliest", options={"client": client})
        learned(source, messages)
        source.close()
        return
    decode = floor(kind)
    for found in polled(bootstrap, topic, client, messages):
        decode(found)


def in_this_process(bootstrap: str, topic: str, kind: str, client: str, way: str, messages: str) -> float:
    """CPU seconds of one reading, everything compiled and opened once before."""
    gc.set_threshold(*COLLECTOR)
    read(bootstrap, f"{topic}-opening", kind, client, way, OPENING if kind == "single" else OPENING // BATCH)
    return timed(read, bootstrap, topic, kind, client, way, int(messages))[1]


def in_fresh_process(*arguments) -> float:
    """The same in a process of its own."""
    command = [sys.executable, "-W", "ignore", "-m", "tests.benchmarks.kafka", "--only", *map(str, arguments)]
    return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()[-1])


def rows(bootstrap: str, client: str, full: bool) -> list[dict]:
    """One row a topic."""
    made = []
    for kind, sizes in SIZES.items():
        size, topic = sizes[full], f"bench-{kind}-{os.getpid()}-{client}"
        fill(bootstrap, f"{topic}-opening", kind, OPENING)
        messages = fill(bootstrap, topic, kind, size)
        turns = [
            [in_fresh_process(bootstrap, topic, kind, client, way, messages) for way in WAYS] for _ in range(TURNS)
        ]
        bare, ours = (size / min(column) / 1e6 for column in zip(*turns, strict=True))
        case = f"{kind}, {size:,} events, {client}"
        made.append(row("kafka", case, ours, "M events/CPU-s", bare, WAYS[0], TARGETS[client]))
    return made


@contextlib.contextmanager
def broker() -> Iterator[str]:
    """The address of a broker that is there (KAFKA_BOOTSTRAP_SERVERS) or started for this."""
    if address := os.environ.get("KAFKA_BOOTSTRAP_SERVERS"):
        yield address
        return
    from tests.support.kafka_broker import Broker

    with tempfile.TemporaryDirectory() as folder:
        started = Broker(Path(folder))
        started.start()
        try:
            yield started.bootstrap
        finally:
            started.kill()


def main(arguments: list[str] | None = None) -> int:
    from tests.benchmarks.__main__ import keep, machine, table

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--full", action="store_true")
    parser.add_argument("--client", default="kafka-python", choices=("kafka-python", "confluent"))
    parser.add_argument("--only", nargs=6, help=argparse.SUPPRESS)
    given = parser.parse_args(arguments)
    if given.only:
        print(in_this_process(*given.only))
        return 0
    where = machine()
    print("  ".join(f"{key} {value}" for key, value in where.items()))
    with broker() as bootstrap:
        made = rows(bootstrap, given.client, given.full)
    print(table(made))
    keep(made, given.full, where)
    return 0


if __name__ == "__main__":
    sys.exit(main())
