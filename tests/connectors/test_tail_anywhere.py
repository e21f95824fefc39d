"""Cuts, rotations and copies at every place between what was handed on and what was read, of files larger than any head
that is compared: every line is read, or a notice says so, and no line is put together of two files."""

import os
import shutil
from itertools import product

import pytest

from connectors import open_source
from connectors.files.line_blocks import MARK_BYTES

WIDTH, LINES = 40, 240
FIRST = [f"first {n:4} ".encode().ljust(WIDTH - 1, b"a") for n in range(LINES)]
SECOND = [f"second {n:4} ".encode().ljust(WIDTH - 1, b"b") for n in range(2 * LINES)]
HALF = b"half of a line that its writer has not finished"
WHOLE = b"".join(line + b"\n" for line in FIRST)
AGAIN = b"".join(line + b"\n" for line in SECOND)
assert len(WHOLE) > 2 * MARK_BYTES


def taken(source):
    """All lines that are there; after a rotation, those of the new file at the next look."""
    found, idle = [], 0
    while idle < 2:
        records = source.poll(0.0)
        assert not any(record.problem for record in records)
        found += [line for record in records for line in record.value.splitlines()]
        idle = 0 if records else idle + 1
    return found


def cut(path, at):
    """Cut there, and written on past all that was there."""
    with path.open("r+b") as file:
        file.truncate(at)
        file.seek(at)
        file.write(AGAIN)
    return path.read_bytes()


def written_over(path, at):
    """Other bytes from there on, and more of them."""
    with path.open("r+b") as file:
        file.seek(at)
        file.write(AGAIN)
    return path.read_bytes()


def copied(path, at):
    """Copied elsewhere, emptied, written anew: what was there up to `at`, and then others (as `copytruncate`)."""
    before = path.read_bytes()
    shutil.copy(path, path.with_suffix(".copy"))
    with path.open("r+b") as file:
        file.truncate(0)
        file.write(before[:at] + AGAIN)
    return path.read_bytes()


def rotated(path, at):
    """Renamed, with what its writer still had to say; a new file of that name."""
    old = path.with_suffix(".old")
    os.rename(path, old)
    with old.open("ab") as file:
        file.write(b" is finished now\n")
    path.write_bytes(AGAIN)
    return AGAIN


PLACES = (-3 * WIDTH - 7, -WIDTH, -1, 0, 1, 7, len(HALF) - 1, len(HALF))  # from what was handed on, to what was read


@pytest.mark.parametrize("happens", [cut, written_over, copied])
def test_what_happens_in_place_beyond_the_head_is_said_and_every_line_that_is_there_is_read(happens, tmp_path):
    for number, (place, block_bytes) in enumerate(product(PLACES, (97, 1 << 20))):
        path = tmp_path / f"{number}.jsonl"
        path.write_bytes(WHOLE + HALF)
        source = open_source(str(path), {}, follow=True, block_bytes=block_bytes)
        assert taken(source) == FIRST and source.notices() == []
        there = happens(path, len(WHOLE) + place)
        found, notices = taken(source), source.notices()
        source.close()
        if place == len(HALF):  # it goes on as if its writer had: nobody can know otherwise
            assert notices == [] and found == (HALF + AGAIN).splitlines()
            continue
        (said,) = notices
        assert f"{path} " in said
        assert found == there.splitlines(), (happens, place)


@pytest.mark.parametrize("again", [None, MARK_BYTES, len(WHOLE) - 1])
def test_a_rotation_within_a_line_loses_nothing(again, tmp_path):
    """However far the file was read when it got another name; `again`: opened anew at a position there before."""
    path = tmp_path / "e.jsonl"
    path.write_bytes(WHOLE + HALF)
    source = open_source(str(path), {}, follow=True, block_bytes=97)
    found = []
    while again and len(b"\n".join(found)) < again - WIDTH * 3:
        found += [line for record in source.poll(0.0) for line in record.value.splitlines()]
    if not again:
        found = taken(source)
    rotated(path, 0)
    found += taken(source)
    assert found == [*FIRST, HALF + b" is finished now", *SECOND]
    assert any("was rotated" in each for each in source.notices()) and source.losses() == []
    source.close()


def test_an_endless_line_of_a_rotated_file_costs_none_of_those_behind_it(tmp_path):
    """It takes many looks to get past it; only then is the new file read."""
    path = tmp_path / "e.jsonl"
    path.write_bytes(b"1\n")
    source = open_source(str(path), {}, follow=True, max_item_bytes=100, block_bytes=50)
    assert taken(source) == [b"1"]
    with path.open("ab") as file:
        file.write(b"x" * (7 << 20) + b"\nbehind it\n")
    os.rename(path, path.with_suffix(".old"))
    path.write_bytes(b"new\n")
    records = [record for _ in range(300) for record in source.poll(0.0)]
    assert [record.value for record in records if not record.problem] == [b"behind it\n", b"new\n"]
    assert [(record.offset, record.too_large) for record in records if record.problem] == [(2, True)]
    source.close()
