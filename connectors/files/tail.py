"""Plain text files that grow: tailing, rotation, truncation, files that appear. Each such event is a notice.

Invariant: what is read of a path does not depend on which of the files are open; few are, the ones with the latest news
(connectors/files/followed_path.py says how a closed one is known again). A file without news is looked at more and more
seldom, so that all of them together cost no more than `LOOKS` looks a second.
"""

import glob
import os
import resource
from collections.abc import Mapping
from heapq import heappop, heappush
from itertools import count
from time import monotonic, sleep

from connectors import Lost, Position, Record, Source, UnusableSource
from connectors.files.followed_path import SETTLED, FollowedPath, Identity, identity_of
from connectors.files.paths import check_readable, expand
from connectors.files.readers import Kind, Sizes, kind_of, partition_of
from connectors.files.siblings import Siblings
from connectors.files.text_layout import PLAIN_TEXT, TextLayout

PAUSE = 0.05  # seconds between two looks at files that had nothing new
LOOK = 0.5  # seconds between two looks for new files, of few
LOOKS = 1000  # looks a second at files without news: under one per cent of a core
GOLDEN = 0.6180339887  # its multiples are spread evenly over an interval
MOST_OPEN = 256  # files at a time, and no more than an eighth of the descriptors that the process may have


def allowed_open() -> int:
    """How many files are kept open between two looks."""
    allowed, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return MOST_OPEN if allowed == resource.RLIM_INFINITY else max(8, min(MOST_OPEN, allowed // 8))


class Followed(Source):
    """The followed files of a path or glob, in turns; files that come to match are taken up from their beginning.

    A glob should not match the names that files are rotated to: such a file is known by its inode while it is read, but
    not after a restart, and would then be read as a new one.
    """

    def __init__(
        self,
        rest: str,
        positions: Mapping[str, Position],
        format: str | None,
        sizes: Sizes,
        most_open: int | None = None,
        layout: TextLayout = PLAIN_TEXT,
    ):
        self._rest, self._positions, self._sizes = rest, positions, sizes
        self._format, self._layout = format, layout
        self._tails: dict[str, FollowedPath] = {}
        self._due: list[tuple[float, int, FollowedPath]] = []  # a heap: when to look, in turns
        self._turn = count()
        self._open: dict[FollowedPath, None] = {}  # the latest news last
        self._most_open = allowed_open() if most_open is None else most_open
        self._siblings = Siblings()
        self._notices: list[str] = []
        self._losses: list[Lost] = []
        self._ignored: set[str] = set()
        for path in expand(rest):
            kind = _followable(path, format, layout)
            if os.path.lexists(path):
                check_readable(path)
            self._add(path, kind)
        if not self._tails:
            self._notices.append(f"{rest}: no file matches; waiting for one to appear")
        self._looked = monotonic()
        self._folder_time, self._folder_since = 0, 0.0  # when a name in it last changed, and since when that is known

    def _position(self, path: str) -> Position:
        return self._positions.get(partition_of(path), Position(0))

    def _add(self, path: str, kind: Kind) -> None:
        tail = FollowedPath(path, kind, self._position(path), self._sizes, self._notices, self._losses, self._siblings)
        self._tails[path] = tail
        heappush(self._due, (0.0, next(self._turn), tail))

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
            first = self._due[0][0] if self._due else now
            sleep(min(until - now, max(PAUSE, first - now)))

    def _round(self) -> list[Record]:
        now, size = monotonic(), 0
        records: list[Record] = []
        asked: list[FollowedPath] = []
        try:
            while self._due and self._due[0][0] <= now and size < self._sizes.block_bytes:
                tail = heappop(self._due)[2]
                asked.append(tail)
                record = None
                if not tail.is_still():
                    record = tail.read()
                    self._keep_open(tail, record is not None)
                tail.pause = 0.0 if record else self._longer(tail.pause)
                if record:
                    records.append(record)
                    size += len(record.value)
        finally:
            for tail in asked:
                heappush(self._due, (now + tail.pause, next(self._turn), tail))
        return records

    def _longer(self, pause: float) -> float:
        """The next pause of a file that had no news after this one: none at all where files are few."""
        longest = len(self._tails) / LOOKS  # on average: spread, so that looks do not come in crowds
        longest *= 2 / 3 * (1 + next(self._turn) * GOLDEN % 1)
        return min(longest, max(PAUSE, 2 * pause)) if longest > PAUSE else 0.0

    def _keep_open(self, tail: FollowedPath, news: bool) -> None:
        """Keep the files with the latest news open; close the others."""
        if news or not tail.is_open:
            self._open.pop(tail, None)
        if tail.is_open:
            self._open.setdefault(tail)
        while len(self._open) > self._most_open:
            idle = next(iter(self._open))
            del self._open[idle]
            idle.rest()

    # -- new files -----------------------------------------------------------------------------------------------

    def _look(self) -> None:
        """Take up files that have come to match the glob."""
        if monotonic() - self._looked < max(LOOK, len(self._tails) / LOOKS):
            return
        self._looked = monotonic()
        if not self._folder_changed():
            return
        known = self._tails.keys() | self._ignored
        if new := [path for path in expand(self._rest, known) if path not in known]:
            ours: dict[Identity, list[FollowedPath]] = {}
            for tail in self._tails.values():
                for identity in tail.identities():
                    ours.setdefault(identity, []).append(tail)
            for path in new:
                self._take_up(path, ours)
        for tail in self._tails.values():
            tail.forget()

    def _folder_changed(self) -> bool:
        """False when no name in the folder can have changed since the last look; True also when that is not known."""
        folder = os.path.dirname(self._rest)
        if glob.has_magic(folder):
            return True
        try:
            status = os.stat(folder or ".")
        except OSError:
            return True
        if status.st_mtime_ns != self._folder_time:
            self._folder_time, self._folder_since = status.st_mtime_ns, self._looked
        return self._looked - self._folder_since < SETTLED + LOOK + len(self._tails) / LOOKS

    def _take_up(self, path: str, ours: Mapping[Identity, list[FollowedPath]]) -> None:
        try:
            kind, identity = _followable(path, self._format, self._layout), identity_of(os.stat(path))
            check_readable(path)
        except FileNotFoundError:  # a link whose file may come, in whatever folder
            self._folder_since = self._looked
            return
        except UnusableSource as error:
            self._ignored.add(path)
            self._notices.append(f"not followed: {error}")
            return
        if any(tail.has(path, identity) for tail in ours.get(identity, ())):
            self._ignored.add(path)
            self._notices.append(
                f"{path} is a file that is read under its old name already; let the glob not match "
                "names that files are rotated to"
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

    def losses(self) -> list[Lost]:
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
