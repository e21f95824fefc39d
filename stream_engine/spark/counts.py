"""The counting job for Spark Structured Streaming: events in, one delta of counts by name out for each micro-batch.

    spark-submit --packages org.apache.spark:spark-sql-kafka-0-10_2.13:VERSION \\
        counts.py kafka://HOST:PORT/TOPIC --out DIR

Spark shards, shuffles, retries and checkpoints; one shuffle sums the shares that the tasks have counted. This file is
the script that is submitted and nothing else: no function lives in it, so that executors know each by one name.
"""

import sys

if __name__ == "__main__":
    from stream_engine.spark.driver import main

    sys.exit(main())
