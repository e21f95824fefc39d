"""Every command and every Python block of the README, run as it stands there, in order, in one folder."""

import gzip
import json
import re
import shutil
import subprocess
import sys

import pytest

from tests.conftest import ROOT
from tests.support.process import ENVIRONMENT
from tests.support.spark_written import deltas

README = (ROOT / "README.md").read_text()
COMMANDS = [
    line.removeprefix("$ ")
    for block in re.findall(r"```console\n(.*?)```", README, re.S)
    for line in block.replace("\\\n", "").splitlines()
    if line.startswith("$ ")
]
ELSEWHERE = {
    "make run": "tests/end_to_end/test_demo.py runs it",
    "stream-engine spark-counts 'events*.jsonl' --out counts": "tests/spark runs Spark; here its deltas are written",
}
KAFKA = [
    command for command in COMMANDS if "kafka://" in command
]  # tests/kafka/test_engine.py runs them on a real broker


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with the input files that the commands name."""
    folder = tmp_path_factory.mktemp("readme")
    events = re.search(r"\$ cat events.jsonl\n(.*?)\n\$", README, re.S)[1]
    (folder / "events.jsonl").write_text(events + "\n")
    (folder / "workers.toml").write_text(re.search(r"\$ cat workers.toml\n(.*?)\n\$", README, re.S)[1])
    screen = {"probe": "a", "images": ["b", "c", "d"], "near": ["b"], "is_catchtrial": False}
    with gzip.open(folder / "screens.jsonl.gz", "wt") as out:
        out.write(json.dumps(screen) + "\n" + json.dumps({**screen, "is_catchtrial": True}) + "\n")
    (folder / "survey.csv").write_text("central,left,middle,right\n2,2,1,3\n3,1,3,2\n")
    deltas(folder / "counts", [])
    (folder / "engine.toml").write_text('source = ["events.jsonl"]\nstate = "state"\n')
    return folder


@pytest.mark.parametrize("command", [c for c in COMMANDS if c not in ELSEWHERE and c not in KAFKA])
def test_command(command, folder):
    shown = command.replace("stream-engine ", f"{sys.executable} -m stream_engine ", 1)
    done = subprocess.run(
        ["bash", "-c", shown], cwd=folder, env=ENVIRONMENT, capture_output=True, text=True, timeout=200
    )
    assert done.returncode == 0, done.stderr
    if command.startswith("stream-engine run events"):
        assert '"not_distinct"' in next((folder / "state" / "dead_letters").iterdir()).read_text()


def test_python_blocks(folder):
    for block in re.findall(r"```python\n(.*?)```", README, re.S):
        done = subprocess.run(
            [sys.executable, "-c", block], cwd=folder, env=ENVIRONMENT, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr


def test_it_is_short_and_names_the_two_commands():
    assert len(README.splitlines()) <= 220 and "make run" in COMMANDS and "make test" in README
    assert shutil.which("bash")
