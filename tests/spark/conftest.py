"""Tests with the marker `spark` need pyspark and Java, or the last line says why they were left out."""

import os

import pytest

from tests.conftest import leave_out
from tests.support.spark_cluster import SparkMissing, home


@pytest.hookimpl(trylast=True)  # after -m and -k have chosen
def pytest_collection_modifyitems(config, items):
    chosen = [item for item in items if item.get_closest_marker("spark")]
    if not chosen:
        return
    try:
        home()
    except SparkMissing as missing:
        if os.environ.get("CI"):
            raise pytest.UsageError(f"Spark is missing, and CI leaves nothing out: {missing}") from missing
        leave_out(config, items, chosen, f"tests on Spark ({missing})")
