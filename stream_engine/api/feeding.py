"""Columns to an engine, in batches, and what was refused on the way.

`Learning` is an engine that learns at once and judges later: the guard of the partial order waits until somebody looks.
Counting a million answers of 2,000 objects takes half a second, offering them to the guard one to two, and most
questions put to a study never ask for the order. Invariant: `snapshot` is that of an engine that learned the same
blocks in the same order.
"""

import warnings
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import msgspec
import numpy as np
import pyarrow as pa

from connectors import Position
from stream_engine.api.frames import BadFrame, FrameColumns, missing
from stream_engine.data.comparisons import Batch, DecodedEvents, Rejected
from stream_engine.data.json_floats import writable
from stream_engine.data.suspicious_names import suspicious_names
from stream_engine.evaluation.connection import smallest_reached
from stream_engine.formats import decoder
from stream_engine.formats.cells import paths_of
from stream_engine.formats.csv_events import nearest_name, needed_columns
from stream_engine.formats.event_fields import NULLABLE_FIELDS, PAIR_COLUMNS, EventFields, fields_of
from stream_engine.formats.options import EventOptions
from stream_engine.formats.repeats import Repeats
from stream_engine.state.engine import Engine
from stream_engine.state.snapshot import Snapshot

WAITING = 1 << 23  # comparisons that wait at most, 16 bytes each


class Learning:
    """Everything that was read so far."""

    def __init__(self, engine: Engine):
        self._engine = engine
        self._waiting: list[Batch] = []
        self._rows = 0
        self._joined = np.empty(0, np.int64)  # of each object, the smallest one that comparisons join it with

    @property
    def counters(self) -> dict[str, Any]:
        """Those of the engine; the guard's are not done yet."""
        return self._engine.counters

    @property
    def labels(self) -> dict[str, str]:
        """Classes of objects by name."""
        return self._engine.labels

    @property
    def names(self) -> Sequence[str]:
        """Objects by id."""
        return self._engine.objects.names

    @property
    def n_objects(self) -> int:
        """How many objects were named."""
        return len(self._engine.objects)

    def learn(self, decoded: DecodedEvents, positions: Mapping[str, Position] = {}, records: int = 1) -> None:
        """Take in a decoded block and the positions after it. O(comparisons) amortised."""
        for _ in self._engine.learn_in_pieces(decoded, positions, records, self._wait):
            pass

    def sets(self) -> list[int]:
        """The sizes of the sets of objects that no comparison joins, the largest first."""
        return sorted(np.bincount(self._joined)[np.unique(self._joined)].tolist(), reverse=True)

    def _join(self, batch: Batch) -> None:
        n, old = batch.n_objects, len(self._joined)
        labels = np.concatenate([self._joined, np.arange(old, n)])
        ends = [(batch.triplets[:, 0], batch.triplets[:, k]) for k in (1, 2)]
        ends += [(batch.quadruplets[:, 0], batch.quadruplets[:, k]) for k in (1, 2, 3)]
        row = np.concatenate([np.arange(n), *(each for each, _ in ends)])
        column = np.concatenate([labels, *(each for _, each in ends)])
        self._joined = smallest_reached(row, column, n)

    def _wait(self, batch: Batch) -> None:
        self._join(batch)
        self._waiting.append(batch._replace(provenance=None, kinds=None, name_hashes=None))
        self._rows += len(batch.triplets) + len(batch.quadruplets)
        if self._rows > WAITING:
            self._judge()

    def _judge(self) -> None:
        for batch in self._waiting:
            self._engine.judge(batch)
        self._waiting, self._rows = [], 0

    def snapshot(self) -> Snapshot:
        """The state now, every comparison judged."""
        self._judge()
        return self._engine.snapshot()


if TYPE_CHECKING:
    from stream_engine.formats.json_events import Decoder as JsonDecoder

BATCH = 1 << 17  # rows that are decoded at once
SHOWN_REJECTED = 10_000  # refusals that are kept, each with its place
MAX_REFUSED = 0.5  # share of the events that may be refused, as in a run


class RejectedRow(NamedTuple):
    """An event that was excluded: where it stood, the code of the reason, and the reason in words."""

    where: str
    reason: str
    message: str


def learn_table(
    engine: Learning, columns: FrameColumns, options: EventOptions, repeats: Repeats | None = None
) -> list[RejectedRow]:
    """Decode a table and learn it; the first `SHOWN_REJECTED` rows that were rejected. Raises `BadFrame` if a column is
    missing. O(rows)."""
    event_fields = _fields(columns, options)
    required = dict.fromkeys(needed_columns(event_fields, options, columns.names))
    inner = paths_of(required, columns.names)
    if lacking := [name for name in required if name not in columns.names and name not in inner]:
        similar = [name for name in (nearest_name(each, columns.names) for each in lacking) if name]
        advice = f"did you mean {', '.join(map(repr, similar))}? Say" if similar else "say"
        field = next((field for field, names in options.columns.items() if lacking[0] in names), lacking[0])
        raise BadFrame(
            f"no column {', '.join(lacking)}; the table has {', '.join(columns.names)[:200] or 'none'}; {advice} with "
            f"columns={{'{field}': ...}} its name, or with type=... the type of the rows"
        )
    read = _known(event_fields, options)
    read |= {column for column, _ in paths_of(read, columns.names).values()}
    table = pa.table(
        {name: columns.take(name) if name in read else pa.nulls(columns.rows) for name in columns.names}
    )  # what means nothing is named and not looked at
    decode = decoder("arrow", options)
    refused: list[RejectedRow] = []
    first = 0
    for batch in table.to_batches(max_chunksize=BATCH):
        decoded = decode(batch)
        decoded = decoded if repeats is None else repeats.without(decoded)
        engine.learn(decoded, records=batch.num_rows)
        refused += [_told(each, first) for each in decoded.rejected[: SHOWN_REJECTED - len(refused)]]
        first += batch.num_rows
    return refused


