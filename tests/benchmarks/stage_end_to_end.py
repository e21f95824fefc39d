"""From bytes to complete state: ids, AddS-3, AddS-4, triplet counts, guard; and what each stage's share is.

A food-like stream: 100 objects in five dimensions, 15 % of the answers flipped. Rivals: decoding alone, with the same
library, into ids (msgspec and a dict; pyarrow and a dictionary).
"""

import io
import json
import time

import numpy as np

from connectors import Record
from stream_engine.formats.options import EventOptions
from stream_engine.service import ingest
from stream_engine.state.engine import Engine
from tests.support.generators import planted_triplets

OBJECTS, NOISE = 100, 0.15


def stream(size: int) -> tuple[np.ndarray, list[str]]:
    """(size, 3) triplets and the names of their objects."""
    rng = np.random.default_rng(0)
    return planted_triplets(rng, rng.normal(size=(OBJECTS, 5)), size, NOISE), [f"dish-{i:03d}" for i in range(OBJECTS)]


def as_jsonl(triplets, names) -> list[bytes]:
    lines = [f'{{"anchor":"{names[a]}","near":"{names[b]}","far":"{names[c]}"}}\n' for a, b, c in triplets.tolist()]
    return ["".join(lines[i : i + 100_000]).encode() for i in range(0, len(lines), 100_000)]


def as_csv(triplets, names) -> list[bytes]:
    lines = [f"{names[a]},{names[b]},{names[c]}\n" for a, b, c in triplets.tolist()]
    return ["".join(lines[i : i + 250_000]).encode() for i in range(0, len(lines), 250_000)]


def as_arrow(triplets, names):
    import pyarrow as pa

    columns = [pa.array(names).take(pa.array(column)) for column in triplets.T]
    return pa.table(columns, names=["anchor", "near", "far"]).to_batches(max_chunksize=1_000_000)


def measured(blocks, format: str, header: bytes = b"") -> tuple[dict[str, float], Engine]:
    """CPU seconds by stage over all blocks, and the engine after them."""
    engine, reader = Engine(), ingest.Ingest(EventOptions())
    spent = dict.fromkeys(("decode", "ids", *engine.accumulators, "guard", "snapshot"), 0.0)

    def timed(stage, call, *arguments):
        began = time.process_time()
        result = call(*arguments)
        spent[stage] += time.process_time() - began
        return result

    for block in blocks:
        decoded, _ = timed("decode", reader.read, Record(block, "x", 0, 1, format=format, header=header))
        batch = timed("ids", engine.batch, decoded)
        for name, each in engine.accumulators.items():
            timed(name, each.update, batch)
        timed("guard", engine.guard.offer, batch)
    timed("snapshot", engine.snapshot)
    return spent, engine


def msgspec_floor(blocks) -> float:
    """CPU seconds of bare msgspec decoding with a dict of ids, nothing checked, nothing counted."""
    import msgspec

    class Event(msgspec.Struct):
        anchor: str
        near: str
        far: str

    decoder, ids = msgspec.json.Decoder(Event), {}
    began = time.process_time()
    for block in blocks:
        events = decoder.decode_lines(block)
        np.array(
            [
                (ids.setdefault(e.anchor, len(ids)), ids.setdefault(e.near, len(ids)), ids.setdefault(e.far, len(ids)))
                for e in events
            ],
            np.int32,
        )
    return time.process_time() - began


def csv_floor(blocks, header: bytes) -> float:
    """CPU seconds of bare pyarrow reading into dictionary-encoded columns."""
    import pyarrow as pa
    from pyarrow import csv

    options = csv.ConvertOptions(
        column_types={name: pa.dictionary(pa.int32(), pa.string()) for name in ("anchor", "near", "far")}
    )
    began = time.process_time()
    for block in blocks:
        csv.read_csv(io.BytesIO(header + block), csv.ReadOptions(use_threads=False), convert_options=options)
    return time.process_time() - began


def rows(quick: bool) -> list[dict]:
    """End-to-end rates and shares."""
    size = 1_000_000 if quick else 10_000_000
    triplets, names = stream(size)
    made, header = [], b"anchor,near,far\n"
    jsonl = as_jsonl(triplets[: size // 4], names)
    csv = as_csv(triplets[: size // 2], names)
    arrow = as_arrow(triplets, names)
    measured(jsonl[:1], "json"), measured(csv[:1], "csv", header), measured(arrow[:1], "arrow")  # compile, warm up
    for name, blocks, events, floor in (
        ("Arrow", arrow, size, None),
        ("CSV", csv, size // 2, ("pyarrow read", csv_floor(csv, header))),
        ("JSONL", jsonl, size // 4, ("msgspec + dict ids", msgspec_floor(jsonl))),
    ):
        spent, engine = measured(
            blocks, {"Arrow": "arrow", "CSV": "csv", "JSONL": "json"}[name], header if name == "CSV" else b""
        )
        assert engine.counters["rejected"] == {}
        total = sum(spent.values())
        shares = ", ".join(f"{stage} {seconds / total:.0%}" for stage, seconds in spent.items())
        made.append(
            {
                "stage": "end to end",
                "case": f"{name}, {events:,}",
                "ours": events / total / 1e6,
                "unit": "M comparisons/s",
                "target": ">= 1.5" if name == "Arrow" else "",
                "notes": shares,
            }
        )
        if floor:
            reading = spent["decode"] + spent["ids"]
            made.append(
                {
                    "stage": "decode",
                    "case": f"{name}, {events:,}",
                    "ours": events / reading / 1e6,
                    "rival": events / floor[1] / 1e6,
                    "rival_name": floor[0],
                    "unit": "M events/s",
                    "ratio": floor[1] / reading,
                    "target": ">= 0.7" if name == "JSONL" else "",
                }
            )
    made.append(_whole_jsonl(jsonl, size // 4))
    return made


def _whole_jsonl(blocks, events: int) -> dict:
    """The shortest of three turns each: both are memory-bound, and neighbours on the machine take turns too."""
    turns = [(sum(measured(blocks, "json")[0].values()), msgspec_floor(blocks)) for _ in range(3)]
    ours, floor = (min(column) for column in zip(*turns))
    return {
        "stage": "end to end",
        "case": f"JSONL, {events:,}, against bare decoding",
        "ours": events / ours / 1e6,
        "rival": events / floor / 1e6,
        "rival_name": "msgspec + dict ids",
        "unit": "M events/s",
        "ratio": floor / ours,
        "target": ">= 0.7",
    }


if __name__ == "__main__":
    print(json.dumps(rows(True), indent=1))
