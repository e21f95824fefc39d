"""`read`: answers from files, frames or a state directory to a `Study`."""

import os
import re
import warnings
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Unpack

from stream_engine.api.feeding import (
    MAX_LISTED_REJECTIONS,
    RejectedRow,
    learn_dicts,
    learn_table,
)
from stream_engine.api.frames import (
    FIRST_ROWS,
    BadFrame,
    columns_of,
    first_columns,
    is_dicts,
    library_of,
    missing,
)
from stream_engine.api.options import (
    AnswerIs,
    AnswersBy,
    EventType,
    Frames,
    Layout,
    OnRefused,
    ParticipantFrom,
    check_layout,
    excluded_in_words,
    options_of,
    paths_in,
    settings_of,
    with_inferred_options,
)
from stream_engine.api.output_frames import frame_library
from stream_engine.api.reading_checks import check_names, check_refused, check_sets
from stream_engine.api.study import Study
from stream_engine.api.study_engine import StudyEngine
from stream_engine.counts import DEFAULT_ACCUMULATORS, accumulator
from stream_engine.data.comparisons import Label
from stream_engine.formats.cells import LIST_SEPARATOR
from stream_engine.formats.event_fields import SCREEN, fields_of
from stream_engine.formats.options import EventOptions
from stream_engine.formats.reading import in_doubt
from stream_engine.formats.record_columns import records_of
from stream_engine.formats.repeats import Repeats
from stream_engine.state.engine import Engine
from stream_engine.state.exclusion import excluded_of
from stream_engine.state.object_index import learn_labels
from stream_engine.state.published import Published
from stream_engine.state.store import Store


def read(
    data: Any,
    type: EventType | None = None,
    columns: Mapping[str, str | Sequence[str]] | None = None,
    where: Mapping[str, Any] | None = None,
    *,
    answers_by: AnswersBy = "name",
    codes: Mapping[str, Mapping[str, str]] | None = None,
    answer_is: AnswerIs = "nearer",
    separator: str | None = None,
    participant_from: ParticipantFrom | None = None,
    drop_duplicates: bool = False,
    labels: Any = None,
    on_refused: OnRefused = "warn",
    frames: Frames | None = None,
    seed: int = 0,
    **layout: Unpack[Layout],
) -> Study:
    """Read answers into a study. They are counted exactly as by `stream-engine run`.

    A million rows of a data frame take less than one CPU second, once the code is compiled.

    Parameters
    ----------
    data : data frame, table, mapping, list, array, path, or list of paths
        A table of pandas, polars, Arrow or anything with `__arrow_c_stream__`; a mapping of columns; a list of dicts or
        of triplets (anchor, near, far); an array of shape (m, 3) or (m, 4); files by path or pattern; or a state
        directory, of which the newest snapshot is read, with its fits.
    type : {'triplet', 'quadruplet', 'odd_one_out', 'most_central', 'pick', 'ranking', 'pick_farthest'}, optional
        Type of every event. By default, each row has its own in a column `type`, or the type is inferred from the first
        rows, as everything else is (`Study.read_as`).
    columns : mapping, optional
        Name(s) of the column(s) for each field of an event: `{"anchor": "probe", "shown": ["left", "right"]}`.
    where : mapping, optional
        Read only rows with this value in the column, or one of a list: `{"correct": True}`. A key may end in a
        comparison: `{"phase !=": "practice", "rt >": 300}`.
    answers_by : {'name', 'position', 'index', 'flag'}
        How `odd`, `central` and `chosen` identify an object: by name, by position (from 1), by index (from 0), or by
        yes or no (1 or 0) for each object.
    codes : mapping, optional
        Meaning of the codes of an answer, a column or a position: `{"chosen": {"f": "left", "j": "right"}}`.
    answer_is : {'nearer', 'farther'}
        Which object an answer names: the one that is more like the anchor, or the one that is less like it.
    separator : str, optional
        Separator of lists in cells. By default a bar; lists as JSON, Python and NumPy write them are recognised.
    participant_from : {'file'}, optional
        "file": each file holds the answers of one participant, who is named like the file.
    drop_duplicates : bool
        Whether a response that was sent twice, with the same participant, times and answer, counts once. By default, a
        warning names who sent how many.
    labels : mapping, table or path, optional
        Classes of objects: `{object: class}`, a table with columns object and label, or a file of labels.
    on_refused : {'warn', 'raise'}
        "warn" reports rejected rows in one warning (if more than half are rejected, it is an error); "raise" stops at
        the first one.
    frames : {'pandas', 'polars', 'arrow'}, optional
        Type of the tables that the study returns. By default that of `data`; for other input pandas if installed, else
        Arrow.
    seed : int
        Random seed of all fits.
    **layout : optional
        Layout of text files: `delimiter`, `encoding`, `header`, `skip_rows`, `format`.

    Returns
    -------
    Study
        The study.

    Raises
    ------
    BadFrame
        A ValueError with one line: row (from 0), got, expected.
    ValueError
        For files, the same errors as `stream-engine run`.

    Examples
    --------
    >>> study = read([("a", "b", "c"), ("a", "c", "b"), ("b", "a", "c")], frames="arrow")
    >>> study
    Study of 3 events: 3 objects, nothing fitted yet
    """
    if on_refused not in ("warn", "raise"):
        raise BadFrame(f"on_refused: got {on_refused!r}, expected warn or raise")
    options = options_of(type, columns, where, answers_by, codes, answer_is)._replace(
        separator=separator, participant_from=participant_from, drop_duplicates=drop_duplicates
    )
    fields_of(options)  # raises for options that fit nothing
    paths = paths_in(data)
    check_layout(layout, paths, "codes", "labels", "on_refused", "frames", "seed")
    if paths is not None and len(paths) == 1 and os.path.isdir(paths[0]):
        return _study_of_state(paths[0], seed=seed, frames=frame_library(frames, ""))
    if paths is not None:
        counted, library = _read_files(paths, options, layout), ""
    else:
        counted, library = (_read_dicts if is_dicts(data) else _read_columns)(data, options), library_of(data)
    engine = counted.engine
    check_refused(engine, counted.rejected, on_refused)
    check_names(engine)
    check_sets(engine)
    for warning in counted.warnings():
        warnings.warn(f"read: {with_arguments(warning)}", stacklevel=2)
    if labels is not None:
        _learn_labels(engine, labels)
    return Study(engine, counted.rejected, counted.read_as, seed=seed, frames=frame_library(frames, library))


