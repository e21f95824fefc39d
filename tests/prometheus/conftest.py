"""The real Prometheus (server and promtool) for tests with the marker `prometheus`: from PATH, or Debian's package
unpacked into a cache outside the repository, without installing a service."""

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest

from tests.conftest import leave_out
from tests.support.fetched_programs import cache


class PrometheusMissing(RuntimeError):
    """There is no Prometheus, and none can be had."""


def tools() -> dict[str, str]:
    """Paths of `prometheus` and `promtool`. Raises `PrometheusMissing`."""
    with cache("prometheus") as folder:
        found = {name: shutil.which(name) or str(folder / "usr" / "bin" / name) for name in ("prometheus", "promtool")}
        if not all(Path(path).exists() for path in found.values()):
            _unpack(folder)
        return found


def _unpack(folder: Path) -> None:
    if not shutil.which("apt-get") or not shutil.which("dpkg"):
        raise PrometheusMissing("neither on PATH, nor is this a Debian machine to get the package on")
    with tempfile.TemporaryDirectory(dir=folder.parent) as download:
        os.chmod(download, 0o755)
        get = ["apt-get", "-o", "APT::Sandbox::User=root", "download", "prometheus"]
        if subprocess.run(get, cwd=download, capture_output=True).returncode:
            subprocess.run(["apt-get", "update"], capture_output=True)
            done = subprocess.run(get, cwd=download, capture_output=True, text=True)
            if done.returncode:
                raise PrometheusMissing(f"apt-get download prometheus: {done.stderr.strip().splitlines()[-1:]}")
        (package,) = Path(download).glob("prometheus_*.deb")
        subprocess.run(["dpkg", "-x", package, folder], check=True, capture_output=True)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config, items):
    chosen = [item for item in items if item.get_closest_marker("prometheus")]
    if not chosen:
        return
    try:
        tools()
    except PrometheusMissing as missing:
        if os.environ.get("CI"):
            raise pytest.UsageError(f"Prometheus is missing, and CI leaves nothing out: {missing}") from missing
        leave_out(config, items, chosen, f"tests on a real Prometheus ({missing})")


@pytest.fixture(scope="session")
def promtool():
    """`promtool(*arguments, input=None)`: run it; returns its output, fails the test when it complains."""
    path = tools()["promtool"]

    def run(*arguments, text: str | None = None) -> str:
        done = subprocess.run([path, *map(str, arguments)], input=text, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout + done.stderr

    return run


@pytest.fixture(scope="session")
def prometheus() -> str:
    """The path of the server."""
    return tools()["prometheus"]
