"""`py.typed` is true: a type checker knows the public names, what they take and what they return.

Each line of `USES` that ends in `# error` must be one to the checker, and no other line may be."""

import json
import re
import subprocess
import sys
from typing import get_args

import stream_engine as se
from stream_engine import estimators
from stream_engine.api import options
from stream_engine.api.output_frames import FRAMES
from stream_engine.asking import STRATEGIES
from stream_engine.data.comparisons import READABLE_TYPES
from stream_engine.formats import INPUT_FORMATS
from stream_engine.formats.options import ANSWER_IS, FIRST_OF, PARTICIPANT_FROM
from stream_engine.refits import REFITS
from tests.conftest import ROOT

USES = """\
import stream_engine as se
from stream_engine import estimators

study: se.Study = se.read([("a", "b", "c")])
study.map(d=2).plot()
study.map(dd=2)  # error
study.map("2")  # error
se.read([("a", "b", "c")], on_refused=3)  # error
se.read([("a", "b", "c")], type="tripet")  # error
se.read("answers.csv", type="pick", delimiter=";", header=False, skip_rows=2, frames="polars")
se.read("answers.csv", delim=";")  # error
se.read([("a", "b", "c")], answers_by="names")  # error
se.read([("a", "b", "c")], on_refused="stop")  # error
se.read([("a", "b", "c")], frames="panda")  # error
study.ask(5, strategy="random", type="odd_one_out")
study.ask(5, strategy="best")  # error
study.fit("embeding")  # error
study.details("embedding")["accuracy"]
se.unknown  # error
estimators.OrdinalEmbedding(2, kernel="ste", random_state=1).fit([[0, 1, 2]]).predict([[0, 1, 2]]).shape
estimators.OrdinalEmbedding("two")  # error
estimators.OrdinalEmbedding(kernel="sfe")  # error
estimators.ComparisonClustering(n_cluster=2)  # error
estimators.ComparisonClustering(similarity="adds5")  # error
estimators.ComparisonKernel("k3")  # error
estimators.TripletBoostClassifier(rounds="many")  # error
estimators.Unknown  # error
version: str = se.__version__
number: int = se.__version__  # error
"""
WRONG = {number for number, line in enumerate(USES.splitlines(), 1) if line.endswith("# error")}


def test_mypy_sees_each_mistake_and_no_other(tmp_path):
    (tmp_path / "uses.py").write_text(USES)
    options = ["--config-file", ROOT / "pyproject.toml", "--cache-dir", ROOT / ".mypy_cache"]
    done = subprocess.run(
        [sys.executable, "-m", "mypy", *options, tmp_path / "uses.py"], cwd=ROOT, capture_output=True, text=True
    )
    assert {int(line) for line in re.findall(r"^\S*uses\.py:(\d+): error", done.stdout, re.M)} == WRONG, done.stdout


def test_pyright_sees_each_mistake_and_no_other(tmp_path):
    """As basedpyright, which is pyright as a package that needs neither npm nor a download when it starts."""
    (tmp_path / "uses.py").write_text(USES)
    (tmp_path / "pyrightconfig.json").write_text(
        json.dumps({"extraPaths": [str(ROOT)], "typeCheckingMode": "standard"})
    )
    done = subprocess.run(
        [sys.executable, "-m", "basedpyright", "--outputjson", "--pythonpath", sys.executable],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    told = json.loads(done.stdout)["generalDiagnostics"]
    assert {each["range"]["start"]["line"] + 1 for each in told if each["severity"] == "error"} == WRONG, done.stdout


def test_the_words_that_checkers_know_are_those_of_the_registries():
    for words, known in (
        (options.EventType, READABLE_TYPES),
        (options.AnswersBy, FIRST_OF),
        (options.AnswerIs, ANSWER_IS),
        (options.ParticipantFrom, PARTICIPANT_FROM),
        (options.FileFormat, INPUT_FORMATS),
        (options.Frames, FRAMES),
        (options.Strategy, STRATEGIES),
        (options.RefitKind, REFITS),
    ):
        assert set(get_args(words)) == set(known)


def test_what_checkers_know_is_what_is_loaded_on_use():
    for room in (se, estimators):
        assert set(room.__all__) == room._PUBLIC.keys() and set(room.__all__) <= set(dir(room))
        assert all(getattr(room, name).__module__ == place for name, place in room._PUBLIC.items())
