"""What the server refuses: counted by reason, and logged at a limited rate."""

from structlog.typing import FilteringBoundLogger

from stream_engine.data.rate_limit import RateLimit
from stream_engine.service.metrics import Metrics

REASONS = {  # why something is refused -> the log line; `Metrics.http_refused` has one series for each
    "full": "all connections are in use: new ones are refused",
    "descriptors": "no descriptors are left for new connections (ulimit -n)",
    "silent": "a connection that sent no whole request in time was closed",
    "gave_way": "all connections are in use: the longest silent one was closed for a new one",
    "slow_reader": "a reader that took next to nothing of its answer was cut",
    "host": "a request for a host that this server is not was refused; its names are [http] allowed_hosts",
    "origin": "a request that a page of another site could have sent was refused",
    "head": "a request with a head that is too long was refused",
    "token": "a request without the right token was refused",
    "busy": "a request was refused for a while: too many at once",
    "no_room": "an export was refused: no room for it",
}
_EVERYDAY = ("silent",)  # browsers leave connections open, and close them late: counted, and logged at level debug
_QUIET = ("gave_way",)


class Refusals:
    """Counts each refusal by its reason, and logs at most one line a minute for each."""

    def __init__(self, metrics: Metrics, log: FilteringBoundLogger):
        self._count, self._log, self._limit = metrics.http_refused, log, RateLimit()
        for reason in REASONS:
            self._count.labels(reason)

    def tell(self, reason: str, **details: object) -> None:
        """Something was refused for one of `REASONS`."""
        self._count.labels(reason).inc()
        if times := self._limit.due(reason):
            log = self._log
            say = log.debug if reason in _EVERYDAY else log.info if reason in _QUIET else log.warning
            say(REASONS[reason], times=times, **details)
