"""A state directory from a backup: every byte checked, and whole or not at all.

A folder of a mounted volume cannot be renamed into place, so the files are written one by one where they belong, each
whole or not at all: first DIR/restoring, which says that this has begun, then what the newest snapshot relies on, then
that snapshot, then those before it. A directory without a snapshot is as good as empty, and `unfinished` refuses to
begin a new state in one that was being restored.
"""

from pathlib import Path

from connectors.disk import Disk, make_folders, write_whole
from connectors.targets import Target
from stream_engine.state.manifest import BadBackup, Differs, File, Manifest, checked, read_manifest
from stream_engine.state.store import Store

MARK = "restoring"
_NOT_OURS = ("lock", "lost+found")  # may stand in an empty state directory


def restore(target: Target, where: str, directory: str | Path, disk: Disk | None = None) -> Manifest:
    """Make the state directory that a backup is of; `where` names the target in messages.

    An interrupted one is begun anew. Raises `BadBackup`: no whole backup, or the directory is not empty; `OSError`.
    """
    disk, directory = disk or Disk(), Path(directory)
    manifest = _whole(target, where)
    make_folders(disk, directory)
    for name in disk.listdir(directory):
        if name.startswith(f".{MARK}."):  # of one that was interrupted before it had begun
            disk.remove(directory / name)
    there = _files_below(disk, directory)
    if unfinished(directory, disk):
        _clear(disk, directory)
    elif there:
        raise BadBackup(f"{directory}: is not empty, it holds {there[0]}; restore to an empty --state")
    try:
        write_whole(disk, directory / MARK, [f"from {where}; not whole before this file is gone\n".encode()])
        for file in manifest.files:
            write_whole(disk, directory / file.path, _fill(disk, target, file, where))
    except Differs as error:
        _clear(disk, directory)
        raise BadBackup(f"{error}; nothing was restored, use another copy") from None
    except OSError:
        _clear(disk, directory)
        raise
    disk.remove(directory / MARK)
    disk.fsync_dir(directory)
    return manifest


def unfinished(directory: str | Path, disk: Disk | None = None) -> str:
    """What to say of a directory that an interrupted restore has left without a snapshot; "" of any other."""
    disk, directory = disk or Disk(), Path(directory)
    if not disk.exists(directory / MARK) or Store(directory, disk).sequences():
        return ""
    return f"{directory}: a restore did not end there; run `stream-engine restore` again, or name another --state"


def _whole(target: Target, where: str) -> Manifest:
    """The manifest of a target whose files are all there. Raises `BadBackup`."""
    manifest = read_manifest(target, where)
    if manifest is None:
        raise BadBackup(f"{where}: no manifest.json there, so no backup; name the folder or URI that `backup --to` got")
    there = target.sizes("files")
    for file in manifest.files:
        if there.get(file.stored) != file.size:
            held = f"{there[file.stored]:,} bytes" if file.stored in there else "nothing"
            raise BadBackup(f"{where}/{file.stored}: {held}, expected {file.size:,} bytes; use another copy")
    return manifest


def _fill(disk: Disk, target: Target, file: File, where: str):
    def fill(path: str) -> None:
        disk.write_new(path, checked(target.read(file.stored), file, f"{where}/{file.stored}"))

    return fill


def _files_below(disk: Disk, folder: Path) -> list[Path]:
    """All files in a state directory but those that may stand in an empty one."""
    found = []
    for path in (folder / name for name in disk.listdir(folder) if name not in _NOT_OURS):
        try:
            found += _files_below(disk, path)
        except NotADirectoryError:
            found.append(path)
    return found


def _clear(disk: Disk, directory: Path) -> None:
    """Take away what a restore has written, the mark last: there was no file before."""
    for path in sorted(_files_below(disk, directory), key=lambda path: (path.name == MARK, path)):
        if path.name == MARK:
            disk.fsync_dir(directory)
        disk.remove(path)
        disk.fsync_dir(path.parent)
