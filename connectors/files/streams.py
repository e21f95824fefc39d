"""Byte streams over files, plain, compressed or in another encoding, read forward in pieces and in bounded memory.

A stream returns pieces until `b""`: no more data for now, with the reason in `damage` if it is not the end of the file.
The pieces are a prefix of the decompressed file, of which the first `trusted` bytes are certain.
"""

import codecs
import os
import zlib
from typing import Any, BinaryIO, NamedTuple

PIECE = 1 << 20
LAST = 1 << 12  # bytes that are remembered of what was read last
FIRST_PIECE = 1 << 12  # tells whether a file is the one that was read before, without reading much of it
_UTF16_MARKS = codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE
MIN_STEP_BYTES, MAX_STEP_BYTES = (
    64,
    4096,
)  # compressed bytes a step: 64 can become 2 MiB (zstd blocks of one repeated byte)


# Data that are cut short are trusted to their last byte. Where the decoder or a checksum objects, the damage is
# anywhere in the failed gzip member or zstd frame, so trust ends where that begins. Text in another encoding becomes
# UTF-8; bytes that are not valid in it are damage.
class ByteStream:
    """What is read forward in pieces; see the module for `damage` and `trusted`."""

    damage = ""
    trusted = 0
    notice = ""  # what a person should know about the file

    def read(self) -> bytes:
        """The next bytes, empty when there are none now."""
        raise NotImplementedError

    def jump(self, size: int) -> int:
        """Pass over up to `size` bytes without reading them; returns how many there were. Most can only be read."""
        return 0

    def unread(self) -> int:
        """Bytes that are there and were not read, as the stream counts them; 0 where nobody knows."""
        return 0

    def close(self) -> None:
        """Close what it reads, if that is its own."""


class Plain(ByteStream):
    """An open descriptor read as it is. Data that are appended later are read later: `b""` is not final."""

    def __init__(self, descriptor: int):
        self.descriptor = descriptor
        self._last = b""  # of what was read, before `trusted`

    def read(self) -> bytes:
        piece = os.read(self.descriptor, PIECE if self.trusted else FIRST_PIECE)
        self.trusted += len(piece)
        self._last = piece[-LAST:] if len(piece) >= LAST else (self._last + piece)[-LAST:]
        return piece

    def ends_as_read(self) -> bool:
        """Whether the bytes that were read last are still there: no line is put together of bytes of two files."""
        return os.pread(self.descriptor, len(self._last), self.trusted - len(self._last)) == self._last

    def jump(self, size: int) -> int:
        """Seek over up to `size` bytes."""
        size = min(size, self.unread())
        self.trusted, self._last = os.lseek(self.descriptor, size, os.SEEK_CUR), b""
        return size

    def unread(self) -> int:
        """Bytes of the file behind the position."""
        return max(0, os.fstat(self.descriptor).st_size - self.trusted)

    def close(self) -> None:
        os.close(self.descriptor)


class Codec(NamedTuple):
    """`open()` makes a decoder of one part with `decompress`, `eof` and `unused_data`; it raises `errors`."""

    name: str
    open: Any
    errors: tuple[type[Exception], ...]
    part: str
    padded: bool  # zero bytes after the last part are padding (gzip on tapes), not a part


def _gzip() -> Codec:
    return Codec("gzip", lambda: zlib.decompressobj(wbits=31), (zlib.error,), "member", True)


def _zstd() -> Codec:
    import zstandard

    return Codec("zstd", lambda: zstandard.ZstdDecompressor().decompressobj(), (zstandard.ZstdError,), "frame", False)


CODECS = {".gz": _gzip, ".zst": _zstd}


class Compressed(ByteStream):
    """A gzip file of one or more members, or a zstd file of one or more frames, decompressed."""

    def __init__(self, file: BinaryIO, codec: Codec):
        self._file, self._codec = file, codec
        self._size = os.fstat(file.fileno()).st_size
        self._decoder: Any = None  # None between parts
        self._input = b""
        self._step_bytes = MIN_STEP_BYTES
        self._position = 0  # compressed bytes behind us
        self._unpacked = 0  # decompressed bytes
        self._ended = False

    def read(self) -> bytes:
        """The next bytes, decompressed."""
        piece = b""
        while not (piece or self._ended):
            piece = self._step()
        self._unpacked += len(piece)
        if not self.damage and (self._decoder is None or self._ended):
            self.trusted = self._unpacked
        return piece

    def _step(self) -> bytes:
        data, self._input = self._input or self._file.read(self._step_bytes), b""
        if not data:
            self._end()
            return b""
        if self._decoder is None:
            if self._codec.padded and self._position and not data.strip(b"\0"):
                self._position += len(data)
                return b""
            self._decoder = self._codec.open()
        try:
            piece = self._decoder.decompress(data)
        except self._codec.errors as error:
            self.damage = (
                f"the {self._codec.part} of {self._codec.name} data that begins at decompressed byte "
                f"{self.trusted:,} is damaged before compressed byte {self._position + len(data):,} ({error})"
            )
            self._ended = True
            return b""
        self._step_bytes = max(MIN_STEP_BYTES, min(MAX_STEP_BYTES, self._step_bytes * (2 if len(piece) < PIECE else 0)))
        self._position += len(data)
        if self._decoder.eof:
            self._input = self._decoder.unused_data
            self._position -= len(self._input)
            self._decoder = None
        return piece

    def _end(self) -> None:
        self._ended = True
        if self._decoder is not None or not self._position:
            self.trusted = self._unpacked
            self.damage = f"the {self._codec.name} data is truncated after {self._position:,} compressed bytes"

    def unread(self) -> int:
        """Compressed bytes: how much they hold is not known."""
        return self._size - self._position

    def close(self) -> None:
        self._file.close()


class Transcoded(ByteStream):
    """A stream of bytes in some encoding as UTF-8."""

    def __init__(self, stream: ByteStream, encoding: str):
        self._stream, self._encoding = stream, encoding
        self._decoder = codecs.getincrementaldecoder(encoding)()
        self._position, self._ended = 0, False  # bytes of the stream below

    def read(self) -> bytes:
        """The next bytes, as UTF-8."""
        while not self._ended:
            piece = self._stream.read()
            self._ended = not piece
            try:
                text = self._decoder.decode(piece, final=not piece and not self._stream.damage).encode()
            except UnicodeError as error:
                place = self._position + getattr(error, "start", 0)
                self.damage = f"invalid {self._encoding} near byte {place:,}; use another --encoding"
                self._ended = True
                return b""
            self._position += len(piece)
            if not piece:
                self.damage = self._stream.damage
            if text:
                self.trusted += len(text)
                return text
        return b""

    def unread(self) -> int:
        """Bytes of the file behind the position."""
        return self._stream.unread()

    def close(self) -> None:
        self._stream.close()


def as_utf8(stream: Plain | Compressed, encoding: str | None) -> ByteStream:
    """The stream as UTF-8: of a plain file that begins with a mark of UTF-16, when no encoding is told, that is it."""
    if encoding is None and isinstance(stream, Plain) and os.pread(stream.descriptor, 2, 0) in _UTF16_MARKS:
        encoding = "utf-16"
    return stream if encoding is None else Transcoded(stream, encoding)


def open_stream(path: str, suffix: str) -> Plain | Compressed:
    """The bytes of a file; `suffix` is a key of `CODECS`, or empty for a plain file. Raises `OSError`."""
    if not suffix:
        return Plain(os.open(path, os.O_RDONLY))
    return Compressed(open(path, "rb", buffering=1 << 16), CODECS[suffix]())
