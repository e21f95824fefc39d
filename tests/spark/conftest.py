"""Tests with the marker `spark` need pyspark and Java, or the last line says why they were left out."""

import pytest

from tests.conftest import leave_out_without
from tests.support.spark_cluster import home


@pytest.hookimpl(trylast=True)  # after -m and -k have chosen
def pytest_collection_modifyitems(config, items):
    chosen = [item for item in items if item.get_closest_marker("spark")]
    leave_out_without(config, items, chosen, home, "tests on Spark")
