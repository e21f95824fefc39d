"""How the text of a file is laid out, where its first line does not say it: delimiter, encoding, lines before the
header, no header at all."""

import codecs
from typing import NamedTuple

from connectors import UnusableSource

UTF8 = ("utf-8", "utf-8-sig", "ascii")
NAMED_DELIMITERS = {"tab": "\t", "\\t": "\t", "space": " ", "comma": ",", "semicolon": ";", "bar": "|", "pipe": "|"}


class TextLayout(NamedTuple):
    """`delimiter` of a table (none: found in its header), `encoding` (none: UTF-8, or UTF-16 with its mark), whether
    the first line is a `header` (else columns are called 1, 2, 3, ...), and how many lines stand before it."""

    delimiter: str | None = None
    encoding: str | None = None
    header: bool = True
    skip_rows: int = 0

    @property
    def is_utf8(self) -> bool:
        """Whether bytes are told to be UTF-8, or nothing is told."""
        return self.encoding is None or self.encoding in UTF8


PLAIN_TEXT = TextLayout()


def text_layout(
    delimiter: str | None = None, encoding: str | None = None, header: bool = True, skip_rows: int = 0
) -> TextLayout:
    """The checked layout. Raises `UnusableSource` for a delimiter or an encoding that cannot be.

    >>> text_layout("tab", "Latin1"), text_layout().is_utf8
    (TextLayout(delimiter='\\t', encoding='iso8859-1', header=True, skip_rows=0), True)
    """
    if delimiter is not None:
        delimiter = NAMED_DELIMITERS.get(delimiter, delimiter)
        if len(delimiter) != 1 or not delimiter.isascii() or delimiter.isalnum() or delimiter in '"\r\n\0':
            raise UnusableSource(
                f"delimiter: got {delimiter!r}, expected one character such as , ; | tab or space (no letter, digit "
                "or quote)"
            )
    if encoding is not None:
        try:
            found = codecs.lookup(encoding)
        except (LookupError, ValueError):
            found = None
        if found is None or not getattr(found, "_is_text_encoding", True):
            raise UnusableSource(f"encoding: got {encoding!r}, expected one such as utf-8, latin-1, cp1252 or utf-16")
        encoding = found.name
    if skip_rows < 0:
        raise UnusableSource(f"skip_rows: got {skip_rows}, expected a number of lines, 0 or more")
    return TextLayout(delimiter, encoding, header, skip_rows)
