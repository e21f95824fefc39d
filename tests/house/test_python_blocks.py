"""Every Python block of the manual, run as it stands there, each in a folder of its own."""

import re
import subprocess
import sys

import pytest

from tests.conftest import ROOT
from tests.support.process import ENVIRONMENT

BLOCKS = {
    f"{page.name} {number}": block
    for page in sorted((ROOT / "stream_engine" / "docs").rglob("*.md"))
    for number, block in enumerate(re.findall(r"```python\n(.*?)```", page.read_text(), re.S), 1)
}


@pytest.mark.parametrize("block", BLOCKS)
def test_it_runs(block, tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", BLOCKS[block]],
        cwd=tmp_path,
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
        timeout=200,
    )
    assert done.returncode == 0, done.stderr
    said = [
        line.partition("#")[2].strip() for line in BLOCKS[block].splitlines() if "print(" in line and "  # " in line
    ]
    assert all(line in done.stdout for line in said), done.stdout


def test_there_are_some():
    assert {"python.md 1", "python.md 2"} <= BLOCKS.keys()
