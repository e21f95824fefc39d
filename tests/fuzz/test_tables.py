"""A minute of fuzzing, second half: CSV files, tables, compressed files, snapshots, command lines; and the campaign
itself: what it does with an input that fails, hangs or kills the process."""

import subprocess
import sys

import pytest

from tests.fuzz import __main__ as command
from tests.fuzz.campaign import input_of, tally
from tests.fuzz.mutations import kept_cases
from tests.fuzz.targets import TARGETS
from tests.fuzz.test_text import told
from tests.support.process import ENVIRONMENT


@pytest.mark.parametrize("name", ["csv", "packed", "formats", "argv"])
def test_nothing_fails(name):
    first = -len(kept_cases(name))
    became, failures = tally(name, 0, iter(range(first, TARGETS[name].in_tests)))
    assert not failures, told(failures)
    assert len(became) > 1, became


def test_nothing_fails_or_dies_in_a_child(tmp_path):
    """Targets whose inputs reach compiled code of others, in processes of their own."""
    for name in ("arrow", "parquet", "snapshot"):
        inputs = str(TARGETS[name].in_tests)
        arguments = ["--target", name, "--inputs", inputs, "--keep", str(tmp_path)]
        done = subprocess.run(
            [*command.PROGRAM, *arguments], capture_output=True, text=True, env=ENVIRONMENT, check=False
        )
        assert done.returncode == 0 and ", 0 failed" in done.stdout, done.stdout + done.stderr


DEADLY = """
import os, signal, sys, types
from pathlib import Path
from tests.fuzz import __main__ as command, targets

made, flag = [], Path(sys.argv.pop(1))

def make(rng):
    made.append(0)
    return bytes(len(made))

def check(data):
    if len(made) == 3 and not flag.exists():
        flag.touch()
        os.kill(os.getpid(), signal.SIGSEGV)
    return "fine"

sys.modules["deadly"] = types.SimpleNamespace(make=make, check=check)
targets.TARGETS["argv"] = targets.Share("deadly", 1, 1)
sys.exit(command.main())
"""


def test_an_input_that_kills_the_process_is_told_and_the_others_go_on(tmp_path, capsys, monkeypatch):
    (tmp_path / "deadly.py").write_text(DEADLY)
    monkeypatch.setenv("PYTHONPATH", ENVIRONMENT["PYTHONPATH"])
    program = (sys.executable, str(tmp_path / "deadly.py"), str(tmp_path / "died"))
    became, _, failures = command._campaign("argv", 5, 0, None, tmp_path / "kept", program)
    number = 2  # the third that was made; those of the corpus are not
    assert failures == 1 and became == {"fine": 3 + len(kept_cases("argv")), "not told": 1, "FAILED": 1}
    said = capsys.readouterr().out
    assert f"ended with -11; python -m tests.fuzz --target argv --seed 0 --only {number}" in said
    assert (tmp_path / "kept" / f"argv-0-{number}").read_bytes() == input_of("argv", 0, number)
