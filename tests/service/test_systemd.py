"""What a service manager is told, by a real run over a real socket."""

import os
import signal
import socket
import threading
import time
from contextlib import contextmanager, suppress

import pytest

from stream_engine.service import systemd
from stream_engine.service.systemd import ServiceManager
from tests.support.process import ENVIRONMENT, jsonl, until
from tests.support.running_engine import Engine


@contextmanager
def listening(address: str):
    """The other side: what it was told, message by message."""
    said: list[str] = []
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as at:
        at.bind(address)
        at.settimeout(0.05)
        ended = threading.Event()

        def hear() -> None:
            while not ended.is_set():
                with suppress(TimeoutError):
                    said.append(at.recv(1 << 16).decode())

        thread = threading.Thread(target=hear)
        thread.start()
        try:
            yield said
        finally:
            ended.set()
            thread.join()


@pytest.mark.parametrize("abstract", [False, True])
def test_a_run_is_ready_alive_reloading_and_stopping(tmp_path, abstract):
    name = f"stream-engine-test-{os.getpid()}"
    address, given = (f"\0{name}", f"@{name}") if abstract else (str(tmp_path / "n"), str(tmp_path / "n"))
    events = jsonl(tmp_path / "e.jsonl", [{"anchor": "a", "near": "b", "far": "c"}])
    with listening(address) as said:
        run = Engine(tmp_path, str(events), "--follow", NOTIFY_SOCKET=given, WATCHDOG_USEC="300000")
        try:
            until(lambda: any("READY=1" in each for each in said), what="READY")
            until(lambda: any("WATCHDOG=1" in each and "1 comparisons" in each for each in said), what="WATCHDOG")
            run.process.send_signal(signal.SIGHUP)
            until(lambda: any("RELOADING=1\nMONOTONIC_USEC=" in each for each in said), what="RELOADING")
            until(lambda: any(line["event"] == "reloaded" for line in run.lines()), what="the log line")
        finally:
            run.stop()
        until(lambda: any("STOPPING=1" in each for each in said), what="STOPPING")
    assert said.index("READY=1") > next(n for n, each in enumerate(said) if "RELOADING" in each)


def test_no_sign_of_life_of_a_loop_that_hangs(tmp_path, monkeypatch):
    monkeypatch.setattr(systemd, "STATUS_EVERY", 0.02)
    problem = ""
    with listening(str(tmp_path / "n")) as said:
        environment = {"NOTIFY_SOCKET": str(tmp_path / "n"), "WATCHDOG_USEC": "60000", "WATCHDOG_PID": str(os.getpid())}
        manager = ServiceManager(environment)
        assert environment == {}  # child processes are no services
        with manager.watching(lambda: problem, lambda: "two\nlines"):
            until(lambda: "WATCHDOG=1\nSTATUS=two lines" in said, what="life")
            problem = "hangs"
            until(lambda: "STATUS=hangs" in said, what="the reason")
            n = len([each for each in said if "WATCHDOG" in each])
            time.sleep(0.2)
            assert len([each for each in said if "WATCHDOG" in each]) <= n + 1


def test_without_a_socket_or_with_one_that_is_gone_nothing_happens(tmp_path):
    for environment in ({}, {"NOTIFY_SOCKET": str(tmp_path / "gone"), "WATCHDOG_USEC": "x"}, {"NOTIFY_SOCKET": "@\0"}):
        with ServiceManager(environment).watching(str, str):
            pass
    assert "NOTIFY_SOCKET" not in ENVIRONMENT
