"""Followed files: appends, rotation by renaming, truncation, files that appear; nothing lost, everything said."""

import os
import random
import resource
import zlib
from collections import Counter
from pathlib import Path
from time import monotonic

import pytest

from connectors import Position, SourceFailed, UnusableSource, open_source
from connectors.files import follow as following
from connectors.files.follow import CLOCK_TICK_SECONDS, LOOKS_PER_SECOND, FollowedPath
from tests.support import process
from tests.support.facts import states


def follow(path, positions=None, **options):
    return open_source(str(path), positions or {}, follow=True, **options)


def records_of(source):
    """All that is there."""
    found = []
    while records := source.poll(0.0):
        found += records
    return found


def now(source):
    return [record.value for record in records_of(source)]


def until(source, done):
    """What a source gives until that is enough."""
    values = []

    def enough() -> bool:
        values.extend(record.value for record in source.poll(0.05))
        return bool(done(values))

    process.until(enough, what="what a followed file gives")
    return values


@pytest.fixture
def log(tmp_path):
    path = tmp_path / "e.jsonl"
    path.write_bytes(b"1\n2\nhalf")
    return path


def append(path: Path, data: bytes):
    with path.open("ab") as file:
        file.write(data)


def test_a_rotated_file_is_drained_before_the_new_one_is_read(log):
    source = follow(log)
    now(source)
    log.rename(log.with_suffix(".old"))
    assert now(source) == []
    (notice,) = source.notices()
    assert str(log) in notice
    append(log.with_suffix(".old"), b" done\n3\nlast")  # its writer has not moved on yet
    assert now(source) == [b"half done\n3\n"]
    log.write_bytes(b"")
    append(log.with_suffix(".old"), b" line")
    assert now(source) == []  # nor is this a sign that it has
    append(log, b"new\n")
    assert until(source, lambda values: values[-1:] == [b"new\n"]) == [b"last line", b"new\n"]
    (notice,) = source.notices()
    assert states(notice, f"{log} … byte 25")
    (record,) = [r for r in [append(log, b"more\n"), *source.poll(0.1)] if r]
    assert (record.offset, record.next_offset, record.mark) == (4, 9, zlib.crc32(b"new\nmore\n"))
    source.close()


@pytest.mark.parametrize(
    "new, said",
    [
        (b"n\n", "2 bytes … 4 … 4 bytes"),
        (b"another\nand longer than before\n", "4"),
        (b"", "0 bytes"),
    ],
)
def test_truncation_in_place_is_said_and_read_from_the_beginning(log, new, said):
    source = follow(log)
    now(source)
    with log.open("r+b") as file:  # the same inode
        file.truncate(0)
        file.write(new)
    assert until(source, lambda values: b"".join(values) == new) == [new] * bool(new)
    (notice,) = source.notices()
    assert states(notice, f"{log} … {said}")
    (lost,) = source.losses()  # the line whose first half was there
    assert lost[:4] == (str(log), 4, 0, 1)
    assert "4 bytes" in lost.why
    assert source.losses() == []
    append(log, b"x\n")
    assert until(source, bool) == [b"x\n"] and source.notices() == []
    source.close()


@pytest.mark.parametrize("content, said", [(b"1\n", "2 bytes … 4"), (b"other\n" * 3, "4")])
def test_what_was_replaced_while_nobody_looked_is_said_and_read_anew(log, content, said):
    log.write_bytes(content)
    source = follow(log, {str(log): Position(4, zlib.crc32(b"1\n2\n"))})
    assert until(source, bool) == [content]
    assert states(source.notices()[0], said)
    source.close()


def test_a_rewrite_that_leaves_size_and_time_as_they_were_is_seen_all_the_same(log):
    """Two writes within one tick of a file system's clock: until a file has settled, its first bytes are looked at."""
    source = follow(log)
    assert now(source) == [b"1\n2\n"]
    then = log.stat()
    with log.open("r+b") as file:
        file.write(b"3\n4\n5\n67")
    os.utime(log, ns=(then.st_atime_ns, then.st_mtime_ns))
    assert until(source, bool) == [b"3\n4\n5\n"] and str(log) in source.notices()[0]
    source.close()


def test_a_path_that_does_not_exist_yet_is_waited_for(tmp_path):
    path = tmp_path / "later.csv"
    source = follow(path)
    assert now(source) == [] and not source.ready()
    (notice,) = source.notices()
    assert str(path) in notice
    path.write_bytes(b"a,b\n1,")
    assert now(source) == []
    assert source.ready()
    assert source.notices() == [f"{path} has appeared"]
    append(path, b'"x\n')
    assert now(source) == []
    append(path, b'y"\n')
    assert [(r.header, r.value) for r in source.poll(1)] == [(b"a,b\n", b'1,"x\ny"\n')]
    source.close()


