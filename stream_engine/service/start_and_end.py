"""Two log lines about a run: who started what with which settings and bounds, and why and how it ended."""

import getpass
import os
import platform
import resource
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from stream_engine.data.available_memory import available
from stream_engine.data.version import installed_version
from stream_engine.service.open_run import OpenRun
from stream_engine.service.settings import Settings, shown

_BESIDE = ("source", "state")  # said by names of their own


@contextmanager
def told(run: OpenRun) -> Iterator[None]:
    """Log the start of a run, and its end however it comes."""
    began, before = time.monotonic(), _counts(run)
    run.log.info("run started", **_start(run))
    why = "the process is to end"
    try:
        yield
        why = run.requests.stopped_by or "the input ended"
    except BaseException as error:
        why = f"{type(error).__name__}: {error}"
        raise
    finally:
        gained = {name: n - before[name] for name, n in _counts(run).items()}
        seconds = round(time.monotonic() - began, 1)
        run.log.info("run ended", why=why, seconds=seconds, **gained, snapshot=run.engine.sequence)


def _counts(run: OpenRun) -> dict[str, int]:
    counters = run.engine.counters
    counts = {name: counters[name] for name in ("records", "events", "comparisons")}
    return {**counts, "refused": sum(counters["rejected"].values())}


def _start(run: OpenRun) -> dict[str, Any]:
    descriptors, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return {
        "version": installed_version(),
        "python": platform.python_version(),
        "pid": os.getpid(),
        "user": _user(),
        "host": platform.node(),
        "state": str(run.directory),
        "snapshot": run.engine.sequence,
        "sources": list(run.settings.source),
        "share": run.settings.input.shard,
        "settings": _differing(shown(run.settings), shown(Settings())),
        "descriptors": "unlimited" if descriptors == resource.RLIM_INFINITY else descriptors,
        "free_memory_gb": round((available() or 0) / 1e9, 1),
        "cpus": len(os.sched_getaffinity(0)),
    }


def _user() -> str:
    """The user's name, or number where it has no name (a container)."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return str(os.getuid())


def _differing(given: Mapping[str, Any], default: Mapping[str, Any], where: str = "") -> dict[str, Any]:
    """What is set otherwise than by default, by dotted key; `given` holds no secrets any more.

    >>> _differing({"follow": True, "snapshot": {"every": 5, "keep": 3}}, {"snapshot": {"every": 9, "keep": 3}})
    {'follow': True, 'snapshot.every': 5}
    """
    found: dict[str, Any] = {}
    for key, value in given.items():
        dotted = f"{where}{key}"
        if isinstance(value, dict) and isinstance(default.get(key), dict):
            found |= _differing(value, default[key], f"{dotted}.")
        elif value != default.get(key) and dotted not in _BESIDE:
            found[dotted] = value
    return found
