"""Pages of the manual that are made of the code: `python -m deploy.manual` writes them again.

A page is a function that gives its text; it is registered here. `tests/manual` holds the pages in `docs/reference`
against what the functions give, and what the pages name against what there is.
"""

from collections.abc import Callable
from importlib import import_module
from pathlib import Path

DOCS = Path(__file__).parents[2] / "stream_engine" / "docs"

# page below `docs` -> "module:function" that gives its text
PAGES = {
    "exports.md": "deploy.manual.exports:page",
    "reference/commands.md": "deploy.manual.commands:page",
    "reference/settings.md": "deploy.manual.settings:page",
    "reference/events.md": "deploy.manual.events:page",
    "reference/refits.md": "deploy.manual.refits:page",
    "reference/estimators.md": "deploy.manual.estimators:page",
    "reference/metrics.md": "deploy.manual.metrics:page",
    "reference/alerts.md": "deploy.manual.alerts:page",
    "reference/http.md": "deploy.manual.http:page",
    "llms.txt": "deploy.manual.llms:page",
}


def text_of(page: str) -> str:
    """The text of the page registered under `page`."""
    module, _, name = PAGES[page].partition(":")
    make: Callable[[], str] = getattr(import_module(module), name)
    return make()
