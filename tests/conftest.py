"""Shared fixtures, and the last lines of every run: what ran, what was left out and why."""

import functools
import gc
import json
import os
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support import session_store
from tests.support.fetched_programs import Missing, program

ROOT = Path(__file__).resolve().parent.parent
# Every test checks the bounds of every kernel: without, an index out of range reads or writes a neighbour's memory, and
# may change nothing that a test looks at. Before numba is imported, and for what tests start, too.
os.environ.setdefault("NUMBA_BOUNDSCHECK", "1")
if "PYTEST_XDIST_WORKER" in os.environ:  # several processes share the cores: threads of linear algebra would wait in
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # loops for each other, and double what the suite costs
    gc.disable()  # what is imported stays: no need to look through it again and again


def pytest_configure(config):
    if getattr(config.option, "numprocesses", None):  # this one starts the others, which share what takes long to make
        folder = tempfile.TemporaryDirectory(prefix="stream-engine-tests-")
        os.environ[session_store.FOLDER] = folder.name
        config.add_cleanup(folder.cleanup)


def human_judgements() -> Path | None:
    """The folder of real human judgements (STREAM_ENGINE_DATA, default ../shared/data), or None."""
    folder = Path(os.environ.get("STREAM_ENGINE_DATA") or ROOT.parent / "shared" / "data")
    return folder if folder.is_dir() else None


@pytest.fixture(scope="session", autouse=True)
def compiled_kernels():
    """Small worlds are for the compiled kernels: a command in a process of its own leaves them to Python."""
    from stream_engine.data.compiled import all_compiled

    with all_compiled():
        yield


@pytest.fixture(scope="session", autouse=True)
def figures():
    """The same figures, sooner."""
    from tests.support.drawn_figures import drawn_figures
    from tests.support.small_fonts import small_fonts

    with small_fonts(), drawn_figures():
        yield


@pytest.fixture(scope="session", autouse=True)
def known_libraries():
    """Which libraries of linear algebra are loaded is looked up anew only when a module was imported since: for a small
    fit, limits of their threads would take longer than what they limit."""
    import threadpoolctl

    with pytest.MonkeyPatch.context() as patched:
        found = functools.cache(lambda modules, make=threadpoolctl.ThreadpoolController: make())
        patched.setattr(threadpoolctl, "ThreadpoolController", lambda: found(len(sys.modules)))
        yield


@pytest.fixture(scope="session")
def judgements() -> Path:
    """The folder of real human judgements; tests that use it carry the marker `data`."""
    folder = human_judgements()
    assert folder is not None, "mark tests that need the human judgements with pytest.mark.data"
    return folder


# What takes a minute or more is begun first, the longest before the others; then the files with the most tests.
BEGUN_FIRST = (
    "tests/kafka",
    "tests/spark",
    "tests/manual/test_pages.py",
    "tests/laws/test_held_out.py",
    "tests/house/test_readme.py",
    "tests/report/test_live_in_browser.py",
    "tests/api/test_study.py",
    "tests/laws/test_refits.py",
    "tests/report/test_in_browser.py",
    "tests/house/test_wheel.py",
    "tests/laws/test_chance.py",
    "tests/report/test_report_verb.py",
    "tests/collect/test_dashboard.py",
    "tests/service/test_live_page.py",
    "tests/report/test_sections.py",
    "tests/refits/test_embedding_refit.py",
    "tests/report/test_first_screens.py",
    "tests/fuzz/test_fuzz.py",
    "tests/collect/test_collect.py",
    "tests/mutants/test_mutants.py",
    "tests/state/test_distrust.py",
    "tests/connectors/test_stores.py",
    "tests/api/test_estimators.py",
    "tests/data/test_compiled.py",
    "tests/data/test_mapped_arrays.py",
    "tests/end_to_end/test_service.py",
    "tests/manual/test_site.py",
    "tests/commands/test_warm_up.py",
    "tests/end_to_end/test_demo.py",
    "tests/house/test_gallery.py",
)
_LEFT_OUT = pytest.StashKey[set[str]]()
_REACHED = pytest.StashKey[set[str]]()  # kernels, by the processes that share the work
_MISSED = pytest.StashKey[str]()


def leave_out(config: pytest.Config, items: list[pytest.Item], left: list[pytest.Item], what: str) -> None:
    """Take tests out of a run; the last lines of the run say how many and why."""
    if not left:
        return
    config.stash.setdefault(_LEFT_OUT, set()).add(f"left out: {len(left)} {what}")
    config.hook.pytest_deselected(items=left)
    items[:] = [item for item in items if item not in left]


