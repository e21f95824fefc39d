"""Kafka as a source and as a table of results, by kafka-python."""
