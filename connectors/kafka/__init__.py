"""Kafka as a source and as a table of results, by kafka-python; the source also by confluent-kafka."""
