"""Settings with a reading of their file: tried on its first records, as a command, and with answers in words."""

from itertools import islice
from shlex import quote

from msgspec import structs

from stream_engine.formats.event_fields import PACE
from stream_engine.formats.options import UnusableOptions
from stream_engine.formats.reading import Reading
from stream_engine.input.answers_in_words import answers, in_words
from stream_engine.input.decoding import RecordDecoder
from stream_engine.input.first_records import MAX_FILES, first_of_files
from stream_engine.input.settings import Settings
from stream_engine.input.sources import event_options
from stream_engine.input.stored_options import as_arguments, asked_options

MAX_REJECTED_SHARE = 0.1  # of the rows, by a reading that is offered
N_EXAMPLES = 3


def with_reading(settings: Settings, reading: Reading) -> Settings:
    """The settings with what the reading says, but for the columns that they give themselves."""
    events = settings.input
    where = {**events.where, **reading.where}
    columns = {field: "|".join(names) for field, names in reading.columns.items()}
    if {"time", *PACE} & events.columns.keys():
        columns = {field: names for field, names in columns.items() if field not in ("time", *PACE)}
    columns |= events.columns
    codes = {field: dict(field_codes) for field, field_codes in reading.codes.items()}
    events = structs.replace(
        events, type_=reading.type or None, columns=columns, where=where, answers_by=reading.answers_by, codes=codes
    )
    events = structs.replace(events, answer_is=reading.answer_is, separator=reading.separator)
    return structs.replace(settings, input=events)


def reads_half(settings: Settings) -> bool:
    """Whether these settings read half of the first rows that they do not filter: others are in another encoding."""
    return reads_most(settings, 0.5)


def reads_most(settings: Settings, max_rejected: float = MAX_REJECTED_SHARE) -> bool:
    """Whether these settings read nearly all of the first rows that they do not filter."""
    ingest = RecordDecoder(event_options(settings)._replace(provenance=True), settings.input.format)
    n_read = n_rejected = 0
    try:
        for record in islice(first_of_files(settings), MAX_FILES):
            for block in ingest.blocks([record]):
                n_read += sum(block.decoded.events.values())
                n_rejected += len(block.dead_letters)
    except (UnusableOptions, ValueError):
        return False
    return n_read > 0 and n_rejected <= max_rejected * (n_read + n_rejected)


def command_of(settings: Settings, command: str = "") -> str:
    """The whole command line that reads this input with these settings: a run, or `command` with the options."""
    sources = " ".join(quote(uri) for uri in settings.source)
    begin = command or f"stream-engine run {sources} --state {settings.state or 'DIR'}"
    return f"{begin} {as_arguments(asked_options(settings))}".removesuffix(" no input options")


def examples(settings: Settings, limit: int = N_EXAMPLES) -> list[str]:
    """The first answers in words, as these settings read them: what a person can check."""
    ingest = RecordDecoder(event_options(settings)._replace(provenance=True), settings.input.format)
    lines: list[str] = []
    try:
        for record in first_of_files(settings):
            for block in ingest.blocks([record]):
                lines += [
                    in_words(participant, answer)
                    for participant, answer in islice(answers(block.decoded), limit - len(lines))
                ]
                if len(lines) >= limit:
                    return lines
    except (UnusableOptions, ValueError):
        pass  # the run itself reports the problem
    return lines
