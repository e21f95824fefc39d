"""Processes that the product or a test starts (`python -m MODULE ...`), begun where all that they import is imported:
most of the work of a short one (`stream_engine.service.forked_commands`, with more that is imported).
"""

import atexit
import contextlib
import os
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from types import ModuleType, SimpleNamespace
from typing import IO, Any
from unittest import mock

from stream_engine.service import forked_commands, refit_workers
from tests.conftest import ROOT

IMPORTED = (
    "stream_engine.commands.command_line",
    "stream_engine.commands.refit",
    "stream_engine.commands.run",
    "stream_engine.commands.collect",
    "stream_engine.collect.serve",
    "stream_engine.service.run",
    "stream_engine.service.http.make_export",
    "tests.support.forked_run",
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


@contextlib.contextmanager
def forking_refits() -> Iterator[None]:
    """Refits of runs in this process are forked meanwhile from where other commands of tests are."""
    with mock.patch.object(refit_workers, "ORIGIN", _server(os.getpid())):
        yield


class Forked(forked_commands.Forked):
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
        self._text, self._readers, self._read = text, list[threading.Thread](), dict[str, Any]()
        made = list[int]()
        out, self.stdout = self._written_to(stdout, made)
        err, self.stderr = (out, None) if stderr == subprocess.STDOUT else self._written_to(stderr, made)
        if words[2:4] == ["stream_engine", "run"]:
            words[2] = "tests.support.forked_run"
        begun = _server(os.getpid()).fork(words[2:], env, out, err)
        super().__init__(begun.pid, begun.status)
        for end in made:
            os.close(end)

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


class _Shared(forked_commands.ForkServer):
    """For all runs of a process, whose ends it survives."""

    def close(self) -> None:
        pass


@cache
def _server(of: int) -> _Shared:
    """Forks for this process, and ends with it."""
    server = _Shared(IMPORTED)
    with contextlib.chdir(ROOT):
        server.begin()
    atexit.register(forked_commands.ForkServer.close, server)
    return server
