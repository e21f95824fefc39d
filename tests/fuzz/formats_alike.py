"""The same typed events in every format: one verdict, one reason, one state.

An input is JSON lines. JSON lines, arrays, messages, Arrow batches, streams and Parquet files hold the same typed
values and must say the same of each event; CSV holds their text, of which the contract says what it means. Arrow cannot
tell an absent field from a null (that is an absent field), nor hold columns of several types: events of one shape of
types go into one table.
"""

import io
import json
import math
from contextlib import suppress
from random import Random
from typing import Any

import fastavro
import msgspec
import pyarrow as pa
from pyarrow import parquet

from connectors import Position
from connectors.avro import Schema
from stream_engine.data import json_floats
from stream_engine.data.comparisons import DecodedEvents, InvalidEvent
from stream_engine.formats.arrow_events import Decoder as ArrowDecoder
from stream_engine.formats.csv_events import Decoder as CsvDecoder
from stream_engine.formats.json_events import Decoder as JsonDecoder
from stream_engine.formats.options import EventOptions
from stream_engine.state.engine import Engine
from tests.fuzz.arrow_messages import stream_of
from tests.fuzz.events import PAIRS, cells_of, quoted, some_event
from tests.fuzz.mutations import kept_case
from tests.fuzz.reading import chance
from tests.support.event_reference import reference_expand
from tests.support.event_worlds import COLUMNS, LISTS, essence

TRUSTED = True
PARTS = [part for parts in PAIRS.values() for part in parts]
OPTIONS = EventOptions(provenance=True)


def make(rng: Random) -> bytes:
    case = kept_case(rng, "formats")
    if case is not None:
        return case
    return b"\n".join(_line(_with_odd_float(rng, some_event(rng, 0.35))) for _ in range(rng.randint(1, 6)))


def _with_odd_float(rng: Random, event: dict[str, Any]) -> dict[str, Any]:
    """The event, sometimes with a float that is no finite number."""
    if rng.random() < 0.2:
        field = rng.choice(["weight", "time", "worker", "seconds", rng.choice(list(event))])
        event[field] = rng.choice([math.nan, math.inf, -math.inf])
    return event


def _line(event: Any) -> bytes:
    return msgspec.json.encode(json_floats.writable(event))


def check(data: bytes) -> str:
    events = [json.loads(line, parse_float=json_floats.number) for line in data.split(b"\n") if line.strip()]
    # only tables have columns for the members of pairs, and where they do they go by them
    used = [{key: value for key, value in event.items() if key not in PARTS} for event in events]
    events = [{key: value for key, value in event.items() if value is not None or key == "label"} for event in used]
    lines = b"\n".join(map(_line, events))
    wanted = JsonDecoder(OPTIONS)(lines)
    alike = {
        "array": JsonDecoder(OPTIONS)(_line(events)),
        "messages": _many(lines.split(b"\n")),
        "slow": JsonDecoder(OPTIONS, fast=False)(lines),
    }
    for name, done in alike.items():
        assert _told(done) == _told(wanted), (name, done, wanted)
    groups = _of_one_shape(events)
    for some in chance(data).sample(groups, min(2, len(groups))):
        _check_tables(some)
    _check_csv(events)
    return "read" if wanted.events else "refused"


def _many(values: list[bytes]) -> DecodedEvents:
    done, refused_in = JsonDecoder(OPTIONS).many(values)
    return done._replace(rejected=[r._replace(index=n) for r, n in zip(done.rejected, refused_in, strict=True)])


def _told(done: DecodedEvents) -> Any:
    """All that was read, and index and reason of what was refused."""
    return essence(done)[:6], [(r.index, r.reason) for r in done.rejected], essence(done)[7:]


def _shape(value: Any) -> Any:
    if isinstance(value, list):
        return "list", *dict.fromkeys(map(_shape, value))
    return type(value).__name__


def _of_one_shape(events: list[dict]) -> list[list[dict]]:
    """Events whose fields have the same types; lists of several types and objects stand in no column."""
    groups: dict[Any, list[dict]] = {}
    for event in events:
        shapes = {key: _shape(value) for key, value in event.items() if value is not None}
        simple = all(
            (isinstance(s, str) and s != "dict") or (len(s) <= 2 and "list" not in s[1:]) for s in shapes.values()
        )
        ints = [v for value in event.values() for v in (value if isinstance(value, list) else [value])]
        if simple and all(not isinstance(v, int) or abs(v) < 2**63 for v in ints):
            groups.setdefault(tuple(sorted(shapes.items(), key=repr)), []).append(event)
    return list(groups.values())


