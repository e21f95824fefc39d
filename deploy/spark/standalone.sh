#!/bin/sh
# Count a topic on a standalone cluster. Every worker's Python has this package (pip install '.[spark]'), and
# OUT is one folder for all of them (NFS or the like). On the engine's machine: stream-engine run deltas://$OUT --follow
set -eu
: "${MASTER:=spark://spark-master:7077}" "${SOURCE:=kafka://kafka:9092/comparisons}" "${OUT:=/shared/counts}"
exec spark-submit \
  --master "$MASTER" \
  --deploy-mode client \
  --driver-memory 2g --executor-memory 2g --executor-cores 2 --total-executor-cores 8 \
  --conf spark.sql.shuffle.partitions=16 \
  --conf spark.task.maxFailures=4 \
  --packages org.apache.spark:spark-sql-kafka-0-10_2.13:4.2.0 \
  "$(python -c 'from stream_engine.spark import counts; print(counts.__file__)')" \
  "$SOURCE" --out "$OUT" --follow --every 30
