"""Where a picture or a text of each object is: a folder of pictures named after the objects, or a table of them.

A folder holds files whose names without suffix are objects. A table (.csv) has a column `object` and one or both of
`image`, a file beside the table, and `text`. Pictures are made small, so that a page with many stays a page.
"""

import base64
import csv
import io
from collections.abc import Container
from pathlib import Path
from typing import NamedTuple

SIDE = 160  # pixels of the longer side, as shown
LARGEST = 64_000_000  # pixels of a picture that is opened
SUFFIXES = (".png", ".jpg", ".jpeg", ".gif", ".webp", ".bmp")


class BadObjects(ValueError):
    """What is said to hold the objects does not; the message is one line: where, what, got, expected."""


class ObjectFiles(NamedTuple):
    """Pictures as data: URLs and texts, by object; `unknown`: how many were of objects that are not there."""

    pictures: dict[str, str]
    texts: dict[str, str]
    unknown: int


def read(path: Path, wanted: Container[str]) -> ObjectFiles:
    """What there is of the `wanted` objects. Raises `BadObjects`."""
    if path.is_dir():
        rows = [
            {"object": each.stem, "image": each.name}
            for each in sorted(path.iterdir())
            if each.suffix.lower() in SUFFIXES
        ]
        if not rows:
            raise BadObjects(f"{path}: got a folder without pictures, expected files OBJECT{{{','.join(SUFFIXES)}}}")
        folder = path
    else:
        rows, folder = _rows(path), path.parent
    found = ObjectFiles({}, {}, sum(row["object"] not in wanted for row in rows))
    for row in rows:
        name = row["object"]
        if name not in wanted:
            continue
        if row.get("image"):
            found.pictures[name] = _small(_inside(folder, row["image"], path))
        if row.get("text"):
            found.texts[name] = row["text"]
    return found


def _rows(path: Path) -> list[dict[str, str]]:
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            rows = list(csv.DictReader(file))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise BadObjects(f"{path}: {error}; expected a folder of pictures, or a table object,image,text") from None
    heads = set(rows[0]) if rows else set()
    if "object" not in heads or not heads & {"image", "text"}:
        got = ", ".join(sorted(map(str, heads))) or "no rows"
        raise BadObjects(f"{path}: got the columns {got}; expected object and one or both of image, text")
    return rows


def _inside(folder: Path, name: str, table: Path) -> Path:
    """A file below the folder; a table cannot point elsewhere."""
    path = (folder / name).resolve()
    if not path.is_relative_to(folder.resolve()):
        raise BadObjects(f"{table}: got the image {name!r}, expected a file in the table's folder")
    return path


def _small(path: Path) -> str:
    """The picture as a data: URL, its longer side at most `SIDE`."""
    from PIL import Image

    try:
        with Image.open(path) as image:
            if image.width * image.height > LARGEST:
                raise BadObjects(f"{path}: got {image.width} x {image.height} pixels, expected at most {LARGEST:,}")
            small = image.convert("RGB")
            small.thumbnail((SIDE, SIDE))
    except (OSError, ValueError, Image.DecompressionBombError) as error:
        if isinstance(error, BadObjects):
            raise
        raise BadObjects(f"{path}: got no picture that can be read ({error})") from None
    buffer = io.BytesIO()
    small.save(buffer, "JPEG", quality=80)
    return "data:image/jpeg;base64," + base64.b64encode(buffer.getvalue()).decode()
