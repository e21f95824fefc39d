"""The page on Spark (how-to/spark.md): its first command on a real Spark, its second on what the first wrote."""

import pytest

from tests.conftest import ROOT
from tests.support.pages import blocks, commands, run_command
from tests.support.process import ENVIRONMENT, jsonl, summary
from tests.support.spark_cluster import CONF, JVM

PAGE = ROOT / "stream_engine" / "docs" / "how-to" / "spark.md"
pytestmark = pytest.mark.spark


def test_as_it_stands(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    settings = [f"-D{key}={value}" for key, value in CONF.items()]  # two parts instead of 200
    monkeypatch.setitem(ENVIRONMENT, "JAVA_TOOL_OPTIONS", " ".join([JVM, *settings]))
    event = {"anchor": "lemon", "near": "lime", "far": "bread"}
    jsonl(tmp_path / "events-1.jsonl", [event, {**event, "far": "bun"}])
    for block in blocks(PAGE):
        for command in commands(block.text):
            run_command(command.line, command.prints)
    assert summary(tmp_path / "state")["comparisons"] == 2
