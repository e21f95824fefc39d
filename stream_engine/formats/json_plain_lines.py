"""Plain JSON lines to names' numbers in compiled passes, and the lines that these leave to msgspec.

Templates (`json_templates`) are made of lines that a struct has taken, when a line of new looks is met. Lines that fit
one (`json_matching`) go straight into the block's names; the others are *missed*: told to the caller, who reads them as
if there were no templates. Templates are a matter of speed: what a line says does not depend on them.
"""

from typing import NamedTuple

import numpy as np

from stream_engine.formats.event_block import Block
from stream_engine.formats.event_columns import Origins, Pool, joined_origins, untold
from stream_engine.formats.json_lines import is_utf8
from stream_engine.formats.json_matching import Found, match_lines, room_for
from stream_engine.formats.json_structs import Structs
from stream_engine.formats.json_templates import MOST_SLOTS, Template, program_of, tells_origins, template_of

MOST_TEMPLATES = 12
NEW_LOOKS = 8  # lines of one value that are looked at for a template, each some 50 us
MANY_MISSED = 64  # more than these, and than the lines that fit, and templates are of no use to a value


class Matched(NamedTuple):
    """The lines of a value that fit templates, and the others."""

    lines: int  # of the value
    line: np.ndarray  # (e,) int64: which lines fit
    template: np.ndarray  # (e,) int64
    members: np.ndarray  # (f,) int32: numbers of the names, line after line
    origins: Origins | None
    missed: np.ndarray  # (k, 3) int64: number, begin and end of the others


class PlainLines:
    """Reads lines by the templates that it has met."""

    lines_at_once = 4096  # their places stay in the processor's cache until they are numbers

    def __init__(self, structs: Structs):
        self._structs = structs
        self._templates: list[Template] = []
        self._program = program_of([])
        self._found: Found | None = None

    def read(self, value: bytes, block: Block) -> Matched | None:
        """The lines of a value, their names numbered by `block`; None where templates are of no use to it."""
        if not is_utf8(value):
            return None
        text = np.frombuffer(value, np.uint8)
        if self._found is None or len(self._found.line) != self.lines_at_once:
            self._found = room_for(self.lines_at_once, MOST_SLOTS)
        at = line = looked = fit = lost = 0
        parts, missed = [], [np.empty((0, 3), np.int64)]
        while at < len(value):
            stop = looked < NEW_LOOKS and len(self._templates) < MOST_TEMPLATES
            at, line, lines, members, misses = match_lines(text, at, line, self._program, self._found, stop)
            if lines:
                parts.append(_taken(self._found, text, lines, members, block, tells_origins(self._program)))
            missed.append(self._found.missed[:misses].copy())
            if stop and at < len(value) and lines < self.lines_at_once:
                looked, end = looked + 1, value.find(b"\n", at) + 1 or len(value)
                if not self._learn(value[at:end]):
                    missed.append(np.array([[line, at, end]]))
                    at, line, misses = end, line + 1, 1
            fit, lost = fit + lines, lost + misses
            if lost > MANY_MISSED + fit:
                return None
        return _joined(parts, line, np.concatenate(missed)) if fit else None

    def add(self, matched: Matched, rows: np.ndarray, block: Block) -> None:
        """Add the lines that fit to the block they were read for; `rows` (e,) int64 says which event each is."""
        of_template = [np.array([template[i] for template in self._templates], np.int64) for i in range(3)]
        of_template[0] = of_template[0].astype(np.int8)
        if len(self._templates) == 1:
            kind, members, last = (np.full(len(matched.line), each[0], each.dtype) for each in of_template)
        else:
            kind, members, last = (each[matched.template] for each in of_template)
        block.add_members(rows, kind, members, last, matched.members, matched.origins)

    def _learn(self, line: bytes) -> bool:
        """Make a template of a line with its line end; False where it cannot be, or is there already."""
        line = line.removesuffix(b"\n").removesuffix(b"\r")
        if line[:1] != b"{" or line[-1:] != b"}":
            return False
        structs = self._structs.decode_lines(line, 1) or self._structs.decode_new(line)
        if structs is None:
            return False
        template = template_of(line, self._structs.kind_of[type(structs[0])], self._structs.event_fields)
        if template is None or any(_alike(template, other) for other in self._templates):
            return False
        self._templates.append(template)
        self._program = program_of(self._templates)
        return True


def _alike(one: Template, other: Template) -> bool:
    places = [[(slot.kind, slot.member) for slot in template.slots] for template in (one, other)]
    return one[:4] == other[:4] and places[0] == places[1]


def _taken(found: Found, text: np.ndarray, lines: int, members: int, block: Block, tells: bool) -> tuple:
    """What was found in some lines, the names as numbers. `tells`: a template has a place for who, when or how."""
    ids = block.names.ids_of_bytes(text, found.begins[:members], found.ends[:members])
    line, template = found.line[:lines].copy(), found.template[:lines].copy()
    if not block.provenance:
        return line, template, ids, None
    if not tells:
        return line, template, ids, untold(lines)
    worker = _numbers(block.workers, text, found.worker[:lines])
    sampler = _numbers(block.samplers, text, found.sampler[:lines])
    return line, template, ids, Origins(worker, found.weight[:lines].copy(), found.time[:lines].copy(), sampler)


def _numbers(pool: Pool, text: np.ndarray, places: np.ndarray) -> np.ndarray:
    """(lines,) int32: the numbers of the names that begin and end in these places, -1 where there is none."""
    begins, ends = places.T
    named, numbers = ends > begins, np.full(len(places), -1, np.int32)
    if named.any():
        numbers[named] = pool.ids_of_bytes(text, begins[named], ends[named])
    return numbers


def _joined(parts: list[tuple], lines: int, missed: np.ndarray) -> Matched:
    line, template, members = (np.concatenate([part[i] for part in parts]) for i in range(3))
    origins = [part[3] for part in parts if part[3] is not None]
    together = joined_origins(origins) if origins else None
    return Matched(lines, line, template, members, together, missed)
