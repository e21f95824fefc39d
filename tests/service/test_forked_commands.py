"""Commands of a fork server are what new processes are to those who start them."""

import os
import signal
import subprocess

import pytest

from stream_engine.service.forked_commands import ForkServer


@pytest.fixture(scope="module")
def server():
    server = ForkServer(["stream_engine.commands.command_line"])
    yield server
    server.close()


def run(server, *command, **variables):
    """Exit status, and what is written."""
    read, write = os.pipe()
    process = server.fork(command, {**os.environ, **variables}, write, write)
    os.close(write)
    with os.fdopen(read) as written:
        return process.wait(60), written.read()


def test_a_command_has_its_arguments_variables_folder_and_status(server, tmp_path, monkeypatch):
    (tmp_path / "said.py").write_text(
        "import os, sys; print(os.environ.get('A'), os.getcwd()); sys.exit(len(sys.argv))"
    )
    monkeypatch.setenv("PATH", f"{os.environ['PATH']}:/nowhere")
    monkeypatch.chdir(tmp_path)
    command = "runpy", "said.py", "b"
    assert run(server, *command, A="a") == (2, f"a {tmp_path}\n")
    assert run(server, *command) == (2, f"None {tmp_path}\n")
    assert run(server, "stream_engine", "nonsense")[0] == 2


def test_many_variables_of_this_process_are_no_matter(monkeypatch):
    monkeypatch.setenv("LONG", "x" * 100_000)
    for number in range(5):
        monkeypatch.setenv(f"LONG_{number}", "x" * 100_000)
    server = ForkServer([])
    assert run(server, "stream_engine", "--version")[0] == 0
    server.close()


def test_what_was_killed_is_told_and_the_next_command_runs(server):
    waiting = "timeit", "-n", "1", "-r", "1", "__import__('time').sleep(600)"
    with open(os.devnull, "w") as nowhere:
        process = server.fork(waiting, os.environ, nowhere.fileno(), nowhere.fileno())
        assert process.poll() is None
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(0.01)
        process.terminate()
        assert process.wait(60) == -signal.SIGTERM
        process = server.fork(waiting, os.environ, nowhere.fileno(), nowhere.fileno())
        os.kill(server.pid, signal.SIGKILL)
        assert process.wait(60) == -signal.SIGKILL
    assert run(server, "stream_engine", "--version")[0] == 0
