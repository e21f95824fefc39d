"""A process that collects the tests once, then runs some of them for each mutant in a forked child.

    python -m tests.mutants.warm JOB.json     # in a copy of the checkout, which it changes

In a child the code of the mutated function takes the place of the one that is loaded. The changed file lies on disk,
too, for the processes that tests start. A change of what is done when a module is loaded needs a new process.
"""

import ctypes
import gc
import inspect
import json
import os
import resource
import signal
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from types import CodeType, FunctionType

import pytest

from tests.mutants.changes import Mutant
from tests.mutants.reach import Reach

OPTIONS = ["-q", "--tb=line", "-p", "no:cacheprovider", "-W", "ignore::pytest.PytestAssertRewriteWarning"]
OPTIONS += ["--continue-on-collection-errors"]
BYTES, FILE_BYTES = 4 << 30, 1 << 30  # what a mutant may take of memory, and write into one file
LONGEST = 120.0  # seconds on the clock of a test while it is measured: one that takes longer is not used
PATIENCE = 8  # so many times its limit of CPU seconds may pass on the clock
BECOME_SUBREAPER, DIE_WITH_PARENT = 36, 1  # of prctl(2)
COVERAGE = "[run]\nsource = .\nomit = tests/support/*\nrelative_files = true\ncore = ctrace\ndata_file = {data}\n"
IN_PROCESSES = "parallel = true\ncontext = ${{PYTEST_CURRENT_TEST-}}\n"  # of those that tests start


class Session:
    """The collected tests of some files, and `work`, which is done in place of running them all."""

    def __init__(
        self, files: list[str], temporary: Path, work: Callable[["Session"], None], options: Sequence[str] = ()
    ) -> None:
        self.work, self.note = work, temporary / "note.json"
        self.seconds: dict[str, float] = {}
        self.failed: list[str] = []
        self.unused: set[str] = set()
        self.switch: Callable[[str], None] = lambda test: None
        self.test = ""
        pytest.main([*OPTIONS, *options, f"--basetemp={temporary / 'pytest'}", *files], plugins=[self])

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session):
        self.items = {item.nodeid: item for item in session.items}
        self.work(self)
        return True

    def pytest_collectreport(self, report):
        if report.failed:
            self.failed.append(report.nodeid)

    def pytest_runtest_logreport(self, report):
        self.seconds[report.nodeid] = self.seconds.get(report.nodeid, 0.0) + report.duration
        if report.failed:
            self.failed.append(report.nodeid)
        if report.failed or report.skipped:
            self.unused.add(report.nodeid)

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef):
        if fixturedef.scope == "function":
            return (yield)
        self.switch("")  # what a fixture of a module runs, all its tests run
        try:
            return (yield)
        finally:
            self.switch(self.test)

    def run(self, tests: list[str], to_first_failure: bool = True) -> None:
        """Run these tests, and note what failed."""
        items = [self.items[test] for test in tests if test in self.items]
        for item, following in zip(items, [*items[1:], None], strict=False):
            if self.failed and to_first_failure:
                break
            self.test = item.nodeid
            self.switch(item.nodeid)
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
        self.note.write_text(json.dumps(self.failed))

    def in_child(self, work: Callable[[], None], limit: float) -> tuple[str, float]:
        """("passed", "timed out" or what failed, CPU seconds) of some work in a child with a group of its own."""
        self.note.unlink(missing_ok=True)
        status, cpu = forked(work, limit)
        if status == "time":
            return "timed out", cpu
        failed = json.loads(self.note.read_text()) if self.note.exists() else [f"exit status {status}"]
        return failed[0] if failed else "passed", cpu


def forked(work: Callable[[], None], limit: float) -> tuple[int | str, float]:
    """(exit status, or "time" where the limit of CPU seconds passed, and CPU seconds) of work in a child."""
    child = os.fork()
    if not child:
        with suppress(BaseException):
            os.setsid()
            ctypes.CDLL(None).prctl(DIE_WITH_PARENT, signal.SIGKILL)
            resource.setrlimit(resource.RLIMIT_DATA, (BYTES, BYTES))
            resource.setrlimit(resource.RLIMIT_FSIZE, (FILE_BYTES, FILE_BYTES))
            resource.setrlimit(resource.RLIMIT_CPU, (int(limit), int(limit) + 5))
            nothing = os.open(os.devnull, os.O_RDWR)
            for stream in (0, 1) if os.environ.get("MUTANTS_VERBOSE") else (0, 1, 2):
                os.dup2(nothing, stream)
            try:
                work()
                os._exit(0)
            except BaseException:
                traceback.print_exc()
        os._exit(70)
    until = time.monotonic() + PATIENCE * limit
    ended = (0, 0, None)
    while not ended[0] and time.monotonic() < until:
        time.sleep(0.01)
        ended = os.wait4(child, os.WNOHANG)
    with suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)
    _, status, used = ended if ended[0] else os.wait4(child, 0)
    while left := Path(f"/proc/self/task/{os.getpid()}/children").read_text().split():  # orphans became our own
        for each in left:
            os.kill(int(each), signal.SIGKILL)
            os.waitpid(int(each), 0)
    code = "time" if not ended[0] else os.waitstatus_to_exitcode(status)
    return "time" if code == -signal.SIGXCPU else code, used.ru_utime + used.ru_stime


# ---- measuring


def measured(session: Session, reach: Reach, files: list[str], temporary: Path) -> None:
    """Run all tests of each file in a child, and keep which lines each of them ran."""
    for file in files:
        tests = [test for test in session.items if test.partition("::")[0] == file]
        forked(lambda file=file, tests=tests: _measure(session, reach, file, tests, temporary), 1800.0)


