#!/bin/sh
# Count a topic on Kubernetes. IMAGE holds Spark 4.2.0, Python >= 3.11 and this package (its wheel); the
# claim `counts` is mounted by driver, executors and the engine alike (ReadWriteMany), at /shared.
set -eu
: "${MASTER:=k8s://https://kubernetes.default.svc:443}" "${SOURCE:=kafka://kafka:9092/comparisons}" "${OUT:=/shared/counts}"
: "${IMAGE:=stream-engine-spark:4.2.0}" "${NAMESPACE:=default}" "${JOB:=/opt/engine/stream_engine/spark/counts.py}"
volume=spark.kubernetes.driver.volumes.persistentVolumeClaim.counts
worker=spark.kubernetes.executor.volumes.persistentVolumeClaim.counts
exec spark-submit \
  --master "$MASTER" \
  --deploy-mode cluster \
  --name stream-engine-counts \
  --driver-memory 2g --executor-memory 2g --executor-cores 2 --num-executors 4 \
  --conf spark.kubernetes.namespace="$NAMESPACE" \
  --conf spark.kubernetes.container.image="$IMAGE" \
  --conf spark.kubernetes.authenticate.driver.serviceAccountName=spark \
  --conf "$volume.options.claimName=counts" --conf "$volume.mount.path=/shared" \
  --conf "$worker.options.claimName=counts" --conf "$worker.mount.path=/shared" \
  --conf spark.sql.shuffle.partitions=16 \
  --packages org.apache.spark:spark-sql-kafka-0-10_2.13:4.2.0 \
  "local://$JOB" \
  "$SOURCE" --out "$OUT" --follow --every 30
