"""A real S3 server for the tests: s3proxy (from Maven Central) on loopback, objects in memory, signatures checked."""

import os
import shutil
import subprocess
import tempfile
from functools import cache
from pathlib import Path

from tests.conftest import ROOT
from tests.support.fetched_programs import Missing, jars_of
from tests.support.process import free_ports, listens, until
from tests.support.shared_classes import shared_classes

POM = ROOT / "tests" / "connectors" / "object_store.xml"
VERSION = "s3proxy-2.6.0"
KEY, SECRET = "engine", "correct-horse-battery"
ENVIRONMENT = {
    "AWS_ACCESS_KEY_ID": KEY,
    "AWS_SECRET_ACCESS_KEY": SECRET,
    "AWS_EC2_METADATA_DISABLED": "true",
    "AWS_REQUEST_CHECKSUM_CALCULATION": "when_required",  # s3proxy knows no checksums behind a body
}


def jars() -> list[Path]:
    """The server's jars."""
    if shutil.which("java") is None:
        raise Missing("java is not on the path (Java 17)")
    return jars_of(POM, VERSION, Missing, "java")


@cache
def _classes() -> list[str]:
    return shared_classes(VERSION, jars()[0].parent, _run_once)


def _run_once(option: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        store = ObjectStore(Path(folder))
        store.start([option])
        store.process.terminate()
        store.process.wait(300)


class ObjectStore:
    """Serves from `start` to `stop`, on one port; what it holds is gone with it."""

    def __init__(self, folder: Path):
        self._lib, (self.port,), self._folder = jars()[0].parent, free_ports(1), folder
        self.process: subprocess.Popen | None = None
        (folder / "log.xml").write_text('<configuration><root level="WARN"/></configuration>')
        settings = {
            "s3proxy.authorization": "aws-v2-or-v4",
            "s3proxy.endpoint": f"http://127.0.0.1:{self.port}",
            "s3proxy.identity": KEY,
            "s3proxy.credential": SECRET,
            "s3proxy.ignore-unknown-headers": "true",
            "jclouds.provider": "transient",
            "jclouds.identity": "x",
            "jclouds.credential": "x",
        }
        (folder / "s3.conf").write_text("".join(f"{key}={value}\n" for key, value in settings.items()))

    def start(self, more: list[str] | None = None) -> None:
        """Start it, and wait until it listens. `more`: options of Java, instead of the one that shares classes."""
        options = ["-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", *(_classes() if more is None else more)]
        options += [f"-Dlogback.configurationFile={self._folder / 'log.xml'}", "-cp", f"{self._lib}/*"]
        command = ["java", *options, "org.gaul.s3proxy.Main", "--properties", str(self._folder / "s3.conf")]
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        until(lambda: listens(self.port), what="the object store")

    def stop(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None

    def uri(self, path: str, scheme: str = "s3") -> str:
        return f"{scheme}://{path}?endpoint_override=127.0.0.1:{self.port}&scheme=http&region=us-east-1"

    def put(self, path: str, content: bytes) -> None:
        """Write an object; its bucket is made."""
        from pyarrow import fs

        assert os.environ.get("AWS_ACCESS_KEY_ID") == KEY
        store = fs.S3FileSystem(
            endpoint_override=f"127.0.0.1:{self.port}", scheme="http", region="us-east-1", allow_bucket_creation=True
        )
        store.create_dir(path.partition("/")[0], recursive=False)
        with store.open_output_stream(path) as file:
            file.write(content)
