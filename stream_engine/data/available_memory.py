"""Available memory, checked before it is allocated: work that cannot fit raises an error instead of being killed. A
budget (`give`), a control group's limit and a limit by `setrlimit` are respected."""

import resource
from collections.abc import Iterator
from pathlib import Path

_CGROUP = Path("/sys/fs/cgroup")
_MEMINFO = Path("/proc/meminfo")
_BUDGET: list[int] = []  # total bytes that this process may use; none or one


def give(budget: int | None) -> None:
    """Limit this process to this many bytes in total; None: what is available."""
    _BUDGET[:] = [] if budget is None else [budget]


def resident(process: int | str = "self") -> int:
    """Bytes of memory that a process has taken for itself and holds now: not the pages of files, which the kernel takes
    back at will. 0 for a process that is gone."""
    try:
        fields = dict(line.split(":", 1) for line in Path(f"/proc/{process}/status").read_text().splitlines())
    except OSError:
        return 0
    return sum(int(fields[name].split()[0]) * 1024 for name in ("RssAnon", "RssShmem") if name in fields)


class TooLarge(ValueError):
    """The request does not fit into memory; one line with the figures and what to do."""


def require(purpose: str, n_bytes: float, next_step: str) -> None:
    """Raise `TooLarge` unless `n_bytes` bytes fit into what is available now."""
    n_available = available()
    if n_available is not None and n_bytes > n_available:
        raise TooLarge(f"{purpose}: needs {_gigabytes(n_bytes)}, available are {_gigabytes(n_available)}: {next_step}")


def matrices(count: float, n: int) -> int:
    """Bytes of so many (n, n) float64 matrices."""
    return int(count * 8 * n * n)


def limit_in_bytes(gigabytes: float | None) -> int | None:
    """A limit that a user gave in GB; None stays None, "what is available"."""
    return None if gigabytes is None else int(gigabytes * 1e9)


def _gigabytes(size: float) -> str:
    return f"{size / 1e9:,.1f} GB" if size >= 1e9 else f"{size / 1e9:.2g} GB"


def available(meminfo: Path = _MEMINFO, group: Path = _CGROUP) -> int | None:
    """Bytes this process may still take: the least of free memory, budget, control group and address space; None if
    unknown."""
    limits = [budget - resident() for budget in _BUDGET]
    if meminfo.exists():
        fields = dict(line.split(":") for line in meminfo.read_text().splitlines())
        if "MemAvailable" in fields:
            limits.append(int(fields["MemAvailable"].split()[0]) * 1024)
    for group_limit, usage in _groups(group):
        if group_limit.exists() and usage.exists() and (limit := group_limit.read_text().strip()) != "max":
            limits.append(int(limit) - int(usage.read_text()) + _of_files(group_limit.parent))
    soft, _ = resource.getrlimit(resource.RLIMIT_AS)
    if soft != resource.RLIM_INFINITY and Path("/proc/self/statm").exists():
        limits.append(soft - int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize())
    return max(0, min(limits)) if limits else None


def _groups(root: Path, process: Path = Path("/proc/self/cgroup")) -> Iterator[tuple[Path, Path]]:
    """Limit and use of the control groups that this process is in, and of those around them, of both versions."""
    paths = {""}
    if process.exists():
        paths |= {line.split(":", 2)[2].strip("/") for line in process.read_text().splitlines() if line.count(":") > 1}
    folders = {str(folder) for path in paths for folder in (Path(path), *Path(path).parents)}
    for path in sorted(folders):
        yield root / path / "memory.max", root / path / "memory.current"
        first = root / "memory" / path
        yield first / "memory.limit_in_bytes", first / "memory.usage_in_bytes"


def _of_files(group: Path) -> int:
    """Bytes of a control group's use that are pages of files, which the kernel takes back at will."""
    try:
        figures = dict(line.split() for line in (group / "memory.stat").read_text().splitlines())
    except OSError:
        return 0
    prefix = "total_" if "total_inactive_file" in figures else ""
    return sum(int(figures.get(f"{prefix}{name}", 0)) for name in ("inactive_file", "active_file"))
