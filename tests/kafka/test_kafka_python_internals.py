"""What is used of kafka-python beyond its public face: in one file, under a ceiling, and still there. No broker."""

import ast
import inspect
import re
from importlib.metadata import version

import pytest
from kafka import KafkaConsumer, KafkaProducer, OffsetAndMetadata
from kafka.cluster import ClusterMetadata
from kafka.future import Future
from kafka.net.compat import KafkaNetClient
from kafka.net.connection import KafkaConnection
from kafka.net.manager import KafkaConnectionManager

from connectors.kafka.kafka_python_internals import Network, commit_of
from tests.conftest import ROOT

PUBLIC = {"kafka", "kafka.errors"}


def imported(text: str) -> set[str]:
    """Modules of kafka-python that a file imports from."""
    modules: set[str] = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            modules |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            modules.add(node.module)
    return {module for module in modules if module.split(".")[0] == "kafka"}


def test_only_one_file_looks_below_the_public_face():
    below = {
        path.name
        for path in (ROOT / "connectors").rglob("*.py")
        if imported(path.read_text()) - PUBLIC or "DEFAULT_CONFIG" in path.read_text()
    }
    assert below == {"kafka_python_internals.py"}


def test_the_installed_version_is_below_the_ceiling():
    """A newer one is tried on purpose: these tests and all of tests/kafka, then the ceiling is raised."""
    wanted = re.search(r'"kafka-python\[[^]]*\]>=([\d.]+),<([\d.]+)"', (ROOT / "pyproject.toml").read_text())
    assert wanted
    least, ceiling = wanted.groups()
    numbers = [tuple(map(int, each.split("."))) for each in (least, version("kafka-python"), ceiling)]
    assert numbers[0] <= numbers[1] < numbers[2]


def parameters(function) -> set[str]:
    return set(inspect.signature(function).parameters)


@pytest.mark.parametrize(
    "holder, names",
    [
        (KafkaConnectionManager, ("get_connection",)),
        (KafkaConnection, ("init_future", "sasl_enabled")),
        (KafkaNetClient, ("cluster", "connected", "close")),
        (ClusterMetadata, ("topic_id", "partitions_for_topic", "brokers")),
        (Future, ("is_done", "value", "exception", "succeeded", "add_callback", "add_errback")),
        (KafkaConsumer, ("highwater", "position", "beginning_offsets", "end_offsets", "commit_async", "assignment")),
    ],
    ids=lambda each: getattr(each, "__name__", ""),
)
def test_what_is_called_is_there(holder, names):
    assert [name for name in names if not hasattr(holder, name)] == []


def test_what_is_passed_is_taken():
    assert {"net", "manager"} <= parameters(KafkaNetClient)
    assert {"broker_version_data"} <= parameters(KafkaConnection)
    assert {"timeout_ms"} <= parameters(KafkaConsumer.position)
    assert {"autocommit", "timeout_ms"} <= parameters(KafkaConsumer.close)
    assert OffsetAndMetadata._fields == ("offset", "metadata", "leader_epoch") and commit_of(7).offset == 7
    assert "kafka_client" in KafkaConsumer.DEFAULT_CONFIG and "delivery_timeout_ms" in KafkaProducer.DEFAULT_CONFIG


def test_a_network_is_made_by_the_consumer_s_options_and_knows_its_connections():
    """`_conns`, `refused` and the metadata, as the library's own consumer would have them made."""
    network = Network()
    assert network.refused() is None and not network.connected() and network.partitions("t") == frozenset()
    client = network(**{**KafkaConsumer.DEFAULT_CONFIG, "bootstrap_servers": ["127.0.0.1:1"]})
    try:
        assert client._manager._conns == {}
        assert network.refused() is None and not network.connected()
        assert network.partitions("t") == frozenset() and network.topic_id("t") is None
    finally:
        network.close()
