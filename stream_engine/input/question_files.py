"""Files of questions, read like files of events: the same formats, text layouts and column names.

A file of answers is also a file of questions (see `stream_engine.evaluation.answering`). Files are read as a whole,
with about 2 kB of memory per question.
"""

from contextlib import closing

from msgspec import structs

from connectors import Record, SourceFailed, UnusableSource, split_uri
from connectors.files.readers import LineNumbers, place
from stream_engine.evaluation.questions import BadQuestion, QuestionReader, QuestionTable
from stream_engine.formats.options import UnreadableHeader
from stream_engine.input.layout_inference import prepare
from stream_engine.input.record_rows import rows_of_record
from stream_engine.input.settings import Settings
from stream_engine.input.sources import event_options, source, text_layout_of


def read(settings: Settings) -> QuestionTable:
    """The questions in the sources of these settings. Raises `BadQuestion` (no file, or hardly any row is a
    question), and what a run with these settings would raise before it reads."""
    settings = structs.replace(settings, follow=False)
    if other_sources := [uri for uri in settings.source if split_uri(uri)[0] not in ("file", "stdin")]:
        raise BadQuestion(f"{other_sources[0]}: expected files of questions, or - for standard input")
    try:
        settings = prepare(settings).settings
        reader = QuestionReader(event_options(settings))
        with closing(LineNumbers(settings.input.format, text_layout_of(settings))) as lines:
            for uri in settings.source:
                with closing(source(settings, uri, {})) as source_of_uri:
                    while not source_of_uri.finished():
                        for record in source_of_uri.poll(1.0):
                            _add(record, reader, lines, settings.input.format)
    except (SourceFailed, UnusableSource, UnreadableHeader) as error:
        raise BadQuestion(str(error)) from None
    return reader.questions()


def _add(record: Record, reader: QuestionReader, lines: LineNumbers, format: str | None) -> None:
    kind = format or record.format
    reader.text = kind == "csv"
    partition = record.partition
    if record.problem:
        reader.refuse(record.problem, place(partition, record.offset, lines))
        return
    for number, row in rows_of_record(record, kind):
        where_in_file = _place(record, number, lines)
        if isinstance(row, str):
            reader.refuse(row, where_in_file)
        else:
            reader.add(row, where_in_file)


def _place(record: Record, number: int, lines: LineNumbers) -> str:
    if record.unit == "row":
        return f"{record.partition} row {record.offset + number + 1:,}"
    return place(record.partition, record.offset + number, lines)
