"""Tables and dicts into the engine of a study, in batches, with a list of rejected rows."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import msgspec
import numpy as np
import pyarrow as pa

from stream_engine.api.frames import BadFrame, FrameColumns, missing
from stream_engine.api.study_engine import StudyEngine
from stream_engine.data.comparisons import Rejected
from stream_engine.data.json_floats import writable
from stream_engine.formats import decoder
from stream_engine.formats.cells import paths_of
from stream_engine.formats.csv_events import nearest_name, needed_columns
from stream_engine.formats.event_fields import NULLABLE_FIELDS, PAIR_COLUMNS, EventFields, fields_of
from stream_engine.formats.options import EventOptions
from stream_engine.formats.repeats import Repeats

if TYPE_CHECKING:
    from stream_engine.formats.json_events import Decoder as JsonDecoder


class RejectedRow(NamedTuple):
    """A rejected event: where it is, the code of the reason, and the reason in words."""

    where: str
    reason: str
    message: str


BATCH_ROWS = 1 << 17  # rows that are decoded at a time
MAX_LISTED_REJECTIONS = 10_000  # rejected rows that are listed


def learn_table(
    engine: StudyEngine, columns: FrameColumns, options: EventOptions, repeats: Repeats | None = None
) -> list[RejectedRow]:
    """Decode a table and learn it; returns the first rejected rows. `repeats` removes responses that were sent twice.
    Raises `BadFrame` if a column is missing. O(rows)."""
    event_fields = _fields(columns, options)
    required = dict.fromkeys(needed_columns(event_fields, options, columns.names))
    # columns of nested values, such as response.chosen, are read from their outer column
    nested = paths_of(required, columns.names)
    if missing_columns := [name for name in required if name not in columns.names and name not in nested]:
        similar = [name for missing_name in missing_columns if (name := nearest_name(missing_name, columns.names))]
        advice = f"did you mean {', '.join(map(repr, similar))}? Say" if similar else "say"
        unknown = missing_columns[0]
        field = next((field for field, names in options.columns.items() if unknown in names), unknown)
        table_names = ", ".join(columns.names)[:200] or "none"
        raise BadFrame(
            f"no column {', '.join(missing_columns)}; the table has {table_names}; {advice} with "
            f"columns={{'{field}': ...}} its name, or with type=... the type of the rows"
        )
    read_columns = _known_columns(event_fields, options)
    read_columns |= {column for column, _ in paths_of(read_columns, columns.names).values()}
    # columns without a meaning are not converted, but keep their names, which the decoder knows as unused columns
    table = pa.table(
        {name: columns.take(name) if name in read_columns else pa.nulls(columns.rows) for name in columns.names}
    )
    decode = decoder("arrow", options)
    rejected_rows: list[RejectedRow] = []
    first = 0  # number of the first row of the batch
    for batch in table.to_batches(max_chunksize=BATCH_ROWS):
        decoded = decode(batch)
        decoded = decoded if repeats is None else repeats.without(decoded)
        engine.learn(decoded, records=batch.num_rows)
        n_more = MAX_LISTED_REJECTIONS - len(rejected_rows)
        rejected_rows += [_rejected_row(rejected, first) for rejected in decoded.rejected[:n_more]]
        first += batch.num_rows
    return rejected_rows


def learn_dicts(
    engine: StudyEngine, rows: Sequence[Mapping[str, Any]], options: EventOptions, repeats: Repeats | None = None
) -> list[RejectedRow]:
    """The same with dicts, each an event as in JSON; a list can have events of several types. O(rows)."""
    decode, rejected_rows = cast("JsonDecoder", decoder("json", options)), list[RejectedRow]()
    for first in range(0, len(rows), BATCH_ROWS):
        lines = [_line(first + number, row) for number, row in enumerate(rows[first : first + BATCH_ROWS])]
        decoded = decode.lines(b"\n".join(lines))
        decoded = decoded if repeats is None else repeats.without(decoded)
        engine.learn(decoded, records=len(lines))
        n_more = MAX_LISTED_REJECTIONS - len(rejected_rows)
        rejected_rows += [_rejected_row(rejected, first) for rejected in decoded.rejected[:n_more]]
    return rejected_rows


def _line(number: int, row: Mapping[str, Any]) -> bytes:
    """An event as a line of JSON. A missing cell is an absent field, as in a table; of a label, it is a value."""
    try:
        cells = {str(name): cell for name, cell in row.items() if name in NULLABLE_FIELDS or not missing(cell)}
        return _ENCODE(writable(cells))
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        raise BadFrame(f"row {number}: got {str(row)[:60]}, expected JSON values: {error}") from None


def _json_value(value: Any) -> Any:
    """A value that JSON cannot represent, converted to one that it can."""
    if isinstance(value, (np.generic, np.ndarray)):
        return writable(value.tolist())
    if missing(value):
        return None
    if hasattr(value, "isoformat"):
        return value.isoformat()
    raise TypeError(f"a {type(value).__name__}")


_ENCODE = msgspec.json.Encoder(enc_hook=_json_value).encode


def _fields(columns: FrameColumns, options: EventOptions) -> EventFields:
    """The fields of events; quadruplets are in near_i ... far_j if there are such columns, else in two lists."""
    return fields_of(options, pairs=any(name in columns.names for names in PAIR_COLUMNS.values() for name in names))


def _known_columns(event_fields: EventFields, options: EventOptions) -> frozenset[str]:
    """Input fields that have a meaning, in any form of quadruplets."""
    return event_fields.inputs | fields_of(options).inputs | fields_of(options, pairs=True).inputs


def _rejected_row(rejected: Rejected, first: int) -> RejectedRow:
    """A rejection of a batch that begins with row `first`."""
    return RejectedRow(
        f"row {first + rejected.index}", rejected.reason, f"{rejected.message}; got {_cells_in_words(rejected.value)}"
    )


def _cells_in_words(value: bytes) -> str:
    """The cells of a rejected row for a message, without empty ones."""
    try:
        row = msgspec.json.decode(value)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        row = None
    if isinstance(row, dict):
        value = msgspec.json.encode({name: cell for name, cell in row.items() if cell is not None})
    return value[:200].decode(errors="replace")
