"""Everything of a study in one ZIP, made while it is sent: `GET /download`.

    answers.jsonl, sessions.jsonl, refused.jsonl   the logs: answers, questions, what was refused
    participants.csv                               people
    study.json, settings.json                      the study file, the engine's settings; defaults among them
    objects.csv, objects/                          the objects, and what is shown of them
    exports/                                       what `stream-engine export` writes of the newest snapshot, as CSV

No secret is in it: links, tokens and codes of completion cannot be made from it. `backup` copies a study that is to go
on elsewhere.
"""

import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Iterable, Iterator
from pathlib import Path

from connectors.disk import is_plain_file
from stream_engine.collect.stimuli import Stimuli
from stream_engine.data.spreadsheet_cells import csv_text

PIECE = 256 << 10
EXPORTING = 600.0  # seconds that the exports may take

File = tuple[str, Iterable[bytes]]


def zipped(files: Iterable[File]) -> Iterator[bytes]:
    """A ZIP of files, (name, pieces of its content), as pieces; memory O(the largest piece)."""
    pipe, now = _Pipe(), time.localtime()[:6]
    with zipfile.ZipFile(pipe, "w") as archive:  # type: ignore[call-overload]  # needs no more than `write` and `flush`
        for name, pieces in files:
            entry = zipfile.ZipInfo(name, now)
            entry.compress_type, entry.external_attr = zipfile.ZIP_DEFLATED, 0o644 << 16
            with archive.open(entry, "w", force_zip64=True) as file:
                for piece in pieces:
                    file.write(piece)
                    yield pipe.take()
    yield pipe.take()


class _Pipe:
    """What was written and not yet taken."""

    def __init__(self) -> None:
        self._buffer = bytearray()

    def write(self, data: bytes) -> int:
        self._buffer += data
        return len(data)

    def flush(self) -> None:
        """Nothing to do."""

    def take(self) -> bytes:
        content, self._buffer = bytes(self._buffer), bytearray()
        return content


def lines(of: Iterable[bytes]) -> Iterator[bytes]:
    """Lines with their ends, in pieces."""
    piece = bytearray()
    for line in of:
        piece += line + b"\n"
        if len(piece) > PIECE:
            yield bytes(piece)
            piece.clear()
    yield bytes(piece)


def objects(stimuli: Stimuli, raw: bool) -> Iterator[File]:
    """The table of objects, and their files. `raw`: texts are written as they are."""
    rows, files = [("object", "file", "text")], {}
    for number, (name, shown) in enumerate(list(stimuli.shown.items()), 1):
        file = ""
        if shown.file is not None:
            file = shown.file.name if stimuli.folder else f"{number:06d}{shown.file.suffix.lower()}"
            files[file] = shown.file
        rows.append((name, file, shown.text))
    yield "objects.csv", [csv_text(rows, raw).encode()]
    for file, path in files.items():
        if is_plain_file(path):
            yield f"objects/{file}", _pieces(path)


def exports(state: Path, raw: bool) -> Iterator[File]:
    """What `export` writes of the newest snapshot, by a process of its own; nothing where there is no snapshot."""
    with tempfile.TemporaryDirectory(prefix="stream-engine-download-") as folder:
        command = [sys.executable, "-m", "stream_engine", "export", "--state", str(state), "--out", folder]
        done = subprocess.run(
            [*command, "--format", "csv", *(["--raw"] if raw else [])], capture_output=True, timeout=EXPORTING
        )
        if done.returncode:
            yield "exports/none.txt", [done.stderr[-2000:] or b"no exports\n"]
            return
        for path in sorted(Path(folder).iterdir()):
            yield f"exports/{path.name}", _pieces(path)


def _pieces(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        while piece := file.read(PIECE):
            yield piece
