"""Programs that tests need and fetch on first use: a cache outside the repository, filled by one process at a time."""

import contextlib
import fcntl
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parent.parent.parent


class Missing(RuntimeError):
    """A program is not there, and cannot be had; the message says why."""


@contextlib.contextmanager
def cache(name: str) -> Iterator[Path]:
    """The folder of that name in the user's cache, or in the checkout's where that is read-only, created; held while
    the block runs, so that of several test processes one fetches and the others wait and find it there."""
    folder = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "stream-engine" / name
    try:
        folder.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=folder).close()
    except OSError:
        folder = CHECKOUT / ".cache" / "programs" / name
        folder.mkdir(parents=True, exist_ok=True)
    with open(folder.parent / f"{name}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield folder


def program(name: str, package: str, *more: str) -> str:
    """The path of a program: on PATH, or of Debian's package, installed with some `more` where this may be done.
    Raises `Missing`."""
    with cache("debian"):  # of several processes, one installs at a time
        found = shutil.which(name)
        if not found:
            if os.geteuid():
                raise Missing(f"{name} is not on PATH, and not root to install the package {package}")
            apt_get("install", "-y", "-q", "--no-install-recommends", package, *more)
            found = shutil.which(name)
        return found or name


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
