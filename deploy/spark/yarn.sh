#!/bin/sh
# Count a topic on YARN. ENVIRONMENT is a packed virtual environment with this package (venv-pack -o engine.tar.gz); OUT is a
# path that every node and the engine have mounted.
set -eu
: "${MASTER:=yarn}" "${SOURCE:=kafka://kafka:9092/comparisons}" "${OUT:=/shared/counts}" "${ENVIRONMENT:=engine.tar.gz}"
exec spark-submit \
  --master "$MASTER" \
  --deploy-mode cluster \
  --name stream-engine-counts \
  --driver-memory 2g --executor-memory 2g --executor-cores 2 --num-executors 4 \
  --archives "$ENVIRONMENT#environment" \
  --conf spark.yarn.appMasterEnv.PYSPARK_PYTHON=./environment/bin/python \
  --conf spark.executorEnv.PYSPARK_PYTHON=./environment/bin/python \
  --conf spark.yarn.maxAppAttempts=2 \
  --conf spark.sql.shuffle.partitions=16 \
  --packages org.apache.spark:spark-sql-kafka-0-10_2.13:4.2.0 \
  "$(python -c 'from stream_engine.spark import counts; print(counts.__file__)')" \
  "$SOURCE" --out "$OUT" --follow --every 30
