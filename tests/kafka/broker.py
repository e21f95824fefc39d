"""A real Apache Kafka broker for the tests: one KRaft node on loopback, its data in a folder of its own.

`Broker(folder)` starts, stops, kills and restarts on the same ports and data. The jars come from Maven Central through
`pom.xml` and stay in a cache outside the repository. Besides PLAINTEXT the broker listens with SASL over TLS (PLAIN and
SCRAM, certificate made for the session by `keytool`), so that secrets and certificates are tested for real.
"""

import os
import shutil
import signal
import socket
import subprocess
import time
import uuid
from base64 import urlsafe_b64encode
from pathlib import Path

from tests.fetched import cache

POM = Path(__file__).with_name("pom.xml")
VERSION = "4.3.1"
USER, PASSWORD = "engine", "correct-horse-battery"
START_SECONDS = 90
# C1 only, shared class data and the serial collector: the broker lives for seconds, so start-up counts, not speed.
JVM = ["-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto",
       "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn"]


class BrokerMissing(RuntimeError):
    """No broker can be started here; the message says what is missing."""


def jars() -> Path:
    """The folder of the broker's jars, fetched on first use (a marker file says that the fetch was whole)."""
    with cache(f"kafka-{VERSION}") as folder:
        if (folder / ".complete").exists():
            return folder
        for tool in ("java", "keytool", "mvn"):
            if shutil.which(tool) is None:
                raise BrokerMissing(f"{tool} is not on the path (Java 17 and Maven, or KAFKA_BOOTSTRAP_SERVERS, needed)")
        command = ["mvn", "-q", "-B", "-f", str(POM), "dependency:copy-dependencies", f"-DoutputDirectory={folder}"]
        fetched = subprocess.run(command, capture_output=True, text=True, timeout=600)
        if fetched.returncode:
            raise BrokerMissing(f"mvn could not fetch Kafka {VERSION}: {(fetched.stdout + fetched.stderr).strip()[-300:]}")
        (folder / ".complete").touch()
        return folder


def java() -> str:
    found = shutil.which("java")
    if found is None:
        raise BrokerMissing("java is not on the path (Java 17, or KAFKA_BOOTSTRAP_SERVERS, is needed)")
    return found


def free_ports(count: int) -> list[int]:
    """Ports nobody listens on now, all different (held together while they are chosen)."""
    sockets = [socket.socket() for _ in range(count)]
    try:
        for held in sockets:
            held.bind(("127.0.0.1", 0))
        return [held.getsockname()[1] for held in sockets]
    finally:
        for held in sockets:
            held.close()


