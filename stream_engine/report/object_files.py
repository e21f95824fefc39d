"""Pictures and texts of objects: a folder of pictures named after the objects, or a table of them.

`tree.png` is the picture of `tree` and of `tree.png`; a table (.csv) has a column `object` and one or both of `image`
and `text`. The more pictures there are, the smaller they are shown, in `MAX_PAGE_BYTES` altogether.
"""

import csv
import io
import unicodedata
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import NamedTuple

MAX_PICTURE_SIDE = 160  # pixels of the longer side, as shown
PICTURE_SIDES = ((200, MAX_PICTURE_SIDE), (600, 96), (1500, 64))  # up to so many pictures on a page have so many pixels
MIN_PICTURE_SIDE = 48  # pixels where there are more
MAX_PAGE_BYTES = 5_000_000  # bytes of all pictures of a page
MAX_PICTURE_PIXELS = 40_000_000  # pixels of a picture that is opened
MAX_PICTURE_BYTES = 50_000_000  # bytes of it
SUFFIXES = (".png", ".jpg", ".jpeg", ".gif", ".webp", ".bmp")
KINDS = ("PNG", "JPEG", "GIF", "WEBP", "BMP")  # what is inside, whatever the name


class BadObjects(ValueError):
    """What is said to hold the objects does not; the message is one line: where, what, got, expected."""


class ObjectFiles(NamedTuple):
    """Small JPEGs and texts, by object; `unknown`: how many were of objects that are not there; `too_many`: how many
    pictures had no room within `MAX_PAGE_BYTES`."""

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
    listing = read_listing(path)
    object_of = _joined(listing, wanted)
    picture_of = {object_of[name]: picture for name, picture in listing.pictures.items() if name in object_of}
    side = next((side for most, side in PICTURE_SIDES if len(picture_of) <= most), MIN_PICTURE_SIDE)
    pictures: dict[str, bytes] = {}
    room, too_many = MAX_PAGE_BYTES, 0
    for name, picture in picture_of.items():
        jpeg = small_jpeg(picture, side)
        if len(jpeg) > room:
            too_many += 1
        else:
            pictures[name] = jpeg
            room -= len(jpeg)
    return ObjectFiles(
        pictures,
        {object_of[name]: text for name, text in listing.texts.items() if name in object_of},
        sum(name not in object_of for name in {**listing.pictures, **listing.texts}),
        too_many,
    )


def _joined(listing: ObjectListing, wanted: Collection[str]) -> dict[str, str]:
    """The object of each name in a folder or table: the same name, or the same but for a suffix of pictures, the
    Unicode form, or spaces at its ends; no object where two would fit."""
    alike: dict[str, list[str]] = {}
    for name in wanted:
        alike.setdefault(_without_suffix(name), []).append(name)
    joined = {}
    for name in {**listing.pictures, **listing.texts}:
        file = listing.pictures[name].name if name in listing.pictures else name
        same = [name_of_object for name_of_object in (name, file) if name_of_object in wanted]
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


def read_listing(path: Path) -> ObjectListing:
    """What a folder of pictures or a table object,image,text names; no picture is opened. Raises `BadObjects`."""
    rows, folder = (_in_folder(path), path) if path.is_dir() else (_rows(path), path.parent)
    listing = ObjectListing({}, {})
    for row in rows:
        if row.get("image"):
            listing.pictures[row["object"]] = _inside(folder, row["image"], path)
        if row.get("text"):
            listing.texts[row["object"]] = row["text"]
    return listing


def _in_folder(path: Path) -> list[dict[str, str]]:
    pictures = [file for file in sorted(path.iterdir()) if file.suffix.lower() in SUFFIXES]
    if not pictures:
        raise BadObjects(f"{path}: got a folder without pictures, expected files OBJECT{{{','.join(SUFFIXES)}}}")
    return [{"object": file.stem, "image": file.name} for file in pictures]


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


def small_jpeg(path: Path, side: int = MAX_PICTURE_SIDE) -> bytes:
    """The picture as a JPEG, its longer side at most `side` pixels. It is opened as one of `KINDS` alone, whatever its
    name says, and only if it is an ordinary file of bounded size. Raises `BadObjects`."""
    from PIL import Image

    try:
        if not path.is_file():  # a pipe would be waited for, a device has no end
            raise BadObjects(f"{path}: got no ordinary file, expected a picture")
        if (size := path.stat().st_size) > MAX_PICTURE_BYTES:
            raise BadObjects(f"{path}: got {size:,} bytes, expected at most {MAX_PICTURE_BYTES:,}")
        with Image.open(path, formats=KINDS) as image:
            if image.width * image.height > MAX_PICTURE_PIXELS:
                raise BadObjects(
                    f"{path}: got {image.width} x {image.height} pixels, expected at most {MAX_PICTURE_PIXELS:,}"
                )
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
