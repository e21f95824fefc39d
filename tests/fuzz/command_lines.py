"""Command lines of every verb on a tiny state: never a traceback, exit status 0, 1 or 2, an error in one line.

What would wait for ever (--follow, a broker) or take minutes (demo, warm-up, Spark) is not among them.
"""

import contextlib
import io
import json
import shutil
import sys
import tempfile
from functools import cache
from pathlib import Path
from random import Random
from unittest.mock import patch

from stream_engine.__main__ import main
from stream_engine.commands import VERBS as verbs
from stream_engine.commands import verb
from tests.fuzz.mutations import kept_case
from tests.support.process import engine

TRUSTED = True
LONG = {"collect", "demo", "produce", "spark-counts", "warm-up"}  # would wait for ever, or take minutes
VERBS = [name for name in verbs if name not in LONG]
FLAGS = ["--json", "--help", "--no-refits", "--dry-run", "--nonsense", "-h", "-x"]
OPTIONS = sorted(
    {name for each in VERBS for option in verb(each).params for name in option.opts if name.startswith("--")}
)
VALUES = [
    "state",
    "other",
    "empty",
    "e.jsonl",
    "e.csv",
    "*.jsonl",
    "junk.parquet",
    "config.toml",
    "labels.csv",
    "out",
    "kafka://h",
    "deltas://nowhere",
    "latest",
    "0",
    "-1",
    "99",
    "nan",
    "3/2",
    "pick",
    "json",
    "a=b",
    "=",
    "hierarchy",
    "summary",
    "",
    "é",
    "../..",
    "/dev/null",
    "\udcff",
    "o1",
    "x" * 300,
]


WHOLE = [
    "run e.jsonl --state state --no-refits",
    "run e.csv e.jsonl --state new --no-refits --labels labels.csv --max-reject-ratio 0.9",
    "run e.jsonl --state new --no-refits --type triplet --columns near=far,far=near --where worker=u --keep 2",
    "run --config config.toml e.jsonl --state new --no-refits",
    "export --state state --out out --format csv adds3 summary objects",
    "export --state state --out out --snapshot 1 --object-order name --format parquet",
    "inspect --state state --json",
    "merge state other --out merged",
    "ask --state state --n 3 --strategy random --seed 1",
    "verify --state state e.jsonl",
    "check-config config.toml",
    "dead-letters list --state state",
    "dead-letters show --raw --state state",
    "backup --state state --to saved",
    "merge state --into 2 --out new",
    "forget --state state --object o1",
    "seek --state state e.jsonl 0",
    "refit --state state hierarchy --set similarity=adds3",
]


def make(rng: Random) -> bytes:
    case = kept_case(rng, "argv")
    if case is not None:
        return case
    if rng.random() < 0.6:
        arguments = rng.choice(WHOLE).split()
        for _ in range(rng.randint(0, 2)):
            at = rng.randint(1, len(arguments))
            how = rng.random()
            arguments[at : at + (how < 0.6)] = [rng.choice(VALUES)] if how < 0.8 else []
        return json.dumps(arguments).encode()
    arguments = [rng.choice(VERBS)]
    if rng.random() < 0.8:
        arguments += ["--state", rng.choice(["state", "state", "state", "other", "empty", "missing", "e.csv"])]
    for _ in range(rng.randint(0, 4)):
        how = rng.random()
        if how < 0.5:
            arguments += [rng.choice(OPTIONS), rng.choice(VALUES)]
        elif how < 0.65:
            arguments.append(rng.choice(FLAGS))
        else:
            arguments.append(rng.choice(VALUES))
    if arguments[0] == "run":
        arguments.append("--no-refits")
    return json.dumps(arguments).encode()


@cache
def _world() -> Path:
    """A folder with a small state, small inputs and a configuration."""
    folder = Path(tempfile.mkdtemp(prefix="fuzz-world-"))
    event = '{"anchor":"o1","near":"o2","far":"o3","worker":"u"}\n'
    (folder / "e.jsonl").write_text(event * 3 + '{"anchor":"o1"}\n' + event.replace("o1", "o4"))
    (folder / "e.csv").write_text("anchor,near,far\na,b,c\na,b\n")
    (folder / "labels.csv").write_text("object,label\no1,x\no2,y\n")
    (folder / "config.toml").write_text('[snapshot]\nevery = 2\n[log]\nformat = "json"\n')
    (folder / "junk.parquet").write_bytes(b"junk" * 20)
    (folder / "empty").mkdir()
    engine("run", "e.jsonl", "--state", "state", "--no-refits", cwd=folder)
    engine("run", "e.jsonl", "--state", "other", "--no-refits", "--keep", "1", cwd=folder)
    return folder


def check(data: bytes) -> str:
    arguments = json.loads(data)
    out, err = io.TextIOWrapper(io.BytesIO(), write_through=True), io.StringIO()
    nothing = io.TextIOWrapper(io.BytesIO(b""))
    with tempfile.TemporaryDirectory(prefix="fuzz-") as folder:
        place = Path(folder) / "w"
        shutil.copytree(_world(), place)
        with (
            contextlib.redirect_stdout(out),
            contextlib.redirect_stderr(err),
            contextlib.chdir(place),
            patch.object(sys, "stdin", nothing),
        ):
            status = main(arguments)
    said = err.getvalue()
    assert status in (0, 1, 2), status
    assert "Traceback" not in said, said
    if status:
        lines = [line for line in said.splitlines() if line.startswith("stream-engine: ")]
        assert len(lines) == 1, said
    return f"exit {status}"
