"""A minute of fuzzing, first half: lines and CSV; always the same inputs. Each target begins
with the cases that once failed."""

import pytest

from tests.fuzz.campaign import tally
from tests.fuzz.mutations import kept_cases
from tests.fuzz.targets import TARGETS


def told(failures) -> str:
    return "\n".join(f"{each.repeats()}\n{each.error}\nsmaller: {each.smaller[:500]!r}" for each in failures[:3])


@pytest.mark.parametrize("name", ["csv_records", "json"])
def test_nothing_fails(name):
    first = -len(kept_cases(name))
    became, failures = tally(name, 0, iter(range(first, TARGETS[name].in_tests)))
    assert not failures, told(failures)
    assert sum(became.values()) == TARGETS[name].in_tests - first
    assert len(became) > 1, became  # inputs of several fates
