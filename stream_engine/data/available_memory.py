"""How much memory there is, asked before it is taken: work that cannot fit says so instead of being killed."""

import resource
from pathlib import Path

_CGROUP = Path("/sys/fs/cgroup")
_MEMINFO = Path("/proc/meminfo")


class TooLarge(ValueError):
    """What is asked for does not fit into memory; one line with the figures and what to do."""


def require(what: str, needed: float, limit: int | None, next_step: str) -> None:
    """Raise `TooLarge` unless `needed` bytes fit into `limit` bytes (None: into what is available now).

    >>> require("sdp", matrices(2, 10), 100, "choose objects")
    Traceback (most recent call last):
    stream_engine.data.available_memory.TooLarge: sdp: needs 1.6e-06 GB, 1e-07 GB may be used: choose objects
    """
    allowed = available() if limit is None else limit
    if allowed is not None and needed > allowed:
        raise TooLarge(f"{what}: needs {_gigabytes(needed)}, {_gigabytes(allowed)} may be used: {next_step}")


def matrices(count: float, n: int) -> int:
    """Bytes of so many (n, n) float64 matrices."""
    return int(count * 8 * n * n)


def limit_in_bytes(gigabytes: float | None) -> int | None:
    """A limit that a user gave in GB; None stays None, "what is available"."""
    return None if gigabytes is None else int(gigabytes * 1e9)


def _gigabytes(size: float) -> str:
    return f"{size / 1e9:,.1f} GB" if size >= 1e9 else f"{size / 1e9:.2g} GB"


def available(meminfo: Path = _MEMINFO, group: Path = _CGROUP) -> int | None:
    """Bytes this process may still take: the least of free memory, control group and address space; None if unknown."""
    limits = []
    if meminfo.exists():
        fields = dict(line.split(":") for line in meminfo.read_text().splitlines())
        if "MemAvailable" in fields:
            limits.append(int(fields["MemAvailable"].split()[0]) * 1024)
    group_limit, used = group / "memory.max", group / "memory.current"
    if group_limit.exists() and used.exists() and (most := group_limit.read_text().strip()) != "max":
        limits.append(int(most) - int(used.read_text()))
    soft, _ = resource.getrlimit(resource.RLIMIT_AS)
    if soft != resource.RLIM_INFINITY and Path("/proc/self/statm").exists():
        limits.append(soft - int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize())
    return max(0, min(limits)) if limits else None
