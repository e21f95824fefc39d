"""The real command, in this process or in one of its own, for tests that see what a user sees."""

import contextlib
import inspect
import io
import json
import os
import random
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from stream_engine.__main__ import main
from stream_engine.exports.summary import summary_of
from stream_engine.state.snapshot import encode
from stream_engine.state.store import Store
from tests.conftest import ROOT
from tests.support.forked_commands import Forked, forking_refits

ENVIRONMENT = {
    **{k: v for k, v in os.environ.items() if not k.startswith("STREAM_ENGINE__")},
    "PYTHONPATH": str(ROOT),
    "OPENBLAS_NUM_THREADS": "1",
    "PYTHONFAULTHANDLER": "1",
}


class Done(NamedTuple):
    """How a command ended."""

    returncode: int
    stdout: str
    stderr: str


def engine(*arguments, status: int | None = 0, cwd: Path | None = None) -> Done:
    """`stream-engine ARGUMENTS` in this process (the same `main`, without the seconds of a start; refits are forked),
    its exit status checked (None: any)."""
    out, err = (io.TextIOWrapper(io.BytesIO(), "utf-8", write_through=True) for _ in range(2))
    with contextlib.ExitStack() as stack:
        for each in (contextlib.redirect_stdout(out), contextlib.redirect_stderr(err), forking_refits()):
            stack.enter_context(each)
        stack.enter_context(contextlib.chdir(cwd or Path.cwd()))
        returncode = main([str(argument) for argument in arguments])
    done = Done(returncode, *(each.buffer.getvalue().decode() for each in (out, err)))
    assert status is None or returncode == status, f"exit {returncode}\n{done.stdout}\n{done.stderr}"
    return done


def process(*arguments, status: int | None = 0, stdin: bytes = b"", **more) -> Done:
    """`stream-engine ARGUMENTS` in a process of its own, run to its end."""
    done = subprocess.run(
        [sys.executable, "-m", "stream_engine", *map(str, arguments)],
        capture_output=True,
        input=stdin,
        env=ENVIRONMENT,
        timeout=1200,
        **more,
    )
    done = Done(done.returncode, done.stdout.decode(), done.stderr.decode())
    assert status is None or done.returncode == status, f"exit {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done


def started(*arguments, launcher: Iterable[str] = ()) -> subprocess.Popen | Forked:
    """Start `stream-engine ARGUMENTS`, by the command `launcher` if there is one, else forked; the caller ends it. In a
    session of its own."""
    return (subprocess.Popen if launcher else Forked)(
        [*launcher, sys.executable, "-m", "stream_engine", *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=ENVIRONMENT,
        start_new_session=True,
    )


def catches(process: subprocess.Popen | Forked, number: int) -> bool:
    """Whether a process has a handler for a signal by now (SigCgt of /proc/PID/status), or has ended."""
    try:
        lines = Path(f"/proc/{process.pid}/status").read_text().splitlines()
    except OSError:
        return True
    caught = [int(line.split()[1], 16) for line in lines if line.startswith("SigCgt:")]
    return process.poll() is not None or bool(caught and caught[0] >> number - 1 & 1)


def signalled(process: subprocess.Popen | Forked, number: int = signal.SIGTERM) -> None:
    """Send a signal once the process has come far enough to catch it: before, the system would end it."""
    until(lambda: catches(process, number), what=f"a handler of signal {number}")
    process.send_signal(number)


def stopped(process: subprocess.Popen | Forked, number: int = signal.SIGTERM, within: float = 600) -> str:
    """Signal a process and wait for it; returns what it said on standard error."""
    signalled(process, number)
    try:
        _, said = process.communicate(timeout=within)
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGABRT)  # says where every thread is
        _, said = process.communicate()
        raise AssertionError(f"signal {number} did not end it within {within} s\n{said}") from None
    return said


def until(condition, seconds: float = 60, what: str = ""):
    """Wait until `condition()` gives something true, and return it; an error after so many seconds says for what."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if found := condition():
            return found
        time.sleep(0.05)
    raise AssertionError(f"waited {seconds} s for {what or inspect.getsource(condition).strip()}")


def summary(state: Path) -> dict:
    """summary.json of the newest snapshot, without the models that `inspect` tests."""
    return json.loads(json.dumps(summary_of(Store(state).published().snapshot)))


def state_of(directory: Path) -> tuple[bytes, list[dict]]:
    """What is in a state and its dead letters, but for what depends on when blocks were read and snapshots taken."""
    snapshot = Store(directory).latest().snapshot
    counters = {**snapshot.counters, "progressive": {}, "sinks": {}}
    letters = [path.read_text() for path in sorted((directory / "dead_letters").iterdir())]
    return b"".join(encode(snapshot._replace(sequence=0, counters=counters))[0]), [
        {**json.loads(line), "index": 0, "crc": ""} for text in letters for line in text.splitlines()
    ]


def records(state: Path) -> int:
    """How many records the newest snapshot has seen; -1 while there is none."""
    newest = Store(state).latest().snapshot if (state / "snapshots").is_dir() else None
    return -1 if newest is None else newest.counters["records"]


def free_ports(count: int) -> list[int]:
    """Ports nobody listens on now, all different, and none that the system hands out by itself: so that they are still
    free when a server takes them, and again after it was stopped."""
    first = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    held: list[socket.socket] = []
    try:
        for port in random.SystemRandom().sample(range(10_000, first), min(500, first - 10_000)):
            held.append(socket.socket())
            try:
                held[-1].bind(("127.0.0.1", port))
            except OSError:
                held.pop().close()
            if len(held) == count:
                return [each.getsockname()[1] for each in held]
        raise AssertionError(f"no {count} free ports below {first}")
    finally:
        for each in held:
            each.close()


def listens(port: int) -> bool:
    """Whether somebody takes connections there."""
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=1):
            return True
    except OSError:
        return False


def jsonl(path: Path, events: Iterable[dict | str]) -> Path:
    """Write events (or raw lines) as JSON lines."""
    path.write_text("".join((e if isinstance(e, str) else json.dumps(e)) + "\n" for e in events))
    return path


def one_line(text: str) -> str:
    """The error line of a failed command, checked to be one line and no traceback."""
    lines = [line for line in text.splitlines() if line.startswith("stream-engine: ")]
    assert len(lines) == 1 and "Traceback" not in text, text
    return lines[0]


def dead(state) -> list[str]:
    return [line for path in sorted((state / "dead_letters").glob("*.jsonl")) for line in path.read_text().splitlines()]
