"""Messages with a schema: the wire format, a registry that is away, and the whole engine through kills on a broker."""

import io
import json
import signal
import time

import fastavro
import pytest

from connectors import Position, Record, Source, SourceFailed, UnusableSource, open_source
from connectors.avro import Schema
from connectors.kafka.schema_registry import DecodedTopic, Registry, Schemas
from stream_engine.state.store import Store
from tests.support.memory_source import MemorySource
from tests.support.process import engine, one_line, records, started, stopped, summary, until
from tests.support.schema_registry import SchemaRegistry, framed

NAMES = ("anchor", "near", "far")
FIRST = {"type": "record", "name": "Event", "fields": [{"name": name, "type": "string"} for name in NAMES]}
WORKER = {"name": "worker", "type": ["null", "string"], "default": None}
SECOND = {**FIRST, "fields": [WORKER, *FIRST["fields"]]}


def encoded(schema, names, **more) -> bytes:
    out = io.BytesIO()
    fastavro.schemaless_writer(out, fastavro.parse_schema(schema), dict(zip(NAMES, names, strict=True)) | more)
    return out.getvalue()


def event(names, **more) -> dict:
    return dict(zip(NAMES, names, strict=True)) | more


@pytest.fixture
def registry():
    made = SchemaRegistry()
    yield made
    made.close()


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    monkeypatch.setattr("connectors.kafka.schema_registry.PAUSE", (0.01, 0.05))


def topic(items, registry, reader=None, always=False) -> DecodedTopic:
    source = MemorySource("t/0", {}, items=items, per_poll=1000)
    known = registry and Registry(registry.url)
    return DecodedTopic(source, Schemas(known, reader and Schema(json.dumps(reader)), always))


def drained(source: Source, n: int) -> list[Record]:
    found: list[Record] = []
    until(lambda: found.extend(source.poll(0.05)) or len(found) >= n, what=f"{n} records")
    return found


def test_each_id_is_asked_once_and_says_how_its_messages_are_read(registry):
    one, two = registry.add(FIRST), registry.add(SECOND)
    three, four = registry.add({"type": "object"}, "JSON"), registry.add({}, "PROTOBUF")
    plain = json.dumps(event("fgh")).encode()
    items = [
        framed(one, encoded(FIRST, "abc")),
        framed(two, encoded(SECOND, "bcd", worker="w")),
        framed(three, json.dumps(event("cde")).encode()),
        plain,
        b"",
        framed(four, b"\x0a\x01a"),
        framed(one, b"\x02a"),
        framed(one, encoded(FIRST, "abd")),
    ]
    source = topic(items, registry)
    found = drained(source, 8)
    assert [r.offset for r in found] == list(range(8)) and {r.format for r in found} == {"json"}
    read = [json.loads(r.value) for r in found if r.value and not r.problem]
    assert read == [event("abc"), event("bcd", worker="w"), event("cde"), event("fgh"), event("abd")]
    assert [r.offset for r in found if r.problem] == [5, 6] and "PROTOBUF" in found[5].problem
    assert found[6].value == items[6]  # what is rejected is kept as it came
    assert sorted(registry.asked) == [f"/schemas/ids/{number}" for number in (one, two, three, four)]


def test_one_reader_schema_reads_what_every_version_wrote(registry):
    reader = {**FIRST, "fields": [*FIRST["fields"], WORKER]}
    items = [
        framed(registry.add(FIRST), encoded(FIRST, "abc")),
        framed(registry.add(SECOND), encoded(SECOND, "bcd", worker="w")),
    ]
    read = [json.loads(r.value) for r in drained(topic(items, registry, reader), 2)]
    assert read == [event("abc", worker=None), event("bcd", worker="w")]


def test_messages_without_an_id_need_one_schema(registry):
    value = encoded(FIRST, "abc")
    (record,) = drained(topic([value], None, FIRST), 1)
    assert json.loads(record.value) == event("abc")
    (record,) = drained(topic([b'{"a": 1}'], registry, always=True), 1)
    assert "no id" in record.problem


def test_types_of_other_subjects_are_found(registry):
    named = {"type": "record", "name": "study.Pair", "fields": [{"name": "near", "type": "string"}]}
    registry.add(named, subject="a/pair")
    whole = {"type": "record", "name": "study.Event", "fields": [{"name": "pair", "type": "study.Pair"}]}
    reference = {"name": "study.Pair", "subject": "a%2Fpair", "version": 1}
    registry.subjects["a%252Fpair"] = registry.subjects["a/pair"]
    number = registry.add(whole, references=[reference])
    (record,) = drained(topic([framed(number, b"\x02b")], registry), 1)
    assert json.loads(record.value) == {"pair": {"near": "b"}}
    broken = registry.add(whole, references=[{"name": "study.Pair"}])
    (record,) = drained(topic([framed(broken, b"\x02b")], registry), 1)
    assert str(broken) in record.problem


