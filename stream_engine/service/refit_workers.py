"""Refits in separate processes: `stream-engine refit` on a published snapshot, monitored through its output."""

import contextlib
import json
import os
import signal
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from stream_engine.data.threads import ONE_THREAD
from stream_engine.input.settings import RefitSettings
from stream_engine.refits import ENDS_EARLY, NEEDED_ARTIFACT, REFITS
from stream_engine.service.forked_commands import ForkServer

COMMAND = "stream_engine.commands.command_line", "stream_engine.commands.refit"
ORIGIN = ForkServer((*COMMAND, *(REFITS[kind] for kind in RefitSettings().kinds)))  # of refits; begun with the run
IDLE_SECONDS = 120.0  # without a refit, after which the memory of `ORIGIN` is returned
LESS_URGENT = 5  # added to the niceness: a third of the processor's time where another one is in need of it


class Outcome(NamedTuple):
    """How a refit ended: `error` is one line, or "" if the artifact is published; `impossible` if the snapshot lacks
    what the refit needs (labels, for example), which is not a failure. `last_report` is its last report."""

    kind: str
    sequence: int
    seconds: float
    error: str = ""
    impossible: bool = False
    last_report: Mapping[str, Any] = MappingProxyType({})


class _RefitProcess:
    def __init__(
        self,
        kind: str,
        sequence: int,
        command: list[str],
        environment: Mapping[str, str] = MappingProxyType({}),
    ):
        self.kind, self.sequence, self.started = kind, sequence, time.monotonic()
        (out, out_end), (err, err_end) = os.pipe(), os.pipe()
        self._stdout, self._stderr = os.fdopen(out, "rb", 0), os.fdopen(err, "rb", 0)
        self.process = ORIGIN.fork(command, {**os.environ, **ONE_THREAD, **environment}, out_end, err_end)
        for end in (out_end, err_end):
            os.close(end)
        for pipe in (self._stdout, self._stderr):
            os.set_blocking(pipe.fileno(), False)
        self._out, self._err = b"", b""
        self.progress: dict[str, Any] = {}

    def watch(self) -> Outcome | None:
        """Read its reports; returns its outcome once it has ended."""
        has_ended = self.process.poll() is not None
        self._out += self._stdout.read() or b""
        self._err = (self._err + (self._stderr.read() or b""))[-65536:]
        *lines, self._out = self._out.split(b"\n")
        for line in lines:
            self.progress = json.loads(line)
        if not has_ended:
            return None
        seconds = time.monotonic() - self.started
        impossible = bool(self.progress.get("impossible"))
        return Outcome(self.kind, self.sequence, seconds, self._error(), impossible, self.progress)

    def _error(self) -> str:
        """The last line that the process wrote to standard error, "" if it succeeded."""
        if self.process.returncode == 0:
            return ""
        lines = self._err.decode(errors="replace").strip().splitlines()
        return lines[-1].removeprefix("stream-engine: ") if lines else f"exit {self.process.returncode}"

    def stop(self, patience: float) -> None:
        """Terminate the process; kill it after `patience`."""
        self.process.terminate()
        try:
            self.process.wait(patience)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    def close(self) -> None:
        """Close the pipes of a process that ended."""
        self._stdout.close()
        self._stderr.close()


# The worker runs the same command that a person would run, so a bad artifact can be reproduced with one file and one
# command; it is forked where what it imports is imported, which takes .7 s. BLAS uses one thread: oversubscribed cores
# can make a refit hundreds of times slower.
class RefitProcesses:
    """The running refits, at most one of a kind; `environment` passes secrets to them that no command line shows."""

    def __init__(
        self,
        state: str | Path,
        seed: int,
        params: dict[str, dict[str, Any]],
        environment: Mapping[str, str] = MappingProxyType({}),
    ):
        self._state, self._seed, self.params = str(state), seed, params
        self._environment = environment
        self.running: dict[str, _RefitProcess] = {}
        self._last_seen = time.monotonic()  # running refits

    def processes(self) -> list[int]:
        """The process ids of the running refits, and of the process that they are forked from."""
        return [worker.process.pid for worker in self.running.values()] + ([ORIGIN.pid] if ORIGIN.pid else [])

    def start(self, kind: str, sequence: int, memory: int | None = None) -> None:
        """Start a refit of a published snapshot, with a memory limit in bytes (None: what is free)."""
        command = [
            "stream_engine",
            "refit",
            "--state",
            self._state,
            kind,
            "--snapshot",
            str(sequence),
            "--seed",
            str(self._seed),
            "--params",
            json.dumps(self.params.get(kind, {})),
            "--progress",
            "json",
        ]
        if memory is not None:
            command += ["--memory-gb", f"{memory / 1e9:.3f}"]
        worker = self.running[kind] = _RefitProcess(kind, sequence, command, self._environment)
        if kind not in NEEDED_ARTIFACT.values():  # those on which others wait go first
            with contextlib.suppress(OSError):  # a unit of systemd may forbid it
                os.setpriority(os.PRIO_PROCESS, worker.process.pid, os.getpriority(os.PRIO_PROCESS, 0) + LESS_URGENT)

    def watch(self) -> list[Outcome]:
        """Outcomes since the last call; never waits."""
        outcomes = [outcome for worker in self.running.values() if (outcome := worker.watch())]
        for outcome in outcomes:
            self._forget(outcome.kind)
        if self.running:
            self._last_seen = time.monotonic()
        elif time.monotonic() - self._last_seen > IDLE_SECONDS:
            ORIGIN.close()
        return outcomes

    def progress(self) -> dict[str, dict[str, Any]]:
        """The last report of each running refit: done, total and figures of its own."""
        return {kind: worker.progress for kind, worker in self.running.items()}

    def interrupt(self) -> list[str]:
        """Ask refits that can to end with the best so far; returns their kinds."""
        kinds = [kind for kind, worker in self.running.items() if kind in ENDS_EARLY and worker.progress]
        for kind in kinds:
            self.running[kind].process.send_signal(signal.SIGINT)
        return kinds

    def cancel(self, patience: float = 3.0, older_than: int | None = None) -> list[str]:
        """Cancel all refits, or those of snapshots older than `older_than`; returns their kinds."""
        kinds = [kind for kind, worker in self.running.items() if older_than is None or worker.sequence < older_than]
        for kind in kinds:
            self.running[kind].process.terminate()
        for kind in kinds:
            self.running[kind].stop(patience)
            self._forget(kind)
        return kinds

    def _forget(self, kind: str) -> None:
        self.running.pop(kind).close()
