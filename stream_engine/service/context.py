"""What all parts of a run share: metrics, log, requests and heartbeat."""

from dataclasses import dataclass, field

import structlog
from structlog.typing import FilteringBoundLogger

from stream_engine.service.heartbeat import Heartbeat
from stream_engine.service.metrics import Metrics
from stream_engine.service.requests import Requests


@dataclass(frozen=True, slots=True)
class Context:
    """The metrics, the log, the pending requests, and the heartbeat of the main loop."""

    metrics: Metrics = field(default_factory=Metrics)
    log: FilteringBoundLogger = field(default_factory=structlog.get_logger)
    requests: Requests = field(default_factory=Requests)
    heartbeat: Heartbeat = field(default_factory=Heartbeat)
