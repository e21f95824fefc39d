"""Who is who: the owner by a token, participants by the key in their link, all made from one secret of the study.

The secret lies in DIR/collect/secret (0600) and is never shown. A participant's key is HMAC(secret, "participant", his
code), so links need no list; his completion code likewise.
"""

import hashlib
import hmac
import os
import re
import secrets
import time
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path
from urllib.parse import quote

from connectors.disk import Disk, write_whole

_PEOPLE = 100_000  # whose rates are remembered


class Access:
    """Keys of a study in the folder `folder`, whose secret is made when there is none. Raises OSError."""

    def __init__(self, folder: Path):
        path = folder / "secret"
        if not path.exists():
            write_whole(Disk(), path, lambda made: _private(made, secrets.token_hex(32)))
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


class Rates:
    """Token buckets: so many a second for each key, twenty seconds' worth at once. Those unseen for long go first."""

    def __init__(self, a_second: float, clock: Callable[[], float] = time.monotonic):
        self._rate, self._most, self._clock = a_second, max(20.0 * a_second, 1.0), clock
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def allowed(self, key: str) -> bool:
        """Whether one more is allowed now; it counts then.

        >>> rates = Rates(0.1, iter([0.0, 0.0, 0.0, 10.0]).__next__)
        >>> [rates.allowed("a") for _ in range(4)]
        [True, True, False, True]
        """
        now = self._clock()
        left, before = self._left.pop(key, (self._most, now))
        left = min(left + (now - before) * self._rate, self._most)
        fine = left >= 1.0
        self._left[key] = (left - fine, now)
        if len(self._left) > _PEOPLE:
            self._left.popitem(last=False)
        return fine


def client_behind(forwarded: str, peer: str) -> str:
    """The address that a reverse proxy saw: the last one that it wrote behind the others.

    >>> client_behind("6.6.6.6, 10.0.0.7", "127.0.0.1"), client_behind("", "127.0.0.1")
    ('10.0.0.7', '127.0.0.1')
    """
    last = forwarded.rpartition(",")[2].strip()
    return last if re.fullmatch(r"[0-9A-Fa-f:.]{2,45}", last) else peer