def test_new_files_of_a_glob_are_taken_up_and_rotated_ones_are_not(tmp_path):
    source = follow(tmp_path / "*.jsonl")
    (notice,) = source.notices()
    assert f"{tmp_path}/*.jsonl" in notice
    assert not source.ready()
    first, second, rotated = (tmp_path / name for name in ("b.jsonl", "a.jsonl", "c.jsonl"))
    first.write_bytes(b"1\n")
    assert until(source, bool) == [b"1\n"]
    (notice,) = source.notices()
    assert states(notice, f"{first} … byte 0")
    second.write_bytes(b"2\n")
    assert until(source, bool) == [b"2\n"]
    first.rename(rotated)
    first.write_bytes(b"3\n")
    assert until(source, bool) == [b"3\n"]
    (tmp_path / "d.jsonl").write_bytes(b"4\n")
    os.symlink(tmp_path.parent / f"{tmp_path.name}-nowhere", tmp_path / "e.jsonl")
    assert until(source, bool) == [b"4\n"] and now(source) == []
    said = " ".join(source.notices())
    (tmp_path.parent / f"{tmp_path.name}-nowhere").write_bytes(
        b"5\n"
    )  # what the link points at, in a folder that nobody looks at
    assert until(source, bool) == [b"5\n"]
    assert str(rotated) in said and str(first) in said
    source.close()


def test_what_appears_and_cannot_be_followed_is_said_once(tmp_path):
    (tmp_path / "a.jsonl").write_bytes(b"1\n")
    source = follow(tmp_path / "*")
    (tmp_path / "a.gz").write_bytes(b"")
    (tmp_path / "b.jsonl").write_bytes(b"2\n")
    assert sorted(until(source, lambda values: len(values) == 2)) == [b"1\n", b"2\n"]
    until(source, lambda values: True)
    assert next(notice for notice in source.notices() if "a.gz" in notice).startswith("not followed: ")
    source.close()


@pytest.mark.parametrize("name", ["x.jsonl.gz", "x.parquet", "x.arrow", "missing.zst", "missing.log", "."])
def test_only_plain_text_files_can_be_followed(tmp_path, name):
    (tmp_path / name).write_bytes(b"") if name.startswith("x") else None
    with pytest.raises(UnusableSource) as refused:
        follow(tmp_path / name)
    assert "\n" not in str(refused.value)


def test_files_take_turns(tmp_path):
    for name in "abc":
        (tmp_path / f"{name}.jsonl").write_bytes(name.encode() * 9 + b"\n" + (name.encode() * 9 + b"\n") * 20)
    source, order = follow(tmp_path / "*.jsonl", block_bytes=10), []
    while records := source.poll(0.0):
        assert sum(len(record.value) for record in records) <= 20
        order += [record.value[:1] for record in records]
    assert order == [b"a", b"b", b"c"] * 21
    source.close()


def test_a_file_that_is_no_table_stops_the_engine_in_one_line(tmp_path):
    (tmp_path / "x.csv").write_bytes(b"a,b\r1,2\r\n")
    with pytest.raises(SourceFailed, match="x.csv.*CR"):
        follow(tmp_path / "x.csv").poll(0.1)


def test_a_writer_that_rotates_and_cuts_at_random_loses_nothing(tmp_path):
    """Appends in pieces, rotation by renaming, restarts from the position: every line once, in order."""
    rng, path = random.Random(7), tmp_path / "e.jsonl"
    written, read, positions, pending = [], [], {}, b""
    source = follow(path, block_bytes=40)
    for step in range(400):
        what = rng.random()
        if what < 0.6:
            line = f"line {len(written)} ".encode() + b"x" * rng.randrange(30)
            written.append(line)
            pending += line + b"\n"
        cut = rng.randrange(len(pending) + 1)
        append(path, pending[:cut])
        pending = pending[cut:]
        if what > 0.95:
            append(path, pending)
            pending = b""
            # drained before it goes: a rotation while nobody looks is the one case that cannot be read
            for r in records_of(source):
                read.append(r)
                positions = {r.partition: Position(r.next_offset, r.mark)}
            path.rename(tmp_path / f"old{step}")
            append(path, f"# rotated {step} {rng.random()}\n".encode())
            written.append(path.read_bytes()[:-1])
        records = source.poll(0.0)
        read += records
        positions |= {r.partition: Position(r.next_offset, r.mark) for r in records}
        if 0.8 < what < 0.85 and positions:
            source.close()
            source = follow(path, positions, block_bytes=40)
    append(path, pending)
    while records := source.poll(0.1):
        read += records
    source.close()
    assert b"".join(record.value for record in read).splitlines() == written and len(written) > 200
    assert not any(record.problem for record in read)


# -- many files ------------------------------------------------------------------------------------------------


def descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


