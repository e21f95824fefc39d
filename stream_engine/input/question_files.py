"""Files of questions, read like files of events: the same formats, text layouts and column names.

A file of answers is also a file of questions (see `stream_engine.evaluation.answering`). Files are read as a whole,
with about 2 kB of memory per question.
"""

from msgspec import structs

from connectors import Record, SourceFailed, UnusableSource, split_uri
from connectors.files.readers import LineNumbers, place
from stream_engine.evaluation.questions import BadQuestion, QuestionReader, QuestionTable
from stream_engine.formats.options import UnreadableHeader
from stream_engine.input.layout_inference import prepared
from stream_engine.input.record_units import rows_of_record
from stream_engine.input.settings import Settings
from stream_engine.input.sources import event_options, source, text_layout_of


def read(settings: Settings) -> QuestionTable:
    """The questions in the sources of these settings. Raises `BadQuestion` (no file, or hardly any row is a
    question), and what a run with these settings would raise before it reads."""
    settings = structs.replace(settings, follow=False)
    if odd := [uri for uri in settings.source if split_uri(uri)[0] not in ("file", "stdin")]:
        raise BadQuestion(f"{odd[0]}: expected files of questions, or - for standard input")
    try:
        settings = prepared(settings).settings
        asking, lines = (
            QuestionReader(event_options(settings)),
            LineNumbers(settings.input.format, text_layout_of(settings)),
        )
        for uri in settings.source:
            opened = source(settings, uri, {})
            try:
                while not opened.finished():
                    for record in opened.poll(1.0):
                        _add(record, asking, lines, settings.input.format)
            finally:
                opened.close()
        lines.close()
    except (SourceFailed, UnusableSource, UnreadableHeader) as error:
        raise BadQuestion(str(error)) from None
    return asking.questions()


def _add(record: Record, asking: QuestionReader, lines: LineNumbers, format: str | None) -> None:
    kind = format or record.format
    asking.text = kind == "csv"
    where = record.partition
    if record.problem:
        asking.refuse(record.problem, place(where, record.offset, lines))
        return
    for at, row in rows_of_record(record, kind):
        where_in_file = _place(record, at, lines)
        if isinstance(row, str):
            asking.refuse(row, where_in_file)
        else:
            asking.add(row, where_in_file)


def _place(record: Record, at: int, lines: LineNumbers) -> str:
    if record.unit == "row":
        return f"{record.partition} row {record.offset + at + 1:,}"
    return place(record.partition, record.offset + at, lines)
