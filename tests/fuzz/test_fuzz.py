"""A minute of fuzzing, always the same inputs. Each target begins with the cases that once failed."""

import sys

import pytest

from tests.fuzz import __main__ as command
from tests.fuzz.campaign import tally
from tests.fuzz.mutations import kept_cases
from tests.fuzz.targets import TARGETS
from tests.support.process import ENVIRONMENT

IN_A_CHILD = ("arrow", "parquet")  # their inputs reach compiled code of others


@pytest.mark.parametrize("name", [name for name in TARGETS if name not in IN_A_CHILD])
def test_nothing_fails(name):
    first = -len(kept_cases(name))
    became, failures = tally(name, 0, iter(range(first, TARGETS[name].in_tests)))
    told = [f"{each.repeats()}\n{each.error}\nsmaller: {each.smaller[:500]!r}" for each in failures[:3]]
    assert not failures, "\n".join(told)
    assert sum(became.values()) == TARGETS[name].in_tests - first
    assert len(became) > 1, became  # inputs of several fates


@pytest.mark.parametrize("name", IN_A_CHILD)
def test_nothing_fails_or_dies_in_a_child(name, tmp_path, monkeypatch, capsys):
    arguments = ["--target", name, "--inputs", str(TARGETS[name].in_tests), "--keep", str(tmp_path)]
    monkeypatch.setattr(sys, "argv", ["fuzz", *arguments])
    monkeypatch.setenv("PYTHONPATH", ENVIRONMENT["PYTHONPATH"])
    status, said = command.main(), capsys.readouterr().out
    assert status == 0 and ", 0 failed" in said, said