def leave_out_without(
    config: pytest.Config, items: list[pytest.Item], chosen: list[pytest.Item], look: Callable[[], object], what: str
) -> None:
    """Leave out the `chosen` tests where `look()` raises `Missing`; in CI, which leaves nothing out, that is an
    error."""
    if not chosen:
        return
    try:
        look()
    except Missing as missing:
        if os.environ.get("CI"):
            raise pytest.UsageError(f"{what}: {missing}; CI leaves nothing out") from missing
        leave_out(config, items, chosen, f"{what} ({missing})")


def pytest_collection_modifyitems(config, items):
    for needed in sorted({mark.args for item in items for mark in item.iter_markers("needs")}):
        chosen = [item for item in items if needed in [mark.args for mark in item.iter_markers("needs")]]
        leave_out_without(config, items, chosen, lambda needed=needed: program(*needed), f"tests with {needed[0]}")
    if human_judgements() is None:
        left = [item for item in items if item.get_closest_marker("data")]
        leave_out(config, items, left, "tests on human judgements (no folder at STREAM_ENGINE_DATA)")


def pytest_collection_finish():
    if "PYTEST_XDIST_WORKER" in os.environ:
        gc.enable()
        gc.freeze()  # nor ever


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

        def _assign_work_unit(self, node) -> None:
            place = {scope: number for number, scope in enumerate(BEGUN_FIRST)}
            first = min(self.workqueue, key=lambda scope: (place.get(scope, len(place)), -len(self.workqueue[scope])))
            self.workqueue.move_to_end(first, last=False)
            super()._assign_work_unit(node)

    return Together(config, log)


def pytest_sessionfinish(session):
    from tests.support.reached_kernels import kernels, reached

    if workers := sys.modules.get("stream_engine.service.refit_workers"):
        workers.ORIGIN.close()  # begun by refits of tests without a run
    if hasattr(session.config, "workeroutput"):  # one of several processes: the first one prints
        session.config.workeroutput["left out"] = sorted(session.config.stash.get(_LEFT_OUT, set()))
        session.config.workeroutput["kernels"] = sorted(reached())
    elif is_of_all_tests(session.config) and not session.testsfailed:
        found = session.config.stash.setdefault(_REACHED, set())
        if missed := kernels() - found - reached():
            session.exitstatus = pytest.ExitCode.TESTS_FAILED
            session.config.stash[_MISSED] = f"failed: no test runs these kernels: {', '.join(sorted(missed))}"


def is_of_all_tests(config: pytest.Config) -> bool:
    chosen = config.option.keyword or config.option.markexpr or getattr(config.option, "lf", False)
    return config.args_source is pytest.Config.ArgsSource.TESTPATHS and not chosen and not config.option.collectonly


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node, error):
    said = getattr(node, "workeroutput", {})
    node.config.stash.setdefault(_LEFT_OUT, set()).update(said.get("left out", []))
    node.config.stash.setdefault(_REACHED, set()).update(said.get("kernels", []))


def covered_by_room(folder: Path) -> list[str]:
    """A line that says how much of each room ran, lines and branches together; from the data that pytest-cov left."""
    from coverage import Coverage

    measured = Coverage()
    measured.load()
    measured.json_report(outfile=str(folder / "coverage.json"))
    rooms: dict[str, list[int]] = {}
    for name, file in json.loads((folder / "coverage.json").read_text())["files"].items():
        parts = Path(name).parts
        room = parts[0] if parts[0] == "connectors" or len(parts) < 3 else parts[1]
        totals, figures = rooms.setdefault(room, [0, 0]), file["summary"]
        totals[0] += figures["covered_lines"] + figures["covered_branches"]
        totals[1] += figures["num_statements"] + figures["num_branches"]
    ran, there = (sum(column) for column in zip(*rooms.values(), strict=True))
    shares = ", ".join(f"{room} {covered / max(total, 1):.0%}" for room, (covered, total) in sorted(rooms.items()))
    return [f"coverage of lines and branches: {ran / there:.1%} ({shares})"]


def pytest_runtest_logreport(report):
    """Name a failed test at once: a run that is cut off has no last lines."""
    if report.failed and "PYTEST_XDIST_WORKER" not in os.environ:
        print(f"\nfailed: {report.nodeid} ({report.when}, after {report.duration:.0f} s)", flush=True)


@pytest.hookimpl(trylast=True)
def pytest_terminal_summary(terminalreporter, config):
    if config.pluginmanager.hasplugin("_cov") and config.option.cov_source:
        with tempfile.TemporaryDirectory() as folder:
            for line in covered_by_room(Path(folder)):
                terminalreporter.write_line(line)
    for line in sorted(config.stash.get(_LEFT_OUT, set())):
        terminalreporter.write_line(line)
    if _MISSED in config.stash:
        terminalreporter.write_line(config.stash[_MISSED])
