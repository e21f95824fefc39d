"""Text files that grow: tailing, rotation, truncation, and files that appear, each with a notice.

A line is read once its newline is there, or once its writer has given up the file; then the next file of that name is
read from its first byte.
"""

import errno
import os
from collections import deque
from collections.abc import Mapping
from time import monotonic, sleep, time

from connectors import LostRecords, Position, Record, Source, UnusableSource
from connectors.files import check_readable, expand
from connectors.files.line_blocks import FRAMINGS, PLAIN_TEXT, Blocks, Replaced, TextLayout
from connectors.files.readers import Kind, Sizes, failures_of, kind_of, partition_of, text_record
from connectors.files.streams import Plain
from stream_engine.data.descriptors import raised_limit

PAUSE_SECONDS = 0.05  # seconds between two looks at files that had nothing new
LOOK_SECONDS = 0.5  # seconds between two looks for new files, of few
LOOKS_PER_SECOND = 1500  # looks per second at files without news: one per cent of a core
CLOCK_TICK_SECONDS = 1.0  # of a file system: two writes within one tick leave the same time
MAX_STEPS_PER_LOOK = 4  # of getting to a position, within one look

Identity = tuple[int, int]  # device and inode
_Status = tuple[int, int, int, int]  # identity, size, time of the last change


class GrowingFile:
    """A file that is open, and read as far as its whole lines go."""

    def __init__(self, descriptor: int, kind: Kind, position: Position, sizes: Sizes):
        self.stream = Plain(descriptor)
        self.identity = identity_of(os.fstat(descriptor))
        self.blocks = Blocks(self.stream, FRAMINGS[kind.name], position, *sizes, kind.layout)


