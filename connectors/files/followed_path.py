"""One followed path: the file that is read under it, whether it is open or not, and the one that has its name now.

Invariant: a line is read once its newline is there, or once its file has been given up by its writer; then the next
file of that name is read from its first byte. A file that is renamed and made anew is drained first, until the new one
has a first byte, which is when its writer has moved on.

A file need not stay open between two looks. One that was closed is known again by its inode and its first bytes: under
its own name, or under the name it was rotated to in the same folder. O(1) a look at a file without news: one `stat`.
"""

import errno
import os
from time import monotonic
from typing import BinaryIO, NamedTuple
from zlib import crc32

from connectors import Lost, Position, Record
from connectors.files.decompress import NOTHING_READ, PIECE, LastRead, Plain
from connectors.files.line_blocks import FRAMINGS, HEAD, Blocks, Replaced
from connectors.files.readers import Kind, Sizes, failures_of, partition_of, text_record
from connectors.files.siblings import Siblings

SETTLED = 1.0  # seconds: two writes within one tick of a file system's clock are not told apart by the time of a file
SCANS = 3  # of a folder for a file that has another name now: one may miss what is renamed meanwhile
STEPS = 4  # of getting to a position, within one look

BEGINS, OTHERS = "it begins differently", "other bytes are where it was read to"  # what happened to a file in place

Identity = tuple[int, int]  # device and inode
_Status = tuple[int, int, int, int]  # identity, size, time of the last change


class Growing:
    """A file that is open, and read as far as its whole lines go."""

    def __init__(self, descriptor: int, kind: Kind, position: Position, sizes: Sizes):
        self.stream = Plain(descriptor)
        self.identity = identity_of(os.fstat(descriptor))
        self.blocks = Blocks(self.stream, FRAMINGS[kind.name], position, *sizes, kind.layout)


class Closed(NamedTuple):
    """A file that was read up to `position` and closed; it was last found at `path`, `size` bytes long."""

    identity: Identity
    position: Position
    size: int
    path: str
    last_read: LastRead = NOTHING_READ

    def is_at(self, path: str) -> bool:
        """Whether this file, and not another one that was given its inode, is at `path` (which has its inode)."""
        offset, mark = self.position
        if not offset:  # no byte of it is known: only a name that begins like its own is taken for it
            stem = os.path.splitext(os.path.basename(self.path))[0]
            return os.path.basename(path).startswith(stem)
        try:
            with open(path, "rb", buffering=0) as file:
                head = file.read(min(HEAD, offset))
                if os.fstat(file.fileno()).st_size < offset:
                    return False
                return crc32(head) == mark or (offset > HEAD and _crc32_of(file, head, offset) == mark)
        except OSError:
            return False


def _crc32_of(file: BinaryIO, head: bytes, size: int) -> int:
    """The CRC-32 of the first `size` bytes, of which `head` was read: the mark of a file that is not followed."""
    check, left = crc32(head), size - len(head)
    while left and (piece := file.read(min(PIECE, left))):
        check, left = crc32(piece, check), left - len(piece)
    return check


