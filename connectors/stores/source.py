"""Objects of a store as a source: each is copied to the local disk and read there like a local file.

A partition is the address without options. The upper bits of a mark are a check value of the object's version and
whether it was read to its end: such an object is not fetched again.
"""

import re
import time
from collections import deque
from collections.abc import Mapping
from concurrent.futures import Future
from functools import partial
from threading import Thread
from typing import IO, Any
from urllib.parse import unquote

from connectors import Position, Record, Source, SourceFailed, UnusableSource
from connectors.files.line_blocks import PLAIN_TEXT, TextLayout
from connectors.files.readers import Reader, Sizes, kind_of, open_reader
from connectors.stores.objects import Object, StoreFailed, objects_at

LOOK_SECONDS = 30.0  # between looks for new objects, when following
MAX_COPY_SECONDS = 1e6  # that a copy may take
PAUSE = (1.0, 60.0)  # seconds between attempts of one that follows, doubling
LOCAL_BITS = 32  # of a mark: the check value of a local file
VERSION_BITS = 28
WHOLE = 1 << (LOCAL_BITS + VERSION_BITS)  # the object was read to its end
_HIVE = re.compile(r"([^/=]+)=([^/]*)(?=/)")


class StoreSource(Source):
    """The objects that an address names, each read to its end; with `follow` also those to come.

    Parameters
    ----------
    scheme, rest : str
        The address, see connectors/stores/objects.py.
    positions : mapping of str to Position
        Where reading resumes.
    format, block_bytes, max_item_bytes, layout
        As for local files (`connectors.files.source.FileSource`).
    follow : bool
        Whether to look for new objects every `LOOK_SECONDS`.

    Raises
    ------
    UnusableSource
        If nothing is there, or access is denied.
    """

    one_by_one = True

    def __init__(
        self,
        scheme: str,
        location: str,
        positions: Mapping[str, Position],
        *,
        format: str | None = None,
        follow: bool = False,
        block_bytes: int = Sizes().block_bytes,
        max_item_bytes: int = Sizes().max_item_bytes,
        layout: TextLayout = PLAIN_TEXT,
    ):
        self._look_again = partial(objects_at, scheme, location)
        self._follow, self._sizes = follow, Sizes(block_bytes, max_item_bytes)
        self._kind = partial(kind_of, format=format, layout=layout)
        self._positions = {name: position for name, position in positions.items() if name.startswith(f"{scheme}://")}
        self._lag: dict[str, int] = {}
        self._waiting: deque[Object] = deque()
        self._copying: Future[IO[bytes]] | None = None
        self._file: IO[bytes] | None = None
        self._reader: Reader | None = None
        self._last_record: Record | None = (
            None  # the last record, until it is known whether it is the last of its object
        )
        self._failure: SourceFailed | None = None
        self._notices: list[str] = []
        self._away = False
        self._next, self._pause = time.monotonic() + LOOK_SECONDS, PAUSE[0]
        try:
            objects = self._look_again()
            if not objects and not follow:
                raise UnusableSource(f"{scheme}://{location.partition('?')[0]}: no object is there")
            for item in objects:
                self._kind(_path(item.name))
        except StoreFailed as failure:
            raise UnusableSource(str(failure)) from None
        self._queue(objects)

    def _queue(self, objects: list[Object]) -> None:
        """Put objects in line that were not read to their ends, or have changed."""
        for item in objects:
            mark = self._positions.get(item.name, Position(0)).mark
            if not (mark & WHOLE and item.version and mark >> LOCAL_BITS == item.version | WHOLE >> LOCAL_BITS):
                self._waiting.append(item)
                self._lag[item.name] = item.size

    # ---- the Source protocol

    def poll(self, timeout: float) -> list[Record]:
        """One record; none while an object is copied. Raises `SourceFailed`."""
        if self._failure is not None:
            raise self._failure
        until = time.monotonic() + timeout
        try:
            while self._reader is not None or self._open(until):
                if record := self._read():
                    return [record]
                if time.monotonic() > until:
                    break
        except SourceFailed as failure:
            self._failure = failure
            last, self._last_record = self._last_record, None
            if last is None:
                raise
            return [last]  # what lies before the damage
        return []

    def finished(self) -> bool:
        return not self._follow and not self._waiting and self._failure is None

    def ready(self) -> bool:
        return self._failure is None and not self._away

    def lag(self) -> dict[str, int]:
        """Unread bytes of objects that wait, and of the one that is read what its reader tells."""
        if self._reader is not None and (unread_bytes := self._reader.lag()) is not None:
            return self._lag | {self._waiting[0].name: unread_bytes}
        return dict(self._lag)

    def notices(self) -> list[str]:
        notices, self._notices = self._notices, []
        return notices

    def close(self) -> None:
        self._close_object()
        self._waiting.clear()

    # ---- object after object

    def _open(self, until: float) -> bool:
        """Whether the next object is open; waits for its copy until then."""
        if not self._waiting and not (self._follow and self._looked(until)):
            return False
        if self._copying is None:
            if not _passed(self._next if self._away else 0.0, until):
                return False
            self._copying = _in_thread(self._waiting[0])
        try:
            self._file = self._copying.result(min(max(0.0, until - time.monotonic()), MAX_COPY_SECONDS))
        except TimeoutError:
            return False
        except StoreFailed as failure:
            self._copying = None
            self._store_failed(failure)
            return False
        self._copying = None
        self._back()
        item = self._waiting[0]
        offset, mark = self._positions.get(item.name, Position(0))
        local = f"/proc/self/fd/{self._file.fileno()}"
        position = Position(offset, mark & ((1 << LOCAL_BITS) - 1))
        self._reader = self._named(lambda: open_reader(local, self._kind(_path(item.name)), position, self._sizes))
        return True

    def _looked(self, until: float) -> bool:
        """Look for new objects when it is time; whether there are any."""
        if not _passed(self._next, until):
            return False
        try:
            self._queue(self._look_again())
            self._next = time.monotonic() + LOOK_SECONDS
            self._back()
        except StoreFailed as failure:
            self._store_failed(failure)
        return bool(self._waiting)

    def _store_failed(self, failure: StoreFailed) -> None:
        """Try again later when following. Raises `SourceFailed` otherwise."""
        if not self._follow or failure.final:
            raise SourceFailed(f"{failure}; run again: reading resumes where it stopped")
        self._next, self._pause = time.monotonic() + self._pause, min(2 * self._pause, PAUSE[1])
        if not self._away:
            self._away = True
            self._notices.append(f"{failure}; trying again")

    def _back(self) -> None:
        if self._away:
            self._away, self._pause = False, PAUSE[0]
            self._notices.append("the store answers again")

    def _read(self) -> Record | None:
        """The record before the next one, which shows whether it is the last of its object."""
        reader, item = self._reader, self._waiting[0]
        assert reader is not None
        record = self._named(reader.read)
        if record is None and not reader.done:
            return None
        last, self._last_record = self._last_record, None
        if record is not None:
            self._last_record = _with_folders(record, item)._replace(partition=item.name, mark=_mark(record, item))
        else:
            self._notices += [notice.replace(self._local(), item.name) for notice in reader.notices()]
            self._close_object(keep=False)
            self._waiting.popleft()
            self._lag[item.name] = 0
            last = last and last._replace(mark=last.mark | WHOLE)
        if last is not None:
            self._positions[item.name] = Position(last.next_offset, last.mark)
        return last

    def _named(self, ask: Any) -> Any:
        """What a reader answers; its errors name the object, not the copy."""
        try:
            return ask()
        except SourceFailed as failure:
            raise SourceFailed(str(failure).replace(self._local(), self._waiting[0].name)) from None

    def _local(self) -> str:
        return f"/proc/self/fd/{self._file.fileno()}" if self._file else ""

    def _close_object(self, keep: bool = True) -> None:
        if self._reader is not None:
            self._reader.close()
        if self._file is not None:
            if keep and self._failure is None:
                self._waiting[0].keep(self._file)
            self._file.close()
        self._reader = self._file = None


