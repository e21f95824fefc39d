"""What a child of the server does: pytest over some tests of one file, with the compiled kernels that are not stale."""

import json
import os
import sys
from pathlib import Path

import pytest


class Chosen:
    """A pytest plugin: only these tests, the quickest first; notes what failed and the seconds of each."""

    def __init__(self, tests: list[str] | None, switch=lambda test: None) -> None:
        self.order = None if tests is None else {test: place for place, test in enumerate(tests)}
        self.switch = switch
        self.seconds: dict[str, float] = {}
        self.failed: list[str] = []

    def pytest_collection_modifyitems(self, items):
        if self.order is not None:
            items[:] = sorted((each for each in items if each.nodeid in self.order), key=lambda i: self.order[i.nodeid])

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item):
        self.switch(item.nodeid)
        try:
            return (yield)
        finally:
            self.switch("")

    def pytest_runtest_logreport(self, report):
        self.seconds[report.nodeid] = self.seconds.get(report.nodeid, 0.0) + report.duration
        if report.failed or (report.when == "call" and report.skipped):
            self.failed.append(report.nodeid)

    def pytest_collectreport(self, report):
        if report.failed:
            self.failed.append(report.nodeid)


def run(job: dict) -> int:
    """Run a job: its exit status, and a file with what was noted.

    `file`, `tests` (None: all), `out`, `known` (the folder of compiled kernels of the unchanged code); for a mutant
    `stale`, the (module, name) of kernels that are to be compiled anew; to measure, `coverage` (a file), `config` and
    `slowest`, seconds that a test may take.
    """
    if job.get("stale") is not None and Path(job["known"]).exists():
        _compiled(Path(job["known"]), Path(os.environ["NUMBA_CACHE_DIR"]), {tuple(each) for each in job["stale"]})
    chosen = Chosen(job["tests"])
    measured = None
    if "coverage" in job:
        from coverage import Coverage

        measured = Coverage(data_file=job["coverage"], config_file=job["config"])
        measured.start()
        chosen.switch = measured.switch_context
    options = ["-q", "--tb=line", "-p", "no:cacheprovider", "-W", "ignore::pytest.PytestAssertRewriteWarning"]
    options += ["-x"] if job["tests"] is not None else [f"--timeout={job.get('slowest', 0)}"]
    status = pytest.main([*options, job["file"]], [chosen])
    if measured:
        measured.stop()
        measured.save()
    Path(job["out"]).write_text(json.dumps({"seconds": chosen.seconds, "failed": chosen.failed}))
    sys.stdout.flush()
    return int(status)


def _compiled(known: Path, folder: Path, stale: set[tuple[str, str]]) -> None:
    """Put the compiled code of unchanged kernels where the changed sources look for theirs.

    `known`: a folder `stream-engine-KEY` of the unchanged ones.
    """
    from stream_engine.data.kernel_cache import key

    new = folder / f"stream-engine-{key()}"
    if new.exists():
        return
    if new.name == known.name:
        new.symlink_to(known)
        return
    for path in known.rglob("*.nbc"):
        target = new / path.relative_to(known)
        module, name = path.name.split("-")[0].split(".")[:2]
        if (str(Path(path.parent.name) / module), name) in stale:
            continue
        target.parent.mkdir(parents=True, exist_ok=True)
        os.link(path, target)
