"""How answers and questions are to be read, as Python says it: the options of a run, and which files are meant.

`questions_in`: questions from frames, dicts, tuples or files, to be answered by a model.
"""

import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from glob import glob
from typing import TYPE_CHECKING, Any, Literal, TypedDict

import numpy as np

from stream_engine.api.frames import EXPECTED, BadFrame, columns_of, is_dicts
from stream_engine.evaluation.questions import QuestionReader, QuestionTable
from stream_engine.formats.inference import understood
from stream_engine.formats.options import EventOptions
from stream_engine.formats.reading import Decision, Obstacle, Reading, excluding
from stream_engine.formats.record_columns import Records, records_of
from stream_engine.formats.record_filters import matching
from stream_engine.formats.unreadable import fact_of

if TYPE_CHECKING:
    from stream_engine.input.settings import Settings

ARGUMENTS = ("type", "columns", "where", "answers_by", "answer_is")  # that `read` and `predict` have
# the words of options, for editors and type checkers; those of the registries, which tests compare
EventType = Literal["triplet", "quadruplet", "odd_one_out", "most_central", "pick", "ranking", "label", "pick_farthest"]
AnswersBy = Literal["name", "position", "index", "flag"]
AnswerIs = Literal["nearer", "farther"]
ParticipantFrom = Literal["file"]
FileFormat = Literal["json", "csv", "arrow", "avro"]
Frames = Literal["pandas", "polars", "arrow"]
OnRefused = Literal["warn", "raise"]
Strategy = Literal["random", "uncertainty", "information-gain", "landmark", "landmark-k2", "coverage"]
QuestionType = Literal["pick", "triplet", "odd_one_out"]
RefitKind = Literal[
    "spectral",
    "hierarchy",
    "reliability",
    "triplet_boost",
    "classify",
    "dimensions",
    "sdp_clustering",
    "alignment",
    "embedding",
    "clusters",
    "kernel_learning",
    "partial_order_embedding",
]


def options_of(
    type: str | None,
    columns: Mapping[str, str | Sequence[str]] | None,
    where: Mapping[str, Any] | None,
    answers_by: str,
    codes: Mapping[str, Mapping[str, str]] | None = None,
    answer_is: str = "nearer",
) -> EventOptions:
    """The options of events that `read` and `predict` are given."""
    return EventOptions(
        type,
        {field: (names,) if isinstance(names, str) else tuple(names) for field, names in (columns or {}).items()},
        {
            "".join(name.split()) if name[-1] in "=<>" else name: _as_text(value)
            for name, value in (where or {}).items()
        },
        answers_by=answers_by,
        codes=codes or {},
        answer_is=answer_is,
    )


class Layout(TypedDict, total=False):
    """How files of text are laid out."""

    delimiter: str
    encoding: str
    header: bool
    skip_rows: int
    format: FileFormat


def check_layout(layout: Mapping[str, Any], paths: Sequence[str] | None, *more: str) -> None:
    """Raise `BadFrame` for what says nothing about the layout of files, or where there are no files. `more`: other
    arguments that may be meant."""
    names = Layout.__annotations__
    if unknown := [name for name in layout if name not in names]:
        from stream_engine.input.settings.loading import nearest

        raise BadFrame(f"{unknown[0]}: unknown argument{nearest(unknown[0], (*ARGUMENTS, *more, *names))}")
    if layout and paths is None:
        raise BadFrame(f"got {', '.join(layout)}, which describe text files; got no file")


def _as_text(value: Any) -> str:
    if isinstance(value, (list, tuple, set, frozenset)):
        return "|".join(map(_as_text, value))
    return str(value).lower() if isinstance(value, bool) else str(value)


def paths_in(data: Any) -> list[str] | None:
    """Files, where `data` names some; None where it is a table. Raises `BadFrame`."""
    if isinstance(data, (str, os.PathLike)):
        data = [data]
    if not isinstance(data, (list, tuple)) or not data or not isinstance(data[0], (str, os.PathLike)):
        return None
    if len(data) in (3, 4) and not any(os.path.exists(each) or glob(str(each)) for each in data):
        raise BadFrame(f"read: got {data!r}, none of which is a file; put a single triplet into a list: [{data!r}]")
    if odd := [each for each in data if not isinstance(each, (str, os.PathLike))]:
        raise BadFrame(f"read: got {odd[0]!r} among files, {EXPECTED}")
    return [os.fspath(each) for each in data]


