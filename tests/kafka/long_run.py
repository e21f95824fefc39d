"""Memory over a long run, shown: millions of events on a thousand objects through a real topic, and the curve of the
engine's resident memory beside the size of what it knows.

    python -m tests.kafka.long_run --events 50000000

Counts grow with the number of distinct comparisons (16 bytes a key), as they must: here comparisons repeat, so that the
state stops growing early and whatever grows on is a leak. Every hundredth message is one that cannot be read.
"""

import argparse
import io
import os
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from tests.support.generators import planted_triplets
from tests.support.kafka_broker import Broker
from tests.support.process import summary
from tests.support.running_engine import Engine

BATCH = 1_000
WARM = 0.4  # of the events: until then tables, pools and buffers may still grow
FLAT = 0.05  # how much the median of the last fifth may exceed the one after the warm-up, beyond the state's own growth


class Sample(NamedTuple):
    """What was seen at one moment."""

    seconds: float
    events: int
    resident: int  # bytes
    state: int  # bytes of the newest snapshot


def messages(events: int, objects: int, distinct: int, seed: int) -> Iterator[bytes]:
    """Arrow streams of `BATCH` comparisons drawn from `distinct` planted ones, one in ten said the other way round; and
    after every hundredth of them a message that cannot be read."""
    rng = np.random.default_rng(seed)
    known = planted_triplets(rng, rng.normal(size=(objects, 5)), distinct)
    names = pa.array([f"object-{i:04d}" for i in range(objects)])
    for number in range(events // BATCH):
        rows = known[rng.integers(distinct, size=BATCH)]
        wrong = rng.random(BATCH) < 0.1
        rows[wrong] = rows[wrong][:, [0, 2, 1]]
        sink = io.BytesIO()
        table = pa.table([names.take(pa.array(column)) for column in rows.T], names=["anchor", "near", "far"])
        with pa.ipc.new_stream(sink, table.schema) as writer:
            writer.write_table(table)
        yield sink.getvalue()
        if number % 100 == 99:
            yield b'{"anchor": "object-0001", "near":'


def fill(bootstrap: str, topic: str, *what: int) -> None:
    producer = Producer(
        {
            "bootstrap.servers": bootstrap,
            "linger.ms": 50,
            "compression.type": "zstd",
            "queue.buffering.max.kbytes": 65_536,
            "log_level": 2,
        }
    )
    for number, value in enumerate(messages(*what)):
        while True:
            try:
                producer.produce(topic, value, partition=number % 4)
                break
            except BufferError:
                producer.poll(0.1)
    assert producer.flush(120) == 0


def run(
    bootstrap: str,
    folder: Path,
    topic: str,
    events: int,
    objects: int,
    distinct: int,
    seed: int = 0,
    say=lambda line: None,
) -> list[Sample]:
    """Fill the topic while an engine reads it; its samples, about one a second. Checks that everything was counted."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_topics([NewTopic(topic, 4, 1)])[topic].result()
    filling = threading.Thread(target=fill, args=(bootstrap, topic, events, objects, distinct, seed), daemon=True)
    engine = Engine(folder, f"kafka://{bootstrap}/{topic}", "--snapshot-interval", "5", "--snapshot-every", "0")
    filling.start()
    samples, began, told = [], time.monotonic(), 0
    try:
        while not samples or samples[-1].events < events:
            assert engine.process.poll() is None, engine.lines()[-1]
            time.sleep(1)
            samples.append(
                Sample(
                    time.monotonic() - began,
                    int(engine.figure("comparisons_total")),
                    engine.resident(),
                    int(engine.figure("snapshot_bytes")),
                )
            )
            if samples[-1].events >= told + events // 20:
                told = samples[-1].events
                say(
                    f"{told:>12,} events  {samples[-1].seconds:6.0f} s  {samples[-1].resident / 2**20:7.1f} MiB "
                    f"resident  {samples[-1].state / 2**20:6.1f} MiB state  {engine.cpu():6.1f} CPU-s"
                )
        filling.join()
    finally:
        engine.stop()
    counted = summary(engine.state)
    assert counted["comparisons"] == events and counted["rejected"] == {"not_parseable": events // BATCH // 100}
    assert counted["objects"] == objects and counted["unique_triplets"] <= 2 * distinct  # each in two directions
    return samples


def slope(samples: list[Sample], column: str) -> float:
    """Bytes a million events by least squares, after the warm-up."""
    warm = [s for s in samples if s.events > WARM * samples[-1].events]
    return float(np.polyfit([s.events / 1e6 for s in warm], [getattr(s, column) for s in warm], 1)[0])


def growth(samples: list[Sample], column: str) -> float:
    """The median of the last fifth less the median of the fifth after the warm-up, in bytes."""
    total = samples[-1].events
    early = [getattr(s, column) for s in samples if WARM < s.events / total <= WARM + 0.2]
    late = [getattr(s, column) for s in samples if s.events > 0.8 * total]
    return float(np.median(late) - np.median(early))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, default in (("events", 50_000_000), ("objects", 1_000), ("distinct", 300_000), ("seed", 0)):
        parser.add_argument(f"--{name}", type=int, default=default)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        bootstrap, broker = os.environ.get("KAFKA_BOOTSTRAP_SERVERS"), None
        if not bootstrap:
            broker = Broker(Path(folder) / "broker")
            broker.start()
            bootstrap = broker.bootstrap
        try:
            samples = run(
                bootstrap,
                Path(folder),
                f"long-{os.getpid()}",
                given.events,
                given.objects,
                given.distinct,
                given.seed,
                lambda line: print(line, flush=True),
            )
        finally:
            if broker:
                broker.kill()
    more, state = growth(samples, "resident"), growth(samples, "state")
    print(
        f"after {WARM:.0%} of the events: resident {slope(samples, 'resident') / 1024:+.1f} KiB a million events"
        f" (median {more / 2**20:+.1f} MiB), state {slope(samples, 'state') / 1024:+.1f} KiB a million events"
        f" (median {state / 2**20:+.1f} MiB)"
    )
    if more - state > FLAT * samples[-1].resident:
        raise SystemExit("memory is not flat")


if __name__ == "__main__":
    main()
