"""Dead letters as a person finds them: the lines, the segments, the refusals. Crashes: tests/crash."""

import base64
import json
import os

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from connectors import DeadLetter, UnusableSource
from connectors.disk import Disk
from connectors.files.dead_letters import (
    DeadLetterFile,
    check_folder,
    decode,
    encode,
    letters_before,
    overwrite,
)
from tests.support.facts import states


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
    letter = DeadLetter(partition, 1 << 60, 3, "unknown_type", message, value, key)
    line = encode(letter)
    assert decode(line) == letter
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


def test_positions_cut_back_what_came_later(tmp_path):
    directory = tmp_path / "state" / "dead_letters"  # neither is there yet
    sink = DeadLetterFile(directory)
    assert sink.flush() == 0 and not directory.exists()
    sink.append([letter(0), letter(1, b"\xff")])
    position = sink.flush()
    sink.append([letter(2)])
    assert sink.flush() > position == (directory / "000001.jsonl").read_bytes().index(b"\n", 200) + 1
    sink.append([letter(3)])  # never flushed
    again = DeadLetterFile(directory, position)
    assert [each["offset"] for each in lines(directory)] == [0, 10]
    again.append([letter(2)])
    again.flush()
    assert [each["offset"] for each in lines(directory)] == [0, 10, 20]
    assert lines(directory)[1]["value_base64"] == "/w=="
    DeadLetterFile(directory, 0)
    assert list(directory.iterdir()) == []


def test_segments_roll_and_old_ones_may_be_moved_away(tmp_path):
    sink, positions = DeadLetterFile(tmp_path, segment_bytes=300), []
    for i in range(9):
        sink.append([letter(i)])
        positions.append(sink.flush())
    names = sorted(os.listdir(tmp_path))
    assert names == ["000001.jsonl", "000002.jsonl", "000003.jsonl"] and positions == sorted(set(positions))
    assert [each["index"] for each in lines(tmp_path)] == list(range(9))
    (tmp_path / "notes.txt").write_text("mine")
    (tmp_path / names[0]).unlink()
    DeadLetterFile(tmp_path, positions[7], segment_bytes=300)
    assert sorted(os.listdir(tmp_path)) == [*names[1:], "notes.txt"]
    DeadLetterFile(tmp_path, positions[3], segment_bytes=300)
    assert sorted(os.listdir(tmp_path)) == [names[1], "notes.txt"]
    lost = DeadLetterFile(tmp_path, positions[0], segment_bytes=300).lost
    assert states(lost, "000001.jsonl … 0 bytes")


@pytest.mark.parametrize(("over", "held"), [(-1, [3, 3, 3]), (0, [3, 3, 3]), (1, [4, 4, 1])])
def test_a_segment_ends_with_the_letter_that_fills_it(tmp_path, over, held):
    sink = DeadLetterFile(tmp_path, segment_bytes=3 * len(encode(letter(1))) + over)
    sink.append([letter(1)] * 9)
    sink.flush()
    assert [file.read_bytes().count(b"\n") for file in sorted(tmp_path.iterdir())] == held


def test_a_flipped_bit_in_any_byte_is_found(tmp_path):
    """Also in letters whose value is no text, has no key, or was deleted; and every cut."""
    sink = DeadLetterFile(tmp_path, segment_bytes=500)
    sink.append([letter(0), letter(1, b"\xff"), letter(2)._replace(key=b"k"), letter(3, b'a,"crc":"'), letter(4)])
    position = sink.flush()
    assert overwrite(tmp_path, lambda each: each == letter(4), Disk()) == 1
    checked = check_folder(tmp_path, position)
    assert [(each.letters, each.unchecked, each.problem) for each in checked] == [(4, 0, ""), (0, 0, "")]
    for path in tmp_path.iterdir():
        whole = path.read_bytes()
        for at in range(len(whole)):
            flipped = bytearray(whole)
            flipped[at] ^= 1 << at % 8
            path.write_bytes(flipped)
            assert any(each.problem for each in check_folder(tmp_path, position)), (path.name, at)
        path.write_bytes(whole[:-1])
        assert any(each.problem for each in check_folder(tmp_path, position))
        path.write_bytes(whole)
    assert not any(each.problem for each in check_folder(tmp_path, position))


def test_a_missing_segment_in_the_middle_is_found(tmp_path):
    sink = DeadLetterFile(tmp_path, segment_bytes=100)
    sink.append([letter(i) for i in range(4)])
    position = sink.flush()
    (tmp_path / "000001.jsonl").unlink()
    assert not any(each.problem for each in check_folder(tmp_path, position))  # moved away
    (tmp_path / "000003.jsonl").unlink()
    assert [each.name for each in check_folder(tmp_path, position) if each.problem] == ["000003.jsonl"]


def test_lines_of_version_0_1_0_have_no_checksum(tmp_path):
    old = b'{"partition":"f","offset":7,"index":0,"reason":"not_parseable","message":"no JSON","value":"{"}\n'
    (tmp_path / "000001.jsonl").write_bytes(old)
    assert check_folder(tmp_path, len(old)) == [("000001.jsonl", 1, 1, 0, "")]
    [kept] = letters_before(tmp_path, len(old))
    assert kept.letter == DeadLetter("f", 7, 0, "not_parseable", "no JSON", b"{")


def test_deleted_letters_change_no_position(tmp_path):
    sink = DeadLetterFile(tmp_path, segment_bytes=300)
    sink.append([letter(i) for i in range(7)])
    position = sink.flush()
    before = [(kept.at, kept.letter) for kept in letters_before(tmp_path, position)]
    assert overwrite(tmp_path, lambda each: each.event_index in (0, 1, 5), Disk()) == 3, "two of them in one segment"
    assert overwrite(tmp_path, lambda each: each.event_index in (0, 1, 5), Disk()) == 0
    left = [(kept.at, kept.letter) for kept in letters_before(tmp_path, position)]
    assert left == [each for each in before if each[1].event_index not in (0, 1, 5)]
    assert DeadLetterFile(tmp_path, position, segment_bytes=300).flush() == position
    assert b"line 1" not in b"".join(path.read_bytes() for path in tmp_path.iterdir())


def test_large_appends_do_not_wait_in_memory(tmp_path):
    sink = DeadLetterFile(tmp_path)
    sink.append([letter(i, b"x" * 100_000) for i in range(12)])
    assert (tmp_path / "000001.jsonl").stat().st_size > 1 << 20


def test_a_place_that_is_no_directory_is_refused_in_one_line(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(UnusableSource, match="file.*Not a directory"):
        DeadLetterFile(tmp_path / "file", 0)
