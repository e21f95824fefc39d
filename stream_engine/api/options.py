"""How answers and questions are to be read, as Python says it: the options of a run, and which files are meant."""

import os
from collections.abc import Collection, Mapping, Sequence
from glob import glob
from typing import TYPE_CHECKING, Any

from stream_engine.api.frames import EXPECTED, BadFrame
from stream_engine.formats.known_layouts import recognised
from stream_engine.formats.options import EventOptions

if TYPE_CHECKING:
    from stream_engine.service.settings import Settings

LAYOUT = ("delimiter", "encoding", "header", "skip_rows", "format")  # how files of text are laid out


def options_of(
    type: str | None,
    columns: Mapping[str, str | Sequence[str]] | None,
    where: Mapping[str, Any] | None,
    answers_by: str,
) -> EventOptions:
    """The options of events that `read` and `predict` are given."""
    return EventOptions(
        type,
        {field: (names,) if isinstance(names, str) else tuple(names) for field, names in (columns or {}).items()},
        {name: _as_text(value) for name, value in (where or {}).items()},
        answers_by=answers_by,
    )


def check_layout(layout: Mapping[str, Any], paths: Sequence[str] | None) -> None:
    """Raise `BadFrame` for what says nothing about the layout of files, or where there are no files."""
    if unknown := [name for name in layout if name not in LAYOUT]:
        raise BadFrame(f"got {unknown[0]}, expected one of {', '.join(LAYOUT)}")
    if layout and paths is None:
        raise BadFrame(f"got {', '.join(layout)}, which describe text files; got no file")


def _as_text(value: Any) -> str:
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


def as_known(names: Collection[str], options: EventOptions) -> tuple[EventOptions, str]:
    """The options of a table with these columns, where nobody described it, and one line that says what it is."""
    if options.type is not None or options.columns or options.answers_by != "name" or "type" in names:
        return options, ""
    if {"near_i", "near_j", "far_i", "far_j"} <= set(names):
        return options._replace(type="quadruplet"), ""
    if (found := recognised(names)) is None:
        return options, ""
    columns = {field: tuple(sources.split("|")) for field, sources in found.columns.items()}
    return options._replace(type=found.type, columns=columns, answers_by=found.answers_by), found.said


def settings_of(paths: list[str], options: EventOptions, layout: Mapping[str, Any]) -> "Settings":
    """The settings of a run that reads these files so. Raises `BadSettings`."""
    from stream_engine.service.settings import loading as settings

    columns = {field: "|".join(names) for field, names in options.columns.items()}
    given: dict[str, Any] = {"type": options.type, "columns": columns, "where": dict(options.where), **layout}
    given["answers_by"] = options.answers_by
    told = {f"input.{key}": value for key, value in given.items() if value is not None}
    return settings.load(None, {"source": tuple(paths), **told}, {})
