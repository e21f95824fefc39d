"""A minute of fuzzing, second half: CSV files, tables, compressed files, command lines."""

import subprocess

import pytest

from tests.fuzz import __main__ as command
from tests.fuzz.campaign import tally
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
    for name in ("arrow", "parquet"):
        inputs = str(TARGETS[name].in_tests)
        arguments = ["--target", name, "--inputs", inputs, "--keep", str(tmp_path)]
        done = subprocess.run(
            [*command.PROGRAM, *arguments], capture_output=True, text=True, env=ENVIRONMENT, check=False
        )
        assert done.returncode == 0 and ", 0 failed" in done.stdout, done.stdout + done.stderr