class FollowedPath:
    """A path and the file that is read under it, if there was one yet."""

    def __init__(
        self, path: str, kind: Kind, position: Position, sizes: Sizes, notices: list[str], losses: list[LostRecords]
    ):
        self.path, self.partition = path, partition_of(path)
        self._kind, self._position, self._sizes = kind, position, sizes
        self._notices, self._losses = notices, losses
        self._file: GrowingFile | None = None
        self._closed: Identity | None = None  # of the file that is read, while it is not open
        self._former: list[GrowingFile] = []  # read to their ends, and open, so that no new file is given their inodes
        self._size = 0  # of the file that is read, at the last look
        self._still: _Status | None = None  # of the path's file, when all of it was read and its time had settled
        self._told_gone, self._told_crowded = False, False

    def is_there(self) -> bool:
        """Whether there is a file to read."""
        return self._file is not None or os.path.exists(self.path)

    def lag(self) -> int:
        """Unread bytes of the file at the last look, with an unfinished last line."""
        return max(0, self._size - (self._file.blocks.at if self._file else self._position.offset))

    def identities(self) -> set[Identity]:
        """Of the file that is read, and of those it has replaced since `forget`."""
        read = {file.identity for file in (*self._former, self._file) if file}
        return read if self._closed is None else read | {self._closed}

    def forget(self) -> None:
        """Nobody can take the former files for new ones any more."""
        while self._former:
            self._former.pop().blocks.close()

    def suspend(self) -> None:
        """Close the file until the next look, and go on at the same place then."""
        file = self._file
        if file is not None and file.blocks.at >= self._position.offset:  # else it is still on its way to the position
            self._position = Position(file.blocks.at, file.blocks.mark(file.blocks.at))
            self._closed, self._file = file.identity, None
            file.blocks.close()

    def is_still(self) -> bool:
        """Whether nothing has happened to the path's file since all of it was read."""
        try:
            return self._still is not None and self._still == _status(os.stat(self.path))
        except OSError:
            return False

    def read(self) -> Record | None:
        """The next record of this path, or None: nothing now."""
        self._still = None
        with failures_of(self.path, self._position, "byte"):
            current = self._current()
            if self._file is None:
                self._file = self._opened(current)
            if self._file is None or self._changed_in_place(self._file):
                return None
            return self._read(self._file, current)

    def _read(self, file: GrowingFile, current: os.stat_result | None) -> Record | None:
        at_path = current is not None and identity_of(current) == file.identity
        moved = current is not None and not at_path and current.st_size > 0
        blocks = file.blocks
        try:
            block = blocks.take(final=moved)
            for _ in range(MAX_STEPS_PER_LOOK):
                if block or blocks.starved:
                    break
                block = blocks.take(final=moved)
        except Replaced as error:
            self._start_over(file, "its beginning has changed" if error.there is None else _there(error.there))
            return None
        if block:
            return text_record(block, blocks, self.partition, self._kind.name)
        if moved and blocks.starved:
            self._notices.append(
                f"{self.path} was rotated: the old file was read to its end at byte "
                f"{blocks.at:,}; reading continues at the beginning of the new one"
            )
            self._former.append(file)
            self._give_up()
        elif current is not None and at_path and blocks.starved and time() - current.st_mtime > CLOCK_TICK_SECONDS:
            self._still = _status(current)
        return None

    def _current(self) -> os.stat_result | None:
        """The file that has the path's name now."""
        try:
            current = os.stat(self.path)
        except FileNotFoundError:
            if not self._told_gone:
                then = "the deleted file is read until a new one appears" if self._file else "waiting for it to appear"
                self._notices.append(f"{self.path} does not exist; {then}")
                self._told_gone = True
            return None
        if self._told_gone and not self._file:
            self._notices.append(f"{self.path} has appeared")
        self._told_gone = False
        return current

    def _opened(self, current: os.stat_result | None) -> GrowingFile | None:
        """The file at the path or, if it was closed and renamed, under its new name; if there is one and a descriptor
        is left."""
        path = self.path
        if self._closed is not None and (current is None or identity_of(current) != self._closed):
            path = self._renamed(self._closed)
        try:
            file = GrowingFile(os.open(path, os.O_RDONLY), self._kind, self._position, self._sizes)
        except FileNotFoundError:
            return None
        except OSError as error:
            if error.errno not in (errno.EMFILE, errno.ENFILE):
                raise
            if not self._told_crowded:
                self._notices.append(
                    f"{self.path}: too many open files in this process; it is read when there are fewer; or restart "
                    "with a higher limit (ulimit -n)"
                )
            self._told_crowded = True
            return None
        self._told_crowded, self._closed = False, None
        return file

    def _renamed(self, identity: Identity) -> str:
        """What the closed file is called now. If it is not in its folder any more, that is told, and the file at the
        path is another one."""
        with os.scandir(os.path.dirname(self.path) or ".") as entries:
            for entry in entries:
                if entry.inode() == identity[1] and identity_of(entry.stat(follow_symlinks=False)) == identity:
                    return entry.path
        self._notices.append(
            f"{self.path} was moved away while it was not open (fewer files may be open than are followed; raise "
            f"ulimit -n): what was appended to it behind byte {self._position.offset:,}, if anything, is not read"
        )
        self._give_up()
        return self.path

    def _changed_in_place(self, file: GrowingFile) -> bool:
        """Cut, or written anew in place, also when it has grown past our offset again."""
        descriptor, head = file.stream.descriptor, file.blocks.head
        self._size = os.fstat(descriptor).st_size
        if self._size < file.stream.trusted:
            self._start_over(file, _there(self._size))
        elif os.pread(descriptor, len(head), 0) != head:
            self._start_over(file, "its beginning has changed")
        elif not file.stream.ends_as_read():
            self._start_over(file, "its content before the current position has changed")
        else:
            return False
        return True

    def _start_over(self, file: GrowingFile, change: str) -> None:
        """The file is not the one that was read; the one that is there is read from its beginning."""
        read, half = max(file.blocks.at, self._position.offset), ""
        lost = file.stream.trusted - file.blocks.at if file.blocks.at >= self._position.offset else 0
        if lost > 0:
            why = f"the first {lost:,} bytes of an unfinished line were deleted"
            self._losses.append(LostRecords(self.partition, read, 0, 1, why))
            half = f" ({lost:,} bytes of an unfinished line are lost)"
        self._notices.append(
            f"{self.path} was truncated or replaced: {change}, but {read:,} were read{half}; "
            "reading starts from its beginning"
        )
        self.close()
        self._give_up()

    def _give_up(self) -> None:
        """The next file of this name is another one, read from its first byte."""
        self._file, self._closed, self._position, self._size = None, None, Position(0), 0

    def close(self) -> None:
        self.forget()
        if self._file is not None:
            self._file.blocks.close()
            self._file = None


def _there(size: int) -> str:
    return f"it has {size:,} bytes"


def identity_of(status: os.stat_result) -> Identity:
    """Device and inode."""
    return status.st_dev, status.st_ino


def _status(status: os.stat_result) -> _Status:
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns


