"""Commands in processes that begin where all that they import is imported: most of the time of a short one.

A server of forks, a process beside this one, imports, waits, and forks for each command (as `multiprocessing`'s does,
which would also run the script again that called the engine). Arguments, environment, folder and output are those that
a new process would get.
"""

import contextlib
import faulthandler
import gc
import json
import os
import random
import runpy
import select
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any

from stream_engine.data.threads import ONE_THREAD

MAX_MESSAGE = 1 << 18  # bytes of a command; more than a socket takes at once


class Forked:
    """A process of a `ForkServer`; as `subprocess.Popen`."""

    def __init__(self, pid: int, status: int):
        self.pid, self.status = pid, status  # where the server writes the exit status
        self.returncode: int | None = None

    def poll(self) -> int | None:
        """Its exit status; None while it runs."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.wait(0.0)
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Wait for its exit status. Raises `subprocess.TimeoutExpired`."""
        if self.returncode is None:
            if not select.select([self.status], [], [], timeout)[0]:
                raise subprocess.TimeoutExpired("a forked command", timeout or 0.0)
            status = os.read(self.status, 4)
            os.close(self.status)
            if not status:  # the server was killed: how this process ends is not reported
                with contextlib.suppress(ProcessLookupError):
                    os.kill(self.pid, signal.SIGKILL)
            self.returncode = int.from_bytes(status, "little", signed=True) if status else -signal.SIGKILL
        return self.returncode

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


class ForkServer:
    """Forks commands, `python -m MODULE ...`, from a process that has imported `modules`."""

    def __init__(self, modules: Sequence[str]):
        self._modules, self._environment = modules, dict[str, str]()  # of the server
        self._process: subprocess.Popen[bytes] | None = None
        self._connection: socket.socket | None = None

    @property
    def pid(self) -> int | None:
        """The server's process; None where there is none."""
        return self._process.pid if self._process else None

    def begin(self) -> socket.socket:
        """Start to import, unless that was done."""
        if self._connection is None:
            self._connection, there = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            self._environment = {**os.environ, **ONE_THREAD}
            with there:
                self._process = subprocess.Popen(
                    [sys.executable, "-m", __name__, str(there.fileno()), *self._modules],
                    stdin=subprocess.DEVNULL,
                    env=self._environment,
                    pass_fds=[there.fileno()],
                    start_new_session=True,
                )
        return self._connection

    def fork(self, command: Sequence[str], environment: Mapping[str, str], out: int, err: int) -> Forked:
        """Start a command (a module and its arguments) that writes to these file descriptors."""
        for _ in range(2):  # the server may have been killed
            connection, known = self.begin(), self._environment
            changed = {name: value for name, value in environment.items() if known.get(name) != value}
            message = json.dumps([command, changed, sorted(known.keys() - environment), os.getcwd()]).encode()
            status, status_end = os.pipe()
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                socket.send_fds(connection, [message], [status_end, out, err])
            os.close(status_end)
            if pid := int.from_bytes(os.read(status, 4), "little"):
                return Forked(pid, status)
            os.close(status)
            self.close()
        raise ChildProcessError(f"{command[0]}: the process that forks ended twice")

    def close(self) -> None:
        """End the server; commands go on."""
        if self._connection and self._process:
            self._connection.close()
            self._process.terminate()  # it may still import
            self._process.wait()
        self._connection = self._process = None


def _next_command(connection: socket.socket) -> str:
    """Fork for each command; in the new process, the module that it runs."""
    ended, wake = os.pipe()
    os.set_blocking(wake, False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(wake)
    running: dict[int, int] = {}  # process -> where its exit status is written
    readable: list[Any] = [connection, ended]
    while True:
        ready, _, _ = select.select(readable, [], [])
        if ended in ready:
            os.read(ended, 4096)
            for pid in list(running):
                pid_of_end, status = os.waitpid(pid, os.WNOHANG)
                if pid_of_end:
                    _write(running[pid], os.waitstatus_to_exitcode(status))
                    os.close(running.pop(pid))
        if connection in ready:
            message, descriptors, _, _ = socket.recv_fds(connection, MAX_MESSAGE, 3)
            if not message:
                sys.exit(0)
            pid = os.fork()
            if not pid:
                signal.set_wakeup_fd(-1)
                signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                return _become(descriptors[1:], *json.loads(message))
            for descriptor in descriptors[1:]:
                os.close(descriptor)
            running[pid] = descriptors[0]
            _write(descriptors[0], pid)


def _write(descriptor: int, number: int) -> None:
    with contextlib.suppress(BrokenPipeError):
        os.write(descriptor, number.to_bytes(4, "little", signed=True))


def _become(
    outputs: list[int], command: list[str], environment: dict[str, str], no_variables: list[str], folder: str
) -> str:
    """Take over what a new process would have been given; the module that it runs."""
    os.setsid()
    for number, descriptor in enumerate(outputs, 1):
        os.dup2(descriptor, number)
    os.closerange(3, max(map(int, os.listdir("/proc/self/fd"))) + 1)
    os.environ.update(environment)
    for name in no_variables:
        del os.environ[name]
    random.seed()
    if "PYTHONFAULTHANDLER" in os.environ:
        faulthandler.enable()
    os.chdir(folder)
    sys.argv[1:] = command[1:]
    return command[0]


def _import(modules: Sequence[str]) -> None:
    """Import modules and what numba loads before its first kernel, to be shared with what is forked."""
    gc.disable()
    for name in modules:
        import_module(name)
    from stream_engine.data.compiled import import_numba

    import_numba()
    from numba.core.registry import cpu_target

    cpu_target.target_context.refresh()
    gc.freeze()  # what is imported stays
    gc.enable()


if __name__ == "__main__":
    _import(sys.argv[2:])
    runpy.run_module(_next_command(socket.socket(fileno=int(sys.argv[1]))), run_name="__main__", alter_sys=True)
