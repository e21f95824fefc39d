"""How much memory there is, asked before it is taken: a refit that cannot fit says so instead of being killed."""

import resource
from pathlib import Path

_CGROUP = Path("/sys/fs/cgroup")
_MEMINFO = Path("/proc/meminfo")


def available(meminfo: Path = _MEMINFO, group: Path = _CGROUP) -> int | None:
    """Bytes this process may still take: the least of free memory, control group and address space; None if unknown."""
    room = []
    if meminfo.exists():
        fields = dict(line.split(":") for line in meminfo.read_text().splitlines())
        if "MemAvailable" in fields:
            room.append(int(fields["MemAvailable"].split()[0]) * 1024)
    limit, used = group / "memory.max", group / "memory.current"
    if limit.exists() and used.exists() and (most := limit.read_text().strip()) != "max":
        room.append(int(most) - int(used.read_text()))
    soft, _ = resource.getrlimit(resource.RLIMIT_AS)
    if soft != resource.RLIM_INFINITY and Path("/proc/self/statm").exists():
        room.append(soft - int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize())
    return max(0, min(room)) if room else None
