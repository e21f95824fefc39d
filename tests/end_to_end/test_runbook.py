"""Every recipe of the runbook is run as it stands there: each section in a folder with a small state of its own."""

import os
import re
import shlex
import shutil
import subprocess
import sys

import pytest
import yaml

from connectors import Position
from stream_engine.state.engine import Engine
from stream_engine.state.store import Store
from tests.conftest import ROOT
from tests.support.process import ENVIRONMENT, engine, jsonl

PAGE = (ROOT / "stream_engine" / "docs" / "runbook.md").read_text()
SECTIONS = re.split(r"^##+ ", "Beginning\n" + PAGE.removeprefix("# Runbook\n"), flags=re.M)
RECIPES = {
    section.partition("\n")[0]: [
        line.removeprefix("$ ")
        for block in re.findall(r"```console\n(.*?)```", section, re.S)
        for line in block.splitlines()
    ]
    for section in SECTIONS
}
RECIPES = {name: commands for name, commands in RECIPES.items() if commands}
EVENTS = [
    {"anchor": "lemon", "near": "lime", "far": "bread"},
    {"anchor": "bread", "near": "bun", "far": "lime"},
    {"anchor": "lime", "near": "lemon", "far": "bun"},
    {"type": "odd_one_out", "objects": ["lemon", "lime", "bun"], "odd": "bun"},
    {"type": "ranking", "anchor": "bun", "ranked": ["bread", "lemon", "lime"]},
    {"type": "label", "object": "lemon", "label": "fruit"},
    {"anchor": "lemon", "near": "bun", "farther": "bread"},
]


@pytest.fixture(scope="module")
def prepared(tmp_path_factory):
    """The folder that every section begins with; it is moved to its place, where its paths lead."""
    folder = tmp_path_factory.mktemp("prepared")
    jsonl(folder / "events.jsonl", EVENTS)
    (folder / "engine.toml").write_text('source = ["events.jsonl"]\nstate = "state"\n[refits]\nkinds = []\n')
    return folder


@pytest.mark.parametrize("section", RECIPES)
def test_recipe(section, prepared, tmp_path, monkeypatch):
    shutil.copytree(prepared, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    engine("run", "--config", "engine.toml")
    if section == "Resize":  # of a topic's state
        made = Engine.restore(Store("state").latest().snapshot)
        made.positions = {f"votes/{number}": Position(4) for number in range(2)}
        Store("state").publish(made.snapshot())
    for command in RECIPES[section]:
        program, *arguments = shlex.split(os.path.expandvars(command.replace("$PWD", str(tmp_path))))
        if program == "stream-engine" and ">" not in arguments:
            done = engine(*arguments, status=None)
            assert done.returncode == 0, f"{command}\n{done.stderr}"
        else:
            command = command.replace("stream-engine", f"{sys.executable} -m stream_engine")
            subprocess.run(["bash", "-c", command], check=True, env=ENVIRONMENT)


def test_every_alert_has_its_section():
    rules = yaml.safe_load((ROOT / "deploy" / "prometheus" / "alerts.yml").read_text())["groups"][0]["rules"]
    headings = re.findall(r"^### (\w+)$", PAGE, re.M)
    assert {rule["alert"] for rule in rules} <= set(headings) and len(headings) == len(set(headings))
    for quoted in re.findall(r'"([A-Z][a-z -]+)"', PAGE):  # a section that another one names
        assert f"\n## {quoted}\n" in PAGE, quoted


def test_there_are_recipes():
    assert len(RECIPES) >= 12 and sum(map(len, RECIPES.values())) >= 25
