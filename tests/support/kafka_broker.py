"""A real Apache Kafka broker for the tests: one KRaft node on loopback, its data in a folder of its own.

`Broker(folder)` starts, stops, kills and restarts on the same ports and data; `cluster(folder)` gives three of them
that share a controller quorum and keep every partition three times. The jars come from Maven Central through
`pom.xml` and stay in a cache outside the repository. Besides PLAINTEXT the broker listens with SASL over TLS (PLAIN and
SCRAM, certificate made for the session by `keytool`), so that secrets and certificates are tested for real.
"""

import shutil
import signal
import subprocess
import tempfile
import time
import uuid
from base64 import urlsafe_b64encode
from functools import cache
from pathlib import Path

from tests.conftest import ROOT
from tests.support.fetched_programs import Missing, jars_of
from tests.support.process import free_ports, listens
from tests.support.shared_classes import shared_classes

POM = ROOT / "tests" / "kafka" / "pom.xml"
VERSION = "4.3.1"
USER, PASSWORD = "engine", "correct-horse-battery"
START_SECONDS = 600
# C1 only, shared class data and the serial collector: the broker lives for seconds, so start-up counts, not speed.
QUICK = ["-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]
JVM = ["-Xmx512m", *QUICK, "-Xshare:auto", "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn"]


class BrokerMissing(Missing):
    """No broker can be started here; the message says what is missing."""


def jars() -> Path:
    """The folder of the broker's jars."""
    return jars_of(POM, f"kafka-{VERSION}", BrokerMissing, "java", "keytool")[0].parent


def java() -> str:
    found = shutil.which("java")
    if found is None:
        raise BrokerMissing("java is not on the path (Java 17, or KAFKA_BOOTSTRAP_SERVERS, is needed)")
    return found


@cache
def _classes() -> list[str]:
    return shared_classes(f"kafka-{VERSION}", jars(), _run_once)


def _run_once(option: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        broker = Broker(Path(folder))
        broker.launch([option])
        broker.wait_until_it_listens()
        broker.stop()


class Broker:
    """One KRaft node. Invariant: ports, cluster id and data stay the same over stop, kill and start.

    `quorum`: the controllers' ports by node number, when there are others; the first of them is formatted, the rest
    take over what it (`like`) was formatted with. A node among others has no TLS listener.
    """

    def __init__(
        self,
        folder: Path,
        number: int = 1,
        quorum: dict[int, int] | None = None,
        port: int | None = None,
        like: "Broker | None" = None,
    ):
        self.folder, self.lib, self.java = Path(folder), jars(), java()
        self.folder.mkdir(parents=True, exist_ok=True)
        some = free_ports(3)
        self.port, self.secure_port = port or some[0], some[1]
        self.number, self.quorum = number, quorum or {number: some[2]}
        self.bootstrap = f"127.0.0.1:{self.port}"
        self.secure_bootstrap = f"127.0.0.1:{self.secure_port}"
        self.certificate = self.folder / "broker.pem"
        self.process: subprocess.Popen | None = None
        if quorum is None:
            self._make_certificate()
        (self.folder / "server.properties").write_text(self._properties())
        self._format() if like is None else self._join(like)

    def secure_options(self, mechanism: str = "PLAIN") -> dict[str, object]:
        """kafka-python's options for the TLS listener."""
        return {
            "security_protocol": "SASL_SSL",
            "sasl_mechanism": mechanism,
            "sasl_plain_username": USER,
            "sasl_plain_password": PASSWORD,
            "ssl_cafile": str(self.certificate),
        }

    def start(self) -> None:
        """Start and wait until it answers requests."""
        self.launch()
        self.wait_until_it_listens()

    def launch(self, options: list[str] | None = None) -> None:
        """Start without waiting: the first of several answers only when most of them are there. `options`: of Java,
        instead of the one that shares classes."""
        assert self.process is None, "the broker is running already"
        more = [*(["-Xmx256m"] if len(self.quorum) > 1 else []), *(_classes() if options is None else options)]
        with (self.folder / "broker.log").open("ab") as log:
            self.process = subprocess.Popen(
                [self.java, *JVM, *more, "-cp", f"{self.lib}/*", "kafka.Kafka", str(self.folder / "server.properties")],
                stdout=log,
                stderr=subprocess.STDOUT,
                stdin=subprocess.DEVNULL,
                start_new_session=True,
            )

    def stop(self) -> None:
        """A controlled shutdown (SIGTERM)."""
        self._end(signal.SIGTERM)

    def kill(self) -> None:
        """SIGKILL: no shutdown, no flush beyond the page cache."""
        self._end(signal.SIGKILL)

    def restart(self) -> None:
        self.stop()
        self.start()

    def _end(self, how: signal.Signals) -> None:
        if self.process is not None:
            self.process.send_signal(how)
            try:
                self.process.wait(30)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait(300)
            self.process = None

    def wait_until_it_listens(self) -> None:
        # Kafka opens its client listeners only when the broker is unfenced, so a connection means "ready".
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline and self.process.poll() is None:
            if listens(self.port):
                return
            time.sleep(0.05)
        tail = (self.folder / "broker.log").read_text(errors="replace")[-2000:]
        self.kill()
        raise RuntimeError(f"the broker did not start within {START_SECONDS} s; the end of its log:\n{tail}")

    def _make_certificate(self) -> None:
        store = self.folder / "broker.p12"
        keytool = shutil.which("keytool")
        if keytool is None:
            raise BrokerMissing("keytool is not on the path (it comes with Java 17)")
        common = [
            *(f"-J{each}" for each in QUICK),
            "-keystore",
            str(store),
            "-storetype",
            "PKCS12",
            "-storepass",
            PASSWORD,
        ]
        common += ["-alias", "broker"]
        made = "-keyalg EC -groupname secp256r1 -validity 30 -dname CN=localhost -ext san=ip:127.0.0.1,dns:localhost"
        for command in (
            [keytool, "-genkeypair", *common, *made.split()],
            [keytool, "-exportcert", *common, "-rfc", "-file", str(self.certificate)],
        ):
            subprocess.run(command, check=True, capture_output=True, timeout=600)

    def _format(self) -> None:
        """Write the first metadata records (among them the SCRAM user)."""
        cluster = urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
        command = [
            self.java,
            *JVM,
            "-cp",
            f"{self.lib}/*",
            "kafka.tools.StorageTool",
            "format",
            f"--cluster-id={cluster}",  # one argument: one id in 64 begins with a dash
            "-c",
            str(self.folder / "server.properties"),
            "--add-scram",
            f"SCRAM-SHA-512=[name={USER},password={PASSWORD}]",
        ]
        done = subprocess.run(command, capture_output=True, text=True, timeout=600)
        if done.returncode:
            raise RuntimeError(f"the storage could not be formatted: {(done.stdout + done.stderr)[-500:]}")

    def _join(self, first: "Broker") -> None:
        """What formatting would write, for another node of the same cluster: spares a second Java process."""
        (self.folder / "data").mkdir()
        shutil.copy(first.folder / "data" / "bootstrap.checkpoint", self.folder / "data")
        lines = (first.folder / "data" / "meta.properties").read_text().splitlines()
        own = {"node.id": self.number, "directory.id": urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")}
        pairs = [line.partition("=") for line in lines if "=" in line]
        (self.folder / "data" / "meta.properties").write_text(
            "".join(f"{key}={own.get(key, value)}\n" for key, _, value in pairs)
        )

    def _properties(self) -> str:
        plain = "org.apache.kafka.common.security.plain.PlainLoginModule"
        scram = "org.apache.kafka.common.security.scram.ScramLoginModule"
        here = "127.0.0.1"
        copies = min(3, len(self.quorum))
        settings = {
            "process.roles": "broker,controller",
            "node.id": self.number,
            "controller.quorum.voters": ",".join(f"{n}@{here}:{port}" for n, port in self.quorum.items()),
            "listeners": f"PLAINTEXT://{here}:{self.port},CONTROLLER://{here}:{self.quorum[self.number]}",
            "advertised.listeners": f"PLAINTEXT://{here}:{self.port}",
            "controller.listener.names": "CONTROLLER",
            "inter.broker.listener.name": "PLAINTEXT",
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,SECURE:SASL_SSL",
            "log.dirs": self.folder / "data",
            "num.partitions": 1,
            "auto.create.topics.enable": "false",
            "delete.topic.enable": "true",
            "offsets.topic.num.partitions": 1,
            "offsets.topic.replication.factor": copies,
            "transaction.state.log.num.partitions": 1,
            "transaction.state.log.replication.factor": copies,
            "transaction.state.log.min.isr": 1,
            "share.coordinator.state.topic.replication.factor": copies,
            "share.coordinator.state.topic.min.isr": 1,
            "group.initial.rebalance.delay.ms": 0,
            # A killed broker's registration has to lapse before its successor is let in; of several brokers on a busy
            # machine, one that waits for a processor is not to be taken for dead.
            "broker.session.timeout.ms": 2000 if copies == 1 else 6000,
            "broker.heartbeat.interval.ms": 400,
            "log.cleaner.backoff.ms": "300",  # for topics that are compacted
            "log.cleaner.dedupe.buffer.size": "2097152",
            "num.network.threads": 2,
            "num.io.threads": 2,
            # A dead controller is replaced within a second or two.
            "controller.quorum.fetch.timeout.ms": 1500,
            "controller.quorum.election.timeout.ms": 500,
        }
        if copies == 1:
            settings |= {
                "listeners": f"{settings['listeners']},SECURE://{here}:{self.secure_port}",
                "advertised.listeners": f"{settings['advertised.listeners']},SECURE://{here}:{self.secure_port}",
                "listener.name.secure.sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-512",
                "listener.name.secure.plain.sasl.jaas.config": f'{plain} required user_{USER}="{PASSWORD}";',
                "listener.name.secure.scram-sha-512.sasl.jaas.config": f"{scram} required;",
                "listener.name.secure.ssl.keystore.location": self.folder / "broker.p12",
                "listener.name.secure.ssl.keystore.type": "PKCS12",
                "listener.name.secure.ssl.keystore.password": PASSWORD,
                "listener.name.secure.ssl.key.password": PASSWORD,
            }
        return "".join(f"{key}={value}\n" for key, value in settings.items())


def cluster(folder: Path, nodes: int = 3) -> list[Broker]:
    """Brokers that share a controller quorum, all running; the caller kills them."""
    ports = free_ports(2 * nodes)
    quorum = dict(enumerate(ports[:nodes], 1))
    brokers: list[Broker] = []
    for number, port in zip(quorum, ports[nodes:], strict=True):
        brokers.append(Broker(Path(folder) / f"node-{number}", number, quorum, port, brokers[0] if brokers else None))
    try:
        for each in brokers:
            each.launch()
        for each in brokers:
            each.wait_until_it_listens()
    except BaseException:
        for each in brokers:
            each.kill()
        raise
    return brokers
