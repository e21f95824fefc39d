"""Random events over few names, good and bad, and the same events written in every format."""

import csv
import io
import math
import random
from datetime import UTC, datetime

import numpy as np
import pyarrow as pa

from stream_engine.data.comparisons import EVENT_TYPES, InvalidEvent, Label
from stream_engine.formats import decoder
from stream_engine.formats.options import EventOptions
from tests.support.event_reference import FIELDS, LISTS, reference_expand

COLUMNS = [
    "type",
    "anchor",
    "near",
    "far",
    "near_i",
    "near_j",
    "far_i",
    "far_j",
    "objects",
    "odd",
    "central",
    "shown",
    "chosen",
    "ranked",
    "object",
    "label",
    "worker",
    "sampler",
    "seconds",
    "weight",
    "time",
]
HEADER = ",".join(COLUMNS).encode() + b"\n"


def some_event(rng, kind, faults):
    """A random event over few names; with `faults`, now and then one that no one can learn from."""
    names = ["a", "b", "c", "d", "e", "\u00e9", "5"]

    def draw(n):
        return [str(name) for name in rng.choice(names, n, replace=False)]

    event = {"type": kind} if kind != "triplet" or rng.random() < 0.5 else {}
    anchor, *rest = draw(int(rng.integers(4, 7)))
    said = {
        "anchor": anchor,
        "near": rest[0],
        "far": rest[1],
        "objects": rest[:3],
        "shown": rest,
        "ranked": rest,
        "odd": rest[int(rng.integers(3))],
        "central": rest[int(rng.integers(3))],
        "object": anchor,
        "chosen": [str(x) for x in rng.permutation(rest)[: rng.integers(1, len(rest))]],
        "label": None if rng.random() < 0.3 else rest[0],
    }
    if kind == "quadruplet":
        said |= {"near": draw(2), "far": draw(2)}
    event |= {field: said[field] for field in FIELDS[kind]}
    if rng.random() < 0.3:
        event["worker"] = str(rng.choice(["u", "v", "5"]))
    if rng.random() < 0.3:
        event["weight"] = float(rng.choice([0, 0.5, 1, 2, 1e9]))
    if rng.random() < 0.3:
        event["time"] = float(rng.integers(0, 10**9)) if rng.random() < 0.5 else "2024-05-01T12:00:00Z"
    if rng.random() < 0.3:
        event["sampler"] = str(rng.choice(["random", "gain", "5"]))
    if rng.random() < 0.3:
        event["seconds"] = float(rng.choice([0.0, 0.25, 1.5, 812.0, -1.0]))
    if faults and rng.random() < 0.5:
        spoil(rng, event, kind)
    return event


def spoil(rng, event, kind):
    field = str(rng.choice(FIELDS[kind]))
    names = isinstance(event[field], list)
    how = rng.integers(9)
    if how == 0:
        event["type"] = "duel"
    elif how == 1 and kind in ("pick", "ranking"):
        event[FIELDS[kind][-1]] = event[FIELDS[kind][-1]][:1] if kind == "ranking" else list(event["shown"])
    elif how == 2 and kind == "pick":
        event["chosen"] = []
    elif how == 3:
        event["weight"] = -1.0
    elif how == 4:
        event["time"] = "yesterday"
    elif how == 5:
        event[field] = (
            [*event[field][:1], "", *event[field][2:]]
            if names and len(event[field]) > 1
            else event[field]
            if names
            else "x" * 1025
        )
    elif how == 6:
        event[field] = [event[field][0], *event[field][:-1]] if names else "" if field != "label" else "x" * 1025
    elif names:
        event[field] = [*event[field][:-1], event.get("anchor", "zz")]
    elif field != "label":
        event[field] = str(rng.choice(["a", "b", "zz"]))


def some_events(seed, size=120, faults=True):
    rng = np.random.default_rng(seed)
    return [some_event(rng, str(rng.choice(EVENT_TYPES)), faults) for _ in range(size)]


def expected(events):
    """Names, comparisons, labels, accepted kinds and (index, reason) of the others, by the reference."""
    said, labels, kinds, refused = [], [], [], []
    for index, event in enumerate(events):
        try:
            one = reference_expand(event)
        except InvalidEvent as fault:
            refused.append((index, fault.reason))
            continue
        kinds.append(event.get("type", "triplet"))
        labels += [x for x in one if isinstance(x, Label)]
        said += [x for x in one if not isinstance(x, Label)]
    return said, labels, kinds, refused


