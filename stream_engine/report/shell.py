"""The page of a running engine before it is filled: head, script and style, and a box for what moves.

It says nothing of the data, so it is there at once, and the same for everybody; the script fetches the sections. The
owner of a study (`collect`) gets the same page with a part about the study.
"""

from functools import cache

from stream_engine.report import page

TITLE = "stream-engine"
EMPTY = '{"title":"","names":[],"cluster":[],"maps":[],"pictures":{},"texts":{}}'


@cache
def html(study: bool = False) -> str:
    """The page without sections."""
    return page.render({}, EMPTY, TITLE, live=True, study=study)


@cache
def policy(study: bool = False) -> str:
    """The content security policy of this page, as a header."""
    return page.policy(live=True, study=study)
