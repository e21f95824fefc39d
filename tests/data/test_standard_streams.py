"""Standard streams that no terminal obeys, that hold in every encoding, and that end nothing."""

import io
import json
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from stream_engine.data import standard_streams
from stream_engine.data.standard_streams import (
    ErrorStream,
    LineWriter,
    OutputStream,
    ReaderGone,
    TerminalCommands,
    printable,
)
from tests.support.process import ENVIRONMENT, jsonl

HOSTILE = "a\x1b]0;x\x07\x1b[2J\x7f\x9b1m\u202e\u2066é日😀"
_DIRECTIONS = (*range(0x202A, 0x202F), *range(0x2066, 0x206A))
OBEYED = {chr(code) for code in (*range(9), *range(11, 32), *range(0x7F, 0xA0), *_DIRECTIONS)}


def test_control_characters_are_written_as_json_writes_them():
    assert not OBEYED & set(printable("".join(OBEYED) + HOSTILE))
    assert printable("a\tb\nc é") == "a\tb\nc é"
    assert json.loads(printable(json.dumps(HOSTILE, ensure_ascii=False))) == HOSTILE


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "utf-8", "cp1252"])
def test_text_fits_every_encoding_and_json_stays_json(encoding):
    raw = io.BytesIO()
    stream = OutputStream(io.TextIOWrapper(raw, encoding=encoding))
    stream.write(json.dumps([HOSTILE, "\udc80"], ensure_ascii=False))
    stream.flush()
    written = raw.getvalue().decode(encoding)
    assert json.loads(written) == [HOSTILE, "\udc80"] and not OBEYED & set(written)


class Terminal(io.TextIOWrapper):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("kind", [io.TextIOWrapper, Terminal])
def test_bytes_are_for_programs_and_text_for_a_terminal(kind):
    raw = io.BytesIO()
    stream = OutputStream(kind(raw, encoding="utf-8"))
    stream.buffer.write(HOSTILE.encode() + b"\xff")
    stream.buffer.flush()
    assert (raw.getvalue() == HOSTILE.encode() + b"\xff") == (kind is not Terminal)
    assert (OBEYED & set(raw.getvalue().decode(errors="replace")) == set()) == (kind is Terminal)


def test_a_full_disk_takes_nothing_and_ends_nothing():
    with open("/dev/full", "wb", buffering=0) as full:
        lines = LineWriter(full.fileno())
        assert not lines.write(b"one\n")
        assert not lines.write(b"two\n")
        assert lines.lost == 2
    null = os.open(os.devnull, os.O_WRONLY)
    with open("/dev/full", "w") as full:
        output = OutputStream(full)
        with pytest.raises(OSError, match=standard_streams.STANDARD_OUTPUT):
            output.write("x" * 100_000)
            output.flush()
        os.dup2(null, full.fileno())  # so that it can be closed
    os.close(null)


def test_a_reader_that_is_gone_or_does_not_read_costs_lines_and_a_second(monkeypatch):
    monkeypatch.setattr(standard_streams, "PATIENCE", 50)
    reading, writing = os.pipe()
    lines = LineWriter(writing)
    n = 0
    while lines.write(b"x" * 4095 + b"\n"):
        n += 1
    assert n and lines.lost == 1
    drained = threading.Thread(target=lambda: os.read(reading, 1 << 20))
    drained.start()
    drained.join()
    assert lines.write(b"again\n")
    os.close(reading)
    assert not lines.write(b"gone\n") and lines.lost == 2
    os.close(writing)


def test_a_torn_line_is_ended_before_the_next_one(monkeypatch, tmp_path):
    with open(tmp_path / "log", "wb", buffering=0) as file:
        lines, write = LineWriter(file.fileno()), os.write
        answers = iter([lambda fd, data: write(fd, data[:3]), None])

        def full_after_three(descriptor, data):
            answer = next(answers)
            if answer is None:
                raise OSError(28, "No space left on device")
            return answer(descriptor, data)

        monkeypatch.setattr(os, "write", full_after_three)
        assert not lines.write(b"first line\n")
        monkeypatch.setattr(os, "write", write)
        assert lines.write(b"second line\n")
    assert (tmp_path / "log").read_bytes() == b"fir\nsecond line\n"


def test_standard_error_never_fails_and_bars_move_the_cursor():
    closed = io.StringIO()
    closed.close()
    assert not ErrorStream(closed).write_unchanged("x")
    inner = io.StringIO()
    stream = ErrorStream(inner)
    stream.write("\x1b[2J")
    TerminalCommands(stream).write("\x1b[A")
    assert inner.getvalue() == "\\u001b[2J\x1b[A"


def test_nobody_reads_standard_output():
    reading, writing = os.pipe()
    os.close(reading)
    null = os.open(os.devnull, os.O_WRONLY)
    with open(writing, "w") as inner:
        stream = OutputStream(inner)
        with pytest.raises(ReaderGone):
            stream.write("x\n" * 100_000)
            stream.flush()
        os.dup2(null, writing)  # so that it can be closed
    os.close(null)


def ended(arguments: list, **streams) -> tuple[int, str]:
    """How `stream-engine ARGUMENTS` ends, and what it said on the streams that are pipes."""
    command = [sys.executable, "-m", "stream_engine", *map(str, arguments)]
    streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE} | streams
    done = subprocess.run(command, env=ENVIRONMENT | {"PYTHONIOENCODING": "ascii"}, timeout=300, **streams)
    return done.returncode, ((done.stdout or b"") + (done.stderr or b"")).decode("ascii")


def test_commands_end_as_they_should_whatever_their_streams_are(tmp_path):
    events = jsonl(tmp_path / "e.jsonl", [{"anchor": HOSTILE, "near": "日", "far": "é"}, {"anchor": HOSTILE}])
    state = tmp_path / "state"
    with open("/dev/full", "w") as full:
        assert ended(["run", events, "--state", state, "--no-refits", "--max-reject-ratio", 1], stderr=full)[0] == 0
        status, said = ended(["inspect", "--state", state], stdout=full)
        assert status == 1
        assert len(said.splitlines()) == 1
        assert "standard output" in said
    reading, writing = os.pipe()
    os.close(reading)
    assert ended(["inspect", "--state", state], stdout=writing) == (141, "")
    assert ended(["verify", "--state", state], stderr=writing)[0] == 0
    os.close(writing)
    for arguments in (["preview", events, "--json"], ["dead-letters", "show", "--state", state]):
        status, said = ended(arguments)
        assert status == 0
        assert not OBEYED & set(said)
        assert "\\u" in said
    assert Path(state, "snapshots").is_dir()
