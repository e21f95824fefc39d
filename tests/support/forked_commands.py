"""Processes that the product starts (`python -m MODULE ...`), begun where all that they import is imported: most of the
work of a short one. Words, environment, folder and pipes are the same. A process beside this one imports, waits, and
forks for each command.
"""

import atexit
import contextlib
import importlib
import os
import pickle
import runpy
import select
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from types import ModuleType, SimpleNamespace
from unittest import mock

import numba

from stream_engine.data.threads import ONE_THREAD
from tests.conftest import ROOT

MOST = 1 << 17  # bytes of a command and its environment
IMPORTED = (
    "stream_engine.commands.command_line",
    "stream_engine.commands.refit",
    "stream_engine.service.http.make_export",
    "stream_engine.report.page",
    "sklearn.cluster",
    *(
        f"stream_engine.refits.{kind}"
        for kind in ("embedding", "clusters", "sdp_clustering", "triplet_boost", "classify")
    ),
)


@contextlib.contextmanager
def forking(*modules: ModuleType) -> Iterator[None]:
    """What these modules start by `subprocess.Popen` is forked meanwhile."""
    with contextlib.ExitStack() as stack:
        for module in modules:
            forked = SimpleNamespace(**{**vars(subprocess), "Popen": Forked})
            stack.enter_context(mock.patch.object(module, "subprocess", forked))
        yield


class Forked:
    """What a `subprocess.Popen` with pipes for what is said is to those who started it."""

    stdin = None

    def __init__(self, command: list[str], *, stdin: int, stdout: int, stderr: int, env: dict[str, str], **more: bool):
        assert (
            command[:2] == [sys.executable, "-m"]
            and stdin == subprocess.DEVNULL
            and more == {"start_new_session": True}
        )
        assert stdout == subprocess.PIPE and stderr in (subprocess.PIPE, subprocess.STDOUT)
        self.returncode: int | None = None
        out, self._status, err = os.pipe(), os.pipe(), os.pipe() if stderr == subprocess.PIPE else None
        self.stdout = os.fdopen(out[0], "rb")
        self.stderr = os.fdopen(err[0], "rb") if err else None
        ends = [self._status[1], out[1], (err or out)[1]]
        said = pickle.dumps((command[2:], env, os.getcwd()))
        socket.send_fds(_server(os.getpid()), [said], ends)
        for end in set(ends):
            os.close(end)
        self.pid = int.from_bytes(os.read(self._status[0], 4), "little")
        assert self.pid, "the process that forks has ended"

    def poll(self) -> int | None:
        """How it ended; None while it runs."""
        if self.returncode is None and select.select([self._status[0]], [], [], 0)[0]:
            self.wait()
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        if self.returncode is None:
            if not select.select([self._status[0]], [], [], timeout)[0]:
                raise subprocess.TimeoutExpired("a forked command", timeout or 0.0)
            said = os.read(self._status[0], 4)
            os.close(self._status[0])
            assert said, "the process that forks has ended"
            self.returncode = int.from_bytes(said, "little", signed=True)
        return self.returncode

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


@cache
def _server(of: int) -> socket.socket:
    """A connection to a process that forks for this one, and ends with it."""
    here, there = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    here.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 2 * MOST)
    with there:
        process = subprocess.Popen(
            [sys.executable, "-m", __name__, str(there.fileno())],
            cwd=ROOT,
            stdin=subprocess.DEVNULL,
            env={**os.environ, **ONE_THREAD},
            pass_fds=[there.fileno()],
            start_new_session=True,
        )
    atexit.register(process.wait)
    atexit.register(here.close)  # before
    return here


def _next_command(connection: socket.socket) -> str:
    """Fork for each command; in the new process, the module that it runs."""
    woken, wake = os.pipe()
    os.set_blocking(wake, False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(wake)
    running: dict[int, int] = {}  # process -> where its end is said
    while True:
        ready, _, _ = select.select([connection, woken], [], [])
        if woken in ready:
            os.read(woken, 4096)
            for pid in list(running):
                ended, status = os.waitpid(pid, os.WNOHANG)
                if ended:
                    _say(running.pop(pid), os.waitstatus_to_exitcode(status), last=True)
        if connection in ready:
            said, ends, _, _ = socket.recv_fds(connection, MOST, 3)
            if not said:
                sys.exit(0)
            command, environment, folder = pickle.loads(said)
            pid = os.fork()
            if not pid:
                signal.set_wakeup_fd(-1)
                signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                return _become(command, environment, folder, ends[1:])
            for end in ends[1:]:
                os.close(end)
            running[pid] = ends[0]
            _say(ends[0], pid)


def _say(where: int, number: int, last: bool = False) -> None:
    with contextlib.suppress(BrokenPipeError):
        os.write(where, number.to_bytes(4, "little", signed=True))
    if last:
        os.close(where)


def _become(command: list[str], environment: dict[str, str], folder: str, ends: list[int]) -> str:
    """Take over what a new process would have been given; the module that it runs."""
    os.setsid()
    for number, end in enumerate(ends, 1):
        os.dup2(end, number)
    os.closerange(3, max(map(int, os.listdir("/proc/self/fd"))) + 1)
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(folder)
    sys.argv[1:] = command[1:]
    return command[0]


if __name__ == "__main__":
    for name in IMPORTED:
        importlib.import_module(name)
    numba.njit(lambda x: x + 1)(1)  # imports what the first compilation imports
    runpy.run_module(_next_command(socket.socket(fileno=int(sys.argv[1]))), run_name="__main__", alter_sys=True)
