"""The real Prometheus (server and promtool) for tests with the marker `prometheus`: from PATH, or Debian's package
unpacked into a cache outside the repository, without installing a service."""

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest

from tests.conftest import leave_out_without
from tests.support.fetched_programs import apt_get, cache


def tools() -> dict[str, str]:
    """Paths of `prometheus` and `promtool`. Raises `Missing`."""
    with cache("prometheus") as folder:
        found = {name: shutil.which(name) or str(folder / "usr" / "bin" / name) for name in ("prometheus", "promtool")}
        if not all(Path(path).exists() for path in found.values()):
            _unpack(folder)
        return found


def _unpack(folder: Path) -> None:
    with tempfile.TemporaryDirectory(dir=folder.parent) as download:
        os.chmod(download, 0o755)
        apt_get("-o", "APT::Sandbox::User=root", "download", "prometheus", cwd=Path(download))
        (package,) = Path(download).glob("prometheus_*.deb")
        subprocess.run(["dpkg", "-x", package, folder], check=True, capture_output=True)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config, items):
    chosen = [item for item in items if item.get_closest_marker("prometheus")]
    leave_out_without(config, items, chosen, tools, "tests on a real Prometheus")


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
