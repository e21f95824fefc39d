"""Checks for a class of your own: whether it keeps the laws that the engine relies on.

`check_accumulator`, `check_refit` and `check_format` run a class or module, registered or not, on generated data and
raise `AssertionError` with the law and the seed that it broke. They cannot tell whether a statistic is the right one:
give `check_accumulator` its definition for that.
"""

from stream_engine.testing.accumulators import check_accumulator
from stream_engine.testing.formats import check_format
from stream_engine.testing.refits import check_refit

__all__ = ["check_accumulator", "check_format", "check_refit"]
