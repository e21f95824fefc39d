"""Where a picture or a text of each object is: a folder of pictures named after the objects, or a table of them.

A folder holds files that are named after objects, with or without their suffix: `tree.png` is the picture of `tree` and
of `tree.png`. A table (.csv) has a column `object` and one or both of
`image`, a file beside the table, and `text`. Pictures are made small, so that a page with many stays a page: the more
there are, the smaller, and all of them together take at most `BUDGET` bytes.
"""

import csv
import io
import unicodedata
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import NamedTuple

SIDE = 160  # pixels of the longer side, as shown
SIDES = ((200, SIDE), (600, 96), (1500, 64))  # up to so many pictures on a page have so many pixels
SMALLEST = 48  # pixels where there are more
BUDGET = 5_000_000  # bytes of all pictures of a page
LARGEST = 40_000_000  # pixels of a picture that is opened
LARGEST_FILE = 50_000_000  # bytes of it
SUFFIXES = (".png", ".jpg", ".jpeg", ".gif", ".webp", ".bmp")
KINDS = ("PNG", "JPEG", "GIF", "WEBP", "BMP")  # what is inside, whatever the name


class BadObjects(ValueError):
    """What is said to hold the objects does not; the message is one line: where, what, got, expected."""


class ObjectFiles(NamedTuple):
    """Small JPEGs and texts, by object; `unknown`: how many were of objects that are not there; `too_many`: how many
    pictures had no room within `BUDGET`."""

    pictures: dict[str, bytes]
    texts: dict[str, str]
    unknown: int
    too_many: int = 0


class ObjectListing(NamedTuple):
    """Files with pictures, and texts, by object: of all objects that a folder or a table names."""

    pictures: dict[str, Path]
    texts: dict[str, str]


def read(path: Path, wanted: Collection[str]) -> ObjectFiles:
    """What there is of the `wanted` objects. Raises `BadObjects`."""
    found = listed(path)
    object_of = _joined(found, wanted)
    known = {object_of[name]: picture for name, picture in found.pictures.items() if name in object_of}
    side = next((side for most, side in SIDES if len(known) <= most), SMALLEST)
    pictures: dict[str, bytes] = {}
    room, too_many = BUDGET, 0
    for name, picture in known.items():
        jpeg = small_jpeg(picture, side)
        if len(jpeg) > room:
            too_many += 1
        else:
            pictures[name] = jpeg
            room -= len(jpeg)
    return ObjectFiles(
        pictures,
        {object_of[name]: text for name, text in found.texts.items() if name in object_of},
        sum(name not in object_of for name in {**found.pictures, **found.texts}),
        too_many,
    )


def _joined(found: ObjectListing, wanted: Collection[str]) -> dict[str, str]:
    """The object of each name in a folder or table: the same name, or the same but for a suffix of pictures, the
    Unicode form, or spaces at its ends; no object where two would fit."""
    alike: dict[str, list[str]] = {}
    for name in wanted:
        alike.setdefault(_without_suffix(name), []).append(name)
    joined = {}
    for name in {**found.pictures, **found.texts}:
        file = found.pictures[name].name if name in found.pictures else name
        same = [each for each in (name, file) if each in wanted]
        same = same or alike.get(_without_suffix(name), [])
        if len(same) == 1 or name in same or file in same:
            joined[name] = same[0]
    return joined


def _without_suffix(name: str) -> str:
    name = unicodedata.normalize("NFC", name).strip()
    suffix = name[name.rfind(".") :].lower() if "." in name else ""
    return name[: -len(suffix)].strip() if suffix in SUFFIXES and len(name) > len(suffix) else name


def labels_of(names: Sequence[str]) -> tuple[str, ...]:
    """The names of objects as labels: without the suffix of pictures where all have one and no two labels are alike.

    >>> labels_of(["tree.png", "house.JPG"]), labels_of(["tree.png", "tree.jpg"]), labels_of(["Mr. T", "x.png"])
    (('tree', 'house'), ('tree.png', 'tree.jpg'), ('Mr. T', 'x.png'))
    """
    labels = tuple(name[: name.rfind(".")] for name in names if name[name.rfind(".") :].lower() in SUFFIXES)
    return labels if len(labels) == len(names) == len(set(labels)) and all(labels) else tuple(names)


def listed(path: Path) -> ObjectListing:
    """What a folder of pictures or a table object,image,text names; no picture is opened. Raises `BadObjects`."""
    rows, folder = (_in_folder(path), path) if path.is_dir() else (_rows(path), path.parent)
    found = ObjectListing({}, {})
    for row in rows:
        if row.get("image"):
            found.pictures[row["object"]] = _inside(folder, row["image"], path)
        if row.get("text"):
            found.texts[row["object"]] = row["text"]
    return found


def _in_folder(path: Path) -> list[dict[str, str]]:
    pictures = [each for each in sorted(path.iterdir()) if each.suffix.lower() in SUFFIXES]
    if not pictures:
        raise BadObjects(f"{path}: got a folder without pictures, expected files OBJECT{{{','.join(SUFFIXES)}}}")
    return [{"object": each.stem, "image": each.name} for each in pictures]


def _rows(path: Path) -> list[dict[str, str]]:
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            rows = list(csv.DictReader(file))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        why = error.strerror if isinstance(error, OSError) else error
        raise BadObjects(f"{path}: {why}; expected a folder of pictures, or a table object,image,text") from None
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


def small_jpeg(path: Path, side: int = SIDE) -> bytes:
    """The picture as a JPEG, its longer side at most `side` pixels. It is opened as one of `KINDS` alone, whatever its
    name says, and only if it is an ordinary file of bounded size. Raises `BadObjects`."""
    from PIL import Image

    try:
        if not path.is_file():  # a pipe would be waited for, a device has no end
            raise BadObjects(f"{path}: got no ordinary file, expected a picture")
        if (size := path.stat().st_size) > LARGEST_FILE:
            raise BadObjects(f"{path}: got {size:,} bytes, expected at most {LARGEST_FILE:,}")
        with Image.open(path, formats=KINDS) as image:
            if image.width * image.height > LARGEST:
                raise BadObjects(f"{path}: got {image.width} x {image.height} pixels, expected at most {LARGEST:,}")
            image.draft("RGB", (side, side))  # a large JPEG is read small
            thumb = image.convert("RGBA")
            thumb.thumbnail((side, side))
            small = Image.new("RGB", thumb.size, "white")  # what shows through is white
            small.paste(thumb, mask=thumb)
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError) as error:
        if isinstance(error, BadObjects):
            raise
        raise BadObjects(f"{path}: cannot read the picture ({error})") from None
    buffer = io.BytesIO()
    small.save(buffer, "JPEG", quality=80)
    return buffer.getvalue()
