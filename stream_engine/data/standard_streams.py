"""Standard output and standard error of the commands: text that no terminal obeys and every encoding can hold.

Standard error loses what it cannot write: a full disk, a reader that is gone, or one that does not read ends nothing.
An error of standard output is `ReaderGone`, or that of a file of this name.
"""

import codecs
import contextlib
import io
import os
import select
import stat
import sys
from collections.abc import Callable, Iterator
from typing import Any

STANDARD_OUTPUT = "standard output"
ESCAPE = "stream_engine.escape"  # the name of `_escape` among the error handlers
PATIENCE = 1000  # milliseconds that a full pipe may take until a line is lost
# C0 without tab and line feed, DEL, C1, and what reorders the text around it or separates lines
_CONTROL_CODES = (*range(9), *range(11, 32), *range(0x7F, 0xA0), 0x61C, 0x200E, 0x200F, *range(0x2028, 0x202F))
_AS_TEXT = {code: f"\\u{code:04x}" for code in (*_CONTROL_CODES, *range(0x2066, 0x206A))}


def printable(text: str) -> str:
    r"""The text, its control characters written as JSON writes them; tabs and line feeds stay.

    >>> printable("a\x1b[2Jb\u202ec\td")
    'a\\u001b[2Jb\\u202ec\td'
    """
    return text.translate(_AS_TEXT)


def _escape(error: UnicodeError) -> tuple[str, int]:
    """Characters that an encoding lacks as JSON writes them, so that JSON stays JSON."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    lacking = error.object[error.start : error.end].encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{lacking[i : i + 2].hex()}" for i in range(0, len(lacking), 2)), error.end


codecs.register_error(ESCAPE, _escape)


class LineWriter:
    """Writes lines to a descriptor; one that cannot be written now is lost, and `lost` counts it. A line of which a
    part was written is ended before the next one."""

    def __init__(self, descriptor: int):
        self.descriptor, self.lost = descriptor, 0
        self._patience, self._torn = PATIENCE, False
        regular = stat.S_ISREG(os.fstat(descriptor).st_mode)
        self._piece = 1 << 20 if regular else select.PIPE_BUF  # so much a pipe takes without waiting, once it is ready
        self._ready = select.poll()
        self._ready.register(descriptor, select.POLLOUT)

    def write(self, data: bytes) -> bool:
        """Whether the data was written."""
        unwritten = memoryview(b"\n" + data if self._torn else data)
        try:
            while unwritten:
                if not self._ready.poll(self._patience):  # a pipe whose reader does not read
                    raise TimeoutError
                unwritten = unwritten[os.write(self.descriptor, unwritten[: self._piece]) :]
                self._patience = PATIENCE
                self._torn = bool(unwritten)
        except OSError:
            self._patience = 0  # the lines after it do not wait as well
            self.lost += 1
            return False
        return True


class _Stream(io.TextIOBase):
    """A standard stream `inner`, whose text is made `printable` and fit for its encoding."""

    def __init__(self, inner: Any):
        self._inner = inner
        self._plain = codecs.lookup(getattr(inner, "encoding", None) or "utf-8").name == "ascii"

    @property
    def encoding(self) -> str:  # type: ignore[override]
        """That of the stream. ASCII is called Latin-1, which holds it: click writes UTF-8 where it sees ASCII."""
        return "latin-1" if self._plain else getattr(self._inner, "encoding", None) or "utf-8"

    @property
    def errors(self) -> str:  # type: ignore[override]
        """What becomes of characters that the encoding lacks."""
        return ESCAPE

    def fit(self, text: str) -> str:
        """The text without characters that the encoding lacks."""
        encoding = "ascii" if self._plain else self.encoding
        return text.encode(encoding, self.errors).decode(encoding)

    def isatty(self) -> bool:
        """Whether a person reads it directly."""
        return bool(self._inner.isatty())

    def fileno(self) -> int:
        """The descriptor, where there is one."""
        return int(self._inner.fileno())

    def writable(self) -> bool:
        """Always."""
        return True


class OutputStream(_Stream):
    """Standard output."""

    @property
    def buffer(self) -> "_Bytes":
        """Takes bytes; AttributeError where the stream is of text alone."""
        return _Bytes(self, self._inner.buffer)

    def write(self, text: str) -> int:
        """Write text. Raises `ReaderGone`, OSError about `STANDARD_OUTPUT`."""
        fitting = self.fit(printable(text))
        with _as_standard_output():
            self._inner.write(fitting)
        return len(text)

    def flush(self) -> None:
        """Write what is held back. Raises as `write`."""
        if not self._inner.closed:
            with _as_standard_output():
                self._inner.flush()


class _Bytes:
    """The bytes of standard output: as they are for programs, as text for a terminal."""

    def __init__(self, stream: OutputStream, inner: Any):
        self._stream, self._inner = stream, inner

    def write(self, data: bytes) -> int:
        if self._stream.isatty():
            self._stream.write(bytes(data).decode("utf-8", "backslashreplace"))
        else:
            with _as_standard_output():
                self._inner.write(data)
        return len(data)

    def flush(self) -> None:
        self._stream.flush()
        with _as_standard_output():
            self._inner.flush()


class ErrorStream(_Stream):
    """Standard error: what it cannot write is lost."""

    def __init__(self, inner: Any):
        super().__init__(inner)
        raw = getattr(getattr(inner, "buffer", None), "raw", None)
        self._lines = LineWriter(raw.fileno()) if isinstance(raw, io.FileIO) else None

    def write(self, text: str) -> int:
        """Write text."""
        self.write_unchanged(printable(text))
        return len(text)

    def write_unchanged(self, text: str) -> bool:
        """Write text that may hold commands for a terminal, such as colours; whether it was written."""
        data = self.fit(text)
        if self._lines is not None:
            return self._lines.write(data.encode(self.encoding))
        try:
            self._inner.write(data)
        except (OSError, ValueError):  # ValueError: closed
            return False
        return True

    def flush(self) -> None:
        """Nothing is held back where it is a file."""
        if self._lines is None:
            with contextlib.suppress(OSError, ValueError):
                self._inner.flush()


class TerminalCommands:
    """Standard error for what moves the cursor of a terminal: progress bars."""

    def __init__(self, stream: Any):
        self._stream = stream
        self.encoding = getattr(stream, "encoding", None) or "utf-8"

    def write(self, text: str) -> bool:
        """Write text as it is; whether it was written."""
        write: Callable[[str], object] = getattr(self._stream, "write_unchanged", self._stream.write)
        return write(text) is not False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


class ReaderGone(RuntimeError):
    """Nobody reads standard output any more, as after `| head`. No OSError: click would end the program."""


@contextlib.contextmanager
def _as_standard_output() -> Iterator[None]:
    try:
        yield
    except BrokenPipeError:
        raise ReaderGone(f"{STANDARD_OUTPUT}: its reader is gone") from None
    except OSError as error:
        raise OSError(error.errno, error.strerror, STANDARD_OUTPUT) from None


@contextlib.contextmanager
def standard_streams() -> Iterator[None]:
    """`sys.stdout` and `sys.stderr` as the streams above, and afterwards as before."""
    former = sys.stdout, sys.stderr
    if not isinstance(sys.stdout, OutputStream):
        sys.stdout = OutputStream(sys.stdout)
    if not isinstance(sys.stderr, ErrorStream):
        sys.stderr = ErrorStream(sys.stderr)
    try:
        yield
    finally:
        sys.stdout, sys.stderr = former


def give_up_output() -> None:
    """Let go of what standard output still holds back, which could not be written: the interpreter would try again."""
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 1)
    os.close(null)
