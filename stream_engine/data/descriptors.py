"""How many files and sockets this process may open."""

import os
import resource

from structlog.typing import FilteringBoundLogger

RESERVED_DESCRIPTORS = 256  # for the engine itself: sources, state, brokers, worker processes


def raised_limit() -> int:
    """Raise the soft limit of open descriptors to the hard one, if allowed; returns the limit now in force."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        soft = hard
    except (OSError, ValueError):  # a system with a lower limit of its own
        pass
    return 1 << 20 if soft == resource.RLIM_INFINITY else soft


def connections_allowed(max_connections: int, limit: int, log: FilteringBoundLogger) -> int:
    """How many connections a listener may have so that enough descriptors remain for everything else. Sending an export
    takes two. Logs one line if the limit is lower than `max_connections`, or too low for the rest."""
    in_use = len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else 64
    n_connections = min(max_connections, max(8, (limit - in_use - RESERVED_DESCRIPTORS) // 2))
    if n_connections < max_connections:
        log.warning(
            "too few file descriptors: the server accepts fewer connections; raise LimitNOFILE (ulimit -n)",
            limit=limit,
            in_use=in_use,
            max_connections=max_connections,
            allowed=n_connections,
        )
    return n_connections
