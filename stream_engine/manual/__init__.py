"""Pages of the manual that are made of the code: `python -m stream_engine.manual` writes them anew.

A page is a function that gives its text; it is registered here. `tests/manual` holds the pages in `docs/reference`
against what the functions give, and what the pages name against what there is.
"""

from collections.abc import Callable
from importlib import import_module
from pathlib import Path

DOCS = Path(__file__).parent.parent / "docs"

# page below `docs` -> "module:function" that gives its text
PAGES = {
    "exports.md": "stream_engine.exports.manual_page:page",
    "reference/commands.md": "stream_engine.manual.commands:page",
    "reference/settings.md": "stream_engine.manual.settings:page",
    "reference/events.md": "stream_engine.manual.events:page",
    "reference/refits.md": "stream_engine.manual.refits:page",
    "reference/estimators.md": "stream_engine.manual.estimators:page",
    "reference/metrics.md": "stream_engine.manual.metrics:page",
    "reference/alerts.md": "stream_engine.manual.alerts:page",
    "reference/http.md": "stream_engine.manual.http:page",
    "llms.txt": "stream_engine.manual.llms:page",
}


def text_of(page: str) -> str:
    """The text of the page registered under `page`."""
    module, _, name = PAGES[page].partition(":")
    make: Callable[[], str] = getattr(import_module(module), name)
    return make()
