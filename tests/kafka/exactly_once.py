"""Exactly once, shown: transactions (some aborted) and malformed events into a topic, while the engine that reads it is
killed with SIGKILL at random moments and the broker stopped, or killed, and started; at the end everything equals what
was sent.

    python -m tests.kafka.exactly_once --events 3000000 --partitions 6 --kills 60 --restarts 4
"""

import argparse
import json
import random
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path

import numpy as np
from confluent_kafka import Producer

from tests.support.kafka_broker import Broker
from tests.support.planted_similarities import adds3
from tests.support.process import engine, records, signalled, started, until

OBJECTS = 60
MALFORMED = 1_000  # one event in so many


class Sent:
    """What was committed: triplets by name, and how many malformed events there are."""

    def __init__(self):
        self.triplets: Counter[tuple[int, int, int]] = Counter()
        self.malformed = self.events = self.aborted = 0


def send(bootstrap: str, topic: str, events: int, partitions: int, seed: int, sent: Sent, pause) -> None:
    """Write transactions of 1 to 4,000 events; every fifth is aborted. `pause(fraction)` is called between them."""
    rng = random.Random(seed)
    producer = Producer(
        {
            "bootstrap.servers": bootstrap,
            "transactional.id": f"t-{topic}",
            "linger.ms": 5,
            "transaction.timeout.ms": 120_000,
            "queue.buffering.max.messages": 200_000,
        }
    )
    producer.init_transactions(60)
    while sent.events < events:
        size = min(rng.randint(1, 4_000), events - sent.events)
        aborted = rng.random() < 0.2
        producer.begin_transaction()
        triplets, malformed = Counter(), 0
        for _ in range(size):
            a, b, c = rng.sample(range(OBJECTS), 3)
            if rng.random() < 1 / MALFORMED:
                value, malformed = b'{"anchor": "o1", "near":', malformed + 1
            else:
                value = b'{"anchor":"o%d","near":"o%d","far":"o%d"}' % (a, b, c)
                triplets[a, b, c] += 1
            producer.produce(topic, value, partition=rng.randrange(partitions))
        if aborted:
            producer.flush(60)
            producer.abort_transaction(60)
            sent.aborted += size
        else:
            producer.commit_transaction(120)
            sent.triplets += triplets
            sent.malformed += malformed
            sent.events += size
        pause(sent.events / events)


def trial(
    folder: Path,
    broker: Broker,
    topic: str,
    events: int,
    partitions: int,
    kills: int,
    restarts: int,
    seed: int = 0,
    say=lambda text: None,
    lives: tuple[float, float] = (1.5, 4.0),
) -> dict:
    """Run it; raises AssertionError on any difference. Returns the figures. An engine is killed after `lives` seconds,
    from one to the other."""
    rng, sent, began = random.Random(seed), Sent(), time.monotonic()
    state = folder / "state"
    command = (
        "run",
        f"kafka://{broker.bootstrap}/{topic}",
        "--state",
        state,
        "--start",
        "earliest",
        "--snapshot-every",
        str(max(500, events // 60)),
        "--snapshot-interval",
        "2",
        "--no-refits",
        "--log-format",
        "json",
    )
    pauses = sorted(rng.random() * 0.9 for _ in range(restarts))

    def pause(done: float) -> None:
        if pauses and done > pauses[0]:
            pauses.pop(0)
            end, how = (broker.kill, "killed") if len(pauses) % 2 else (broker.stop, "stopped")
            say(f"broker {how} and started at {done:.0%} of the events")
            end()
            time.sleep(lives[0])
            broker.restart()

    errors: list[BaseException] = []

    def produce():
        try:
            send(broker.bootstrap, topic, events, partitions, seed, sent, pause)
        except BaseException as error:  # handed to the main thread below
            errors.append(error)

    producing = threading.Thread(target=produce)
    producing.start()
    killed = 0
    said: list[str] = []

    def begin():
        running = started(*command)
        drained = threading.Thread(target=lambda: said.append(running.stderr.read()))
        drained.start()
        return running, drained

    running, drained = begin()
    while producing.is_alive() or killed < kills:
        time.sleep(rng.uniform(*lives))
        if killed < kills:
            running.kill()
            drained.join()
            running.communicate()
            killed += 1
            running, drained = begin()
    producing.join()
    if errors:
        raise errors[0]
    say(f"{sent.events:,} committed, {sent.aborted:,} aborted, {killed} kills; waiting for the engine")

    def seen() -> bool:
        assert running.poll() is None, f"the engine ended by itself: {said[-1:]}"
        time.sleep(0.1)
        return records(state) == sent.events

    try:
        until(seen, what="everything that was sent", seconds=180)
    finally:
        signalled(running)
        status = running.wait(60)
        drained.join()
        running.stderr.close()
        running.stdout.close()
    assert status == 0, said[-1]
    check(folder, state, sent)
    return {
        "events": sent.events,
        "aborted": sent.aborted,
        "malformed": sent.malformed,
        "kills": killed,
        "restarts": restarts,
        "seconds": round(time.monotonic() - began, 1),
    }


def check(folder: Path, state: Path, sent: Sent) -> None:
    """Accumulators, counts and dead letters equal those computed from the sent events, to the last unit."""
    engine("export", "--state", state, "--out", folder / "out", "objects", "summary", "triplet_counts", "adds3")
    found = json.loads((folder / "out" / "summary.json").read_text())
    names = [int(name[1:]) for name in json.loads((folder / "out" / "objects.json").read_text())]
    counts = np.load(folder / "out" / "triplet_counts.npz")
    mine: Counter[tuple[int, int, int]] = Counter()
    for anchor, lo, hi, n_lo, n_hi in zip(*(counts[k].tolist() for k in ("anchor", "lo", "hi", "n_lo", "n_hi"))):
        mine[names[anchor], names[lo], names[hi]] += n_lo
        mine[names[anchor], names[hi], names[lo]] += n_hi
    assert +mine == sent.triplets, "triplet counts differ"
    w = adds3(np.array([*sent.triplets.elements()]), OBJECTS)
    np.testing.assert_array_equal(np.load(folder / "out" / "adds3.npz")["W"], w[np.ix_(names, names)])
    assert found["rejected"] == ({"not_parseable": sent.malformed} if sent.malformed else {}), found["rejected"]
    assert sum(found["guard"].values()) == found["comparisons"] == sent.events - sent.malformed
    letters = [
        json.loads(line)
        for path in sorted((state / "dead_letters").glob("*.jsonl"))
        for line in path.read_text().splitlines()
    ]
    assert len(letters) == len({(each["partition"], each["offset"]) for each in letters}) == sent.malformed


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    for name, default in (("events", 2_000_000), ("partitions", 6), ("kills", 30), ("restarts", 2), ("seed", 0)):
        parser.add_argument(f"--{name}", type=int, default=default)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        broker = Broker(Path(folder) / "broker")
        broker.start()
        try:
            from confluent_kafka.admin import AdminClient, NewTopic

            admin = AdminClient({"bootstrap.servers": broker.bootstrap})
            admin.create_topics([NewTopic("comparisons", given.partitions, 1)])["comparisons"].result()
            print(
                trial(
                    Path(folder),
                    broker,
                    "comparisons",
                    given.events,
                    given.partitions,
                    given.kills,
                    given.restarts,
                    given.seed,
                    print,
                )
            )
        finally:
            broker.kill()


if __name__ == "__main__":
    main()
