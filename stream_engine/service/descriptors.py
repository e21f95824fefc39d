"""How many files and sockets this process may have open: as many as the system lets it, and what that is enough for."""

import os
import resource

from structlog.typing import FilteringBoundLogger

RESERVED = 256  # for the engine itself: sources, state, brokers, worker processes


def raised_limit() -> int:
    """Raise the soft limit of open descriptors to the hard one where that is allowed; the limit that holds then."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        soft = hard
    except (OSError, ValueError):  # a system with a lower limit of its own
        pass
    return 1 << 20 if soft == resource.RLIM_INFINITY else soft


def connections_allowed(wanted: int, limit: int, log: FilteringBoundLogger) -> int:
    """How many connections a listener may have, so that descriptors are left for everything else. An export being
    sent takes two. One line when it is fewer than wanted, or when there is hardly room for the rest."""
    in_use = len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else 64
    allowed = min(wanted, max(8, (limit - in_use - RESERVED) // 2))
    if allowed < wanted:
        log.warning(
            "few descriptors: fewer connections are served; raise LimitNOFILE (ulimit -n)",
            limit=limit,
            in_use=in_use,
            max_connections=wanted,
            allowed=allowed,
        )
    return allowed