class FollowedPath:
    """A path and the file that is read under it: open (`is_open`), closed, or none yet."""

    def __init__(
        self,
        path: str,
        kind: Kind,
        position: Position,
        sizes: Sizes,
        notices: list[str],
        losses: list[Lost],
        siblings: Siblings,
    ):
        self.path, self.partition, self._losses = path, partition_of(path), losses
        self.pause = 0.0  # seconds until the next look; kept here for whoever looks
        self._kind, self._position, self._sizes = kind, position, sizes
        self._notices, self._siblings = notices, siblings
        self._file: Growing | None = None
        self._found_at = path  # where the file that is read was opened
        self._closed: Closed | None = None
        self._former: list[Closed] = []  # drained, known until nobody can take them for new files
        self._size = 0  # of the file that is read, at the last look
        self._unfinished = 0  # bytes of it after its last whole line, when it was closed last
        self._last_read = NOTHING_READ  # when it was closed last
        self._seen: tuple[_Status | None, _Status | None] = None, None  # the path's file, and the one that is read
        self._seen_since, self._read_out_at = 0.0, float("-inf")
        self._still: _Status | None = None  # of the path's file, when all of it was read and settled
        self._moved_at, self._scans = 0.0, 0
        self._told_gone, self._told_crowded = False, False

    @property
    def is_open(self) -> bool:
        return self._file is not None

    def is_there(self) -> bool:
        """Whether there is a file to read."""
        return self._file is not None or self._closed is not None or os.path.exists(self.path)

    def lag(self) -> int:
        """Unread bytes of the file at the last look, with an unfinished last line."""
        at = self._file.blocks.at if self._file else self._closed.position.offset if self._closed else self._size
        return max(0, self._size - at)

    # -- whether a file is one of ours ---------------------------------------------------------------------------

    def identities(self) -> set[Identity]:
        """Of the file that is read, and of those it has replaced since `forget`."""
        found = {former.identity for former in self._former}
        if ours := self._file or self._closed:
            found.add(ours.identity)
        return found

    def has(self, path: str, identity: Identity) -> bool:
        """Whether the file at `path` is the one that is read here, or one that was."""
        if self._file and self._file.identity == identity:
            return True
        closed = [*self._former, *([self._closed] if self._closed else [])]
        return any(each.identity == identity and each.is_at(path) for each in closed)

    def forget(self) -> None:
        """Nobody can take the former files for new ones any more."""
        self._former.clear()

    # -- reading -------------------------------------------------------------------------------------------------

    def is_still(self) -> bool:
        """Whether the path's file was read to its end and nothing has happened to it since: this is what a look at an
        idle file costs."""
        if self._still is None:
            return False
        try:
            current = os.stat(self.path)
        except OSError:
            return False
        return self._still == (current.st_dev, current.st_ino, current.st_size, current.st_mtime_ns)

    def read(self) -> Record | None:
        """The next record of this path, or None: nothing now."""
        self._still = None
        with failures_of(self.path, self._position, "byte"):
            current = self._current()
            if self._settled(current):
                self._still = self._seen[0] if self._seen[1] is None else None
                return None
            if self._file is None:
                self._file = self._open(current)
            if self._file is None or self._changed_in_place(self._file):
                return None
            return self._read(self._file, current)

    def _settled(self, current: os.stat_result | None) -> bool:
        """Whether all was read when the files were as they are now, and long enough after they came to be so."""
        now, seen = monotonic(), (_status(current), self._status_of_ours(current))
        if seen != self._seen:
            self._seen, self._seen_since = seen, now
            return False
        return self._read_out_at - self._seen_since > SETTLED

    def _status_of_ours(self, current: os.stat_result | None) -> _Status | None:
        """The file that is read, where it is not the one at the path."""
        file, closed = self._file, self._closed
        if current is not None and (ours := file or closed) and identity_of(current) == ours.identity:
            return None
        try:
            return _status(os.fstat(file.stream.descriptor) if file else os.stat(closed.path) if closed else None)
        except FileNotFoundError:
            return None

    def _read(self, file: Growing, current: os.stat_result | None) -> Record | None:
        moved = current is not None and identity_of(current) != file.identity and current.st_size > 0
        blocks = file.blocks
        try:
            block = blocks.take(final=moved)
            for _ in range(STEPS):
                if block or blocks.starved:
                    break
                block = blocks.take(final=moved)
        except Replaced as error:
            self._start_over(file, BEGINS if error.there is None else _there(error.there))
            return None
        self._read_out_at = monotonic() if not block and blocks.starved and not moved else float("-inf")
        if block:
            return text_record(block, blocks, self.partition, self._kind.name)
        if moved and blocks.starved:
            self._notices.append(
                f"{self.path} was rotated: the old file was read to its end, byte "
                f"{blocks.at:,}; the new one is read from its beginning"
            )
            self._former.append(self._as_closed(file))
            self._give_up()
        return None

    def _current(self) -> os.stat_result | None:
        """The file that has the path's name now."""
        try:
            current = os.stat(self.path)
        except FileNotFoundError:
            if not self._told_gone:
                ours = self._file or self._closed
                then = "what was open under that name is read until it is made anew" if ours else "waiting for it"
                self._notices.append(f"{self.path} does not exist; {then}{'' if ours else ' to appear'}")
                self._told_gone = True
            return None
        if self._told_gone and not (self._file or self._closed):
            self._notices.append(f"{self.path} has appeared")
        self._told_gone = False
        return current

    # -- opening and closing -------------------------------------------------------------------------------------

    def _open(self, current: os.stat_result | None) -> Growing | None:
        """The file to read: the one that was closed, wherever it is now, or else the one at the path."""
        if self._closed is None:
            return self._opened(self.path, self._position)
        if current is not None and identity_of(current) == self._closed.identity:
            self._moved_at, self._scans = 0.0, 0
            if current.st_size < self._closed.size:
                self._changed_while_closed(self._closed, _there(current.st_size))
                return None
            closed, file = self._closed, self._opened(self.path, self._closed.position)
            if file and not closed.last_read.is_in(file.stream.descriptor):
                file.stream.close()
                self._changed_while_closed(closed, OTHERS if closed.is_at(self.path) else BEGINS)
                return None
            return file
        if not self._moved_at:
            self._moved_at = monotonic()
            return None  # the next look finds it: one scan of the folder serves all files that moved
        found = self._siblings.find(os.path.dirname(self.path), self._closed.identity, self._moved_at)
        if found and self._closed.is_at(found) and (file := self._opened(found, self._closed.position)):
            self._scans = 0
            return file
        self._scans, self._moved_at = self._scans + 1, monotonic()
        if self._scans >= SCANS:
            self._tell_lost(self._closed, current)
        return None

    def _opened(self, path: str, position: Position) -> Growing | None:
        try:
            file = Growing(os.open(path, os.O_RDONLY), self._kind, position, self._sizes)
        except FileNotFoundError:
            return None
        except OSError as error:
            if error.errno not in (errno.EMFILE, errno.ENFILE):
                raise
            if not self._told_crowded:
                self._notices.append(f"{path}: too many open files in this process; it is opened when some are closed")
            self._told_crowded = True
            return None
        if self._closed and file.identity != self._closed.identity:  # renamed once more, meanwhile
            file.stream.close()
            return None
        self._unfinished = self._closed.size - self._closed.position.offset if self._closed else 0
        self._last_read = self._closed.last_read if self._closed else NOTHING_READ
        self._position, self._found_at, self._closed, self._told_crowded = position, path, None, False
        return file

    def _tell_lost(self, closed: Closed, current: os.stat_result | None) -> None:
        """A closed file is nowhere to be found: what came to it after the last look cannot be read."""
        then = "waiting for the path to appear" if current is None else "the new one is read from its beginning"
        self._notices.append(
            f"{self.path} was rotated or removed while it was closed, and the file that was read under that name is "
            f"not in its folder: {closed.position.offset:,} bytes of it were read, what came after them was not; {then}"
        )
        offset, why = closed.position.offset, "rotated or removed while it was closed, and not found again"
        self._losses.append(Lost(self.partition, offset, offset if current is None else 0, None, why))
        kept = closed.position if current is None else Position(0)
        self._give_up()
        self._position = kept

    def rest(self) -> None:
        """Close the file; the next look that finds news opens it again."""
        if self._file is not None:
            self._closed = self._as_closed(self._file)
            self._file.stream.close()
            self._file = None

    def _as_closed(self, file: Growing) -> Closed:
        last, before = file.stream.last_read(), self._last_read
        if before.end == last.end and before.size > last.size:  # nothing was added since it was opened again
            last = before
        return Closed(file.identity, file.blocks.resting(), self._size, self._found_at, last)

    def _give_up(self) -> None:
        """The next file of this name is another one, read from its first byte."""
        self.close()
        self._position, self._size, self._closed = Position(0), 0, None
        self._moved_at, self._scans, self._read_out_at = 0.0, 0, float("-inf")

    def close(self) -> None:
        if self._file is not None:
            self._file.stream.close()
            self._file = None

    # -- files that are written anew in place --------------------------------------------------------------------

    def _changed_in_place(self, file: Growing) -> bool:
        """Cut, or written anew in place, also when it has grown past our offset again."""
        descriptor, head = file.stream.descriptor, file.blocks.head
        self._size = os.fstat(descriptor).st_size
        if self._size < file.stream.trusted:
            self._start_over(file, _there(self._size))
        elif os.pread(descriptor, len(head), 0) != head:
            self._start_over(file, BEGINS)
        elif not file.stream.last_read().is_in(descriptor):
            self._start_over(file, OTHERS)
        else:
            return False
        return True

    def _changed_while_closed(self, closed: Closed, change: str) -> None:
        self._tell_start_over(change, closed.position.offset, closed.size - closed.position.offset)

    def _start_over(self, file: Growing, change: str) -> None:
        """The file is not the one that was read; the one that is there is read from its beginning."""
        read = max(file.blocks.at, self._position.offset)
        lost = file.stream.trusted - file.blocks.at if file.blocks.at >= self._position.offset else 0
        if file.blocks.at <= self._position.offset:  # nothing was read since it was opened again
            lost = max(lost, self._unfinished)
        self._tell_start_over(change, read, lost)

    def _tell_start_over(self, change: str, read: int, lost: int) -> None:
        if lost > 0:
            why = f"a line whose first {lost:,} bytes were there was cut away before it was finished"
            self._losses.append(Lost(self.partition, read, 0, 1, why))
        half = f" ({lost:,} bytes of a line that was not finished are gone)" if lost > 0 else ""
        self._notices.append(
            f"{self.path} was cut or replaced: {change}, {read:,} had been read{half}; it is read from its beginning"
        )
        self._give_up()


def _there(size: int) -> str:
    return f"{size:,} bytes are there"


def identity_of(status: os.stat_result) -> Identity:
    """Device and inode."""
    return status.st_dev, status.st_ino


def _status(status: os.stat_result | None) -> _Status | None:
    return None if status is None else (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns)
