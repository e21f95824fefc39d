"""What participants are shown, kept in DIR/collect/objects: with it a study is whole at another place.

Of a folder its files, under their names; of a table or a list of names `objects.csv` and the files that it names,
numbered. A file is a hard link where the system can make one, else a copy.
"""

import csv
import io
import os
import shutil
from functools import partial
from pathlib import Path

from connectors.disk import Disk, make_folders, write_whole
from stream_engine.collect.stimuli import BadStimuli, Stimuli

TABLE = "objects.csv"


def kept(folder: Path) -> Path:
    """What to give to `Stimuli`: the objects that are kept in DIR/collect/objects. Raises `BadStimuli`."""
    if (folder / TABLE).exists():
        return folder / TABLE
    if not folder.is_dir():
        raise BadStimuli(f"--objects: got none, and {folder} has none; expected FOLDER or FILE")
    return folder


def keep(stimuli: Stimuli, folder: Path) -> None:
    """Keep what is not there yet. Raises OSError. O(objects)."""
    if stimuli.path.resolve() in (folder.resolve(), (folder / TABLE).resolve()):
        return
    make_folders(Disk(), folder)
    rows = []
    for number, (name, shown) in enumerate(stimuli.shown.items(), 1):
        if shown.file is not None:
            file = shown.file.name if stimuli.folder else f"{number:06d}{shown.file.suffix.lower()}"
            if not (folder / file).exists():
                write_whole(Disk(), folder / file, partial(_link, shown.file), durable=False)
            rows.append((name, file if shown.media.startswith("image/") else "", file, shown.text))
        else:
            rows.append((name, "", "", shown.text))
    if stimuli.folder is None:
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(("object", "image", "sound", "text"))
        writer.writerows((name, image, "" if image else file, said) for name, image, file, said in rows)
        made = text.getvalue().encode()
        if not (folder / TABLE).exists() or (folder / TABLE).read_bytes() != made:
            write_whole(Disk(), folder / TABLE, [made])


def _link(source: Path, target: str | os.PathLike[str]) -> None:
    try:
        os.link(source, target)
    except OSError:  # another file system, or one without links
        shutil.copyfile(source, target)
