"""Dead letters as a person finds them: the lines, the segments, the refusals. Crashes: tests/crash."""

import base64
import json
import os

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from connectors import SINKS, DeadLetter, SinkUnavailable, UnusableSource, resolve
from connectors.disk import Disk
from connectors.files.dead_letter_sink import DeadLetterFile, encode


def letter(i, value=b"{"):
    return DeadLetter("/data/e.jsonl", 10 * i, i, "not_parseable", f"line {i}", value)


def _bytes(found, name):
    return found[name].encode() if name in found else base64.b64decode(found[name + "_base64"])


def lines(directory):
    return [json.loads(line) for path in sorted(directory.iterdir()) for line in path.read_bytes().split(b"\n")[:-1]]


@settings(max_examples=100, deadline=None)
@given(
    value=st.binary(max_size=20),
    key=st.none() | st.binary(max_size=5),
    partition=st.text(max_size=5),
    message=st.text(st.characters(), max_size=10),
)
def test_every_byte_of_an_event_comes_back(value, key, partition, message):
    line = encode(DeadLetter(partition, 1 << 60, 3, "unknown_type", message, value, key))
    assert line.endswith(b"\n") and line.count(b"\n") == 1
    found = json.loads(line)
    assert _bytes(found, "value") == value
    assert _bytes(found, "key") == key if key is not None else not {"key", "key_base64"} & found.keys()
    assert (found["partition"], found["offset"], found["index"], found["reason"], found["message"]) == (
        partition,
        1 << 60,
        3,
        "unknown_type",
        message,
    )


def test_a_lone_surrogate_in_a_path_is_kept():
    assert json.loads(encode(letter(0)._replace(partition="a\udcff")))["partition"] == "a\udcff"


def test_positions_cut_back_what_came_later(tmp_path):
    directory = tmp_path / "state" / "dead_letters"  # neither is there yet
    sink = resolve("file", SINKS)(directory)
    assert sink.flush() == 0 and not directory.exists()
    sink.append([letter(0), letter(1, b"\xff")])
    position = sink.flush()
    sink.append([letter(2)])
    assert sink.flush() > position == (directory / "000001.jsonl").read_bytes().index(b"\n", 200) + 1
    sink.append([letter(3)])  # never flushed
    sink.close()
    again = DeadLetterFile(directory, position)
    assert [each["offset"] for each in lines(directory)] == [0, 10]
    again.append([letter(2)])
    again.flush()
    assert [each["offset"] for each in lines(directory)] == [0, 10, 20]
    assert lines(directory)[1]["value_base64"] == "/w=="
    DeadLetterFile(directory, 0)
    assert list(directory.iterdir()) == []


def test_segments_roll_and_old_ones_may_be_moved_away(tmp_path):
    sink, positions = DeadLetterFile(tmp_path, segment_bytes=250), []
    for i in range(9):
        sink.append([letter(i)])
        positions.append(sink.flush())
    names = sorted(os.listdir(tmp_path))
    assert names == ["000001.jsonl", "000002.jsonl", "000003.jsonl"] and positions == sorted(set(positions))
    assert [each["index"] for each in lines(tmp_path)] == list(range(9))
    (tmp_path / "notes.txt").write_text("mine")
    (tmp_path / names[0]).unlink()
    DeadLetterFile(tmp_path, positions[7], segment_bytes=250)
    assert sorted(os.listdir(tmp_path)) == [*names[1:], "notes.txt"]
    DeadLetterFile(tmp_path, positions[3], segment_bytes=250)
    assert sorted(os.listdir(tmp_path)) == [names[1], "notes.txt"]
    with pytest.raises(UnusableSource, match="000001.jsonl holds 0 bytes, the snapshot relies on"):
        DeadLetterFile(tmp_path, positions[0], segment_bytes=250)
    assert sorted(os.listdir(tmp_path)) == [names[1], "notes.txt"]


@pytest.mark.parametrize(("over", "held"), [(-1, 3), (0, 3), (1, 4)])
@pytest.mark.parametrize("asked", [False, True])
def test_a_segment_ends_with_the_letter_that_fills_it(tmp_path, over, held, asked):
    """Also one that was begun because it was asked for."""
    sink = DeadLetterFile(tmp_path, segment_bytes=3 * len(encode(letter(1))) + over)
    if asked:
        sink.append([letter(1)])
        sink.begin_segment()
    sink.append([letter(1)] * 9)
    sink.flush()
    found = [file.read_bytes().count(b"\n") for file in sorted(tmp_path.iterdir())]
    assert found == [1] * asked + {3: [3, 3, 3], 4: [4, 4, 1]}[held]


def test_large_appends_do_not_wait_in_memory(tmp_path):
    sink = DeadLetterFile(tmp_path)
    sink.append([letter(i, b"x" * 100_000) for i in range(12)])
    assert (tmp_path / "000001.jsonl").stat().st_size > 1 << 20


def test_a_disk_that_refuses_keeps_the_letters(tmp_path):
    class Full(Disk):
        full = True

        def append(self, path, chunks):
            if self.full:
                super().append(path, [b"".join(chunks)[:10]])
                raise OSError(28, "No space left on device")
            super().append(path, chunks)

    disk = Full()
    sink = DeadLetterFile(tmp_path, disk=disk)
    sink.append([letter(0)])
    for _ in range(2):
        with pytest.raises(SinkUnavailable, match="No space left on device; they are kept in memory"):
            sink.flush()
    disk.full = False
    sink.flush()
    assert [each["offset"] for each in lines(tmp_path)] == [0]


def test_a_place_that_is_no_directory_is_refused_in_one_line(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(UnusableSource, match="file: dead letters cannot be kept there: Not a directory"):
        DeadLetterFile(tmp_path / "file", 0)
