"""Counting on Spark Structured Streaming: `counts` is the script that is submitted. pyspark is an extra."""