def _study_of_state(directory: str, **options: Any) -> Study:
    """The newest snapshot of a state with its fits; who is excluded there can be included again."""
    store = Store(directory)
    snapshot = store.newest()
    published = store.with_artifacts(snapshot)
    study = Study(published, directory=directory, **options)
    if published.excluded:
        of_all = {kind: artifact for kind, artifact in published.artifacts.items() if not excluded_of(artifact)}
        study._full_study = Study(Published(snapshot, of_all), directory=directory, **options)
    return study


DROP_ARGUMENT = "drop_duplicates=True"  # the argument that messages about repeated responses recommend


def with_arguments(text: str) -> str:
    """A message that names options of commands, with the names of arguments instead.

    >>> with_arguments("add time=when to --columns, then use --drop-duplicates")
    'add time=when to columns, then use drop_duplicates=True'
    """
    text = text.replace("--drop-duplicates", DROP_ARGUMENT)
    return re.sub("--([a-z]+(?:-[a-z]+)*)", lambda match: match[1].replace("-", "_"), text)


class CountedAnswers(NamedTuple):
    """Counted answers, and notes about them."""

    engine: StudyEngine
    rejected: list[RejectedRow]
    read_as: str  # the inferred options
    repeated: str  # about responses that were sent twice
    notices: list[str]  # about the files, and about rows that the inferred reading excludes

    def warnings(self) -> Iterator[str]:
        """Warnings about the data or their reading."""
        yield from self.notices
        if self.repeated:
            yield self.repeated
        if not self.engine.counters["events"]:
            yield _no_answers(self.engine.counters["filtered"])


def _no_answers(excluded: int) -> str:
    """The warning about data without a single answer, as in `stream_engine.commands`."""
    fact = f"got 0 answers, {excluded:,} rows excluded" if excluded else "got 0 answers"
    next_step = "check `where` and catch trials" if excluded else "check that these are the data with the answers"
    return f"{fact}, expected at least one; next: {next_step}"


