"""The page of metrics: every instrument of /metrics."""

from prometheus_client import Counter, Gauge, Histogram, Info

from deploy.manual.markdown import MADE, item
from stream_engine.service.metrics import Metrics

INTRODUCTION = f"""# Metrics

{MADE}

Metrics at `/metrics` of `--listen`, in the Prometheus text format. Counters start at zero with the process unless they
say otherwise. A histogram has `_bucket`, `_sum` and `_count`. `/metrics` also has the process metrics
(`process_resident_memory_bytes`, `process_cpu_seconds_total`, …). Alerts are in `deploy/prometheus/alerts.yml`,
a dashboard in `deploy/grafana`; [the runbook](../runbook.md) has a section for every alert.
"""
KINDS = {Counter: "counter", Gauge: "gauge", Histogram: "histogram", Info: "info"}


def page() -> str:
    """The whole page."""
    lines = [INTRODUCTION]
    for instrument in Metrics().registry._collector_to_names:  # the only list of instruments that the client has
        if isinstance(instrument, Counter | Gauge | Histogram | Info):
            lines.append(_line(instrument, KINDS[type(instrument)]))
    return "\n".join(lines) + "\n"


def _line(instrument: Counter | Gauge | Histogram | Info, kind: str) -> str:
    name = instrument._name + {"counter": "_total", "info": "_info"}.get(kind, "")
    labels = ", ".join(f"`{label}`" for label in instrument._labelnames)
    by = f" by {labels}" if labels else ""
    return item(f"`{name}` ({kind}{by}): {instrument._documentation}")
