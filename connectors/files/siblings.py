"""Where in a folder the file with a given inode is: for files that were renamed while nobody held them open.

One scan of a folder serves every file that moved before it. O(names) a scan, O(1) a file.
"""

import os
from time import monotonic


class Siblings:
    """The names of folders by inode, each as of its last scan."""

    def __init__(self) -> None:
        self._scanned: dict[str, tuple[float, dict[int, str]]] = {}  # folder -> when, and its names

    def find(self, folder: str, identity: tuple[int, int], after: float) -> str | None:
        """The path in `folder` that has this device and inode in a scan made after `after` (monotonic seconds)."""
        when, names = self._scanned.get(folder, (0.0, {}))
        if when <= after:
            when, names = self._scanned[folder] = monotonic(), _names(folder)
        name = names.get(identity[1])
        path = os.path.join(folder, name) if name else None
        try:
            status = os.stat(path) if path else None
        except OSError:
            return None
        return path if status and (status.st_dev, status.st_ino) == identity else None


def _names(folder: str) -> dict[int, str]:
    try:
        with os.scandir(folder or ".") as entries:
            return {entry.inode(): entry.name for entry in entries if not entry.is_symlink()}
    except OSError:
        return {}