def csv_of(events, more=()):
    """Header and lines, with `more` columns; an event whose label is null has an empty cell there."""
    out = io.StringIO()
    for event in events:
        cells = {k: "|".join(v) if isinstance(v, list) else "" if v is None else str(v) for k, v in event.items()}
        if isinstance(event.get("near"), list):
            for field in ("near", "far"):
                cells |= dict(zip((f"{field}_i", f"{field}_j"), event[field]))
                del cells[field]
        csv.DictWriter(out, [*COLUMNS, *more], restval="", lineterminator="\n").writerow(cells)
    return ",".join([*COLUMNS, *more]).encode() + b"\n", out.getvalue().encode()


def arrow_of(events, coded=False):
    """A record batch with the lists as lists and the pairs of quadruplets in four columns."""
    rows = []
    for event in events:
        row = dict(event)
        if isinstance(event.get("near"), list):
            for field in ("near", "far"):
                row |= dict(zip((f"{field}_i", f"{field}_j"), row.pop(field)))
        if isinstance(row.get("time"), float):  # a column has one type, and text of a number is no time
            row["time"] = datetime.fromtimestamp(row["time"], UTC).isoformat()
        rows.append(row)
    name = pa.dictionary(pa.int16(), pa.string()) if coded else pa.string()
    types = {c: pa.list_(name) if c in LISTS else name for c in COLUMNS} | {
        "weight": pa.float64(),
        "time": pa.string(),
        "seconds": pa.float64(),
    }
    return pa.record_batch({c: pa.array([row.get(c) for row in rows], types[c]) for c in COLUMNS})


def ipc_of(batch, pieces=2):
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        step = -(-batch.num_rows // pieces) or 1
        for at in range(0, batch.num_rows, step):
            writer.write_batch(batch.slice(at, step))
    return sink.getvalue().to_pybytes()


def essence(done):
    """A Decoded as plain values; NaN as None; a bad weight is shown as it was written, so without its words."""
    told = done.provenance and done.provenance._replace(time=[], seconds=[])
    provenance = told and [np.asarray(column).tolist() for column in told]
    times = done.provenance and [
        [None if math.isnan(t) else t for t in column.tolist()]
        for column in (done.provenance.time, done.provenance.seconds)
    ]
    kinds = done.kinds and [np.asarray(column).tolist() for column in done.kinds]
    refused = [(r.index, r.reason, r.message if r.reason != "bad_weight" else "") for r in done.rejected]
    return (
        done.names,
        done.triplets.tolist(),
        done.quadruplets.tolist(),
        done.quadruplet_at.tolist(),
        done.labels,
        done.events,
        refused,
        done.filtered,
        provenance,
        times,
        kinds,
    )


def except_places(done):
    return essence(done._replace(rejected=[one._replace(index=0) for one in done.rejected]))


CSV = (
    "type,anchor,near,far,objects,odd,near_i,near_j,far_i,far_j,shown,chosen,object,label\n"
    "triplet,05,5,c,,,,,,,,,,\n"
    "odd_one_out,,,,a|b|c,c,,,,,,,,\n"
    'quadruplet,,,,,,"a, 1",b,c,d,,,,\n'
    "pick,a,,,,,,,,,b|c|d,c,,\n"
    "label,,,,,,,,,,,,a,red\n"
    "label,,,,,,,,,,,,b,\n"
    "short,row\n"
)


def meaning(format: str, value, header: bytes = b"") -> list[tuple]:
    """What the engine would learn from a value, by name."""
    block = decoder(format, EventOptions())(value, header)
    rows = [*block.triplets.tolist(), *block.quadruplets.tolist()]
    return [*(tuple(block.names[i] for i in row) for row in rows), *map(tuple, block.labels)]


def stream(rng: random.Random, size: int, objects: int = 12) -> list:
    """Events of every type, some of them broken, some quadruplets."""
    names = [f"object-{i}" for i in range(objects)]
    events = []
    for i in range(size):
        a, b, c, d = rng.sample(names, 4)
        kind = rng.randrange(12)
        events.append(
            {"type": "quadruplet", "near": [a, b], "far": [c, d]}
            if kind == 0
            else {"type": "odd_one_out", "objects": [a, b, c], "odd": b}
            if kind == 1
            else {"type": "label", "object": a, "label": rng.choice(["x", "y"])}
            if kind == 2
            else f'{{"broken {i}'
            if kind == 3
            else {"anchor": a, "near": a, "far": b}
            if kind == 4
            else {"anchor": a, "near": b, "far": c, "worker": i % 5}
        )
    return events
