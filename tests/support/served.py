"""The HTTP server of a run over what a test publishes, asked over real sockets."""

import socket
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import httpx
from prometheus_client import CollectorRegistry

from stream_engine.data.comparisons import Triplet
from stream_engine.data.signatures import UNSIGNED, Signing
from stream_engine.input.settings import HttpSettings
from stream_engine.input.settings.loading import load
from stream_engine.service.context import HttpContext
from stream_engine.service.heartbeat import Heartbeat
from stream_engine.service.http import built_files
from stream_engine.service.http.routes import serve_run
from stream_engine.service.metrics import Metrics
from stream_engine.service.requests import Requests
from stream_engine.service.run import run
from stream_engine.state.engine import Engine
from stream_engine.state.published import Published
from stream_engine.state.store import Store
from tests.support.forked_commands import forking, forking_refits


class Lines:
    """A log that remembers: (level, event, details)."""

    def __init__(self) -> None:
        self.said: list[tuple[str, str, dict]] = []

    def __getattr__(self, level: str):
        return lambda event, **details: self.said.append((level, event, details))

    def events(self, level: str) -> list[str]:
        return [event for each, event, _ in self.said if each == level]


def ran(state: Path, source: Path | list[Path], partitions: int = 30, **more) -> tuple[Metrics, Lines]:
    """A run to the end of its files; its refits are forked from what other tests begin."""
    metrics, log = Metrics(partitions=partitions), Lines()
    sources = source if isinstance(source, list) else [source]
    given = {"source": [str(each) for each in sources], "state": str(state), "refits.kinds": []}
    with forking_refits():
        run(load(None, given | {"snapshot.interval": 0} | more), metrics=metrics, log=log)
    return metrics, log


def predicted(**figures: tuple[float, int]) -> dict:
    """What a run says of its present predictors: accuracy, and of how many comparisons."""
    windows = {name: {"current": {"accuracy": share, "tested": n}} for name, (share, n) in figures.items()}
    return {"predictors": {name: {"all": each} for name, each in windows.items()}}


class Served:
    """`why` is why the run is not ready, `published` what it has published; `http` is a client."""

    def __init__(self, directory: Path, listen: str, settings: HttpSettings, stack: ExitStack, secrets: dict):
        self.why, self.published = "", None
        self.published: Published | None = None
        self.metrics, self.requests, self.heartbeat = Metrics(CollectorRegistry()), Requests(), Heartbeat()
        self.progressive: dict = {}  # how its predictions went
        self.running: tuple[str, ...] = ()
        self.failed: dict[str, str] = {}  # refits whose last attempt failed, and why
        self.memory: int | None = None  # bytes that exports may take
        self.log = Lines()
        self.context = HttpContext(
            directory=directory,
            metrics=self.metrics,
            published=lambda: self.published,
            ready=lambda: self.why,
            progressive=lambda: self.progressive,
            heartbeat=self.heartbeat,
            requests=self.requests,
            running_refits=lambda: self.running,
            failed_refits=lambda: self.failed,
            memory_for_exports=lambda: self.memory,
            secrets_for_exports=secrets,
        )
        self.listener, self._stack = serve_run(self.context, listen, settings, self.log, stack), stack
        self.address = f"127.0.0.1:{self.listener.address.rpartition(':')[2]}"
        self.http = stack.enter_context(httpx.Client(base_url=f"http://{self.address}", timeout=120, verify=False))

    def connect(self, **options: int) -> socket.socket:
        """A connection that has said nothing yet; `receive` limits what the system keeps for a slow reader."""
        connection = self._stack.enter_context(socket.socket())
        if "receive" in options:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, options["receive"])
        connection.settimeout(120)
        host, _, port = self.address.rpartition(":")
        connection.connect((host, int(port)))
        return connection

    def connections(self) -> int:
        return self.listener.open

    def refused(self, reason: str) -> float | None:
        return self.metrics.registry.get_sample_value("stream_engine_http_refused_total", {"reason": reason})


@contextmanager
def served(
    directory: Path, listen: str = "127.0.0.1:0", secrets: dict[str, str] | None = None, **settings
) -> Iterator[Served]:
    """A server that is closed at the end; `secrets` are for the processes that make exports, which are forked."""
    with forking(built_files), ExitStack() as stack:
        yield Served(directory, listen, HttpSettings(**settings), stack, secrets or {})


def make_certificate(folder: Path) -> tuple[str, str]:
    """A certificate of localhost and its key, as files in a folder."""
    command = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=localhost"
    names = ["-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1", "-keyout", "made.key", "-out", "made.cert"]
    subprocess.run([*command.split(), *names], cwd=folder, check=True, capture_output=True)
    return str(folder / "made.cert"), str(folder / "made.key")


def closed_by_server(connection: socket.socket) -> bool:
    """Whether the other side ends a connection (within the socket's time-out), whatever it sends before."""
    try:
        while connection.recv(1 << 20):
            pass
    except ConnectionError:
        pass
    except TimeoutError:
        return False
    return True


def stored(directory: Path, objects: int, last: str = "o2", signing: Signing = UNSIGNED) -> Store:
    """A state of so many objects with one published snapshot."""
    learned = Engine(("adds3", "triplet_counts"), False)
    learned.learn_many([Triplet(f"o{i}", f"o{(i + 1) % objects}", f"o{(i + 2) % objects}") for i in range(objects)])
    learned.learn_many([Triplet("o0", "o1", last)])
    store = Store(directory, signing=signing)
    store.publish(learned.snapshot())
    return store


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


TOKEN, OTHER = "correct-horse-battery", "admin-horse-battery!"
