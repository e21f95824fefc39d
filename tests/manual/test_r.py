"""The page about R, run by R: its blocks are one session, its commands and addresses are real ones."""

import re
import subprocess
from functools import partial

import pytest

from tests.conftest import ROOT
from tests.support.pages import alike, blocks, commands, run_command
from tests.support.process import until
from tests.support.running_engine import Engine

PAGE = ROOT / "stream_engine" / "docs" / "how-to" / "r.md"
ADDRESS = "127.0.0.1:9108"

pytestmark = pytest.mark.needs("Rscript", "r-base-core")


def published(engine: Engine) -> bool:
    return any(line["event"] == "snapshot published" for line in engine.lines())


def test_its_blocks_run_in_order(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    session, served = "", None
    try:
        for block in blocks(PAGE):
            if block.kind == "console":
                for command in commands(block.text):
                    run_command(command.line, command.prints)
            elif block.kind == "sh":
                assert block.text.split()[1:3] == ["run", "trials.csv"] and ADDRESS in block.text
                served = Engine(tmp_path, "trials.csv", "--follow", config="[snapshot]\ninterval = 0.5\n")
                until(partial(published, served), what="a snapshot", seconds=240)
            elif block.kind == "r":
                text = block.text.replace(ADDRESS, served.address if served else ADDRESS)
                done = subprocess.run(["Rscript", "-e", session + text], capture_output=True, text=True, timeout=120)
                assert done.returncode == 0, done.stderr
                told = [line.partition("  # ")[2] for line in text.splitlines() if "  # " in line]
                assert all(alike(line, done.stdout) for line in told), done.stdout
                session += text
    finally:
        if served:
            served.stop()
    assert (tmp_path / "map.pdf").read_bytes().startswith(b"%PDF") and set(
        re.findall(r"```(\w+)", PAGE.read_text())
    ) >= {"r"}