def _check_tables(events: list[dict]) -> None:
    wanted = JsonDecoder(OPTIONS)(b"\n".join(map(_line, events)))
    table = pa.table({k: pa.array([e.get(k) for e in events]) for k in dict.fromkeys(k for e in events for k in e)})
    if not table.num_columns:
        return
    stream = stream_of(table, 3)
    batch = table.combine_chunks().to_batches()[0]
    coded = pa.record_batch(
        {
            name: column.dictionary_encode() if pa.types.is_string(column.type) else column
            for name, column in zip(batch.schema.names, batch.columns, strict=True)
        }
    )
    found = {
        "batch": ArrowDecoder(OPTIONS)(batch),
        "slow": ArrowDecoder(OPTIONS, fast=False)(batch),
        "coded": ArrowDecoder(OPTIONS)(coded),
        "stream": JsonDecoder(OPTIONS)(stream),
    }
    if len(events) % 3 == 0:
        out = io.BytesIO()
        parquet.write_table(table, out)
        (back,) = parquet.read_table(out).combine_chunks().to_batches()
        found["parquet"] = ArrowDecoder(OPTIONS)(back)
    if (avro := _avro_of(events)) is not None:
        found["avro"] = JsonDecoder(OPTIONS)(avro)
    for name, done in found.items():
        assert _told(done) == _told(wanted), (name, _told(done), _told(wanted), [r.message for r in done.rejected])
    if len(events) > 1:
        digests = {name: _digest(done) for name, done in [("json", wanted), *found.items()]}
        assert len(set(digests.values())) == 1, digests


_AVRO = {"str": "string", "int": "long", "float": "double", "bool": "boolean"}


def _avro_of(events: list[dict]) -> bytes | None:
    """The events as messages of Avro bring them; None for fields whose names Avro does not allow, and mixed lists."""
    fields = []
    for name in dict.fromkeys(name for event in events for name in event):
        shape = next((_shape(event[name]) for event in events if event.get(name) is not None), "str")
        kind = (
            {"type": "array", "items": _AVRO.get(shape[1:][0] if shape[1:] else "str")}
            if isinstance(shape, tuple)
            else _AVRO.get(shape)
        )
        if not name.isidentifier() or kind is None or (isinstance(kind, dict) and kind["items"] is None):
            return None
        fields.append({"name": name, "type": ["null", kind]})
    schema = {"type": "record", "name": "Event", "fields": fields}
    parsed, reader, lines = fastavro.parse_schema(schema), Schema(json.dumps(schema)), []
    for event in events:
        out = io.BytesIO()
        fastavro.schemaless_writer(out, parsed, event)
        lines.append(reader.as_json(out.getvalue()))
    return b"\n".join(lines)


def _digest(done: DecodedEvents) -> Any:
    """The state of an engine that learned the block."""
    from stream_engine.state.snapshot import encode

    engine = Engine()
    engine.learn(done, {"p": Position(1, 0)}, 1)
    return encode(engine.snapshot())[1].digest


def _check_csv(events: list[dict]) -> None:
    """The verdicts of CSV are those of the plain rules on what its cells say."""
    rows = [cells_of(event) for event in events]
    rows = [row for row in rows if row is not None]
    expected, reasons = [], []
    for index, row in enumerate(rows):
        try:
            expected.append((index, len(reference_expand(_of_cells(row)))))
        except InvalidEvent as fault:
            reasons.append((index, fault.reason))
    text = "".join(",".join(quoted(row.get(name, "")) for name in COLUMNS) + "\n" for row in rows)
    header = ",".join(COLUMNS).encode()
    for fast in (True, False):
        done = CsvDecoder(OPTIONS, fast)(text.encode(), header) if text else CsvDecoder(OPTIONS)(b"\n", header)
        assert [(r.index, r.reason) for r in done.rejected] == reasons, (done.rejected, reasons, rows)
        assert sum(done.events.values()) == len(expected)
        assert len(done.triplets) + len(done.quadruplets) + len(done.labels) == sum(n for _, n in expected)


def _of_cells(cells: dict[str, str]) -> dict[str, Any]:
    """The event that the cells of one row mean, by the contract: spaces around them, and around names in lists, are no
    part of them, and "16.0" of a column of floats is 16."""
    cells = {name: "|".join(_name(part) for part in cell.split("|")) for name, cell in cells.items()}
    cells = {name: _name(cell) for name, cell in cells.items()}
    kind = cells.get("type") or "triplet"
    event: dict[str, Any] = {name: cells.get(name, "") for name in COLUMNS if name not in LISTS}
    event |= {name: cells[name].split("|") if cells.get(name) else [] for name in LISTS}
    event["type"], event["label"] = kind, cells.get("label") or None
    if kind == "quadruplet":
        event |= {name: [cells.get(part, "") for part in parts] for name, parts in PAIRS.items()}
    for name in ("weight", "time"):
        cell = cells.get(name, "")
        event[name] = None if cell == "" else cell
        with suppress(ValueError):
            event[name] = float(cell) if cell and cell.strip("0123456789+-.eE") == "" else event[name]
        if name == "time" and isinstance(event[name], str) and event[name] in GOOD_TIMES:
            event[name] = 0.0
    return event


def _name(cell: str) -> str:
    cell = cell.strip(" \t")
    whole = cell.removesuffix(".0").removeprefix("-")
    plain = whole.isascii() and whole.isdecimal() and len(whole) <= 16 and (whole == "0" or whole[0] != "0")
    return cell.removesuffix(".0") if cell.endswith(".0") and plain and cell != "-0.0" else cell


GOOD_TIMES = (
    "2024-05-01T12:00:00",
    "2024-05-01T12:00:00Z",
    "2024-05-01T12:00:00.5+02:00",
    "2016-12-31T23:59:60Z",
    "1969-12-31T23:59:59Z",
)
