"""Options of events as Python arguments, the layout of text files, and paths."""

import os
from collections.abc import Mapping, Sequence
from glob import glob
from typing import TYPE_CHECKING, Any, Literal, TypedDict

from stream_engine.api.frames import EXPECTED, BadFrame
from stream_engine.formats.doubtful_rows import below_in_words, doubts, other_header, other_header_in_words, other_table
from stream_engine.formats.inference import understood
from stream_engine.formats.options import EventOptions, by_field, in_words
from stream_engine.formats.reading import FLIPPED, Decision, Obstacle, Reading, excluding, flipped, in_doubt
from stream_engine.formats.record_columns import Records
from stream_engine.formats.record_filters import matching
from stream_engine.formats.unreadable import fact_of

if TYPE_CHECKING:
    from stream_engine.input.settings import Settings

ARGUMENTS = ("type", "columns", "where", "answers_by", "answer_is")  # arguments of `read` and `predict`
# The values of options, for editors and type checkers; tests compare them with the registries.
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
    """The options of events by the arguments of `read` and `predict`."""
    return EventOptions(
        type,
        {
            field: (names,) if isinstance(names, str) else tuple(names)
            for field, names in by_field(columns or {}).items()
        },
        {
            "".join(name.split()) if name[-1] in "=<>" else name: _as_text(value)
            for name, value in (where or {}).items()
        },
        answers_by=answers_by,
        codes=codes or {},
        answer_is=answer_is,
    )


class Layout(TypedDict, total=False):
    """The layout of text files."""

    delimiter: str
    encoding: str
    header: bool
    skip_rows: int
    format: FileFormat


def check_layout(layout: Mapping[str, Any], paths: Sequence[str] | None, *other_arguments: str) -> None:
    """Raise `BadFrame` for unknown arguments, and for a layout without files. `other_arguments` are further names that
    a misspelt one can stand for."""
    names = Layout.__annotations__
    if unknown := [name for name in layout if name not in names]:
        from stream_engine.input.settings.conversion import nearest

        raise BadFrame(f"{unknown[0]}: unknown argument{nearest(unknown[0], (*ARGUMENTS, *other_arguments, *names))}")
    if layout and paths is None:
        raise BadFrame(f"got {', '.join(layout)}, which describe text files; got no file")


def _as_text(value: Any) -> str:
    if isinstance(value, (list, tuple, set, frozenset)):
        return "|".join(map(_as_text, value))
    return str(value).lower() if isinstance(value, bool) else str(value)


def paths_in(data: Any) -> list[str] | None:
    """The files that `data` names; None if it is a table. Raises `BadFrame`."""
    if isinstance(data, (str, os.PathLike)):
        data = [data]
    if not isinstance(data, (list, tuple)) or not data or not isinstance(data[0], (str, os.PathLike)):
        return None
    if len(data) in (3, 4) and not any(os.path.exists(path) or glob(str(path)) for path in data):
        raise BadFrame(f"read: got {data!r}, none of which is a file; put a single triplet into a list: [{data!r}]")
    if bad_paths := [path for path in data if not isinstance(path, (str, os.PathLike))]:
        raise BadFrame(f"read: got {bad_paths[0]!r} among files, {EXPECTED}")
    return [os.fspath(path) for path in data]


