"""The real broker for tests with the marker `kafka`, or the last line that says why they were left out."""

import gc
import os
import time
import uuid
import warnings
from collections.abc import Iterator
from types import SimpleNamespace

import pytest
from kafka import KafkaAdminClient, KafkaProducer
from kafka.errors import RetriableError

from tests.conftest import leave_out_without
from tests.support.kafka_broker import Broker, cluster, jars, java
from tests.support.process import until

OURS = {"own_broker", "three_brokers"}  # fixtures that need the jars, whatever else is there
# kafka-python leaves to the collector the socket of a client that is closed while it waits for a slow broker.
LEFT_OPEN = (
    r"ignore:unclosed <socket.socket fd=\d+, family=\d+, type=1, proto=6, laddr=\(.127\.0\.0\.1., \d+\), raddr="
    ":ResourceWarning"
)


def external() -> str | None:
    """The bootstrap servers of a broker that is there already."""
    return os.environ.get("KAFKA_BOOTSTRAP_SERVERS") or None


@pytest.hookimpl(trylast=True)  # after -m and -k have chosen
def pytest_collection_modifyitems(config, items):
    chosen = [item for item in items if item.get_closest_marker("kafka")]
    ours = [item for item in chosen if not external() or OURS.intersection(item.fixturenames)]
    leave_out_without(config, items, ours, lambda: (java(), jars()), "tests on a real Kafka broker")
    for item in chosen:
        item.add_marker(pytest.mark.filterwarnings(LEFT_OPEN))


@pytest.fixture(scope="module", autouse=True)
def no_socket_for_others() -> Iterator[None]:
    """The tests of other rooms meet none that these have left."""
    yield
    collect_sockets()


@pytest.fixture(scope="package")
def own_broker(tmp_path_factory) -> Iterator[Broker]:
    """A broker that the test may stop, kill and restart; it runs again when the test is over. It ends with this room:
    while it waits, it takes a twentieth of a processor."""
    broker = Broker(tmp_path_factory.mktemp("broker"))
    broker.start()
    yield broker
    broker.kill()
    collect_sockets()


@pytest.fixture
def three_brokers(tmp_path_factory) -> Iterator[list[Broker]]:
    """Three brokers that keep every partition three times; the test may kill one."""
    brokers = cluster(tmp_path_factory.mktemp("cluster"))
    yield brokers
    for each in brokers:
        each.kill()
    collect_sockets()


def collect_sockets() -> None:
    """kafka-python leaves the sockets of failed attempts to the collector; this calls it where they are expected."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()


@pytest.fixture(scope="package")
def broker(request):
    """Something with `bootstrap`: the broker named by KAFKA_BOOTSTRAP_SERVERS, else our own."""
    return SimpleNamespace(bootstrap=external()) if external() else request.getfixturevalue("own_broker")


@pytest.fixture(scope="package")
def admin(broker) -> Iterator[KafkaAdminClient]:
    client = KafkaAdminClient(bootstrap_servers=broker.bootstrap)
    yield client
    client.close()


def patiently(question, *args, **more):
    """Ask again while the broker comes back from a restart."""
    for _ in range(600):
        try:
            return question(*args, **more)
        except RetriableError:
            time.sleep(0.1)
    return question(*args, **more)


@pytest.fixture
def new_topic(admin):
    """`new_topic(partitions=1, **configs)`: the name of a fresh topic that is ready to use."""

    def make(partitions: int = 1, name: str | None = None, **configs: str) -> str:
        name = name or f"t-{uuid.uuid4().hex[:12]}"
        wanted = {
            name: {
                "num_partitions": partitions,
                "replication_factor": 1,
                "configs": {key.replace("_", "."): value for key, value in configs.items()},
            }
        }
        patiently(admin.create_topics, wanted)

        def there() -> bool:
            known = patiently(admin.describe_topics, [name])[0]["partitions"]
            return len(known) == partitions and all(each["leader_id"] >= 0 for each in known)

        until(there, what=f"the topic {name}")
        return name

    return make


@pytest.fixture
def send(broker):
    """`send(topic, values, partition=0, **producer options)`: write values (bytes, None, or (key, value)) durably."""

    def write(topic: str, values, partition: int | None = 0, **options) -> list[int]:
        producer = KafkaProducer(bootstrap_servers=broker.bootstrap, **options)
        pairs = [value if isinstance(value, tuple) else (None, value) for value in values]
        sent = [producer.send(topic, key=key, value=value, partition=partition) for key, value in pairs]
        producer.flush()
        offsets = [future.get().offset for future in sent]
        producer.close()
        return offsets

    return write
