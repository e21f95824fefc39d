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


_LEFT_OUT = pytest.StashKey[set[str]]()


def leave_out(config: pytest.Config, items: list[pytest.Item], left: list[pytest.Item], what: str) -> None:
    """Take tests out of a run; the last lines of the run say how many and why."""
    if not left:
        return
    config.stash.setdefault(_LEFT_OUT, set()).add(f"left out: {len(left)} {what}")
    config.hook.pytest_deselected(items=left)
    items[:] = [item for item in items if item not in left]


def pytest_collection_modifyitems(config, items):
    if human_judgements() is None:
        left = [item for item in items if item.get_closest_marker("data")]
        leave_out(config, items, left, "tests on human judgements (no folder at STREAM_ENGINE_DATA)")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """When several processes share the work (pytest -n), the tests of a file stay together, and those of a room that
    starts servers."""
    from xdist.scheduler import LoadScopeScheduling

    class Together(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            path = nodeid.partition("::")[0]
            room = path.rpartition("/")[0]
            return room if room in ("tests/kafka", "tests/prometheus", "tests/spark") else path

    return Together(config, log)


def pytest_sessionfinish(session):
    if hasattr(session.config, "workeroutput"):  # one of several processes: the first one prints
        session.config.workeroutput["left out"] = sorted(session.config.stash.get(_LEFT_OUT, set()))


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node, error):
    node.config.stash.setdefault(_LEFT_OUT, set()).update(getattr(node, "workeroutput", {}).get("left out", []))


def pytest_terminal_summary(terminalreporter, config):
    for line in sorted(config.stash.get(_LEFT_OUT, set())):
        terminalreporter.write_line(line)
    checked = [
        n
        for report in terminalreporter.stats.get("passed", [])
        for name, n in report.user_properties
        if name == "with_bounds_checks"
    ]
    if checked:
        terminalreporter.write_line(f"with numba's bounds checks on: {checked[0]} tests, every kernel of the hot path")