def with_inferred_options(records: Records, options: EventOptions) -> tuple[EventOptions, str, list[str]]:
    """`(the options, inferred from the first records of a table if none describe it; a description of the inferred
    ones; descriptions of the rows that they exclude)`. Raises `BadFrame` if two readings fit equally well."""
    names = records.columns
    described = options.type is not None or options.columns or options.answers_by != "name" or options.separator
    says = in_doubt(doubts(matching(records, options.where), options.columns, options.drop_duplicates))
    if described or "type" in names:
        return options, "", says
    if {"near_i", "near_j", "far_i", "far_j"} <= set(names):
        return options._replace(type="quadruplet"), "", []
    if (again := other_header(matching(records, options.where))) is not None:
        fact = other_header_in_words(matching(records, options.where), again, f"row {again}")
        raise BadFrame(f"read: {fact}; next: read the two parts on their own")
    if (begin := other_table(matching(records, options.where))) is not None:
        fact = below_in_words(matching(records, options.where), begin)
        raise BadFrame(f"read: {fact}; next: leave them out, such as with table[:{begin}]")
    understanding = understood(records, options.where, options.answer_is)
    readings = [options_of_reading(reading, options) for reading in understanding.readings]
    if len(readings) == 1 and not understanding.readings[0].doubt:
        evidence = understanding.readings[0].evidence
        says = in_doubt(doubts(matching(records, readings[0].where), readings[0].columns, options.drop_duplicates))
        other = f"answer_is={flipped(understanding.readings[0]).answer_is!r}"
        doubtful = [text.replace(FLIPPED, other) for text in in_doubt(evidence)]
        excluded = [*excluded_in_words(evidence), *doubtful, *says]
        arguments = _as_arguments(readings[0], options)
        return readings[0], f"read as {arguments}" if arguments else "", excluded
    if readings:
        choices = ", or ".join(_as_arguments(reading, options) for reading in readings)
        raise BadFrame(f"read: {understanding.readings[0].doubt}; say which: {choices}")
    table = matching(records, options.where)
    obstacle = understanding.obstacle or Obstacle(fact_of(table, {}, table.size, False) if table.size else "")
    if obstacle.rival is not None and obstacle.reading is not None:
        name, rival_options = obstacle.rival.column.name, options_of_reading(obstacle.reading, options)
        step = f"if {name} says nothing about the answer, read it with {_as_arguments(rival_options, options)}"
        raise BadFrame(f"read: {obstacle.fact}; next: {step}")
    if obstacle.offers and not obstacle.by_rows:
        choices = ", or ".join(_as_arguments(options_of_reading(offer, options), options) for offer in obstacle.offers)
        raise BadFrame(f"read: {obstacle.fact}; say which: {choices}")
    if obstacle.fact:
        step = (
            "say which columns are which, such as type='pick', columns={'anchor': 'COLUMN', 'shown': 'COLUMN|COLUMN', "
            "'chosen': 'COLUMN'}; columns that are not named are left out"
        )
        raise BadFrame(f"read: {obstacle.fact}; next: {step}")
    return options, "", []


def excluded_in_words(evidence: Sequence[Decision]) -> list[str]:
    """Descriptions of the answered rows that an inferred reading excludes."""
    return [f"{decision.topic} excluded by {decision.choice} ({decision.why})" for decision in excluding(evidence)]


def options_of_reading(reading: Reading, options: EventOptions) -> EventOptions:
    """The options with those of a reading."""
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
    default, columns = (
        defaults._asdict(),
        {field: "|".join(names) for field, names in in_words(options.columns).items()},
    )
    texts = {**options._asdict(), "columns": columns}
    return ", ".join(f"{key}={value!r}" for key, value in texts.items() if value and value != default[key])


def settings_of(paths: list[str], options: EventOptions, layout: Mapping[str, Any]) -> "Settings":
    """The settings of a run that reads these files with these options. Raises `BadSettings`."""
    from stream_engine.input.settings import loading as settings

    columns = {field: "|".join(names) for field, names in options.columns.items()}
    inputs: dict[str, Any] = {"type": options.type, "columns": columns, "where": dict(options.where), **layout}
    inputs |= {"answers_by": options.answers_by, "codes": dict(options.codes), "answer_is": options.answer_is}
    inputs |= {"separator": options.separator, "participant_from": options.participant_from}
    inputs |= {"drop_duplicates": options.drop_duplicates}
    values = {f"input.{key}": value for key, value in inputs.items() if value is not None}
    return settings.load(None, {"source": tuple(paths), **values}, {})