@pytest.mark.parametrize("trouble", ["unknown", "error", "slow"])
def test_while_a_schema_is_missing_nothing_is_handed_out_and_nothing_is_lost(registry, trouble):
    known = registry.add(FIRST)
    items = [framed(known, encoded(FIRST, "abc")), framed(2, encoded(SECOND, "bcd", worker="w"))] * 2
    source = topic(items, registry)
    if trouble == "unknown":
        found = drained(source, 1)
    else:
        registry.add(SECOND)
        registry.away, registry.slow = (503, 0.0) if trouble == "error" else (0, 0.3)
        found = []
    began = time.monotonic()
    for _ in range(3):
        found += source.poll(0.05)
    assert time.monotonic() - began < 1 and len(found) <= 1
    assert not source.ready() or trouble == "slow"
    assert source.lag() == {"t/0": len(items) - len(found)}
    registry.away = 0
    if trouble == "unknown":
        registry.add(SECOND)
    found += drained(source, len(items) - len(found))
    assert [r.offset for r in found] == [0, 1, 2, 3]
    assert not any(r.problem for r in found)
    assert source.ready()
    told = source.notices()
    assert len(told) == (0 if trouble == "slow" else 2) and all(registry.url in line for line in told)


def test_wrong_credentials_stop_the_source_and_no_password_is_told():
    server = SchemaRegistry(password="correct-horse")
    number = server.add(FIRST)
    item = framed(number, encoded(FIRST, "abc"))

    def opened(password):
        return DecodedTopic(MemorySource("t/0", {}, items=[item]), Schemas(Registry(server.url, "engine", password)))

    with pytest.raises(SourceFailed, match="401") as failure:
        drained(opened("wrong-horse"), 1)
    assert "horse" not in str(failure.value)
    assert len(drained(opened("correct-horse"), 1)) == 1
    server.close()


class Jumping(MemorySource):
    """A topic that goes on elsewhere behind its first two records."""

    def opened(self):
        return {"t/0": Position(9, 5)} if self._next_offset["t/0"] >= 2 else {}


def test_a_start_elsewhere_follows_the_messages_before_it(registry):
    source = DecodedTopic(Jumping("t/0", {}, items=[framed(1, b"\x02a")] * 2), Schemas(Registry(registry.url)))
    until(lambda: not source.poll(0.02) and not source.ready(), what="being away to be noticed")
    assert source.opened() == {}  # or a restart would begin behind messages that were never handed out
    registry.add({"type": "record", "name": "E", "fields": [{"name": "a", "type": "string"}]})
    drained(source, 2)
    assert source.opened() == {"t/0": Position(9, 5)}


@pytest.mark.parametrize(
    "options, said",
    [
        ({"format": "avro"}, "--schema-registry"),
        ({"registry": {"url": "registry:8081"}}, "expected http://HOST:PORT"),
        ({"registry": {"url": "http://me:hunter2@h:1"}}, "got 'h:1'"),
        ({"schema": __file__}, "not an Avro schema"),
    ],
    ids=range(4),
)
def test_what_cannot_be_is_refused_at_the_start(options, said):
    with pytest.raises(UnusableSource) as refused:
        open_source("kafka://127.0.0.1:1/t", {}, start="earliest", **options)
    assert said in str(refused.value)
    assert "hunter2" not in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.kafka
def test_exactly_once_through_an_outage_of_the_registry_and_kills(broker, new_topic, send, tmp_path):
    name = new_topic()
    gone = SchemaRegistry()
    gone.close()
    run = [
        "run", f"kafka://{broker.bootstrap}/{name}", "--state", tmp_path / "s", "--start", "latest",
        "--schema-registry", gone.url, "--no-refits", "--snapshot-interval", "0.1",
    ]  # fmt: skip
    running = started(*run)
    until(lambda: Store(tmp_path / "s").sequences(), what="a starting point")
    send(name, [framed(1, encoded(FIRST, "abc"))] * 50)
    time.sleep(1)
    running.send_signal(signal.SIGKILL)  # the registry was away, and the messages were polled
    running.communicate()
    assert records(tmp_path / "s") == 0
    registry = SchemaRegistry(gone.port)
    registry.add(FIRST)
    running = started(*run)
    until(lambda: records(tmp_path / "s") == 50, what="the first messages")
    send(name, [framed(2, encoded(SECOND, "bcd", worker="w"))] * 30 + [framed(1, encoded(FIRST, "abd"))] * 20)
    until(lambda: "/schemas/ids/2" in registry.asked, what="a question for the new schema")
    running.send_signal(signal.SIGKILL)
    running.communicate()
    assert records(tmp_path / "s") == 50
    running = started(*run)
    registry.add(SECOND)
    until(lambda: records(tmp_path / "s") == 100, what="the rest")
    said = stopped(running)
    found = summary(tmp_path / "s")
    assert found["comparisons"] == 100, said
    assert not found["rejected"], said
    assert running.returncode == 0, said
    registry.close()
    source = run[1]
    refused = engine("run", source, "--state", tmp_path / "t", "--start", "earliest", "--format", "avro", status=2)
    assert "--schema-registry" in one_line(refused.stderr)
