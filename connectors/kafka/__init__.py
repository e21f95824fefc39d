"""Kafka as a source and as a sink, by kafka-python or confluent-kafka."""
