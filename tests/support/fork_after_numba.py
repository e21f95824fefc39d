"""Python code in processes of their own that begin where numba has been imported and has compiled something, which is
most of the work of a short one. None of `stream_engine` has been imported."""

import multiprocessing
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import numba

numba.njit(lambda x: x + 1)(1)  # imports what the first compilation imports


class Forked(NamedTuple):
    """A process, and the folder of what it prints."""

    process: multiprocessing.process.BaseProcess
    folder: Path

    def communicate(self) -> tuple[str, str]:
        """Wait for the end; what was printed on standard output and standard error."""
        self.process.join()
        return (self.folder / "out").read_text(), (self.folder / "err").read_text()

    @property
    def returncode(self) -> int | None:
        return self.process.exitcode


def start(code: str, cwd: Path, environment: Mapping[str, str], folder: Path) -> Forked:
    """Start Python code in `cwd`, from which it imports, with these environment variables; it prints into `folder`."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([__name__])
    process = context.Process(target=_run, args=(code, cwd, dict(environment), folder))
    process.start()
    return Forked(process, folder)


def _run(code: str, cwd: Path, environment: dict[str, str], folder: Path) -> None:
    for number, name in enumerate(("out", "err"), 1):
        with (folder / name).open("wb") as file:
            os.dup2(file.fileno(), number)
    os.environ.clear()
    os.environ.update(environment)
    sys.dont_write_bytecode = "PYTHONDONTWRITEBYTECODE" in environment
    numba.config.reload_config()
    os.chdir(cwd)
    sys.path.insert(0, str(cwd))
    exec(compile(code, "<code>", "exec"), {"__name__": "__main__"})
