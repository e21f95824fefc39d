"""What the first file of a run is, where nobody said it: a layout that a tool of the field exports.

Looked up before anything is read for good, from the names of the columns alone, so that the same file gives the same
options at every run. O(one small block).
"""

from collections.abc import Sequence

from msgspec import structs

from connectors import Position, SourceFailed, UnusableSource, split_uri
from connectors.files.paths import expand
from connectors.files.readers import Sizes, kind_of, open_reader
from stream_engine.data.csv_grammar import column_names
from stream_engine.formats.known_layouts import recognised
from stream_engine.service.settings import Settings
from stream_engine.service.wiring import text_layout_of

_SMALL = Sizes(1 << 16)


def with_recognised(settings: Settings) -> tuple[Settings, str]:
    """The settings with the options of the layout that was recognised, and one line about it; "" where none was."""
    events, names, said = settings.input, first_columns(settings), ""
    if events.type_ is None and not events.columns and events.answers_by == "name" and (found := recognised(names)):
        events = structs.replace(events, type_=found.type, columns=found.columns, answers_by=found.answers_by)
        said = found.said
    return structs.replace(settings, input=events), said


def first_columns(settings: Settings) -> Sequence[str]:
    """The names of the columns, or of the fields of the first event, of the first file that a run names; none where
    that is not a file, or cannot be read."""
    for uri in settings.source:
        scheme, rest = split_uri(uri)
        if scheme == "file" and (paths := expand(rest)):
            try:
                return _columns_of(paths[0], settings)
            except (SourceFailed, UnusableSource, OSError, ValueError):
                return []  # the run itself says what is wrong
    return []


def _columns_of(path: str, settings: Settings) -> Sequence[str]:
    kind = kind_of(path, settings.input.format, text_layout_of(settings))
    if kind.name == "parquet" and not kind.compression:
        from pyarrow import parquet

        return list(parquet.read_schema(path).names)
    if kind.name == "arrow" and not kind.compression:
        return _arrow_names(path)
    reader = open_reader(path, kind, Position(0), _SMALL)
    try:
        record = reader.read()
    finally:
        reader.close()
    if record is None or record.problem:
        return []
    if record.format == "csv":
        return [name.strip() for name in column_names(record.header)]
    if record.format == "arrow":
        return list(record.value.schema.names)
    return _fields_of(record.value)


def _arrow_names(path: str) -> Sequence[str]:
    import pyarrow

    with pyarrow.memory_map(path) as file:
        try:
            return list(pyarrow.ipc.open_file(file).schema.names)
        except pyarrow.ArrowInvalid:
            file.seek(0)
            return list(pyarrow.ipc.open_stream(file).schema.names)


def _fields_of(value: bytes) -> Sequence[str]:
    """The fields of the first event of JSON."""
    import msgspec

    line = value.lstrip().split(b"\n", 1)[0]
    try:
        first = msgspec.json.decode(line)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return []
    first = first[0] if isinstance(first, list) and first else first
    return list(first) if isinstance(first, dict) else []
