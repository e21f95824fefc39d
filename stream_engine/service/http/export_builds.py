"""One export made into files of a folder: small ones in a thread, large ones in a process of their own.

Both run `make_export.write_files`, as `stream-engine export` does with other names: the bytes are the same. A process
costs a second to start, so what is small is made here.
"""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType

from stream_engine.data.available_memory import TooLarge
from stream_engine.exports import NothingToExport
from stream_engine.service.http import make_export
from stream_engine.state.published import Published

SMALL = 256 << 10  # bytes of a snapshot, and of one (n, n) matrix of it, whose exports are made in a thread
SMALL_DOCUMENT = 64 << 20  # the same for `DOCUMENTS`, which are short whatever they tell of
DOCUMENTS = frozenset({"objects", "summary"})
_LOOK = 0.1  # seconds between looks at a process
_PRIORITY = 10  # of the process: below ingestion
_ONE_THREAD = dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"), "1")


class NoRoom(RuntimeError):
    """The export cannot be made here and now; the message says why."""


class SnapshotGone(RuntimeError):
    """The snapshot was pruned before it was read; there is a newer one."""


class Stopped(RuntimeError):
    """The server is closing."""


def is_small(published: Published, what: str) -> bool:
    """Whether an export is made in no time. Some orders and confidences of 4 MB take many seconds."""
    if what in (make_export.PAGE, make_export.FIGURES):
        return False
    snapshot = published.snapshot
    made = (array.nbytes for artifact in published.artifacts.values() for array in artifact.arrays.values())
    size = max(sum(array.nbytes for array in snapshot.arrays.values()), sum(made))
    if what in DOCUMENTS:
        return size <= SMALL_DOCUMENT
    return max(size, 8 * len(snapshot.objects) ** 2) <= SMALL


class Builder:
    """Makes exports of one state; `limit` is how many bytes of disk one may take, `memory()` how many of memory a
    process that makes one may take now (None: what there is); `environment` holds secrets for that process.
    `processes` are the ids of those that are at work."""

    def __init__(
        self,
        state: Path,
        limit: int,
        memory: Callable[[], int | None] = lambda: None,
        environment: Mapping[str, str] = MappingProxyType({}),
        processes: set[int] | None = None,
    ):
        self.state, self._limit, self._memory, self._environment = state, limit, memory, environment
        self.stop = threading.Event()
        self.processes = set() if processes is None else processes

    def build(self, published: Published, what: str, format: str, folder: Path) -> None:
        """Write the files of an export into `folder`, which is made.

        Raises `NothingToExport`, `NoRoom`, `SnapshotGone`, `Stopped`.
        """
        try:
            folder.mkdir(parents=True)
            if is_small(published, what):
                make_export.write_files(published, what, format, folder)
            else:
                self._in_a_process(published.snapshot.sequence, what, format, folder)
        except OSError as error:
            raise NoRoom(f"{what}: cannot be written: {error.strerror or error}") from None
        except TooLarge as error:
            raise NoRoom(str(error)) from None
        self._check_size(what, folder)

    def _in_a_process(self, sequence: int, what: str, format: str, folder: Path) -> None:
        memory = self._memory()
        arguments = (str(self.state), str(sequence), what, format, str(folder), "" if memory is None else str(memory))
        status, said = self._run(
            [sys.executable, "-m", make_export.__name__, *arguments], lambda: self._check_size(what, folder)
        )
        if status == make_export.NOTHING:
            raise NothingToExport(said)
        if status == make_export.GONE:
            raise SnapshotGone(said)
        if status < 0:
            raise NoRoom(f"{what}: could not be made: the process was ended by {signal.Signals(-status).name}")
        if status:
            raise NoRoom(f"{what}: could not be made: {said}")

    def _run(self, command: list[str], look: Callable[[], None]) -> tuple[int, str]:
        """Exit status and last line of standard output; `look` is called now and then, and may raise."""
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env={**os.environ, **_ONE_THREAD, **self._environment},
            start_new_session=True,
        )
        self.processes.add(process.pid)
        try:
            os.setpriority(os.PRIO_PROCESS, process.pid, _PRIORITY)
            while process.poll() is None:
                if self.stop.wait(_LOOK):
                    raise Stopped
                look()
            said = process.stdout.read() if process.stdout else b""
        finally:
            process.kill()
            process.wait()
            self.processes.discard(process.pid)
            if process.stdout:
                process.stdout.close()
        lines = said.decode(errors="replace").strip().splitlines()
        return process.returncode, lines[-1] if lines else f"exit {process.returncode}"

    def _check_size(self, what: str, folder: Path) -> None:
        size = size_of(folder)
        if size > self._limit:
            raise NoRoom(
                f"{what}: takes {size:,} bytes or more, http.cache_bytes is {self._limit:,}; use `stream-engine export`"
            )


def size_of(folder: Path) -> int:
    """Bytes of the files in a folder."""
    return sum(entry.stat().st_size for entry in os.scandir(folder))
