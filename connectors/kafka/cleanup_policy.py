"""Whether a topic is compacted: then the broker removes messages that newer ones of the same key replace."""

from collections.abc import Mapping
from typing import Any

from connectors.kafka.client import parse_address
from connectors.kafka.source import CLIENTS

_TIMEOUT_SECONDS = 10
_KEY = "cleanup.policy"


def cleanup_policy(location: str, options: Mapping[str, Any]) -> str:
    """The setting `cleanup.policy` of the topic of an address; "" if the broker does not tell it.

    Parameters
    ----------
    rest : str
        The address, host:port/topic.
    options : mapping of str to Any
        Options of the [kafka] section.

    Returns
    -------
    str
        "delete", "compact", both with a comma, or "".
    """
    ask = _confluent if options.get("client", next(iter(CLIENTS))) == "confluent" else _of_kafka_python
    address = parse_address(location)
    try:
        return ask(list(address.servers), address.topic, options)
    except Exception:  # no permission, a broker that is away, a version without the question
        return ""


def _of_kafka_python(servers: list[str], topic: str, options: Mapping[str, Any]) -> str:
    from connectors.kafka.kafka_python_internals import topic_setting

    return topic_setting(servers, topic, options, _KEY)


def _confluent(servers: list[str], topic: str, options: Mapping[str, Any]) -> str:
    from confluent_kafka.admin import AdminClient, ConfigResource

    from connectors.kafka.confluent_client import librdkafka_options

    admin = AdminClient({**librdkafka_options(options), "bootstrap.servers": ",".join(servers)})
    resource = ConfigResource(ConfigResource.Type.TOPIC, topic)
    (future,) = admin.describe_configs([resource], request_timeout=_TIMEOUT_SECONDS).values()
    return str(future.result(_TIMEOUT_SECONDS)[_KEY].value)