def as_known(records: Records, options: EventOptions) -> tuple[EventOptions, str, list[str]]:
    """The options of a table with these first records, where none describe it, what they are, and which
    rows they exclude. Raises `BadFrame`
    where two readings fit equally well."""
    names = records.columns
    described = options.type is not None or options.columns or options.answers_by != "name" or options.separator
    if described or "type" in names:
        return options, "", []
    if {"near_i", "near_j", "far_i", "far_j"} <= set(names):
        return options._replace(type="quadruplet"), "", []
    understanding = understood(records, options.where)
    readings = [as_options(each, options) for each in understanding.readings]
    if len(readings) == 1 and not understanding.readings[0].doubt:
        excluded = excluded_in_words(understanding.readings[0].evidence)
        return readings[0], f"read as {_as_arguments(readings[0], options)}", excluded
    if readings:
        choices = ", or ".join(_as_arguments(each, options) for each in readings)
        raise BadFrame(f"read: {understanding.readings[0].doubt}; say which: {choices}")
    table = matching(records, options.where)
    obstacle = understanding.obstacle or Obstacle(fact_of(table, {}, table.size, False) if table.size else "")
    if obstacle.rival is not None and obstacle.reading is not None:
        name, other = obstacle.rival.column.name, as_options(obstacle.reading, options)
        step = f"if {name} says nothing about the answer, read it with {_as_arguments(other, options)}"
        raise BadFrame(f"read: {obstacle.fact}; next: {step}")
    if obstacle.fact:
        step = (
            "say which columns are which, such as type='pick', columns={'anchor': 'COLUMN', 'shown': 'COLUMN|COLUMN', "
            "'chosen': 'COLUMN'}; columns that are not named are left out"
        )
        raise BadFrame(f"read: {obstacle.fact}; next: {step}")
    return options, "", []


def excluded_in_words(evidence: Sequence[Decision]) -> list[str]:
    """The rows that somebody answered and that an inferred reading leaves out."""
    return [f"{each.topic} excluded by {each.choice} ({each.why})" for each in excluding(evidence)]


def as_options(reading: Reading, options: EventOptions) -> EventOptions:
    """The options with a reading."""
    return options._replace(
        type=reading.type or None,
        columns=reading.columns,
        where={**options.where, **reading.where},
        answers_by=reading.answers_by,
        codes=reading.codes,
        answer_is=reading.answer_is,
        separator=reading.separator,
    )


def _as_arguments(options: EventOptions, defaults: EventOptions) -> str:
    """Options as the arguments of `read`."""
    default, columns = defaults._asdict(), {field: "|".join(names) for field, names in options.columns.items()}
    texts = {**options._asdict(), "columns": columns}
    return ", ".join(f"{key}={value!r}" for key, value in texts.items() if value and value != default[key])


def settings_of(paths: list[str], options: EventOptions, layout: Mapping[str, Any]) -> "Settings":
    """The settings of a run that reads these files so. Raises `BadSettings`."""
    from stream_engine.input.settings import loading as settings

    columns = {field: "|".join(names) for field, names in options.columns.items()}
    inputs: dict[str, Any] = {"type": options.type, "columns": columns, "where": dict(options.where), **layout}
    inputs |= {"answers_by": options.answers_by, "codes": dict(options.codes), "answer_is": options.answer_is}
    inputs |= {"separator": options.separator, "participant_from": options.participant_from}
    inputs |= {"drop_duplicates": options.drop_duplicates}
    values = {f"input.{key}": value for key, value in inputs.items() if value is not None}
    return settings.load(None, {"source": tuple(paths), **values}, {})


WIDTHS = {3: ("anchor", "left", "right"), 4: ("near_i", "near_j", "far_i", "far_j")}  # of rows without names of columns


def rows_of(questions: Any) -> list[dict[str, Any]]:
    """The questions of a table, or of a list of dicts or of tuples (anchor, left, right), as dicts. Raises `BadFrame`.

    >>> rows_of([("a", "b", "c")])
    [{'anchor': 'a', 'left': 'b', 'right': 'c'}]
    """
    table = columns_of(questions)
    without_names = isinstance(questions, (list, tuple, np.ndarray)) and not is_dicts(questions)
    names = WIDTHS[len(table.names)] if without_names else table.names
    columns = {name: table.take(numbers).to_pylist() for name, numbers in zip(names, table.names)}
    return [dict(zip(columns, row)) for row in zip(*columns.values())]


def questions_in(data: Any, options: EventOptions, layout: Mapping[str, Any]) -> QuestionTable:
    """The questions of a table, of rows or of files, read by the options of events; a table's rows count from 0.
    Raises `BadFrame`, `BadQuestion`."""
    paths = paths_in(data)
    check_layout(layout, paths, "model", "participant")
    if paths is not None:
        from stream_engine.input.question_files import read

        return read(settings_of(paths, options, layout))
    rows = rows_of(data)
    first_cells = {name: [row.get(name) for row in rows[:1000]] for name in (rows[0] if rows else ())}
    with suppress(BadFrame):  # a question need not say what was answered
        options, *_ = as_known(records_of(first_cells), options)
    asking = QuestionReader(options)
    for number, row in enumerate(rows):
        asking.add(row, f"row {number}")
    return asking.questions()
