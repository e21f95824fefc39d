"""Which net votes the canonical order of a snapshot keeps, one bit each, in a file beside the snapshot.

    DIR/snapshots/000000000042.order   header: digest of the snapshot, how many net votes, weight kept; array `kept`

Nothing depends on it: whoever computes the order writes it, and a reader that finds it wrong computes it again.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from connectors.disk import Disk, write_whole
from stream_engine.data import container
from stream_engine.data.signatures import Signing

KIND = "canonical_order"
SUFFIX = ".order"


class OrderFile(NamedTuple):
    """Where the canonical order of one published snapshot is kept."""

    snapshot: Path
    digest: str  # of the snapshot
    disk: Disk
    signing: Signing
    tell: Callable[[str], None]  # gets a line where the file is there and cannot be used

    @property
    def path(self) -> Path:
        """Beside the snapshot."""
        return self.snapshot.with_suffix(SUFFIX)

    def read(self, net: np.ndarray) -> np.ndarray | None:
        """(m,) bool, which of the (m,) net votes are kept; None where that is not known, or the file is wrong."""
        if not self.disk.is_file(self.path):
            return None
        try:
            real = type(self.disk) is Disk
            loaded = (
                container.load(self.path, self.signing)
                if real
                else container.decode(self.disk.read(self.path), self.signing)
            )
            return self._checked(*loaded[:3], net)
        except (OSError, container.Corrupt) as error:
            self.say(str(error))
            return None

    def _checked(self, kind: str, meta: dict[str, Any], arrays: dict[str, np.ndarray], net: np.ndarray) -> np.ndarray:
        if kind != KIND or arrays.keys() != {"kept"}:
            raise container.Corrupt(f"holds {kind[:80]!r}, expected {KIND!r} with the array kept")
        bits = arrays["kept"]
        if bits.dtype != np.uint8 or bits.shape != (-(-len(net) // 8),) or np.unpackbits(bits)[len(net) :].any():
            raise container.Corrupt(f"kept: expected {len(net)} bits")
        is_kept = np.unpackbits(bits, count=len(net)).astype(bool)
        if meta != self._meta(is_kept, net):
            raise container.Corrupt("header: speaks of another snapshot, or of other net votes")
        return is_kept

    def _meta(self, is_kept: np.ndarray, net: np.ndarray) -> dict[str, Any]:
        return {"snapshot": self.digest, "net_votes": len(net), "weight": int(net[is_kept].sum())}

    def write(self, is_kept: np.ndarray, net: np.ndarray) -> None:
        """Keep it, if the disk allows that and the snapshot is still there; readers of a state need not own it."""
        content = container.encode(KIND, self._meta(is_kept, net), {"kept": np.packbits(is_kept)}, self.signing)[0]
        try:
            write_whole(self.disk, self.path, content, durable=False)
            if not self.disk.exists(self.snapshot):  # pruned or forgotten while the order was made
                self.disk.remove(self.path)
        except OSError:
            pass

    def say(self, problem: str) -> None:
        """Tell why the file is not used."""
        self.tell(f"{self.path.name}: {problem}; the canonical order is built again")