# A renamed file is drained until the new file of its name has a first byte: then its writer has moved on. Files stay
# open while they are read, so each is known by its descriptor. If more files are followed than half the descriptors of
# this process, each is open only while it is read; one renamed meanwhile is found by its inode in the same folder, or a
# notice says that it is not. Looking at a file without news is one `stat`; all of them share `LOOKS_PER_SECOND`.
class FollowedFiles(Source):
    """The followed files of a path or glob, in turns; files that come to match are taken up from their beginning.

    A glob should not match the names that files are rotated to: such a file is known by its inode while it is read, but
    not after a restart, and would then be read as a new one.
    """

    def __init__(
        self,
        pattern: str,
        positions: Mapping[str, Position],
        format: str | None,
        sizes: Sizes,
        layout: TextLayout = PLAIN_TEXT,
    ):
        self._pattern, self._positions, self._sizes = pattern, positions, sizes
        self._format, self._layout = format, layout
        self._tails: dict[str, FollowedPath] = {}
        self._turns: deque[FollowedPath] = deque()  # to be looked at now
        self._busy: list[FollowedPath] = []  # with news at the last look
        self._sweep_at = 0.0  # when all of them are looked at next
        self._notices: list[str] = []
        self._losses: list[LostRecords] = []
        self._ignored: set[str] = set()
        self._most_open = files_allowed()
        for path in expand(pattern):
            kind = _followable(path, format, layout)
            if os.path.lexists(path):
                check_readable(path)
            self._add(path, kind)
        if not self._tails:
            self._notices.append(f"{pattern}: no file matches; waiting for one to appear")
        self._looked = monotonic()

    def _position(self, path: str) -> Position:
        return self._positions.get(partition_of(path), Position(0))

    def _add(self, path: str, kind: Kind) -> None:
        tail = FollowedPath(path, kind, self._position(path), self._sizes, self._notices, self._losses)
        self._tails[path] = tail
        self._turns.append(tail)

    def poll(self, timeout: float) -> list[Record]:
        """A block of each file that has news, in turns, up to about one block's bytes."""
        until = monotonic() + timeout
        while True:
            self._look()
            if records := self._round():
                return records
            now = monotonic()
            if now >= until:
                return []
            sleep(min(until - now, max(PAUSE_SECONDS, self._sweep_at - now)))

    def _round(self) -> list[Record]:
        records: list[Record] = []
        size, now = 0, monotonic()
        if not self._turns:
            if now >= self._sweep_at:
                self._turns.extend(self._tails.values())
                self._sweep_at = now + self._interval()
            else:
                self._turns.extend(self._busy)
            self._busy.clear()
        while self._turns and size < self._sizes.block_bytes:
            tail = self._turns.popleft()
            if not tail.is_still() and (record := tail.read()):
                records.append(record)
                size += len(record.value)
                self._busy.append(tail)
            if len(self._tails) > self._most_open:
                tail.suspend()
        return records

    def _interval(self) -> float:
        """Seconds between two looks at each file without news, beyond the pause that they have anyway."""
        seconds = len(self._tails) / LOOKS_PER_SECOND
        return seconds if seconds > PAUSE_SECONDS else 0.0

    # -- new files -----------------------------------------------------------------------------------------------

    def _look(self) -> None:
        """Take up files that have come to match the glob."""
        if monotonic() - self._looked < max(LOOK_SECONDS, self._interval()):
            return
        self._looked = monotonic()
        known_paths = self._tails.keys() | self._ignored
        if new := [path for path in expand(self._pattern, known_paths) if path not in known_paths]:
            ours: set[Identity] = set().union(*(tail.identities() for tail in self._tails.values()))
            for path in new:
                self._take_up(path, ours)
        for tail in self._tails.values():
            tail.forget()

    def _take_up(self, path: str, ours: set[Identity]) -> None:
        try:
            kind, identity = _followable(path, self._format, self._layout), identity_of(os.stat(path))
            check_readable(path)
        except FileNotFoundError:  # a link whose file may come
            return
        except UnusableSource as error:
            self._ignored.add(path)
            self._notices.append(f"not followed: {error}")
            return
        if identity in ours:
            self._ignored.add(path)
            self._notices.append(
                f"{path} is already being read under its old name; change the glob so that it does not match "
                "the names of rotated files"
            )
            return
        self._notices.append(f"{path} has appeared; it is followed from byte {self._position(path).offset:,}")
        self._add(path, kind)

    # -- what is told --------------------------------------------------------------------------------------------

    def finished(self) -> bool:
        return False

    def ready(self) -> bool:
        """True while there is a file to read. Any thread may ask, while another one takes up files."""
        return any(tail.is_there() for tail in list(self._tails.values()))

    def lag(self) -> dict[str, int]:
        """Unread bytes of each file that was opened, an unfinished last line among them, as of the last look."""
        return {tail.partition: tail.lag() for tail in self._tails.values()}

    def notices(self) -> list[str]:
        notices, self._notices[:] = self._notices[:], []
        return notices

    def losses(self) -> list[LostRecords]:
        """Lines that were cut away unfinished, since the last call."""
        losses, self._losses[:] = self._losses[:], []
        return losses

    def close(self) -> None:
        for tail in self._tails.values():
            tail.close()


def _followable(path: str, format: str | None, layout: TextLayout) -> Kind:
    kind = kind_of(path, format, layout)
    if not layout.is_utf8:
        raise UnusableSource(f"{path}: only UTF-8 can be followed, not {layout.encoding}; read it without following")
    if not kind.is_text or kind.compression:
        raise UnusableSource(f"{path}: only plain .jsonl and .csv files can be followed; read it without following")
    return kind


def files_allowed() -> int:
    """Let the process have as many descriptors as it may, and the followed files half of them."""
    return raised_limit() // 2
