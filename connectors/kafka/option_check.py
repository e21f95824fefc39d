"""The options of the [kafka] section, asked of the library that will get them, before a broker is.

kafka-python has a list of the names it knows; librdkafka is asked by setting up a client that is never connected, which
also knows what values are allowed.
"""

from collections.abc import Mapping
from typing import Any

from connectors import UnusableSource
from connectors.kafka.address import confluent_options, one_of, scrubbed
from connectors.kafka.source import CLIENTS

OURS = ("client", "max_poll_records", "bootstrap_timeout_ms")  # read here, not by librdkafka


def check_options(options: Mapping[str, Any]) -> None:
    """Raises `UnusableSource` for an option that the client does not know, and for a client that is not there."""
    client = one_of("client", options.get("client", "kafka-python"), tuple(CLIENTS))
    if client == "kafka-python":
        _check_kafka_python({key: value for key, value in options.items() if key != "client"})
    else:
        _check_confluent(options)


def _check_kafka_python(options: Mapping[str, Any]) -> None:
    from connectors.kafka.kafka_python_internals import consumer_options

    consumer_options(options)
    most = options.get("max_poll_records", 1)
    if not isinstance(most, int) or most < 1:
        raise UnusableSource(f"kafka max_poll_records: got {most!r}, expected a whole number of at least 1")


def _check_confluent(options: Mapping[str, Any]) -> None:
    try:
        from confluent_kafka import Consumer, KafkaException
    except ImportError as error:
        raise UnusableSource(f"kafka client confluent: {error}; install stream-engine[confluent]") from error
    named = confluent_options({key: value for key, value in options.items() if key not in OURS})
    try:
        Consumer({"group.id": "stream-engine", "log_level": 0, **named}).close()
    except (KafkaException, ValueError, TypeError) as error:
        raise UnusableSource(f"kafka options: {scrubbed(error, options)}; the names are librdkafka's") from None
