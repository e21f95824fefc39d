"""The tutorial from Kafka to Grafana (kafka_to_grafana.md) as it stands, on the real broker and the real Prometheus."""

import re
import shlex
import signal
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.prometheus.conftest import tools
from tests.support.pages import Command, blocks, commands, run_command, run_python
from tests.support.process import ENVIRONMENT, free_ports

pytestmark = [pytest.mark.kafka, pytest.mark.prometheus]
PAGE = ROOT / "stream_engine" / "docs" / "tutorials" / "kafka_to_grafana.md"


class Shell:
    """The reader's shell: commands in a folder, some of them in the background."""

    def __init__(self, folder: Path, change):
        self.folder, self.change, self.jobs = folder, change, []

    def run(self, command: Command) -> None:
        line = self.change(command.line)
        if line.endswith(" &"):
            words = shlex.split(line.removesuffix(" &"))
            if words[0] == "stream-engine":
                words[:1] = [sys.executable, "-m", "stream_engine"]
            with open(self.folder / f"job{len(self.jobs) + 1}.log", "wb") as log:
                self.jobs.append(subprocess.Popen(words, cwd=self.folder, env=ENVIRONMENT, stdout=log, stderr=log))
        elif kill := re.fullmatch(r"kill -9 %(\d)", line):
            job = self.jobs[int(kill[1]) - 1]
            job.kill()
            assert job.wait(600) == -9
        elif line.startswith("curl "):
            self.ask(*re.findall(r"http://[^ ']+", line), re.search(r"grep (\w+)", line), command.prints)
        else:
            run_command(line, [self.change(each) for each in command.prints])

    def ask(self, url: str, grep, prints: list[str]) -> None:
        """Ask until it says so: what was started a moment ago is still on its way."""
        end, said = time.monotonic() + 600, ""
        while time.monotonic() < end:
            try:
                with urllib.request.urlopen(url, timeout=120) as answer:
                    said = answer.read().decode()
            except OSError as error:
                said = str(error)
            else:
                lines = [line for line in said.splitlines() if not grep or grep[1] in line]
                if all(any(_told(each, line) for line in lines) for each in prints):
                    return
            time.sleep(0.2)
        logs = [path.read_text()[-2000:] for path in sorted(self.folder.glob("job*.log"))]
        raise AssertionError(f"{url} does not say {prints}: {said}\n{logs}")

    def end(self) -> None:
        for job in self.jobs:
            if job.poll() is None:
                job.kill()
                job.wait()


def _told(shown: str, line: str) -> bool:
    """Whether a line holds what is shown; figures of this page are exact."""
    return all(part in line for part in shown.split("…"))


def test_as_it_stands(broker, new_topic, tmp_path, monkeypatch):
    prometheus, topic, (port, web) = tools()["prometheus"], new_topic(), free_ports(2)

    def here(text: str) -> str:
        text = text.replace("127.0.0.1:9092/comparisons", f"{broker.bootstrap}/{topic}")
        text = text.replace("127.0.0.1:9108", f"127.0.0.1:{port}").replace("127.0.0.1:9090", f"127.0.0.1:{web}")
        return re.sub(r"^prometheus", prometheus, text).replace("deploy/", f"{ROOT}/deploy/")

    monkeypatch.chdir(tmp_path)
    shell = Shell(tmp_path, here)
    try:
        for block in blocks(PAGE):
            if block.kind == "console":
                for command in commands(block.text):
                    shell.run(command)
            elif block.kind == "python":
                run_python(block.text, {})
            elif name := re.match(r"# ([\w-]+\.toml)\n", block.text):
                (tmp_path / name[1]).write_text(here(block.text))
        (engine,) = (shell.jobs[int(number) - 1] for number in re.findall(r"`fg %(\d)`", PAGE.read_text()))
        engine.send_signal(signal.SIGINT)  # Ctrl-C
        assert engine.wait(600) == 0
    finally:
        shell.end()


def test_the_compose_file_that_it_names_is_there():
    named = re.findall(r"`?(deploy/[\w./-]+\w)`?", PAGE.read_text())
    assert len(named) >= 5 and all((ROOT / each).exists() for each in named)