def learn_dicts(
    engine: Learning, rows: Sequence[Mapping[str, Any]], options: EventOptions, repeats: Repeats | None = None
) -> list[RejectedRow]:
    """The same with dicts, each one event as in JSON: events of several types may stand in one list. O(rows)."""
    decode, refused = cast("JsonDecoder", decoder("json", options)), list[RejectedRow]()
    for first in range(0, len(rows), BATCH):
        lines = [_line(first + number, row) for number, row in enumerate(rows[first : first + BATCH])]
        decoded = decode.lines(b"\n".join(lines))
        decoded = decoded if repeats is None else repeats.without(decoded)
        engine.learn(decoded, records=len(lines))
        refused += [_told(each, first) for each in decoded.rejected[: SHOWN_REJECTED - len(refused)]]
    return refused


def _line(number: int, row: Mapping[str, Any]) -> bytes:
    """An event as a line of JSON. A cell that is missing is an absent field, as in a table; a label's is a value."""
    try:
        cells = {str(name): cell for name, cell in row.items() if name in NULLABLE_FIELDS or not missing(cell)}
        return _ENCODE(writable(cells))
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        raise BadFrame(f"row {number}: got {str(row)[:60]}, expected JSON values: {error}") from None


def _of_numpy(value: Any) -> Any:
    """Values that JSON has no word for, as those that it has."""
    if isinstance(value, (np.generic, np.ndarray)):
        return writable(value.tolist())
    if missing(value):
        return None
    if hasattr(value, "isoformat"):
        return value.isoformat()
    raise TypeError(f"a {type(value).__name__}")


_ENCODE = msgspec.json.Encoder(enc_hook=_of_numpy).encode


def check_refused(engine: Learning, refused: Sequence[RejectedRow], on_refused: str) -> None:
    """Say what was excluded: a warning, or an error where it is more than half of all, or any was to be one. Raises
    `BadFrame`."""
    if not refused:  # labels, after answers of which some were rejected
        return
    left_out = sum(engine.counters["rejected"].values())
    total, first = engine.counters["events"] + left_out, refused[0]
    fact = f"{left_out:,} of {total:,} events were rejected; the first, {first.where}: {first.message}"
    if on_refused == "raise" or left_out > MAX_REFUSED * total:
        raise BadFrame(fact)
    warnings.warn(f"{fact}; Study.refused() lists them", stacklevel=3)


def check_names(engine: Learning) -> None:
    """Warn of objects that are another one but for capitals, spaces or their Unicode form. O(n)."""
    if groups := suspicious_names(engine.names):
        examples = ", ".join(" and ".join(map(repr, group)) for group in groups[:3])
        warnings.warn(
            f"{len(groups):,} of {len(set(engine.names)):,} objects differ from others only in capitals, spaces or "
            f"Unicode form, such as {examples}; give them one name if they are the same object",
            stacklevel=3,
        )


def check_sets(engine: Learning) -> None:
    """Warn of sets of objects that no comparison joins: what lies between them is arbitrary."""
    if len(sizes := engine.sets()) > 1:
        lengths = ", ".join(f"{size:,}" for size in sizes[:5]) + (", ..." if len(sizes) > 5 else "")
        warnings.warn(
            f"the objects fall into {len(sizes):,} sets that no comparison joins ({lengths} objects): distances "
            "between sets mean nothing; next: ask questions with objects of several sets",
            stacklevel=3,
        )


def _fields(columns: FrameColumns, options: EventOptions) -> EventFields:
    """Quadruplets stand in near_i ... far_j where there are such columns, else in two lists."""
    return fields_of(options, pairs=any(name in columns.names for names in PAIR_COLUMNS.values() for name in names))


def _known(event_fields: EventFields, options: EventOptions) -> frozenset[str]:
    """Input fields that mean something, however quadruplets stand."""
    return event_fields.inputs | fields_of(options).inputs | fields_of(options, pairs=True).inputs


def _told(rejected: Rejected, first: int) -> RejectedRow:
    return RejectedRow(
        f"row {first + rejected.index}", rejected.reason, f"{rejected.message}; got {_got(rejected.value)}"
    )


def _got(value: bytes) -> str:
    """What a row holds: cells that are empty, or in columns that mean nothing and were not looked at, are excluded."""
    try:
        row = msgspec.json.decode(value)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        row = None
    if isinstance(row, dict):
        value = msgspec.json.encode({name: cell for name, cell in row.items() if cell is not None})
    return value[:200].decode(errors="replace")
