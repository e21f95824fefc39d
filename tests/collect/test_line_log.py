"""The log that answers are durable in: group commit, torn lines, full and failing disks, power cuts at every moment."""

import errno
import os
import subprocess
import sys
import threading
from concurrent.futures import Future
from pathlib import Path

import pytest

from connectors.disk import Disk
from stream_engine.collect.line_log import LineLog, LogBroken, PendingLine, lines_of
from tests.support.process import ENVIRONMENT
from tests.support.simulated_disk import PowerCut, SimDisk

PATH = Path("/state/collect/answers.jsonl")


class Slow(Disk):
    """A disk whose syncs wait until they are let go, and are counted."""

    def __init__(self):
        self.go, self.syncs = threading.Event(), 0

    def fsync(self, path) -> None:
        self.go.wait(600)
        self.syncs += 1
        super().fsync(path)


def test_many_that_wait_share_a_sync_and_none_is_told_before_it(tmp_path):
    disk = Slow()
    disk.go.set()
    log = LineLog(tmp_path / "log", disk)
    disk.go.clear()
    before = disk.syncs
    first = log.append(b"0")
    while not log.path.read_bytes():  # the thread is in the sync of the first one
        pass
    others = [log.append(b"%d" % n) for n in range(1, 100)]
    assert not first.done() and not any(each.done() for each in others)
    disk.go.set()
    assert first.result(10) and all(each.result(10) for each in others)
    assert disk.syncs - before == 2
    assert list(lines_of(log.path)) == [b"%d" % n for n in range(100)] and log.size == log.path.stat().st_size
    log.close()
    with pytest.raises(LogBroken, match="closed"):
        log.append(b"late").result(10)


def test_what_nobody_waits_for_is_written_and_not_synced(tmp_path):
    disk = Slow()
    disk.go.set()
    log = LineLog(tmp_path / "log", disk)
    disk.go.clear()
    before = disk.syncs
    assert log.append(b"a", synced=False).result(5) and log.append(b"b", synced=False).result(5)
    assert list(lines_of(log.path)) == [b"a", b"b"] and disk.syncs == before
    disk.go.set()
    assert log.append(b"c").result(10) and disk.syncs == before + 1
    assert log.append(b"d", synced=False).result(10) and list(lines_of(log.path)) == [b"a", b"b", b"c", b"d"]
    log.close()
    assert disk.syncs == before + 1 and log.size == 8


@pytest.mark.parametrize("torn", [b"", b"b", b"b" * 3_000_000])
def test_a_torn_last_line_is_cut_off_when_the_log_is_opened(tmp_path, torn):
    path = tmp_path / "log"
    path.write_bytes(b"a\n" + torn)
    log = LineLog(path)
    assert log.torn == len(torn) and log.size == 2
    log.append(b"c").result(10)
    log.close()
    assert path.read_bytes() == b"a\nc\n"


def test_nothing_is_written_where_a_reader_has_been_before_a_power_cut(tmp_path):
    (tmp_path / "log").write_bytes(b"a\nb")
    log = LineLog(tmp_path / "log", at_least=9)
    log.append(b"c").result(10)
    log.close()
    assert (log.gap, log.path.read_bytes()) == (7, b"a\n\n\n\n\n\n\n\nc\n")
    assert LineLog(tmp_path / "log", at_least=9).gap == 0


class Failing(Disk):
    """A disk that fails once where it is told to."""

    appends = fsyncs = True

    def append(self, path, chunks) -> None:
        if not self.appends:
            self.appends = True
            data = b"".join(chunks)
            super().append(path, [data[: len(data) - 1]])
            raise OSError(errno.ENOSPC, "No space left on device")
        super().append(path, chunks)

    def fsync(self, path) -> None:
        if not self.fsyncs:
            raise OSError(errno.EIO, "Input/output error")
        super().fsync(path)


def test_a_full_disk_refuses_what_is_not_there_whole_and_goes_on(tmp_path):
    disk = Failing()
    log = LineLog(tmp_path / "log", disk)
    disk.appends = False
    with pytest.raises(OSError, match="No space"):
        log.append(b"lost").result(10)
    assert log.append(b"kept").result(10)
    log.close()
    assert list(lines_of(log.path)) == [b"kept"]


def test_after_a_failed_sync_nothing_is_taken_any_more(tmp_path):
    disk = Failing()
    log = LineLog(tmp_path / "log", disk)
    disk.fsyncs = False
    for _ in range(2):
        with pytest.raises(LogBroken, match="Input/output error"):
            log.append(b"a").result(10)
    log.close()


def test_what_was_told_is_there_after_a_power_cut_at_every_moment():
    """Before every operation of the disk; of what was not synced any part may be there."""
    reached = set()
    for crash_at in range(1, 40):
        disk, told = SimDisk(crash_at=crash_at), []
        try:
            log = LineLog.__new__(LineLog)
            # no thread: its operations one after the other, so that the cut comes where it is counted
            _open(log, disk)

            for start in range(0, 12, 3):
                batch = [PendingLine(b"line %d" % n, Future(), True) for n in range(start, start + 3)]
                log._commit(batch)
                told += [each.line + b"\n" for each in batch if each.done.result(0)]
            reached.add("end")
        except PowerCut:
            reached.add("cut")
        for image in disk.images():
            again = LineLog.__new__(LineLog)
            _open(again, image)
            there = image.read(PATH)
            assert there.startswith(b"".join(told)) and (not there or there.endswith(b"\n"))
    assert reached == {"cut", "end"}


def _open(log: LineLog, disk: SimDisk) -> None:
    """What opening does, without the thread."""
    log.__init__(PATH, disk)
    log.close()


PROGRAM = """
import sys
from pathlib import Path
from stream_engine.collect.line_log import LineLog
log, n = LineLog(Path(sys.argv[1])), 0
while True:
    futures = [log.append(b'%d' % (n + i) * 50) for i in range(20)]
    for future in futures:
        future.result()
        print(n, flush=True)
        n += 1
"""


def test_every_line_that_was_told_survives_a_kill(tmp_path):
    told = -1
    for _ in range(3):
        with subprocess.Popen(
            [sys.executable, "-c", PROGRAM, str(tmp_path / "log")], stdout=subprocess.PIPE, env=ENVIRONMENT
        ) as process:
            for _ in range(137):
                told = int(process.stdout.readline())
            process.kill()
        log = LineLog(tmp_path / "log")
        log.close()
        lines = list(lines_of(log.path))
        assert lines[-1] == lines[-1][: len(lines[-1]) // 50] * 50  # whole
        assert b"%d" % told * 50 in lines
        os.remove(log.path)
