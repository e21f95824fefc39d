"""The line number of an offset in a text file, as shown in an editor.

One pass over a file serves all offsets in ascending order. O(bytes up to the offset).
"""

from connectors import SourceFailed, UnusableSource
from connectors.files.line_blocks import PLAIN_TEXT, TextLayout
from connectors.files.readers import kind_of, opened_text
from connectors.files.streams import ByteStream


class LineNumbers:
    """The numbers of lines in files, counted from 1 as editors do."""

    def __init__(self, format: str | None = None, layout: TextLayout = PLAIN_TEXT):
        self._format, self._layout = format, layout
        self._open: dict[str, _Counted] = {}

    def at(self, partition: str, offset: int) -> int | None:
        """The line of a file in which this byte stands; None of what is no text file, or is not there any more."""
        if not partition.startswith("/"):
            return None
        try:
            if partition not in self._open or self._open[partition].at > offset:
                self._close(partition)
                kind = kind_of(partition, self._format, self._layout)
                if not kind.is_text:
                    return None
                self._open[partition] = _Counted(opened_text(partition, kind))
            return self._open[partition].line_at(offset)
        except (OSError, UnusableSource, SourceFailed):
            return None

    def _close(self, partition: str) -> None:
        if partition in self._open:
            self._open.pop(partition).stream.close()

    def close(self) -> None:
        """Close the files."""
        for partition in list(self._open):
            self._close(partition)


class _Counted:
    """A stream and the lines that end in it before `at`, the beginning of the piece that was read last."""

    def __init__(self, stream: ByteStream):
        self.stream, self.at, self.lines, self._piece = stream, 0, 0, b""

    def line_at(self, offset: int) -> int | None:
        while self.at + len(self._piece) <= offset:
            self.lines += self._piece.count(b"\n")
            self.at += len(self._piece)
            self._piece = self.stream.read()
            if not self._piece:
                return None
        return self.lines + self._piece.count(b"\n", 0, offset - self.at) + 1


def place(partition: str, offset: int, lines: LineNumbers) -> str:
    """Where something stands, for people: FILE line N, or PARTITION@OFFSET where there are no lines."""
    line = lines.at(partition, offset)
    return f"{partition}@{offset}" if line is None else f"{partition} line {line:,}"
