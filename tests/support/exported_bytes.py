"""The files of an export in memory."""

import io
from collections.abc import Sequence

from stream_engine.exports import Content
from stream_engine.exports.files import writers


def encode(name: str, content: Content, format: str, objects: Sequence[str]) -> dict[str, bytes]:
    """{file name: bytes} of one content."""
    files = {}
    for file, write in writers(name, content, format, objects).items():
        buffer = io.BytesIO()
        write(buffer)
        files[file] = buffer.getvalue()
    return files