def _measure(session: Session, reach: Reach, file: str, tests: list[str], temporary: Path) -> None:
    from coverage import Coverage, CoverageData
    from coverage.exceptions import DataError

    data, more = temporary / "coverage", temporary / "more.ini"
    for old in temporary.glob("coverage*"):
        old.unlink()
    (temporary / "own.ini").write_text(COVERAGE.format(data=data))
    more.write_text((COVERAGE + IN_PROCESSES).format(data=temporary / "coverage-more"))
    os.environ["COVERAGE_PROCESS_START"] = str(more)
    coverage = Coverage(data_file=str(data), config_file=str(temporary / "own.ini"))
    coverage.start()
    session.switch = coverage.switch_context
    session.run(tests, to_first_failure=False)
    coverage.stop()
    coverage.save()
    whole = CoverageData(str(data))
    whole.read()
    for part in temporary.glob("coverage-more.*"):
        some = CoverageData(str(part))
        with suppress(DataError):  # of a process that was killed while it wrote: what it ran is not known
            some.read()
            whole.update(some)
    seconds = {test: round(took, 3) for test, took in session.seconds.items() if test not in session.unused}
    reach.keep(file, seconds, whole.contexts_by_lineno, whole.measured_files())


# ---- mutants


def tried(session: Session, job: dict, out: Path, temporary: Path) -> None:
    """Run the tests of each mutant on it; each result is kept at once."""
    session.failed.clear()  # a file that cannot be collected as the code is has no tests
    doubtful: set[str] = set()
    for number, given in enumerate(job["mutants"], 1):
        mutant, by, cpu = Mutant(*given["mutant"]), "passed", 0.0
        path, tests = Path(mutant.file), [test for test in given["tests"] if test in session.items]
        source = path.read_text()
        while tests := [test for test in tests if test not in doubtful]:
            path.write_text(mutant.applied(source))
            try:
                work = lambda: _on(session, mutant, source, tests, given, temporary)  # noqa: B023, E731
                by, took = session.in_child(work, given["limit"])
            finally:
                path.write_text(source)
            cpu += took
            if by not in tests or session.in_child(lambda: session.run([by]), given["limit"])[0] == "passed":  # noqa: B023
                break
            doubtful.add(by)  # it fails on the code as it is, too
            by = "passed"
        outcome = "survived" if by == "passed" else by if by == "timed out" else "killed"
        outcome = outcome if tests else "no test"
        row = {**mutant._asdict(), "outcome": outcome, "by": "" if by == "passed" else by}
        row |= {"ran": len(tests), "of": given["of"], "cpu": round(cpu, 2)}
        with out.open("a") as results:
            results.write(json.dumps(row) + "\n")
        place = f"{number}/{len(job['mutants'])} {outcome:9} {cpu:6.1f} s  {mutant.file}:{mutant.line}"
        os.write(job["stdout"], f"{place}  {mutant.change}  {row['by']}\n".encode())


def _on(session: Session, mutant: Mutant, source: str, tests: list[str], given: dict, temporary: Path) -> None:
    """In a child: run tests on a mutant, with the code that is loaded changed in place where that can be."""
    made = given["stale"] and any(
        type(each).__name__ == "Kernel" and each.compiled_function for each in gc.get_objects()
    )
    if made or given["cold"] or not swapped(mutant.file, source, mutant.applied(source)):
        (temporary / "cold.json").write_text(json.dumps({"tests": tests, "temporary": str(temporary)}))
        os.execv(sys.executable, [sys.executable, "-m", "tests.mutants.warm", str(temporary / "cold.json")])
    session.run(tests)


def swapped(file: str, before: str, after: str) -> bool:
    """Whether the functions of a file that are loaded are now those of its new source: not where what is done when the
    module is loaded changes."""
    name = str(Path(file).absolute())
    pairs = list(_pairs(compile(before, name, "exec"), compile(after, name, "exec")))
    if any(not old.co_flags & inspect.CO_OPTIMIZED and _own(old) != _own(new) for old, new in pairs):
        return False
    now = dict(pairs)
    for function in gc.get_objects():
        if type(function) is FunctionType and function.__code__.co_filename == name:
            try:
                function.__code__ = now[function.__code__]
            except (KeyError, ValueError):  # made of other code, or of other variables
                return False
    return True


def _pairs(old: CodeType, new: CodeType):
    yield old, new
    inside = [[each for each in code.co_consts if isinstance(each, CodeType)] for code in (old, new)]
    for one, other in zip(*inside, strict=False):
        yield from _pairs(one, other)


def _own(code: CodeType) -> tuple:
    """What a piece of code does itself, without the functions in it."""
    constants = [(type(each), each) for each in code.co_consts if not isinstance(each, CodeType)]
    return code.co_code, code.co_names, constants, len(code.co_consts)


def main() -> None:
    job = json.loads(Path(sys.argv[1]).read_text())
    temporary = Path(job["temporary"])
    if "mutants" not in job and "measure" not in job:
        Session(sorted({test.partition("::")[0] for test in job["tests"]}), temporary, lambda s: s.run(job["tests"]))
        return
    ctypes.CDLL(None).prctl(BECOME_SUBREAPER, 1)
    ctypes.CDLL(None).prctl(DIE_WITH_PARENT, signal.SIGKILL)
    job["stdout"] = os.dup(1)
    os.dup2(os.open(os.devnull, os.O_RDWR), 1)
    if "measure" in job:
        reach, files = Reach(Path.cwd(), Path(job["reach"])), job["measure"]
        Session(files, temporary, lambda session: measured(session, reach, files, temporary), [f"--timeout={LONGEST}"])
    else:
        files = sorted({test.partition("::")[0] for each in job["mutants"] for test in each["tests"]})
        Session(files, temporary, lambda session: tried(session, job, Path(job["out"]), temporary))


if __name__ == "__main__":
    main()
