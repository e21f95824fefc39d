"""Every command and every Python block of the README and of the tour, run as it stands, in order, in one folder."""

import contextlib
import gzip
import io
import json
import re
import warnings

import pytest

from stream_engine.commands import demo
from tests.support.pages import run_command
from tests.support.readme import COMMANDS, KAFKA, README, TOUR, commands_of
from tests.support.spark_written import deltas

ELSEWHERE = {
    "stream-engine spark-counts 'events*.jsonl' --out counts": "tests/spark runs Spark; here its deltas are written",
    "make run": "tests/end_to_end/test_demo.py runs it",
    ". .venv/bin/activate": "make run makes the environment",
    "stream-engine collect --objects demo/pictures --state study": "tests/collect serves studies",
}


@pytest.fixture(autouse=True)
def quick_maps(monkeypatch):
    """What is selected by default is tested on other pages: tutorials/survey.md, and what `make run` runs."""
    params = '{ dimensions = 2, kernel = "ste", ridge = 1.0, participants = "alike" }'
    monkeypatch.setenv("STREAM_ENGINE__REFITS__PARAMS__EMBEDDING", params)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with the input files that the commands name."""
    folder = tmp_path_factory.mktemp("readme")
    events = re.search(r"\$ cat events.jsonl\n(.*?)\n\$", TOUR, re.S)[1]
    (folder / "events.jsonl").write_text(events + "\n")
    (folder / "workers.toml").write_text(re.search(r"\$ cat workers.toml\n(.*?)\n\$", TOUR, re.S)[1])
    screen = {"probe": "a", "images": ["b", "c", "d"], "near": ["b"], "is_catchtrial": False}
    with gzip.open(folder / "screens.jsonl.gz", "wt") as out:
        out.write(json.dumps(screen) + "\n" + json.dumps({**screen, "is_catchtrial": True}) + "\n")
    (folder / "survey.csv").write_text("central,left,middle,right\n2,2,1,3\n3,1,3,2\n")
    deltas(folder / "counts", [])
    (folder / "engine.toml").write_text('source = ["events.jsonl"]\nstate = "state"\n')
    return folder


@pytest.mark.parametrize("command", [c for c in COMMANDS if c not in ELSEWHERE and c not in KAFKA])
def test_command(command, folder):
    with contextlib.chdir(folder):
        run_command(command, [])
    if command.startswith("stream-engine run events"):
        assert '"not_distinct"' in next((folder / "state" / "dead_letters").iterdir()).read_text()


def test_python_blocks(folder):
    run_python_blocks(TOUR, folder)


def run_python_blocks(page: str, folder) -> None:
    silent = contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings(action="ignore")
    with contextlib.chdir(folder), silent[0], silent[1]:
        for block in re.findall(r"```python\n(.*?)```", page, re.S):
            exec(compile(block, "<page>", "exec"), {"__name__": "__main__"})


def test_the_readme(tmp_path, monkeypatch):
    """Its commands run on a part of the survey and of the stream that `make run` writes: fits take long."""
    (tmp_path / "demo").mkdir()
    survey = tmp_path / "demo" / "survey.csv"
    demo.write_survey(survey, 0)
    head, *rows = survey.read_text().splitlines(keepends=True)
    shown = [set(re.findall(r"[a-z]+(?=_\d\d.png)", row)) for row in rows]
    few = [row for row, of in zip(rows, shown) if of <= {"zero", "one"} and row < "P13"]
    survey.write_text("".join([head, *few]))
    monkeypatch.setattr(demo, "STREAM", 20_000)
    demo.write_stream(tmp_path / "demo" / "stream.jsonl", 0)
    demo.draw_pictures(tmp_path / "demo" / "pictures", 0)
    commands = commands_of(README)
    assert "make run" in commands and "pip install ." in README and "make test" in README
    for command in commands:
        if command not in ELSEWHERE and command not in KAFKA:
            test_command(command, tmp_path)
    run_python_blocks(README, tmp_path)


def test_the_readme_is_short():
    assert len(README.split()) <= 600
