"""Text in another encoding as UTF-8, read forward in pieces. Offsets count the UTF-8 bytes that come out.

Invariant: what comes out up to `trusted` is the text of the bytes that the stream below vouches for; bytes that are no
text of the encoding are damage, told with their place. O(bytes).
"""

import codecs
import os

from connectors.files.decompress import ByteStream, Compressed, Plain

_UTF16_MARKS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


class Transcoded:
    """A stream of bytes in some encoding as UTF-8."""

    def __init__(self, stream: ByteStream, encoding: str):
        self._stream, self._encoding = stream, encoding
        self._decoder = codecs.getincrementaldecoder(encoding)()
        self._taken = 0  # bytes of the stream below
        self.trusted, self.damage, self._ended = 0, "", False

    def read(self) -> bytes:
        """The next bytes of UTF-8, empty at the end; `damage` says why, if the reason is not the end of the file."""
        while not self._ended:
            piece = self._stream.read()
            self._ended = not piece
            try:
                text = self._decoder.decode(piece, final=not piece and not self._stream.damage).encode()
            except UnicodeError as error:
                place = self._taken + getattr(error, "start", 0)
                self.damage = f"the bytes near byte {place:,} are no text in {self._encoding}; name another --encoding"
                self._ended = True
                return b""
            self._taken += len(piece)
            if not piece:
                self.damage = self._stream.damage
            if text:
                self.trusted += len(text)
                return text
        return b""

    def jump(self, size: int) -> int:
        """There is no way past text of another encoding but to read it."""
        return 0

    def unread(self) -> int:
        """Bytes of the stream below that were not looked at."""
        return self._stream.unread()

    def close(self) -> None:
        self._stream.close()


def as_utf8(stream: Plain | Compressed, encoding: str | None) -> ByteStream:
    """The stream as UTF-8: of a plain file that begins with a mark of UTF-16, when no encoding is told, that is it."""
    if encoding is None and isinstance(stream, Plain) and os.pread(stream.descriptor, 2, 0) in _UTF16_MARKS:
        encoding = "utf-16"
    return stream if encoding is None else Transcoded(stream, encoding)
