"""The owner's token and the participants' keys, all made from one secret of the study.

The secret is in DIR/collect/secret (0600) and is never shown. A participant's key is HMAC(secret, "participant", code),
so links need no list; the completion code likewise.
"""

import hashlib
import hmac
import os
import secrets
from pathlib import Path
from urllib.parse import quote

from connectors.disk import Disk, write_whole


class Access:
    """Keys of a study in the folder `folder`, whose secret is made when there is none. Raises OSError."""

    def __init__(self, folder: Path):
        path = folder / "secret"
        if not path.exists():
            write_whole(Disk(), path, lambda file: _private(file, secrets.token_hex(32)))
        path.chmod(0o600)  # one that was restored from a backup has lost it
        self._secret = path.read_text("ascii").strip().encode()
        self.study = self._mac("study", "")[:6]  # ids of questions begin with it
        self.owner = self._mac("owner", "")[:32]

    def key(self, worker: str) -> str:
        """The key in the link of a participant."""
        return self._mac("participant", worker)[:16]

    def is_key_of(self, worker: str, key: str) -> bool:
        """Whether it is; takes as long for a wrong one."""
        return hmac.compare_digest(key.encode(), self.key(worker).encode())

    def completion_code(self, worker: str) -> str:
        """What a participant shows for his pay."""
        return self._mac("completed", worker)[:8].upper()

    def link(self, base: str, worker: str, parameter: str) -> str:
        """Where a participant begins."""
        return f"{base}/ask?{quote(parameter)}={quote(worker)}&key={self.key(worker)}"

    def _mac(self, what: str, of: str) -> str:
        return hmac.new(self._secret, f"{what}\0{of}".encode(), hashlib.sha256).hexdigest()


def _private(path: str | os.PathLike[str], text: str) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w") as file:
        file.write(text)
