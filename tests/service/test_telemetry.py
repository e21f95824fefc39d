"""A run under OpenTelemetry's launcher sends traces and metrics by OTLP, and goes on where nobody takes them."""

import gzip
import json
import sys
import threading
import urllib.request
from collections import defaultdict
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from tests.support.process import ENVIRONMENT, free_ports, jsonl, started, stopped, until

MESSAGES = {"/v1/traces": ExportTraceServiceRequest, "/v1/metrics": ExportMetricsServiceRequest}
LAUNCH = "import sys; from opentelemetry.instrumentation.auto_instrumentation import run; sys.argv[0] = 'otel'; run()"


class Receiver(ThreadingHTTPServer):
    """Takes OTLP by HTTP on the loopback address; `got` holds what came, decoded, by path."""

    def __init__(self):
        super().__init__(("127.0.0.1", 0), _Takes)
        self.got = defaultdict(list)


class _Takes(BaseHTTPRequestHandler):
    server: Receiver

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        body = gzip.decompress(body) if self.headers.get("Content-Encoding") == "gzip" else body
        self.server.got[self.path].append(MESSAGES[self.path].FromString(body))
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_):
        pass


@pytest.fixture
def receiver():
    with Receiver() as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()


def launched(monkeypatch, port: int, *arguments):
    """`opentelemetry-instrument stream-engine run ...`, sending to this port of the loopback address."""
    told = {
        "OTEL_SERVICE_NAME": "engine-of-a-test",
        "OTEL_EXPORTER_OTLP_ENDPOINT": f"http://127.0.0.1:{port}",
        "OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf",
        "OTEL_METRIC_EXPORT_INTERVAL": "500",
        "OTEL_BSP_SCHEDULE_DELAY": "200",
        "OTEL_EXPORTER_OTLP_TIMEOUT": "1",
    }
    for name, value in told.items():
        monkeypatch.setitem(ENVIRONMENT, name, value)
    return started(*arguments, launcher=(sys.executable, "-c", LAUNCH))


def of_service(messages, kind: str) -> list:
    """What instruments or spans came of the service, by name."""
    found = []
    for message in messages:
        for resource in getattr(message, f"resource_{kind}"):
            named = {each.key: each.value.string_value for each in resource.resource.attributes}
            assert named["service.name"] == "engine-of-a-test"
            found += [each for scope in getattr(resource, f"scope_{kind}") for each in getattr(scope, kind)]
    return found


def test_traces_of_requests_and_metrics_of_the_process_are_sent(receiver, tmp_path, monkeypatch):
    events = jsonl(tmp_path / "events.jsonl", [{"anchor": "a", "near": "b", "far": "c"}])
    (port,) = free_ports(1)
    run = ("run", events, "--state", tmp_path / "s", "--no-refits", "--follow", "--listen", f"127.0.0.1:{port}")
    process = launched(monkeypatch, receiver.server_address[1], *run)

    def asked() -> bool:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/progressive", timeout=60) as answer:
                return json.load(answer) is not None
        except OSError:
            return False

    try:
        until(asked, what="the run to listen")
        until(lambda: any("/progressive" in each.name for each in of_service(receiver.got["/v1/traces"], "spans")))
        names = until(lambda: {each.name for each in of_service(receiver.got["/v1/metrics"], "metrics")})
    finally:
        said = stopped(process)
    assert process.returncode == 0 and any(name.startswith("process.") for name in names), said


def test_a_run_goes_on_where_nobody_takes_them(tmp_path, monkeypatch):
    events = jsonl(tmp_path / "events.jsonl", [{"anchor": "a", "near": "b", "far": "c"}])
    process = launched(monkeypatch, free_ports(1)[0], "run", events, "--state", tmp_path / "s", "--no-refits")
    _, said = process.communicate(timeout=300)
    assert process.returncode == 0, said
    assert "1 event " in said, said
    assert "Traceback" not in said, said
