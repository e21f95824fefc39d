"""Shared fixtures, and the last lines of every run: what ran, what was left out and why."""

import os
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


def human_judgements() -> Path | None:
    """The folder of real human judgements (STREAM_ENGINE_DATA, default ../shared/data), or None."""
    folder = Path(os.environ.get("STREAM_ENGINE_DATA") or ROOT.parent / "shared" / "data")
    return folder if folder.is_dir() else None


@pytest.fixture(scope="session")
def judgements() -> Path:
    """The folder of real human judgements; tests that use it carry the marker `data`."""
    folder = human_judgements()
    assert folder is not None, "mark tests that need the human judgements with pytest.mark.data"
    return folder


def pytest_collection_modifyitems(config, items):
    if human_judgements() is None:
        left = [item for item in items if item.get_closest_marker("data")]
        config.stash[_LEFT_OUT] = len(left)
        config.hook.pytest_deselected(items=left)
        items[:] = [item for item in items if not item.get_closest_marker("data")]


_LEFT_OUT = pytest.StashKey[int]()


def pytest_terminal_summary(terminalreporter, config):
    left = config.stash.get(_LEFT_OUT, 0)
    if left:
        terminalreporter.write_line(f"left out: {left} tests on human judgements (no folder at STREAM_ENGINE_DATA)")
