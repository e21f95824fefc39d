"""What a run does over a disk that may crash, and what is on the disk afterwards."""

import json
from pathlib import Path

from connectors import Position, Record
from connectors.files.dead_letters import DeadLetterFile
from stream_engine.formats.options import EventOptions
from stream_engine.input import decoding
from stream_engine.state.backup import MANIFEST, backup
from stream_engine.state.engine import Engine
from stream_engine.state.snapshot import encode
from stream_engine.state.store import Store
from tests.support.simulated_disk import SimDisk

EVENTS = [
    b'{"anchor":"a","near":"b","far":"c"}\n{"broken\n',
    b'{"anchor":"a","near":"c","far":"b"}\n{"type":"label","object":"a","label":"x"}\n',
    b'{"anchor":"a","near":"a","far":"b"}\n{"anchor":"b","near":"c","far":"d"}\n',
    b'{"type":"quadruplet","near":["a","b"],"far":["c","d"]}\n',
] * 3
EVERY, KEEP = 1, 2  # a snapshot after every record, two stay


def consume(disk, promises: list, events: int = len(EVENTS), directory: str = "/state") -> Engine:
    """What run.py does with a stream, over `disk`, from wherever the disk says, up to so many events."""
    store = Store(directory, disk)
    latest = store.latest().snapshot
    engine = Engine.restore(latest) if latest else Engine()
    sink = DeadLetterFile(f"{directory}/dead_letters", engine.sinks.get("file", 0), disk=disk)
    reader = decoding.RecordDecoder(EventOptions())
    start = engine.positions.get("m", Position(0)).offset
    for offset in range(start, events):
        record = Record(EVENTS[offset], "m", offset, offset + 1, unit="message")
        decoded, letters = reader.read(record)
        if decoded.rejected:
            sink.append(letters)
        engine.learn(decoded, {"m": Position(offset + 1)})
        if (offset + 1) % EVERY == 0:
            engine.sinks["file"] = sink.flush()
            published, _ = store.publish(engine.snapshot())
            promises.append(published.sequence)
            store.prune(KEEP)
    return engine


def dead(disk, directory: str = "/state") -> list[dict]:
    lines = []
    if disk.exists(f"{directory}/dead_letters"):
        for name in (name for name in disk.listdir(f"{directory}/dead_letters") if not name.startswith(".")):
            lines += disk.read(f"{directory}/dead_letters/{name}").splitlines()
    return [json.loads(line) for line in lines if line.strip()]


def final(engine: Engine) -> bytes:
    return b"".join(encode(engine.snapshot())[0])


def save(disk):
    return backup(Store("/state", disk), Path("/copy"))


def copied_back(disk, folder: str) -> SimDisk:
    """As `cp -r` restores it."""
    new = SimDisk()
    for name in Store(folder, disk).noted(MANIFEST)["files"]:
        for at in range(1, name.count("/") + 1):
            parent = "/state/" + "/".join(name.split("/")[:at])
            if not new.exists(parent):
                new.mkdir(parent)
        new.write_new(f"/state/{name}", [disk.read(f"{folder}/{name}")])
    return new
