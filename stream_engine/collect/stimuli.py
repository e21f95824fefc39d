"""What participants see of objects: a folder of pictures, sounds and texts, a table of them, or a file of names.

In a folder, file names without suffix are objects. A table (.csv) has a column `object` and one or more of `image`,
`sound` and `text`; any other file has a name per line. Objects may be added while a study runs.
"""

import csv
import filecmp
import io
import os
import shutil
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import NamedTuple

from connectors.disk import Disk, is_plain_file, make_folders, write_whole
from stream_engine.data.comparisons import MAX_NAME_BYTES
from stream_engine.data.spreadsheet_cells import csv_text

# suffixes -> media type, and what the first bytes must hold: at which byte, which ones
KINDS: dict[str, tuple[str, int, tuple[bytes, ...]]] = {
    ".png": ("image/png", 0, (b"\x89PNG\r\n\x1a\n",)),
    ".jpg": ("image/jpeg", 0, (b"\xff\xd8\xff",)),
    ".jpeg": ("image/jpeg", 0, (b"\xff\xd8\xff",)),
    ".gif": ("image/gif", 0, (b"GIF87a", b"GIF89a")),
    ".webp": ("image/webp", 8, (b"WEBP",)),
    ".wav": ("audio/wav", 8, (b"WAVE",)),
    ".mp3": ("audio/mpeg", 0, (b"ID3", b"\xff\xfb", b"\xff\xf3", b"\xff\xf2", b"\xff\xfa")),
    ".ogg": ("audio/ogg", 0, (b"OggS",)),
    ".flac": ("audio/flac", 0, (b"fLaC",)),
    ".m4a": ("audio/mp4", 4, (b"ftyp",)),
}
TEXT = ".txt"
MAX_FILE_BYTES = 20 << 20  # bytes of a file that is shown
RETRY_SECONDS = 20.0  # after which a skipped file is read again: it may have been copied only partly
MAX_TEXT_BYTES = 4000  # bytes of a text that is shown
MIN_FILL = 0.25  # of a box: pictures longer than 4 : 1 are shown smaller than others


class BadStimuli(ValueError):
    """There is nothing to ask about; the message is one line: where, what, got, expected."""


class Stimulus(NamedTuple):
    """What is shown of an object: a text and a file; its name where there is neither."""

    text: str = ""
    file: Path | None = None
    media: str = ""  # the file's media type


