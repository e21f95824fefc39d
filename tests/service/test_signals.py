"""Signals at any moment of a service's life: none kills it, none is lost."""

import os
import pty
import select
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import pytest

from stream_engine.data import logs
from stream_engine.data.logs import OUTPUT
from tests.support.process import ENVIRONMENT, jsonl, started, until

NAMES = "\n".join("abcdef")
TRIPLET = {"anchor": "a", "near": "b", "far": "c"}
AS_ALWAYS = (
    "env",
    "--default-signal",
)  # a suite run by `nohup`, or behind `&`, ignores some, and so would its children
AS_PROCESS_1 = ("unshare", "--pid", "--fork", "--kill-child")  # a process that gets no signal without a handler


def command(tmp_path: Path, verb: str, number: int) -> list:
    (tmp_path / "names.txt").write_text(NAMES)
    events = jsonl(tmp_path / "e.jsonl", [TRIPLET])
    state = tmp_path / f"s{number}"
    if verb == "run":
        return ["run", events, "--follow", "--no-refits", "--state", state, "-v"]
    return ["collect", "--objects", tmp_path / "names.txt", "--state", state, "--listen", "127.0.0.1:0"]


def may_unshare() -> bool:
    return subprocess.run([*AS_PROCESS_1, "true"], capture_output=True).returncode == 0


@pytest.mark.parametrize("verb", ["run", "collect"])
def test_a_stop_during_the_start_ends_with_0_within_two_seconds(tmp_path, verb):
    launcher = AS_PROCESS_1 if may_unshare() else ()
    for number, moment in enumerate((0.2, 0.6, 1.2)):
        process = started(*command(tmp_path, verb, number), launcher=(*AS_ALWAYS, *launcher))
        inner = process_inside(process.pid) if launcher else process.pid
        until(partial(catches_term, inner), what="a handler")
        time.sleep(moment)
        sent = time.monotonic()
        os.kill(inner, (signal.SIGTERM, signal.SIGINT)[number % 2])
        _, said = process.communicate(timeout=60)
        assert process.returncode == 0 and "Traceback" not in said, said
        assert time.monotonic() - sent < 2.0 or "run started" in said  # else it had begun


def process_inside(launcher: int) -> int:
    """The process that a launcher has started."""
    children = Path(f"/proc/{launcher}/task/{launcher}/children")
    return int(until(children.read_text, what="process 1").split()[0])


def catches_term(pid: int) -> bool:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    caught = next(int(line.split()[1], 16) for line in lines if line.startswith("SigCgt:"))
    return bool(caught >> signal.SIGTERM - 1 & 1)


def test_handlers_are_there_before_what_takes_time_to_load():
    code = "import sys; from stream_engine.__main__ import main; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], env=ENVIRONMENT, capture_output=True, text=True, check=True)
    assert not {"click", "numpy", "structlog", "msgspec"} & set(loaded.stdout.split())


def test_hanging_up_reopens_the_log_and_neither_it_nor_a_full_disk_ends_a_run(tmp_path):
    log, config = tmp_path / "engine.log", tmp_path / "engine.toml"
    config.write_text(f'[log]\nfile = "{log}"\nformat = "json"\n')
    process = started(*command(tmp_path, "run", 0), "--config", config)
    try:
        until(lambda: log.exists() and "run started" in log.read_text(), what="the start")
        log.rename(tmp_path / "engine.log.1")
        process.send_signal(signal.SIGHUP)
        until(lambda: log.exists() and "reloaded" in log.read_text(), what="the new file")
        log.unlink()
        log.symlink_to("/dev/full")
        process.send_signal(signal.SIGHUP)
        time.sleep(0.5)
        assert process.poll() is None
    finally:
        process.terminate()
        process.communicate(timeout=120)
    assert process.returncode == 0


def test_lines_that_are_lost_are_counted(tmp_path):
    lost: list[int] = []
    try:
        OUTPUT.open("/dev/full")
        with OUTPUT.losses_to(lambda: lost.append(1)):
            OUTPUT.write("one\ntwo")
            OUTPUT.write("\n")
        OUTPUT.open(str(tmp_path / "log"))
        OUTPUT.write("three\n")
        (tmp_path / "log").rename(tmp_path / "old")
        OUTPUT.reopen()
        OUTPUT.write("four\n")
    finally:
        OUTPUT.open(None)
    assert len(lost) == 2
    assert ((tmp_path / "old").read_text(), (tmp_path / "log").read_text()) == ("three\n", "four\n")


def test_a_terminal_that_is_closed_stops_a_run_with_its_snapshot(tmp_path):
    pid, terminal = pty.fork()
    if pid == 0:
        module = (*AS_ALWAYS, sys.executable, "-m", "stream_engine")
        os.execvpe(module[0], [*module, *map(str, command(tmp_path, "run", 0))], ENVIRONMENT)
    output = b""
    while b"run started" not in output:
        assert select.select([terminal], [], [], 60)[0], output
        output += os.read(terminal, 4096)
    os.close(terminal)
    _, status = os.waitpid(pid, 0)
    assert os.waitstatus_to_exitcode(status) == 0
    assert list((tmp_path / "s0" / "snapshots").glob("*.snapshot"))


def test_texts_in_log_lines_move_no_cursor(capsys):
    import structlog

    hostile = "x\x1b[2J\x9b\u202e"
    for format in logs.FORMATS:
        logs.configure(format)
        structlog.get_logger().warning(hostile, name=hostile, names=[hostile])
    structlog.reset_defaults()
    assert not {"\x1b", "\x9b", "\u202e"} & set(capsys.readouterr().err)