@pytest.mark.parametrize("most_open", [150, 149])
def test_many_files_are_followed_and_every_line_is_read_once(tmp_path, monkeypatch, most_open):
    """Appends here and there, rotations: each path's lines once, in order. One descriptor for each path, or, where
    there are fewer, none for files without news."""
    monkeypatch.setattr(following, "files_allowed", lambda: most_open)
    rng, paths = random.Random(3), [tmp_path / f"{n:03}.jsonl" for n in range(150)]
    written = {str(path): ["first"] for path in paths}
    read = {str(path): [] for path in paths}
    for path in paths:
        path.write_bytes(b"first\n")
    before = descriptors()
    source = follow(tmp_path / "???.jsonl")

    def take_all():  # a path that is rotated twice before it is looked at loses its middle file, as ever
        end = monotonic() + 300
        while any(len(read[name]) < len(lines) for name, lines in written.items()):
            assert monotonic() < end, source.notices()
            for record in source.poll(0.2):
                read[record.partition] += record.value.decode().splitlines()

    def put(path, line, end="\n"):
        written[str(path)].append(line)
        append(path, (line + end).encode())

    for step in range(8):
        take_all()
        for path in rng.sample(paths, 20):
            what = rng.random()
            for n in range(rng.randrange(3)):
                put(path, f"{path.name} step {step} line {n}")
            if what < 0.3:
                put(path, "the last line has no end", "") if what < 0.15 else None
                path.rename(path.with_suffix(f".jsonl.{step}"))
                put(path, f"# {step} made anew")
    take_all()
    kept = len(paths) if most_open == len(paths) else 0
    until(source, lambda values: descriptors() - before == kept)  # rotated files are closed a little later
    source.close()
    assert read == written and descriptors() == before


def test_a_file_that_was_moved_away_while_it_was_closed_is_told(log, monkeypatch):
    monkeypatch.setattr(following, "files_allowed", lambda: 0)
    source = follow(log)
    now(source)
    (log.parent / "elsewhere").mkdir()
    log.rename(log.parent / "elsewhere" / log.name)
    log.write_bytes(b"new\n")
    assert until(source, lambda values: values) == [b"new\n"]
    notices = source.notices()
    assert len(notices) == 1 and states(notices[0], f"{log} … 4 … not read")
    source.close()


def test_a_removed_file_that_is_made_anew_is_another_one(log):
    source = follow(log)
    now(source)
    log.unlink()
    assert now(source) == [] and str(log) in source.notices()[0]
    log.write_bytes(b"new\n")
    assert until(source, lambda values: values[-1:] == [b"new\n"]) == [b"half", b"new\n"]
    source.close()


def test_an_endless_line_of_a_growing_file_is_refused_whole_and_the_next_is_read(log):
    source = follow(log, max_item_bytes=100, block_bytes=50)
    now(source)
    append(log, b"x" * 500)
    assert now(source) == []
    append(log, b"x" * 500 + b"\nnext\n")
    long, following = (record for _ in range(4) for record in source.poll(0.2))
    assert (long.offset, long.next_offset) == (4, 1009) and states(long.problem, "1,005 bytes … 100")
    assert following.value == b"next\n"
    source.close()


def test_files_without_news_are_looked_at_seldom_and_those_with_news_at_once(tmp_path, monkeypatch):
    """What a thousand idle files cost is counted in looks, not in seconds."""
    for n in range(1000):
        (tmp_path / f"{n}.jsonl").write_bytes(b"1\n")
    source = open_source(str(tmp_path / "*.jsonl"), {}, follow=True)
    looks, look = Counter(), FollowedPath.read
    monkeypatch.setattr(FollowedPath, "read", lambda tail: looks.update([tail.path]) or look(tail))
    busy = tmp_path / "7.jsonl"
    assert len(now(source)) == 1000
    interval = 1000 / LOOKS_PER_SECOND  # seconds between two looks at a file without news
    ends = monotonic() + 2 * CLOCK_TICK_SECONDS
    while monotonic() < ends:
        assert source.poll(0.1) == []
    looks.clear()
    began = monotonic()
    for _ in range(10):
        append(busy, b"2\n")
        assert until(source, bool) == [b"2\n"]
    del looks[str(busy)]
    most = 1 + (monotonic() - began) / interval  # however slow the machine is
    assert max(looks.values(), default=0) <= most and looks.total() <= 999 * most
    source.close()


def test_no_descriptor_left_is_said_once_and_the_file_is_read_when_there_is_one(log):
    source = follow(log)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    lowest = os.open("/dev/null", os.O_RDONLY)
    os.close(lowest)
    resource.setrlimit(resource.RLIMIT_NOFILE, (lowest, hard))
    try:
        assert now(source) == []
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    (told,) = source.notices()
    assert told.startswith(f"{log}: ") and "ulimit -n" in told
    assert now(source) == [b"1\n2\n"]
    source.close()


def test_it_can_be_asked_whether_it_is_ready_while_files_come(tmp_path, monkeypatch):
    """As from the thread that answers HTTP, in between two looks at files that have gone."""
    (tmp_path / "a.jsonl").write_text("1\n")
    (tmp_path / "b.jsonl").write_text("1\n")
    source = open_source(str(tmp_path / "*.jsonl"), {}, follow=True)
    is_there = FollowedPath.is_there

    def slow(tail):
        path = tmp_path / "c.jsonl"
        if not path.exists():
            path.write_text("2\n")
            until(source, lambda values: any(b"2" in value for value in values))
        return is_there(tail)

    for name in "ab":
        (tmp_path / f"{name}.jsonl").unlink()
    monkeypatch.setattr(FollowedPath, "is_there", slow)
    assert not source.ready() and source.ready()
