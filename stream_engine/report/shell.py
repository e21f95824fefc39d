"""The page of a running engine before it is filled: head, script and style, and a box for what moves.

It says nothing of the data, so it is there at once, and the same for everybody; the script fetches the sections.
"""

from functools import cache

from stream_engine.report import page


@cache
def html() -> str:
    """The page without sections."""
    return page.render({}, '{"title":"","names":[],"cluster":[],"maps":[],"pictures":{},"texts":{}}', TITLE, live=True)


@cache
def policy() -> str:
    """The content security policy of this page, as a header."""
    return page.policy(live=True)


TITLE = "stream-engine"
