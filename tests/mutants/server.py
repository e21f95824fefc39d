"""A warm process that runs jobs in forked children: the libraries are loaded once, the code under test in each child.

Started in the copy of the checkout. A line of JSON for each job, one back: status, or "time" where the limit of CPU
seconds passed, and CPU seconds. A child has a group of its own; all that is left of it is ended with it, orphans too.
"""

import contextlib
import ctypes
import json
import os
import resource
import signal
import sys
import time
import traceback
from importlib import import_module
from pathlib import Path

LOADED = ["pytest", "numpy", "scipy.sparse", "scipy.linalg", "scipy.special", "numba", "msgspec", "hypothesis", "click"]
BYTES, FILE_BYTES = 4 << 30, 1 << 30  # what a mutant may take of memory, and write into one file
PATIENCE = 8  # so many times its limit of CPU seconds may pass on the clock
BECOME_SUBREAPER, DIE_WITH_PARENT = 36, 1  # of prctl(2)


def served(job: dict) -> dict:
    """Run one job in a child."""
    child = os.fork()
    if not child:
        status = 70
        try:
            status = _in_child(job)
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(status)
    until = time.monotonic() + PATIENCE * job["limit"]
    ended = (0, 0, None)
    while not ended[0] and time.monotonic() < until:
        time.sleep(0.01)
        ended = os.wait4(child, os.WNOHANG)
    late = not ended[0]
    _end(child)
    _, status, used = os.wait4(child, 0) if late else ended
    _end_orphans()
    code = "time" if late else os.waitstatus_to_exitcode(status)
    return {"status": "time" if code == -signal.SIGXCPU else code, "cpu": used.ru_utime + used.ru_stime}


def _in_child(job: dict) -> int:
    os.setsid()
    ctypes.CDLL(None).prctl(DIE_WITH_PARENT, signal.SIGKILL)
    resource.setrlimit(resource.RLIMIT_DATA, (BYTES, BYTES))
    resource.setrlimit(resource.RLIMIT_FSIZE, (FILE_BYTES, FILE_BYTES))
    resource.setrlimit(resource.RLIMIT_CPU, (int(job["limit"]), int(job["limit"]) + 5))
    said = os.open(job["out"] + ".said", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    for stream in (1, 2):
        os.dup2(said, stream)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.environ.update(job.get("environment", {}))
    import_module("numba").config.CACHE_DIR = os.environ["NUMBA_CACHE_DIR"]
    return import_module("tests.mutants.in_child").run(job)


def _end(group: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(group, signal.SIGKILL)


def _end_orphans() -> None:
    """End what children left behind; orphans became this process's own."""
    while left := Path(f"/proc/self/task/{os.getpid()}/children").read_text().split():
        for each in left:
            os.kill(int(each), signal.SIGKILL)
            os.waitpid(int(each), 0)


def main() -> None:
    ctypes.CDLL(None).prctl(BECOME_SUBREAPER, 1)
    ctypes.CDLL(None).prctl(DIE_WITH_PARENT, signal.SIGKILL)
    for name in LOADED:
        import_module(name)
    answers = os.fdopen(os.dup(1), "w")
    for line in sys.stdin:
        print(json.dumps(served(json.loads(line))), file=answers, flush=True)


if __name__ == "__main__":
    main()
