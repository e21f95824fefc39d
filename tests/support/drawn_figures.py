"""Files of equal drawings are made once a session; `tests/report/test_drawings.py` tests that they are equal."""

from collections.abc import Iterable, Mapping
from typing import Any
from unittest import mock

from stream_engine.report import writing
from stream_engine.report.drawings import Drawing
from stream_engine.report.figure_files import encoded
from tests.support import session_store


def _encoded_once(drawing: Drawing, formats: Iterable[str], *more: Any) -> dict[str, bytes]:
    given = [dict(each) if isinstance(each, Mapping) else each for each in more]  # that can be pickled
    return session_store.once(encoded, drawing, tuple(formats), *given)


def drawn_figures() -> mock._patch:
    """Meanwhile, reports take the files of drawings that were drawn before."""
    return mock.patch.object(writing, "encoded", _encoded_once)
