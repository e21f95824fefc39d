"""Counting on Spark Structured Streaming: `counts` is the job, `submit` the line that starts it. pyspark is an extra."""
