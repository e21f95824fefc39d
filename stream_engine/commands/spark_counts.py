"""`stream-engine spark-counts`: the `spark-submit` line of the counting job, printed for a cluster, or run here.

Imports no pyspark.
"""

import glob
import importlib.util
import os
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

import click

from connectors import UnusableSource, split_uri
from connectors.files import expand
from connectors.files.readers import kind_of
from stream_engine.input.settings import BadSettings
from stream_engine.spark.job_arguments import SCRIPT, Job, job_of

KAFKA_PACKAGE = "org.apache.spark:spark-sql-kafka-0-10_2.13"
VERSION = "4.2.0"  # of pyspark in the extra [spark]; Spark and its Kafka package must be of one version


@click.command("spark-counts", context_settings={"ignore_unknown_options": True})
@click.argument(
    "job", nargs=-1, required=True, type=click.UNPROCESSED, metavar="SOURCE... --out DIR [OPTIONS OF THE JOB]"
)
@click.option("--master", default="local[2]", show_default=True, metavar="URL", help="Spark master URL.")
@click.option("--conf", multiple=True, metavar="KEY=VALUE", help="Spark property (repeatable).")
@click.option("--jars", metavar="FILES", help="Jars of spark-sql-kafka. Default: download the package.")
@click.option("--driver-memory", default="1g", show_default=True, metavar="SIZE", help="Memory of the Spark driver.")
@click.option("--print-only", is_flag=True, help="Print the command without running it.")
def command(
    job: tuple[str, ...], master: str, conf: tuple[str, ...], jars: str | None, driver_memory: str, print_only: bool
) -> None:
    """Count events on Spark and write deltas to DIR for `run deltas://DIR`.

    Prints the spark-submit command, then runs it on this machine.

    Options of the job: --type --columns --where --format --start --follow --every --per-batch --option.
    """
    spark = [
        "--master",
        master,
        "--driver-memory",
        driver_memory,
        *(f"--conf={option}" for option in conf),
        *(["--jars", jars] if jars else []),
    ]
    line = submit_line(job, spark)
    click.echo(as_text(line))
    if not print_only:
        run(line)


def home() -> Path | None:
    """The folder of the installed pyspark, if there is one."""
    spec = importlib.util.find_spec("pyspark")
    return Path(spec.origin).parent if spec and spec.origin else None


def submit_line(job: Sequence[str], spark: Sequence[str] = ()) -> list[str]:
    """`spark-submit SPARK... job.py JOB...`.


    A Kafka source brings its package unless `spark` names --jars or --packages.
    Raises `BadSettings`, `UnusableSource` for a job that cannot run.
    """
    settings = job_of(job)
    _check_files(settings)
    kafka = any(split_uri(source)[0] == "kafka" for source in settings.sources)
    named = any(option.split("=")[0] in ("--jars", "--packages") for option in spark)
    package = ["--packages", f"{KAFKA_PACKAGE}:{VERSION}"] if kafka and not named else []
    return ["spark-submit", *spark, *package, str(SCRIPT), *job]


def _check_files(job: Job) -> None:
    for source in job.sources:
        scheme, path = split_uri(source)
        if scheme != "file" or os.path.exists(path):
            continue
        if not glob.has_magic(path):
            raise UnusableSource(f"{path}: no such file or folder; nothing was submitted")
        if not job.follow and not next(glob.iglob(path), None):
            raise UnusableSource(f"{path}: no file matches; nothing was submitted")
    for file in (
        file for source in job.sources if split_uri(source)[0] == "file" for file in expand(split_uri(source)[1])
    ):
        if os.path.basename(os.path.abspath(file)).startswith(("_", ".")):
            raise UnusableSource(f"{file}: Spark silently ignores files whose names begin with _ or .; rename it")
        if not os.path.isdir(file):
            kind_of(file, job.format)


def local_environment() -> dict[str, str]:
    """What driver and executors on this machine need to run this very Python and import this very engine."""
    root = str(SCRIPT.resolve().parents[2])
    path = os.pathsep.join(filter(None, [root, os.environ.get("PYTHONPATH")]))
    return (
        {"PYSPARK_PYTHON": sys.executable, "PYSPARK_DRIVER_PYTHON": sys.executable}
        | dict(os.environ)
        | {"PYTHONPATH": path}
    )


def run(line: Sequence[str]) -> None:
    """Become `spark-submit`: signals and exit status are its own from here on. Raises `BadSettings` without pyspark."""
    where = home()
    if where is None:
        raise BadSettings(
            "spark-counts: pyspark is not installed; pip install '.[spark]' in the repository, or --print-only"
        )
    sys.stdout.flush()
    os.execve(where / "bin" / "spark-submit", list(line), local_environment())


def as_text(line: Sequence[str]) -> str:
    """The line for a shell.

    >>> as_text(["spark-submit", "--master", "local[2]"])
    "spark-submit --master 'local[2]'"
    """
    return shlex.join(line)
