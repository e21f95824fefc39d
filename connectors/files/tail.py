"""Plain text files that grow: tailing, rotation, truncation, files that appear.

Invariant: a line is read once its newline is there, or once its file has been given up by its writer; then the next
file of that name is read from its first byte. A file that is renamed and made anew is drained first: the old one is
held open until the new one has a first byte, which is when its writer has moved on. Each such event is a notice.
"""

import os
from collections.abc import Mapping
from time import monotonic, sleep

from connectors import Lost, Position, Record, Source, UnusableSource
from connectors.files.decompress import Plain
from connectors.files.line_blocks import FRAMINGS, Blocks, Replaced
from connectors.files.paths import check_readable, expand
from connectors.files.readers import Kind, Sizes, failures_of, kind_of, partition_of, text_record

PAUSE = 0.05  # seconds between two looks at files that had nothing new
LOOK = 0.5  # seconds between two looks for new files


class Growing:
    """A file that is open, and read as far as its whole lines go."""

    def __init__(self, descriptor: int, kind: Kind, position: Position, sizes: Sizes):
        self.stream = Plain(descriptor)
        self.blocks = Blocks(self.stream, FRAMINGS[kind.name], position, *sizes)

    @property
    def identity(self) -> tuple[int, int]:
        """Device and inode."""
        return _identity(os.fstat(self.stream.descriptor))


class Tail:
    """One followed path: the file that is open (none while the path does not exist), and the one of that name now."""

    def __init__(self, path: str, kind: Kind, position: Position, sizes: Sizes, notices: list[str], losses: list[Lost]):
        self.path, self.partition, self._losses = path, partition_of(path), losses
        self._kind, self._position, self._sizes, self._notices = kind, position, sizes, notices
        self._file: Growing | None = None
        self._former: list[Growing] = []  # drained, kept open until nobody can take them for new files
        self._told_gone = False

    @property
    def is_open(self) -> bool:
        return self._file is not None

    def identities(self) -> set[tuple[int, int]]:
        """Device and inode of the open file and of the ones it has replaced since `forget`."""
        return {file.identity for file in [*self._former, *([self._file] if self._file else [])]}

    def forget(self) -> None:
        while self._former:
            self._former.pop().stream.close()

    def read(self) -> Record | None:
        """The next record of this path, or None: nothing now."""
        with failures_of(self.path, self._position, "byte"):
            if self._file is None:
                self._file = self._open()
            if self._file is None or self._changed_in_place(self._file):
                return None
            return self._read(self._file)

    def _read(self, file: Growing) -> Record | None:
        current = self._current()
        moved = current is not None and _identity(current) != file.identity and current.st_size > 0
        try:
            block = file.blocks.take(final=moved)
        except Replaced as error:
            self._start_over(file, error.there)
            return None
        if block:
            return text_record(block, file.blocks, self.partition, self._kind.name)
        if moved and file.blocks.starved:
            self._notices.append(
                f"{self.path} was rotated: the old file was read to its end, byte "
                f"{file.blocks.at:,}; the new one is read from its beginning"
            )
            self._position = Position(0)
            self._former.append(file)
            self._file = None
        return None

    def _open(self) -> Growing | None:
        try:
            descriptor = os.open(self.path, os.O_RDONLY)
        except FileNotFoundError:
            self._tell_gone("waiting for it to appear")
            return None
        if self._told_gone:
            self._notices.append(f"{self.path} has appeared")
            self._told_gone = False
        return Growing(descriptor, self._kind, self._position, self._sizes)

    def _current(self) -> os.stat_result | None:
        """The file that has the path's name now."""
        try:
            current = os.stat(self.path)
        except FileNotFoundError:
            self._tell_gone("what was open under that name is read until it is made anew")
            return None
        self._told_gone = False
        return current

    def _tell_gone(self, then: str) -> None:
        if not self._told_gone:
            self._notices.append(f"{self.path} does not exist; {then}")
            self._told_gone = True

    def _changed_in_place(self, file: Growing) -> bool:
        """Cut, or written anew in place, also when it has grown past our offset again."""
        descriptor, head = file.stream.descriptor, file.blocks.head
        size = os.fstat(descriptor).st_size
        if size < file.stream.trusted:
            self._start_over(file, size)
        elif os.pread(descriptor, len(head), 0) != head:
            self._start_over(file, None)
        else:
            return False
        return True

    def _start_over(self, file: Growing, there: int | None) -> None:
        """The file is not the one that was read; the one that is there is read from its beginning."""
        change = f"{there:,} bytes are there" if there is not None else "it begins differently"
        read = max(file.blocks.at, self._position.offset)
        lost = file.stream.trusted - file.blocks.at if file.blocks.at >= self._position.offset else 0
        if lost > 0:
            why = f"a line whose first {lost:,} bytes were there was cut away before it was finished"
            self._losses.append(Lost(self.partition, read, 0, 1, why))
        half = f" ({lost:,} bytes of a line that was not finished are gone)" if lost > 0 else ""
        self._notices.append(
            f"{self.path} was cut or replaced: {change}, {read:,} had been read{half}; it is read from its beginning"
        )
        self._position = Position(0)
        self.close()

    def lag(self) -> int:
        """Unread bytes of the open file, with an unfinished last line."""
        return self._file.blocks.unread() if self._file else 0

    def close(self) -> None:
        self.forget()
        if self._file is not None:
            self._file.stream.close()
            self._file = None


