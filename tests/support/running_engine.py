"""A real engine process, seen through its own HTTP server, its log and /proc."""

import json
import os
import subprocess
import sys
import urllib.request
from pathlib import Path

from tests.support.forked_commands import Forked
from tests.support.process import ENVIRONMENT, stopped, until

FORKED = ("-m", "stream_engine")


class Engine:
    """A running engine that reads a source from its beginning; the caller stops `process`."""

    def __init__(
        self,
        folder: Path,
        uri: str,
        *more: str,
        config: str = "",
        program: tuple[str, str] = FORKED,
        refits: bool = False,
        **environment: str,
    ):
        (folder / "engine.toml").write_text(config)
        self.state, self.said = folder / "s", folder / "said"
        command = [sys.executable, *program, "run", uri, "--state", self.state, "--start", "earliest"]
        command += ["--log-format", "json", "--listen", "127.0.0.1:0", "--config", folder / "engine.toml"]
        command += [*([] if refits else ["--no-refits"]), *more]  # of an option given twice the last one counts
        start = Forked if program == FORKED else subprocess.Popen
        with self.said.open("w") as errors:
            self.process = start(command, stdout=errors, stderr=errors, env=ENVIRONMENT | environment)
        until(
            lambda: self.process.poll() is not None or any("address" in line for line in self.lines()),
            what="its address",
            seconds=120,
        )
        addresses = [line["address"] for line in self.lines() if "address" in line]
        assert addresses, self.said.read_text()
        self.address = addresses[0]

    def lines(self) -> list[dict]:
        """What it logged; a line that is not finished yet, or of a crash, is left out."""
        lines = self.said.read_text().splitlines(keepends=True)
        return [json.loads(line) for line in lines if line.startswith("{") and line.endswith("\n")]

    def get(self, path: str) -> str:
        with urllib.request.urlopen(f"http://{self.address}{path}", timeout=120) as answer:
            return answer.read().decode()

    def figure(self, name: str, partition: str = "") -> float:
        """The value of a metric; all its partitions together unless one is named."""
        lines = [line for line in self.get("/metrics").splitlines() if line.startswith(f"stream_engine_{name}")]
        return sum(float(line.split()[-1]) for line in lines if not partition or f'partition="{partition}"' in line)

    def said_of(self, where: str) -> list[str]:
        return [line["event"] for line in self.lines() if line.get("where") == where]

    def cpu(self) -> float:
        """CPU seconds of all threads."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def resident(self) -> int:
        """Bytes of memory."""
        return int(Path(f"/proc/{self.process.pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    def stop(self) -> None:
        """SIGTERM; fails with all that was said when it does not end well."""
        try:
            stopped(self.process)
            assert self.process.returncode == 0
        except AssertionError as error:
            raise AssertionError(f"{error}\n{self.said.read_text()[-6000:]}") from None