class Broker:
    """One KRaft node. Invariant: ports, cluster id and data stay the same over stop, kill and start."""

    def __init__(self, folder: Path):
        self.folder, self.lib, self.java = Path(folder), jars(), java()
        self.folder.mkdir(parents=True, exist_ok=True)
        self.port, self.controller_port, self.secure_port = free_ports(3)
        self.bootstrap = f"127.0.0.1:{self.port}"
        self.secure_bootstrap = f"127.0.0.1:{self.secure_port}"
        self.certificate = self.folder / "broker.pem"
        self.process: subprocess.Popen | None = None
        self._make_certificate()
        self._format()

    def secure_options(self, mechanism: str = "PLAIN") -> dict[str, object]:
        """kafka-python's options for the TLS listener."""
        return {"security_protocol": "SASL_SSL", "sasl_mechanism": mechanism, "sasl_plain_username": USER,
                "sasl_plain_password": PASSWORD, "ssl_cafile": str(self.certificate)}

    def start(self) -> None:
        """Start and wait until it answers requests."""
        assert self.process is None, "the broker is running already"
        with (self.folder / "broker.log").open("ab") as log:
            self.process = subprocess.Popen(
                [self.java, *JVM, "-cp", f"{self.lib}/*", "kafka.Kafka", str(self.folder / "server.properties")],
                stdout=log, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, start_new_session=True)
        self._wait_until_it_listens()

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
                self.process.wait(30)
            self.process = None

    def _wait_until_it_listens(self) -> None:
        # Kafka opens its client listeners only when the broker is unfenced, so a connection means "ready".
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline:
            if self.process.poll() is not None:
                break
            try:
                with socket.create_connection(("127.0.0.1", self.port), timeout=1):
                    return
            except OSError:
                time.sleep(0.05)
        tail = (self.folder / "broker.log").read_text(errors="replace")[-2000:]
        self.kill()
        raise RuntimeError(f"the broker did not start within {START_SECONDS} s; the end of its log:\n{tail}")

    def _make_certificate(self) -> None:
        store = self.folder / "broker.p12"
        keytool = shutil.which("keytool")
        if keytool is None:
            raise BrokerMissing("keytool is not on the path (it comes with Java 17)")
        common = ["-J-XX:TieredStopAtLevel=1", "-J-XX:+UseSerialGC", "-keystore", str(store), "-storetype", "PKCS12",
                  "-storepass", PASSWORD, "-alias", "broker"]
        for command in (
            [keytool, "-genkeypair", *common, "-keyalg", "EC", "-groupname", "secp256r1", "-validity", "30",
             "-dname", "CN=localhost", "-ext", "san=ip:127.0.0.1,dns:localhost"],
            [keytool, "-exportcert", *common, "-rfc", "-file", str(self.certificate)],
        ):
            subprocess.run(command, check=True, capture_output=True, timeout=60)

    def _format(self) -> None:
        """Write server.properties and the first metadata records (among them the SCRAM user)."""
        (self.folder / "server.properties").write_text(self._properties())
        cluster = urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
        command = [self.java, *JVM, "-cp", f"{self.lib}/*", "kafka.tools.StorageTool", "format", "-t", cluster,
                   "-c", str(self.folder / "server.properties"),
                   "--add-scram", f"SCRAM-SHA-512=[name={USER},password={PASSWORD}]"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60)
        if done.returncode:
            raise RuntimeError(f"the storage could not be formatted: {(done.stdout + done.stderr)[-500:]}")

    def _properties(self) -> str:
        plain = "org.apache.kafka.common.security.plain.PlainLoginModule"
        scram = "org.apache.kafka.common.security.scram.ScramLoginModule"
        here = "127.0.0.1"
        settings = {
            "process.roles": "broker,controller",
            "node.id": 1,
            "controller.quorum.voters": f"1@{here}:{self.controller_port}",
            "listeners": f"PLAINTEXT://{here}:{self.port},SECURE://{here}:{self.secure_port},"
                         f"CONTROLLER://{here}:{self.controller_port}",
            "advertised.listeners": f"PLAINTEXT://{here}:{self.port},SECURE://{here}:{self.secure_port}",
            "controller.listener.names": "CONTROLLER",
            "inter.broker.listener.name": "PLAINTEXT",
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,SECURE:SASL_SSL",
            "listener.name.secure.sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-512",
            "listener.name.secure.plain.sasl.jaas.config": f'{plain} required user_{USER}="{PASSWORD}";',
            "listener.name.secure.scram-sha-512.sasl.jaas.config": f"{scram} required;",
            "listener.name.secure.ssl.keystore.location": self.folder / "broker.p12",
            "listener.name.secure.ssl.keystore.type": "PKCS12",
            "listener.name.secure.ssl.keystore.password": PASSWORD,
            "listener.name.secure.ssl.key.password": PASSWORD,
            "log.dirs": self.folder / "data",
            "num.partitions": 1,
            "auto.create.topics.enable": "false",
            "delete.topic.enable": "true",
            "offsets.topic.num.partitions": 1,
            "offsets.topic.replication.factor": 1,
            "transaction.state.log.num.partitions": 1,
            "transaction.state.log.replication.factor": 1,
            "transaction.state.log.min.isr": 1,
            "share.coordinator.state.topic.replication.factor": 1,
            "share.coordinator.state.topic.min.isr": 1,
            "group.initial.rebalance.delay.ms": 0,
            # A killed broker's registration has to lapse before its successor is let in.
            "broker.session.timeout.ms": 2000,
            "broker.heartbeat.interval.ms": 400,
            "log.cleaner.enable": "false",
            "num.network.threads": 2,
            "num.io.threads": 2,
        }
        return "".join(f"{key}={value}\n" for key, value in settings.items())
