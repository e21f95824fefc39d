"""What the server refuses: each counted by reason, and said in the log at most once a minute for each."""

from structlog.typing import FilteringBoundLogger

from stream_engine.service.metrics import Metrics
from stream_engine.service.seldom import Seldom

# reason -> the log line; `Metrics.http_refused` has one series for each
REASONS = {
    "full": "all connections are in use: new ones are refused",
    "descriptors": "no descriptors are left for new connections (ulimit -n)",
    "silent": "a connection that asked nothing in idle_timeout was closed",
    "gave_way": "all connections are in use: the longest silent one was closed for a new one",
    "slow_reader": "a reader that took next to nothing in write_timeout was cut",
    "host": "a request for a host that this server is not was refused; its names are [http] allowed_hosts",
    "token": "a request without the right token was refused",
    "busy": "an export was refused for a while: too many are being sent or made",
    "no_room": "an export was refused: no room for it",
}
_QUIET = ("silent", "gave_way")  # everyday things: browsers leave connections open


class Refusals:
    """Tells metrics and log."""

    def __init__(self, metrics: Metrics, log: FilteringBoundLogger):
        self._count, self._log, self._seldom = metrics.http_refused, log, Seldom()
        for reason in REASONS:
            self._count.labels(reason)

    def tell(self, reason: str, **details: object) -> None:
        """Something was refused for one of `REASONS`."""
        self._count.labels(reason).inc()
        if times := self._seldom.due(reason):
            say = self._log.info if reason in _QUIET else self._log.warning
            say(REASONS[reason], times=times, **details)