def _identity(status: os.stat_result) -> tuple[int, int]:
    return status.st_dev, status.st_ino


class Followed(Source):
    """The followed files of a path or glob, in turns; files that come to match are taken up from their beginning.

    A glob should not match the names that files are rotated to: such a file is known by its inode while it is open, but
    not after a restart, and would then be read as a new one.
    """

    def __init__(self, rest: str, positions: Mapping[str, Position], format: str | None, sizes: Sizes):
        self._rest, self._positions, self._format, self._sizes = rest, positions, format, sizes
        self._tails: dict[str, Tail] = {}
        self._notices: list[str] = []
        self._losses: list[Lost] = []
        self._ignored: set[str] = set()
        for path in expand(rest):
            kind = _followable(path, format)
            if os.path.lexists(path):
                check_readable(path)
            self._tails[path] = Tail(path, kind, self._position(path), sizes, self._notices, self._losses)
        if not self._tails:
            self._notices.append(f"{rest}: no file matches; waiting for one to appear")
        self._looked = monotonic()

    def _position(self, path: str) -> Position:
        return self._positions.get(partition_of(path), Position(0))

    def poll(self, timeout: float) -> list[Record]:
        """A block of each file that has news, in turns, up to about one block's bytes."""
        until = monotonic() + timeout
        while True:
            self._look()
            if records := self._round():
                return records
            rest = until - monotonic()
            if rest <= 0:
                return []
            sleep(min(PAUSE, rest))

    def _round(self) -> list[Record]:
        records, size = [], 0
        for path in list(self._tails):
            tail = self._tails.pop(path)
            self._tails[path] = tail  # the next round begins after the last one that was asked
            if record := tail.read():
                records.append(record)
                size += len(record.value)
                if size >= self._sizes.block_bytes:
                    break
        return records

    def _look(self) -> None:
        """Take up files that have come to match the glob."""
        if monotonic() - self._looked < LOOK:
            return
        self._looked = monotonic()
        for path in expand(self._rest):
            if path not in self._tails and path not in self._ignored:
                self._take_up(path)
        for tail in self._tails.values():
            tail.forget()

    def _take_up(self, path: str) -> None:
        try:
            kind, status = _followable(path, self._format), os.stat(path)
            check_readable(path)
        except FileNotFoundError:
            return
        except UnusableSource as error:
            self._ignored.add(path)
            self._notices.append(f"not followed: {error}")
            return
        if any(_identity(status) in tail.identities() for tail in self._tails.values()):
            self._ignored.add(path)
            self._notices.append(
                f"{path} is a file that is read under its old name already; let the glob not match "
                "names that files are rotated to"
            )
            return
        self._notices.append(f"{path} has appeared; it is followed from byte {self._position(path).offset:,}")
        self._tails[path] = Tail(path, kind, self._position(path), self._sizes, self._notices, self._losses)

    def finished(self) -> bool:
        return False

    def ready(self) -> bool:
        """True while there is a file to read."""
        return any(tail.is_open or os.path.exists(tail.path) for tail in self._tails.values())

    def lag(self) -> dict[str, int]:
        """Unread bytes of each open file, an unfinished last line among them."""
        return {tail.partition: tail.lag() for tail in self._tails.values()}

    def notices(self) -> list[str]:
        notices, self._notices[:] = self._notices[:], []
        return notices

    def losses(self) -> list[Lost]:
        """Lines that were cut away unfinished, since the last call."""
        losses, self._losses[:] = self._losses[:], []
        return losses

    def close(self) -> None:
        for tail in self._tails.values():
            tail.close()


def _followable(path: str, format: str | None) -> Kind:
    kind = kind_of(path, format)
    if not kind.is_text or kind.compression:
        raise UnusableSource(f"{path}: only plain .jsonl and .csv files can be followed; read it without following")
    return kind
