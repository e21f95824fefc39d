"""Spark lets its own Python be found first, in a zip of sources that every process would compile; it is installed,
too."""

import sys

sys.path[:] = [path for path in sys.path if not path.endswith("pyspark.zip")]
