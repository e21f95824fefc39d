"""Spark on loopback for the tests: the job as a process, and the jars for Kafka.

pyspark is the extra [spark]; what it does not ship comes from Maven Central through `pom.xml` and stays in a cache
outside the repository.
"""

import contextlib
import importlib.util
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from tests.conftest import ROOT
from tests.support.fetched_programs import Missing, jars_of

POM = ROOT / "tests" / "spark" / "pom.xml"
# Short-lived processes on a small machine: start-up counts, not speed.
JVM = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1 -Xshare:auto"
CONF = {
    "spark.ui.enabled": "false",
    "spark.log.level": "ERROR",
    "spark.sql.shuffle.partitions": "2",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.executor.memory": "512m",
    "spark.executor.cores": "1",
    "spark.executorEnv.OPENBLAS_NUM_THREADS": "1",
}
ENVIRONMENT = {
    **os.environ,
    "PYTHONPATH": os.pathsep.join(map(str, (ROOT / "tests/support/installed_pyspark", ROOT))),
    "PYSPARK_PYTHON": sys.executable,
    "SPARK_LOCAL_IP": "127.0.0.1",
    "PYSPARK_DRIVER_PYTHON": sys.executable,
    "OPENBLAS_NUM_THREADS": "1",
}


class SparkMissing(Missing):
    """Spark cannot be started here; the message says what is missing."""


def home() -> Path:
    """The folder of the installed pyspark."""
    found = importlib.util.find_spec("pyspark")
    if found is None:
        raise SparkMissing("pyspark is not installed (the extra [spark])")
    if shutil.which("java") is None:
        raise SparkMissing("java is not on the path (Java 17 or 21)")
    return Path(found.origin).parent


def kafka_jars() -> str:
    """The jars with which Spark reads Kafka, fetched on first use, joined for --jars."""
    version = POM.read_text().split("<version>")[1].split("<")[0]
    return ",".join(map(str, jars_of(POM, f"spark-kafka-{version}", SparkMissing)))


def conf() -> list[str]:
    """--conf arguments."""
    options = {f"spark.{role}.extraJavaOptions": JVM for role in ("driver", "executor")}
    return [f"--conf={key}={value}" for key, value in (CONF | options).items()]


def start(command: list[str], log: Path, environment: Mapping[str, str] = ENVIRONMENT) -> subprocess.Popen:
    """A process in a group of its own, what it says in a file."""
    with log.open("ab") as said:
        return subprocess.Popen(
            [str(part) for part in command],
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=said,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )


def kill(process: subprocess.Popen) -> None:
    """SIGKILL to a process and all that it started."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait(30)


def job(log: Path, *arguments, master: str = "local[2]", jars: str = "") -> subprocess.Popen:
    """`stream-engine spark-counts ARGUMENTS`."""
    command = [sys.executable, "-m", "stream_engine", "spark-counts", *arguments, "--master", master, *conf()]
    return start([*command, *(["--jars", jars] if jars else [])], log)


def submit(log: Path, script: Path, *arguments, jars: str = "") -> subprocess.Popen:
    """A script by `spark-submit`, with one task at a time."""
    command = [home() / "bin" / "spark-submit", "--master", "local[1]", "--driver-memory", "1g", *conf()]
    return start([*command, *(["--jars", jars] if jars else []), script, *arguments], log)


def ended(process: subprocess.Popen, log: Path, seconds: float = 400) -> None:
    """Wait until the job ends well."""
    try:
        code = process.wait(seconds)
    except subprocess.TimeoutExpired:
        kill(process)
        code = f"none within {seconds} s"
    assert code == 0, f"exit {code}:\n{log.read_text(errors='replace')[-6000:]}"