class Stimuli:
    """The objects of a study in the order in which they came. Any thread may read; one looks for more."""

    def __init__(self, path: str | os.PathLike[str]):
        """Raises `BadStimuli`: nothing there, an object listed twice, or fewer than 3 objects."""
        self.path = Path(path)
        self.names: list[str] = []
        self.shown: dict[str, Stimulus] = {}
        self.passed_over: dict[str, str] = {}  # file or line -> why
        self.fill = 1.0  # the share of a square box that every picture takes, so that the longest one fits
        self.largest = 1  # pixels: the longest side of any picture
        self._stamps: tuple[int, ...] = ()
        self._looked = 0.0
        if not self.path.exists():
            raise BadStimuli(f"--objects {path}: does not exist; expected a folder or a file")
        if self.folder is None:
            self._check_distinct()
        self.look()
        if len(self.names) < 3:
            some = "".join(f"; {where}: {why}" for where, why in list(self.passed_over.items())[:3])
            raise BadStimuli(f"--objects {path}: got {len(self.names)} objects, expected at least 3{some}")

    @property
    def folder(self) -> Path | None:
        """Where a new file would become an object; None where a table or a list of names says what there is."""
        return self.path if self.path.is_dir() else None

    def _check_distinct(self) -> None:
        """Raise `BadStimuli` where a list or a table names an object twice: a name may be mistyped."""
        first: dict[str, str] = {}
        for where, name, _ in self._stimuli():
            if name and name in first:
                problem = f"got {name!r} again, as in {first[name]}; expected each object once"
                raise BadStimuli(f"--objects {self.path}: {where}: {problem}")
            first[name] = where

    def look(self) -> list[str]:
        """Take up objects that have come; returns their names. Nothing changes for those that were there."""
        try:
            status = self.path.stat()
            now, moment = (status.st_mtime_ns, status.st_size), time.monotonic()
            waits = self.passed_over and moment - self._looked > RETRY_SECONDS
            if now == self._stamps and not waits:
                return []
            self._looked = moment
            stimuli = list(self._stimuli())
        except (OSError, BadStimuli) as error:
            self.passed_over[self.path.name] = str(error)
            return []
        new = []
        self.passed_over = {}
        for where, name, shown in stimuli:
            why = _wrong(name, shown)
            if not why and name in self.shown and self.shown[name].file != shown.file:
                why = f"the object {name!r} exists already, as {_file(self.shown[name])}"
            if why:
                self.passed_over[where] = why
            elif name not in self.shown:
                self.shown[name] = shown
                self.names.append(name)
                self._measure(shown)
                new.append(name)
        self._stamps = now
        return new

    def _measure(self, shown: Stimulus) -> None:
        """Take a picture into account in how large all are shown."""
        wide, high = picture_size(shown)
        if wide and high:
            self.fill = max(min(self.fill, wide / high, high / wide), MIN_FILL)
            self.largest = max(self.largest, wide, high)

    def _stimuli(self) -> Iterator[tuple[str, str, Stimulus]]:
        """(where, name, what is shown) of each candidate."""
        if self.path.is_dir():
            for file in sorted(self.path.iterdir()):
                if not file.name.startswith("."):
                    yield _printable(file.name), file.stem, _of_file(file)
        elif self.path.suffix.lower() == ".csv":
            yield from self._of_table()
        else:
            for number, line in enumerate(_text_of(self.path).splitlines(), 1):
                if line.strip():
                    yield f"line {number}", line.strip(), Stimulus(line.strip())

    def _of_table(self) -> Iterator[tuple[str, str, Stimulus]]:
        rows = csv.DictReader(io.StringIO(_text_of(self.path)))
        try:
            if "object" not in (rows.fieldnames or ()):
                raise BadStimuli(
                    f"--objects {self.path}: got columns {rows.fieldnames}, expected object, image, sound, text"
                )
            for row in rows:
                file = row.get("image") or row.get("sound")
                shown = _of_file(self.path.parent / file) if file else Stimulus()
                name = (row["object"] or "").strip()
                text = row.get("text") or shown.text or ("" if file else name)
                yield f"line {rows.line_num}", name, shown._replace(text=text)
        except csv.Error as error:
            raise BadStimuli(f"--objects {self.path}: line {rows.reader.line_num}: {error}") from None


def picture_size(shown: Stimulus) -> tuple[int, int]:
    """Pixels across and down, read off the head of the file; zeros where it is no picture or is damaged."""
    if shown.file is None or not shown.media.startswith("image/"):
        return 0, 0
    from PIL import Image

    try:
        with Image.open(shown.file, formats=("PNG", "JPEG", "GIF", "WEBP")) as image:
            return image.size
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError):
        return 0, 0


def check_media(name: str, first: bytes) -> str:
    """ "" where a file's first bytes are what its name says; else why not.

    >>> check_media("a.png", b"\\x89PNG\\r\\n\\x1a\\n"), check_media("a.png", b"<html>")
    ('', 'is not image/png, although its name says so')
    """
    suffix = Path(name).suffix.lower()
    if suffix not in KINDS:
        return f"expected a file name that ends in {', '.join((*KINDS, TEXT))}"
    media, at, starts = KINDS[suffix]
    return "" if first[at:].startswith(starts) else f"is not {media}, although its name says so"


def check_text(first: bytes, size: int) -> str:
    """ "" where this is a text that can be shown; else why not. Of a large one the first bytes will do.

    >>> check_text(b"a word", 6), check_text(b" ", 1), check_text(b"na\\xefve", 5)
    ('', 'got 1 bytes, expected a text of 1 to 4000', 'byte 2 is not UTF-8')
    """
    try:
        if size <= MAX_TEXT_BYTES and first.decode("utf-8-sig").strip():
            return ""
    except UnicodeDecodeError as error:
        return f"byte {error.start} is not UTF-8"
    return f"got {size:,} bytes, expected a text of 1 to {MAX_TEXT_BYTES}"


