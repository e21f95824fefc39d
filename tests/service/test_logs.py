"""Everything that is said on standard error has one format, whoever says it, and no values of local variables."""

import json
import logging

import pytest
import structlog

from stream_engine.data import logs


@pytest.fixture
def said(capsys):
    """What was said since the last call, line by line; the logging of the test run is put back."""
    root, kafka = logging.getLogger(), logging.getLogger("kafka")
    before = root.handlers[:], root.level, kafka.level
    yield lambda: capsys.readouterr().err.splitlines()
    root.handlers[:], root.level, kafka.level = before
    structlog.reset_defaults()


def say_things() -> None:
    password = "correct-horse"
    structlog.get_logger().warning("ours", n=3)
    logging.getLogger("some.library").warning("theirs %d", 4)
    logging.getLogger("some.library").info("too quiet")
    logging.getLogger("kafka.net").error("said at every attempt")
    try:
        raise ValueError("wrong") if password else None
    except ValueError:
        logging.getLogger("some.library").exception("failed")


def test_json_is_json_for_libraries_too(said):
    logs.configure("json", "info")
    say_things()
    ours, theirs, failed = map(json.loads, lines := said())
    assert (ours["event"], ours["n"], ours["level"]) == ("ours", 3, "warning")
    assert (theirs["event"], theirs["logger"], theirs["level"]) == ("theirs 4", "some.library", "warning")
    assert failed["exception"][0]["exc_type"] == "ValueError" and "correct-horse" not in "".join(lines)


def test_text_for_people(said):
    logs.configure("text", "debug")
    say_things()
    text = "\n".join(said())
    assert "theirs 4" in text
    assert "said at every attempt" in text
    assert "too quiet" not in text
    assert "ValueError: wrong" in text and "correct-horse" not in text.replace('password = "correct-horse"', "")
