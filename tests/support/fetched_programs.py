"""Programs that tests need and fetch on first use: a cache outside the repository, filled by one process at a time."""

import contextlib
import fcntl
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path


class Missing(RuntimeError):
    """A program is not there, and cannot be had; the message says why."""


@contextlib.contextmanager
def cache(name: str) -> Iterator[Path]:
    """The folder of that name in the user's cache, created; held while the block runs, so that of several test
    processes one fetches and the others wait and find it there."""
    folder = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "stream-engine" / name
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder.parent / f"{name}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield folder


def apt_get(*arguments: str, cwd: Path | None = None) -> None:
    """`apt-get ARGUMENTS`, again after an update where it fails. Raises `Missing`."""
    if not shutil.which("apt-get"):
        raise Missing("not on PATH, nor is this a Debian machine to get the package on")
    get, environment = ["apt-get", *arguments], {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    if subprocess.run(get, cwd=cwd, capture_output=True, env=environment).returncode:
        subprocess.run(["apt-get", "update"], capture_output=True)
        done = subprocess.run(get, cwd=cwd, capture_output=True, text=True, env=environment)
        if done.returncode:
            raise Missing(f"{' '.join(get)}: {done.stderr.strip().splitlines()[-1:]}")


def jars_of(pom: Path, name: str, missing: type[Missing], *tools: str) -> list[Path]:
    """The jars that a `pom.xml` names, fetched from Maven Central on first use (a marker says that the fetch was
    whole). Raises `missing`."""
    with cache(name) as folder:
        if not (folder / ".complete").exists():
            for tool in (*tools, "mvn"):
                if shutil.which(tool) is None:
                    raise missing(f"{tool} is not on the path (Java 17 and Maven are needed to fetch {name})")
            command = ["mvn", "-q", "-B", "-f", str(pom), "dependency:copy-dependencies", f"-DoutputDirectory={folder}"]
            fetched = subprocess.run(command, capture_output=True, text=True, timeout=600)
            if fetched.returncode:
                raise missing(f"mvn could not fetch {name}: {(fetched.stdout + fetched.stderr).strip()[-300:]}")
            (folder / ".complete").touch()
        return sorted(folder.glob("*.jar"))
