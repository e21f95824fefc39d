"""Processes that the product or a test starts (`python -m MODULE ...`), begun where all that they import is imported:
most of the work of a short one. Words, environment, folder and pipes are the same. A process beside this one imports,
waits, and forks for each command.
"""

import atexit
import contextlib
import faulthandler
import gc
import importlib
import os
import pickle
import random
import runpy
import select
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from types import ModuleType, SimpleNamespace
from typing import IO, Any
from unittest import mock

import numba

from stream_engine.data.threads import ONE_THREAD
from tests.conftest import ROOT

MOST = 1 << 17  # bytes of a command and its environment
IMPORTED = (
    "stream_engine.commands.command_line",
    "stream_engine.commands.refit",
    "stream_engine.commands.run",
    "stream_engine.service.run",
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
    """What a `subprocess.Popen` without input is to those who started it."""

    stdin = None

    def __init__(
        self,
        command: Sequence[object],
        *,
        stdout: int | IO[Any],
        stderr: int | IO[Any],
        env: Mapping[str, str],
        stdin: int = subprocess.DEVNULL,
        text: bool = False,
        start_new_session: bool = True,
    ):
        words = [str(word) for word in command]
        assert words[:2] == [sys.executable, "-m"] and stdin == subprocess.DEVNULL and start_new_session
        self.returncode: int | None = None
        self._text, self._readers, self._read = text, list[threading.Thread](), dict[str, Any]()
        self._status, made = os.pipe(), list[int]()
        out, self.stdout = self._written_to(stdout, made)
        err, self.stderr = (out, None) if stderr == subprocess.STDOUT else self._written_to(stderr, made)
        said = pickle.dumps((words[2:], dict(env), os.getcwd()))
        socket.send_fds(_server(os.getpid()), [said], [self._status[1], out, err])
        for end in (self._status[1], *made):
            os.close(end)
        self.pid = int.from_bytes(os.read(self._status[0], 4), "little")
        assert self.pid, "the process that forks has ended"

    def _written_to(self, where: int | IO[Any], made: list[int]) -> tuple[int, IO[Any] | None]:
        """The file that the process writes to, and what is read here of it."""
        if where != subprocess.PIPE:
            return (where if isinstance(where, int) else where.fileno()), None
        read, write = os.pipe()
        made.append(write)
        return write, os.fdopen(read, "r" if self._text else "rb")

    def communicate(self, timeout: float | None = None) -> tuple[Any, Any]:
        """All that it said, at its end."""
        if not self._readers:
            pipes = {name: pipe for name in ("stdout", "stderr") if (pipe := getattr(self, name))}
            self._readers = [threading.Thread(target=self._keep, args=each, daemon=True) for each in pipes.items()]
            for each in self._readers:
                each.start()
        self.wait(timeout)
        for each in self._readers:
            each.join()
        return self._read.get("stdout"), self._read.get("stderr")

    def _keep(self, name: str, pipe: IO[Any]) -> None:
        with pipe:
            self._read[name] = pipe.read()

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
    random.seed()
    if "PYTHONFAULTHANDLER" in environment:
        faulthandler.enable()
    os.chdir(folder)
    sys.argv[1:] = command[1:]
    return command[0]


if __name__ == "__main__":
    gc.disable()
    for name in IMPORTED:
        importlib.import_module(name)
    numba.njit(lambda x: x + 1)(1)  # imports what the first compilation imports
    gc.freeze()  # what is imported stays
    gc.enable()
    runpy.run_module(_next_command(socket.socket(fileno=int(sys.argv[1]))), run_name="__main__", alter_sys=True)
