"""A run over a file loads no library that it does not use, and says when it compiles."""

import json
import subprocess
import sys

from tests.support.process import ENVIRONMENT

HEAVY = (
    "cvxpy",
    "matplotlib",
    "sklearn",
    "river",
    "kafka",
    "confluent_kafka",
    "openpyxl",
    "uvicorn",
    "pyspark",
    "pandas",
)
PROGRAM = f"""
import json, sys
from stream_engine.__main__ import main
sys.argv[1:] = ["run", "survey.csv", "--state", sys.argv[1], "--log-format", "json", *sys.argv[2:]]
status = main()
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
