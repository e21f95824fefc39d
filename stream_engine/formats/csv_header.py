"""The header line of a CSV table: how many columns there are, which are read, and whether any are missing."""

from difflib import get_close_matches
from typing import NamedTuple

from stream_engine.data.csv_grammar import column_names, delimiter_of, likely_delimiter, mark_end
from stream_engine.formats.event_fields import PACE, TRIPLET, VOTES, EventFields, fields_of
from stream_engine.formats.options import EventOptions, UnreadableHeader
from stream_engine.formats.wide_columns import wide_questions


class Layout(NamedTuple):
    """The columns of a table: their number, the delimiter, and which are read as which field."""

    width: int
    delimiter: int
    columns: dict[str, int]  # input field -> position, of the fields that are read
    unknown: frozenset[str]
    questions: list[tuple[EventFields, dict[str, str]]]  # of each row, and what of them the header says


def layout_of(header: bytes, options: EventOptions) -> Layout:
    """Which columns of a header are read; raises `UnreadableHeader` where it lacks one that no row can do without.

    >>> layout_of(b"rt,anchor,near,far", EventOptions()).columns
    {'anchor': 1, 'near': 2, 'far': 3}
    """
    try:
        names = [name.strip() for name in column_names(header)]
    except UnicodeDecodeError:
        raise UnreadableHeader(
            "the header is not UTF-8 text; if this is a CSV file, specify its encoding, for example --encoding latin-1"
        ) from None
    except ValueError as error:
        raise UnreadableHeader(f"the header cannot be read: {error}") from None
    read: set[str] = set()
    known: set[str] = set()
    questions = []
    for question in wide_questions(options, names):
        event_fields = fields_of(question.options, pairs=True)
        needed = dict.fromkeys(needed_columns(event_fields, question.options, names))
        if lacking := [name for name in needed if name not in names and name not in question.constants]:
            raise UnreadableHeader(_lacking(header, names, lacking, options))
        read |= _read_columns(event_fields)
        known |= event_fields.known
        questions.append((event_fields, question.constants))
    columns: dict[str, int] = {}
    for position, name in enumerate(names):
        if name in columns:
            raise UnreadableHeader(f"column {name!r} occurs twice; the header has {_shortened(names)}")
        if name in read:
            columns[name] = position
    return Layout(len(names), delimiter_of(header), columns, frozenset(names) - known, questions)


def _lacking(header: bytes, names: list[str], lacking: list[str], options: EventOptions) -> str:
    """The error message about missing columns: what the header has instead, and what to do; a wrong delimiter, which
    explains it, first."""
    given, line = chr(delimiter_of(header)), header[mark_end(header) :].lstrip(b"\r\n")
    likely = likely_delimiter(line)
    if len(names) == 1 and likely in line:
        return (
            f"with the delimiter {given!r}, the header is a single column: {_shortened(names)}; "
            f"omit --delimiter, or use --delimiter {chr(likely)!r} ({_listed(lacking)} missing)"
        )
    first = ", or skip lines before the header with --skip-rows" if len(names) == 1 else ""
    first += (
        ", and give the type of the rows unless they are triplets: --type odd_one_out, pick, ..."
        if options.type is None
        else ""
    )
    meant = _shortened([near for name in lacking if (near := nearest_name(name, names))])
    asked = f" (did you mean {meant}?)" if meant else ""
    return f"{_listed(lacking)} missing; the header has {_shortened(names)}; map them with --columns{asked}{first}"


def nearest_name(name: str, names: list[str]) -> str | None:
    """The name that differs only in case and spaces, or the most similar one."""
    folded = {each.strip().casefold(): each for each in reversed(names)}
    near = get_close_matches(name.strip().casefold(), list(folded), 1, cutoff=0.8)
    return folded[near[0]] if near else None


def _read_columns(event_fields: EventFields) -> set[str]:
    """Input fields that are read (an id is not)."""
    names = {name for kind in event_fields.kinds for field in event_fields.by_kind[kind] for name in field.inputs}
    optional = {source for name, source in event_fields.optional.items() if name != "id"} | {*event_fields.votes}
    return names | optional | {event_fields.type_input, *_asked_inputs(event_fields)}


def needed_columns(event_fields: EventFields, options: EventOptions, names: list[str]) -> list[str]:
    """The columns that every row requires, and those that the options name except response times, which some files of a
    study may lack."""
    kinds = event_fields.kinds
    if event_fields.only_kind is None:
        kinds = () if event_fields.type_input in names else (TRIPLET,)
    needed = [name for kind in kinds for field in event_fields.by_kind[kind] for name in field.inputs]
    said = options.columns.keys() - PACE.keys()
    mapped = [source for name, source in event_fields.optional.items() if name in said]
    mapped += [source for name, source in zip(VOTES, event_fields.votes, strict=True) if name in options.columns]
    return [*needed, *mapped, *_asked_inputs(event_fields)]


def _asked_inputs(event_fields: EventFields) -> list[str]:
    """Input fields that are read only because of the options: for catch trials, and for `--where`."""
    catch = [] if event_fields.catch_input is None else [event_fields.catch_input]
    return catch + [each.source for each in event_fields.where]


def _listed(names: list[str]) -> str:
    return f"column {names[0]} is" if len(names) == 1 else f"columns {', '.join(names)} are"


def _shortened(names: list[str]) -> str:
    """The names in one line; a quoted name may contain line ends."""
    joined = " ".join(", ".join(names).split())
    return joined if len(joined) <= 200 else joined[:197] + "..."
