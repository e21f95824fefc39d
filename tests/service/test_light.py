"""A run over a file loads no library that it does not use, and says when it compiles."""

import json
import subprocess
import sys

from tests.support.process import ENVIRONMENT

HEAVY = ("cvxpy", "matplotlib", "sklearn", "river", "kafka", "confluent_kafka", "openpyxl", "uvicorn", "pyspark")
PROGRAM = f"""
import json, sys
from stream_engine.__main__ import main
status = main(["run", "survey.csv", "--state", sys.argv[1], "--log-format", "json", *sys.argv[2:]])
print(json.dumps([status, [name for name in {HEAVY} if name in sys.modules]]))
"""


def test_a_run_over_a_file_loads_no_heavy_library(tmp_path):
    """The refits, too, which run in processes of their own, are loaded there only."""
    (tmp_path / "survey.csv").write_text("anchor,near,far\n" + "a,b,c\nb,a,c\nc,d,a\nd,c,b\n" * 5)
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, "state"], cwd=tmp_path, env=ENVIRONMENT, capture_output=True, text=True
    )
    assert json.loads(done.stdout.splitlines()[-1]) == [0, []], done.stderr
    assert len(list((tmp_path / "state" / "artifacts").iterdir())) >= 2


def test_the_first_run_says_that_it_compiles(tmp_path):
    (tmp_path / "survey.csv").write_text("anchor,near,far\na,b,c\n")
    said = []
    for state in ("first", "second"):
        done = subprocess.run(
            [sys.executable, "-c", PROGRAM, state, "--no-refits"],
            cwd=tmp_path,
            env=ENVIRONMENT | {"NUMBA_CACHE_DIR": str(tmp_path / "cache")},
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stderr
        said.append([json.loads(line)["event"] for line in done.stderr.splitlines() if line.startswith("{")])
    assert "compiling" in said[0] and "compiling" not in said[1]