def _path(name: str) -> str:
    """The name of an object without the query of a web address: its suffix says what is in it."""
    return name.partition("?")[0] if name.startswith("http") else name


def _mark(record: Record, item: Object) -> int:
    return record.mark | item.version << LOCAL_BITS


def _with_folders(record: Record, item: Object) -> Record:
    """Rows of a table with a column for each folder NAME=VALUE in which their object lies, where they have none."""
    if record.unit != "row":
        return record
    import pyarrow

    batch = record.value
    for name, value in _HIVE.findall(item.name):
        if (name := unquote(name)) not in batch.schema.names:
            text = None if value == "__HIVE_DEFAULT_PARTITION__" else unquote(value)
            batch = batch.append_column(name, pyarrow.repeat(pyarrow.scalar(text, pyarrow.string()), len(batch)))
    return record._replace(value=batch)


def _passed(moment: float, until: float) -> bool:
    """Wait for a moment, at most until then; whether it has come."""
    time.sleep(max(0.0, min(moment, until) - time.monotonic()))
    return time.monotonic() >= moment


def _in_thread(item: Object) -> Future[IO[bytes]]:
    """A copy that is being made; the process may end without it."""
    future: Future[IO[bytes]] = Future()

    def copy() -> None:
        try:
            future.set_result(item.copy())
        except BaseException as error:  # raised by who asks for the result
            future.set_exception(error)

    Thread(target=copy, name="store-copy", daemon=True).start()
    return future


S3 = partial(StoreSource, "s3")
GoogleStorage = partial(StoreSource, "gs")
Https = partial(StoreSource, "https")
Http = partial(StoreSource, "http")