def _of_file(path: Path) -> Stimulus:
    if path.suffix.lower() == TEXT:
        return Stimulus(_short_text(path), path, "text/plain")
    return Stimulus("", path, KINDS.get(path.suffix.lower(), ("",))[0])


def _short_text(path: Path) -> str:
    """The text of a file; "" where there is none, of which `_wrong` says why."""
    try:
        return _text_of(path).strip() if is_plain_file(path) and path.stat().st_size <= MAX_TEXT_BYTES else ""
    except (OSError, BadStimuli):
        return ""


def _wrong(name: str, shown: Stimulus) -> str:
    """Why this is no object, or ""."""
    if not name or not name.isprintable() or len(name.encode()) > MAX_NAME_BYTES:
        return f"got the name {name[:50]!r}, expected 1 to {MAX_NAME_BYTES} printable bytes"
    if shown.file is None:
        return ""
    try:
        if not is_plain_file(shown.file):
            return "is a link, which is not followed" if shown.file.is_symlink() else "is no ordinary file"
        size = shown.file.stat().st_size
        if size > MAX_FILE_BYTES:
            return f"got {size:,} bytes, expected at most {MAX_FILE_BYTES:,}"
        with shown.file.open("rb") as file:
            if shown.media == "text/plain":
                return check_text(file.read(MAX_TEXT_BYTES), size)
            return check_media(shown.file.name, file.read(16))
    except OSError as error:
        return f"{shown.file.name}: {error.strerror}"


def _printable(name: str) -> str:
    """A file's name as it can be written anywhere, whatever its bytes are."""
    return os.fsencode(name).decode(errors="backslashreplace")


def _file(shown: Stimulus) -> str:
    return shown.file.name if shown.file else "a text"


def _text_of(path: Path) -> str:
    try:
        return path.read_text("utf-8-sig")
    except UnicodeDecodeError as error:
        raise BadStimuli(f"{path}: byte {error.start} is not UTF-8") from None


TABLE = "objects.csv"


def stored_objects(folder: Path) -> Path:
    """What to give to `Stimuli`: the objects that are kept in DIR/collect/objects. Raises `BadStimuli`."""
    if (folder / TABLE).exists():
        return folder / TABLE
    if not folder.is_dir():
        raise BadStimuli(f"--objects: got none, and {folder} has none; expected FOLDER or FILE")
    return folder


# A copy is kept in DIR/collect/objects, so that a study is complete elsewhere: the files of a folder under their names;
# of a table or a list of names `objects.csv` and its files, numbered. Files are hard links where possible.
def keep(stimuli: Stimuli, folder: Path) -> None:
    """Keep what is not there yet, or is another file by now. Raises OSError. O(objects)."""
    if stimuli.path.resolve() in (folder.resolve(), (folder / TABLE).resolve()):
        return
    make_folders(Disk(), folder)
    if stimuli.folder is not None and (folder / TABLE).exists():  # of a table that was given before: it would count
        for former in [folder / TABLE, *folder.glob(f"{'[0-9]' * 6}.*")]:
            former.unlink()
    rows = []
    for number, (name, shown) in enumerate(stimuli.shown.items(), 1):
        if shown.file is not None:
            file = shown.file.name if stimuli.folder else f"{number:06d}{shown.file.suffix.lower()}"
            if not _holds(folder / file, shown.file):
                write_whole(Disk(), folder / file, partial(_link, shown.file), durable=False)
            rows.append((name, file if shown.media.startswith("image/") else "", file, shown.text))
        else:
            rows.append((name, "", "", shown.text))
    if stimuli.folder is None:
        table = [("object", "image", "sound", "text")]
        table += [(name, image, "" if image else file, description) for name, image, file, description in rows]
        content = csv_text(table, raw=True).encode()
        if not (folder / TABLE).exists() or (folder / TABLE).read_bytes() != content:
            write_whole(Disk(), folder / TABLE, [content])


def _holds(kept_file: Path, source: Path) -> bool:
    """Whether a file that is kept has the content of its source."""
    if not kept_file.exists():
        return False
    return os.path.samefile(kept_file, source) or filecmp.cmp(kept_file, source, shallow=False)


def _link(source: Path, target: str | os.PathLike[str]) -> None:
    try:
        os.link(source, target)
    except OSError:  # another file system, or one without links
        shutil.copyfile(source, target)
