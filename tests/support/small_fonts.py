"""Fonts of figures cut from copies that have the letters of Europe alone, and once for equal letters: the same bytes in
a third of the time."""

import contextlib
import io
from collections.abc import Collection, Iterator
from functools import cache
from typing import NamedTuple
from unittest import mock

from fontTools import subset
from matplotlib.backends import _backend_pdf_ps
from matplotlib.font_manager import FontPath
from matplotlib.ft2font import FT2Font

LETTERS = (*range(0x20, 0x180), *range(0x2010, 0x2040), *range(0x2190, 0x2270), *range(0xFB00, 0xFB07))
cut = _backend_pdf_ps.get_glyphs_subset


class Font(NamedTuple):
    """A font as a file, and the numbers of its letters by those that they have in the font that it was cut from."""

    data: bytes
    glyph_index_map: dict[int, int]

    @property
    def font(self) -> "Font":
        return self

    def save(self, file: io.BytesIO, reorderTables: bool) -> None:
        file.write(self.data)


class _Copy(io.BytesIO):
    """A file of one font."""

    face_index = 0


@cache
def _small(font: str, face: int) -> Font:
    options = subset.Options(glyph_names=True, recommended_glyphs=True, layout_features=["*"], font_number=face)
    options.drop_tables = [*options.drop_tables, "FFTM"]
    cutter, copy = subset.Subsetter(options), io.BytesIO()
    known = FT2Font(font, face_index=face).get_charmap()
    cutter.populate(gids=[known[letter] for letter in LETTERS if letter in known])
    with subset.load_font(font, options) as whole:
        cutter.subset(whole)
        whole.save(copy, reorderTables=False)
    return Font(copy.getvalue(), cutter.glyph_index_map)


@cache
def _with_letters(font: FontPath, face: int, letters: frozenset[int]) -> Font:
    copy = _small(str(font), face)
    numbers, file = copy.glyph_index_map, _Copy(copy.data)
    if not letters <= numbers.keys():
        numbers, file = {letter: letter for letter in letters}, font
    with cut(file, {numbers[letter] for letter in letters}) as found:
        data = _backend_pdf_ps.font_as_file(found.font).getvalue()
        return Font(data, {letter: found.glyph_index_map[numbers[letter]] for letter in letters})


@contextlib.contextmanager
def _cut_once(font: FontPath, letters: Collection[int]) -> Iterator[Font]:
    yield _with_letters(font, font.face_index, frozenset(letters))


def small_fonts() -> mock._patch:
    """Meanwhile, letters are cut from such copies."""
    return mock.patch.object(_backend_pdf_ps, "get_glyphs_subset", _cut_once)
