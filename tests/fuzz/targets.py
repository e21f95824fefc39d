"""The targets by name, and how their share of a campaign is weighed."""

from importlib import import_module
from types import ModuleType
from typing import NamedTuple


class Share(NamedTuple):
    """Where a target stands, what part of all inputs it gets, and how many a test runs."""

    module: str
    part: int
    in_tests: int


TARGETS = {
    "csv_records": Share("tests.fuzz.csv_records", 7000, 10_000),
    "json": Share("tests.fuzz.json_lines", 2500, 3_000),
    "csv": Share("tests.fuzz.csv_files", 180, 900),
    "arrow": Share("tests.fuzz.arrow_messages", 110, 700),
    "packed": Share("tests.fuzz.packed_files", 80, 400),
    "parquet": Share("tests.fuzz.parquet_files", 25, 150),
    "formats": Share("tests.fuzz.formats_alike", 20, 90),
    "argv": Share("tests.fuzz.command_lines", 4, 50),
}


def target(name: str) -> ModuleType:
    return import_module(TARGETS[name].module)
