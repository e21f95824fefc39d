"""A minute of fuzzing, second half: CSV files, tables, compressed files, snapshots, command lines; and the campaign
itself: what it does with an input that fails, hangs or kills the process."""

import subprocess
import sys
from types import SimpleNamespace

import pytest

from tests.fuzz import __main__ as command
from tests.fuzz import campaign, csv_records
from tests.fuzz.campaign import input_of, kept, tally
from tests.fuzz.mutations import CORPUS, kept_cases
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


def test_inputs_depend_on_the_seed_and_nothing_else():
    for name in TARGETS:
        some = [input_of(name, 3, number) for number in (4, 5, 6)]
        assert some == [input_of(name, 3, number) for number in (4, 5, 6)], name
        assert some != [input_of(name, 4, number) for number in (4, 5, 6)], name


def test_the_corpus_is_small_and_belongs_to_targets():
    folders = [path for path in CORPUS.iterdir() if path.is_dir()]
    assert {path.name for path in folders} <= set(TARGETS)
    assert sum(path.stat().st_size for path in CORPUS.rglob("*") if path.is_file()) < 200_000


def test_a_failure_is_made_smaller_and_says_how_to_repeat_it(tmp_path, monkeypatch):
    """A bug planted under the target: the cutter does not know of quotes."""
    blocks = csv_records.blocks_of

    def without_quotes(format, pieces, block_bytes, limit=1 << 26):
        return blocks("json" if b"\n" in b"".join(pieces) else format, pieces, block_bytes, limit)

    monkeypatch.setattr(csv_records, "blocks_of", without_quotes)
    _, failures = tally("csv_records", 0, iter(range(40)))
    assert failures
    first = failures[0]
    assert len(first.smaller) < len(first.data) and "AssertionError" in first.error
    path = kept(first, tmp_path)
    assert path.read_bytes() == input_of("csv_records", 0, first.number)
    assert f"--target csv_records --seed 0 --only {first.number}" in path.with_suffix(".txt").read_text()


def test_an_input_that_hangs_is_a_failure(monkeypatch):
    def waits(data: bytes) -> str:
        while True:
            pass

    monkeypatch.setattr(campaign, "SECONDS", 0.05)
    monkeypatch.setattr(campaign, "target", lambda name: SimpleNamespace(make=lambda rng: b"x", check=waits))
    _, (failure,) = tally("any", 0, iter([0]))
    assert "TimeoutError" in failure.error and failure.smaller == b"x"


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
