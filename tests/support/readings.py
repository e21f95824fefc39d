"""What a table says by a reading, and a table as a file."""

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

from stream_engine.formats.options import EventOptions
from stream_engine.formats.reading import Reading
from stream_engine.input.answers_in_words import answers
from stream_engine.input.decoding import RecordDecoder
from stream_engine.input.layout_inference import prepare
from stream_engine.input.settings import Settings
from stream_engine.input.settings.loading import load
from stream_engine.input.sources import event_options, source


def saved(folder: Path, rows: Sequence[Mapping[str, object]], name: str = "answers.csv") -> Path:
    """The rows as a file of text."""
    path = folder / name
    lines = [[*rows[0]], *([*row.values()] for row in rows)]
    path.write_text("".join(",".join(f'"{cell}"' for cell in line) + "\n" for line in lines), encoding="utf-8")
    return path


def inferred(path: Path):
    """The settings that the file decides, or the problem with it."""
    return prepare(load(None, {"source": (str(path),)}, {}))


def comparisons(settings: Settings, reading: Reading | None = None) -> Counter[tuple[str, ...]]:
    """The participant and the objects of each comparison of a file, as its settings or a reading have them."""
    options = event_options(settings)
    if reading is not None:
        options = EventOptions(
            reading.type,
            reading.columns,
            reading.where,
            answers_by=reading.answers_by,
            codes=reading.codes,
            answer_is=reading.answer_is,
            separator=reading.separator,
        )
    ingest, found = RecordDecoder(options._replace(provenance=True), settings.input.format), Counter[tuple[str, ...]]()
    opened = source(settings, settings.source[0], {})
    while not opened.finished():
        for block in ingest.blocks(opened.poll(1.0)):
            assert not block.dead_letters, block.dead_letters[0].message
            found.update((who, *names) for who, answer in answers(block.decoded) for names in answer)
    opened.close()
    return found
