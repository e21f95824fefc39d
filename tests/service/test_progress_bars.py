"""Bars and log lines on one terminal: a real run on a pseudo-terminal, and the screen that comes of it."""

import fcntl
import json
import os
import pty
import re
import struct
import subprocess
import sys
import termios

from tests.support.facts import states
from tests.support.process import ENVIRONMENT

BAR, LOG = re.compile(r"comparisons: .*/s\]|%\|"), re.compile(r"\[(info|warning|error)")


def screen(data):
    """The lines that a terminal shows, by what moves its cursor: returns, line feeds, and one line up."""
    lines, row, column = [""], 0, 0
    for token in re.findall(r"\x1b\[[0-9;]*[A-Za-z]|.|\n|\r", data, re.S):
        if token == "\n":
            row, column = row + 1, 0
        elif token == "\r":
            column = 0
        elif token.startswith("\x1b"):
            row -= token == "\x1b[A"
        else:
            lines += [""] * (row + 1 - len(lines))
            lines[row] = lines[row].ljust(column)[:column] + token + lines[row][column + 1 :]
            column += 1
        lines += [""] * (row + 1 - len(lines))
    return [line.rstrip() for line in lines]


def on_a_terminal(*arguments):
    """What a command writes to a terminal, and its exit status."""
    leader, follower = pty.openpty()
    fcntl.ioctl(follower, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 160, 0, 0))
    command = [sys.executable, "-m", "stream_engine", *map(str, arguments)]
    process = subprocess.Popen(command, stdout=follower, stderr=follower, stdin=follower, env=ENVIRONMENT)
    os.close(follower)
    told = b""
    try:
        while piece := os.read(leader, 1 << 16):
            told += piece
    except OSError:  # the other end is closed
        pass
    os.close(leader)
    return told.decode(), process.wait()


def test_no_line_of_the_log_shares_its_line_with_a_bar(tmp_path):
    rows = [{"anchor": f"a{i % 9}", "near": f"b{i % 7}", "far": f"c{i % 5}"} for i in range(4000)]
    (tmp_path / "e.jsonl").write_text("".join(json.dumps(row) + "\n" for row in [*rows, {"anchor": "a"}]))
    (tmp_path / "c.toml").write_text("[snapshot]\nevery = 500\n")
    state, config = tmp_path / "s", tmp_path / "c.toml"
    told, status = on_a_terminal("run", tmp_path / "e.jsonl", "--state", state, "--no-refits", "-v", "--config", config)
    lines = screen(told)
    assert status == 0 and sum(bool(LOG.search(line)) for line in lines) >= 10
    assert any(BAR.search(line) for line in lines)
    assert not [line for line in lines if BAR.search(line) and LOG.search(line)]
    starts = [line for line in lines if LOG.search(line)]
    assert all(re.match(r"\d{4}-\d\d-\d\dT", line) for line in starts), starts
    assert states(lines[-2], "4,000 … e.jsonl")