def _engine(options: EventOptions) -> tuple[StudyEngine, EventOptions]:
    """`(an engine as in a run by default, the options with what it needs of each event)`."""
    engine = Engine()
    noted: dict[str, Any] = {}
    if options.drop_duplicates:  # so that findings do not say that copies are counted
        noted["drop_duplicates"] = True
    if SCREEN in options.columns:  # so that what one screen says is held out together
        noted["columns"] = {
            name: LIST_SEPARATOR.join(options.columns[name]) for name in (SCREEN, "far") if name in options.columns
        }
    if noted:
        engine.counters["input"] = {"options": noted}
    return StudyEngine(engine), options._replace(
        provenance=any(accumulator(name).needs_provenance for name in DEFAULT_ACCUMULATORS)
    )


def _read_columns(data: Any, options: EventOptions) -> CountedAnswers:
    table = columns_of(data)
    options, read_as, excluded = with_inferred_options(records_of(first_columns(data, table)), options)
    engine, options = _engine(options)
    repeats = Repeats(options.drop_duplicates)
    rejected = learn_table(engine, table, options, repeats)
    return CountedAnswers(engine, rejected, read_as, repeats.in_words(DROP_ARGUMENT), excluded)


def _read_dicts(rows: Sequence[Mapping[str, Any]], options: EventOptions) -> CountedAnswers:
    first = rows[:FIRST_ROWS]
    names = dict.fromkeys(str(name) for row in first for name in row)
    table = {name: [None if missing(cell := row.get(name)) else cell for row in first] for name in names}
    options, read_as, excluded = with_inferred_options(records_of(table), options)
    engine, options = _engine(options)
    repeats = Repeats(options.drop_duplicates)
    rejected = learn_dicts(engine, rows, options, repeats)
    return CountedAnswers(engine, rejected, read_as, repeats.in_words(DROP_ARGUMENT), excluded)


def _read_files(paths: list[str], options: EventOptions, layout: Mapping[str, Any]) -> CountedAnswers:
    """Read files as a run does."""
    from connectors.files.readers import LineNumbers, place
    from stream_engine.input.decoding import RecordDecoder
    from stream_engine.input.layout_inference import prepare
    from stream_engine.input.sources import event_options, source, text_layout_of
    from stream_engine.input.tried_readings import examples

    settings = settings_of(paths, options, layout)
    inferred = prepare(settings).raise_if_undecided()
    settings = inferred.settings
    read_as = "; ".join([inferred.line, *examples(settings)]) if inferred.line else ""
    options = event_options(settings)
    engine, options = _engine(options)
    ingest = RecordDecoder(options, settings.input.format)
    lines = LineNumbers(settings.input.format, text_layout_of(settings))
    rejected: list[RejectedRow] = []
    notices: list[str] = []
    for uri in settings.source:
        opened = source(settings, uri, {})
        try:
            while not opened.finished():
                records = opened.poll(1.0)
                notices += opened.notices()
                for block in ingest.blocks(records):
                    engine.learn(block.decoded, block.positions(), sum(block.counts().values()))
                    for letter in block.dead_letters[: MAX_LISTED_REJECTIONS - len(rejected)]:
                        place_in_file = place(letter.partition, letter.offset, lines)
                        rejected.append(RejectedRow(place_in_file, letter.reason, letter.message))
        finally:
            opened.close()
    lines.close()
    notices += [*excluded_in_words(inferred.evidence), *in_doubt(inferred.evidence)]
    return CountedAnswers(engine, rejected, read_as, ingest.repeats.in_words(DROP_ARGUMENT), notices)


def _learn_labels(engine: StudyEngine, labels: Any) -> None:
    """Learn classes of objects. Raises `BadFrame`, and for files the errors of reading them."""
    if isinstance(labels, (str, Path)):
        from stream_engine.input.label_files import read_labels

        blocks, _ = read_labels(str(labels), {})
        for block in blocks:
            engine.learn(block.decoded, records=0)
            rejected_rows = [RejectedRow(str(labels), letter.reason, letter.message) for letter in block.dead_letters]
            check_refused(engine, rejected_rows, "raise")
        return
    if isinstance(labels, Mapping) and not {"object", "label"} <= set(labels):
        learn_labels(engine.labels, [Label(str(name), str(label)) for name, label in labels.items()])
        engine.counters["labels"] += len(labels)
        return
    check_refused(engine, learn_table(engine, columns_of(labels), EventOptions("label")), "raise")
