"""Files of equal drawings are made once a session; `tests/report/test_drawings.py` tests that they are equal."""

from collections.abc import Mapping, Sequence
from unittest import mock

from stream_engine.report import writing
from stream_engine.report.drawings import Drawing
from stream_engine.report.figure_files import NO_PICTURES, encoded
from stream_engine.report.figure_style import ONE_COLUMN, FigureStyle
from tests.support import session_store


def _encoded_once(
    drawing: Drawing,
    formats: Sequence[str],
    style: FigureStyle = ONE_COLUMN,
    pictures: Mapping[str, bytes] = NO_PICTURES,
) -> dict[str, bytes]:
    return session_store.once(encoded, drawing, tuple(formats), style, dict(pictures))


def drawn_figures() -> mock._patch:
    """Meanwhile, reports take the files of drawings that were drawn before."""
    return mock.patch.object(writing, "encoded", _encoded_once)
