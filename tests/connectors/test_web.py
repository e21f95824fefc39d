"""Web servers and schema registries that drip, never end, or lead elsewhere: an answer in time, or one line."""

import io
import json
import shutil
import socket
import threading
import time
from collections import namedtuple
from contextlib import closing, contextmanager, suppress
from email.message import Message
from urllib.request import Request

import pytest

from connectors import UnusableSource, open_source
from connectors.kafka import schema_registry
from connectors.kafka.schema_registry import DecodedTopic, Registry, RegistryAway, Schemas
from connectors.stores import objects
from connectors.stores.objects import StoreFailed, objects_at
from connectors.web import Deadline, RedirectRefused, _SameHost, open_address
from tests.support.memory_source import MemorySource
from tests.support.process import until
from tests.support.schema_registry import SchemaRegistry, framed

OK = b"HTTP/1.1 200 OK\r\nConnection: close\r\n"
MOVED = b"HTTP/1.1 302 Found\r\nLocation: %s\r\nContent-Length: 0\r\n\r\n"
EVENT = b'{"anchor": "a", "near": "b", "far": "c"}\n'


@contextmanager
def server(answer):
    """A server that lets `answer(connection, head)` write whatever it likes; yields its address."""
    listening = socket.create_server(("127.0.0.1", 0))
    ended = threading.Event()

    def serve(connection):
        with connection, suppress(OSError):
            head = connection.recv(65536)
            answer(connection, head, ended)

    def accept():
        while not ended.is_set():
            try:
                connection, _ = listening.accept()
            except OSError:
                return
            threading.Thread(target=serve, args=(connection,), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    try:
        yield f"127.0.0.1:{listening.getsockname()[1]}"
    finally:
        ended.set()
        listening.close()


def drip(text=b"a"):
    def answer(connection, head, ended):
        while not ended.wait(0.02):
            connection.sendall(text)

    return answer


def after(text, then):
    def answer(connection, head, ended):
        connection.sendall(text)
        if not head.startswith(b"HEAD"):
            then(connection, head, ended)

    return answer


@pytest.mark.parametrize("scheme, first", [("http", b""), ("http", b"HTTP/1.1 200 OK\r\nX-Long: "), ("https", b"")])
def test_a_head_or_a_handshake_that_drips_ends_at_the_deadline(scheme, first, monkeypatch):
    monkeypatch.setattr(objects, "TIMEOUT_SECONDS", 0.3)
    began = time.monotonic()
    with server(after(first, drip()) if first else drip()) as address:
        if first:
            with pytest.raises(TimeoutError), Deadline(0.3) as deadline:
                open_address(Request(f"{scheme}://{address}/"), deadline, 5.0)
        else:
            with pytest.raises(UnusableSource, match=address):
                open_source(f"{scheme}://{address}/e.jsonl", {})
    assert time.monotonic() - began < 3


def test_a_body_that_drips_is_too_slow(monkeypatch):
    monkeypatch.setattr(objects, "TIMEOUT_SECONDS", 0.2)
    with server(after(OK + b"\r\n", drip())) as address:
        (each,) = objects_at("http", f"{address}/e.jsonl")
        with pytest.raises(StoreFailed, match="slow"):
            each.copy()


@pytest.mark.parametrize("code, refused", [(405, False), (501, False), (404, True), (500, True)])
def test_only_a_server_that_knows_no_HEAD_is_asked_for_the_file_at_once(code, refused):
    """Whatever figures its address has."""
    answer = b"HTTP/1.1 %d X\r\nContent-Length: 0\r\nConnection: close\r\n\r\n" % code
    with server(lambda connection, head, ended: connection.sendall(answer)) as address:
        if refused:
            with pytest.raises(StoreFailed, match=f"answers {code}"):
                objects_at("http", f"{address}/405/501.jsonl")
        else:
            assert objects_at("http", f"{address}/405/501.jsonl")[0].size == 0


@pytest.mark.parametrize("length", [b"", b"Content-Length: 99000000000\r\n"])
def test_an_endless_body_fills_no_disk(length, monkeypatch):
    usage = namedtuple("usage", "free")
    monkeypatch.setattr(shutil, "disk_usage", lambda folder: usage(8_000_000))
    written = []
    with server(after(OK + length + b"\r\n", drip(b"a" * 1_000_000))) as address:
        (each,) = objects_at("http", f"{address}/e.jsonl")
        with io.BytesIO() as file, pytest.raises(StoreFailed, match="TMPDIR") as failure:
            try:
                each.write(file)
            finally:
                written.append(file.tell())
    assert failure.value.final and written[0] < 6_000_000


def test_what_is_no_http_is_one_line():
    with server(after(b"SSH-2.0-OpenSSH\r\n", lambda *_: None)) as address, pytest.raises(UnusableSource):
        open_source(f"http://{address}/e.jsonl", {})


REDIRECTS = [
    ("https://h/a", "https://h/b", True),
    ("https://h/a", "https://h:443/b", True),
    ("http://h/a", "https://h/b", True),
    ("http://h:8080/a", "http://h:8080/b", True),
    ("https://h/a", "http://h/b", False),
    ("https://h/a", "https://other/b", False),
    ("https://h/a", "https://h.other/b", False),
    ("https://h/a", "https://h:8443/b", False),
    ("http://h/a", "http://169.254.169.254/latest", False),
    ("http://h/a", "http://h:22/b", False),
    ("http://h/a", "http://h@other/b", False),
    ("http://h/a", "http://user@h/b", False),
    ("https://h/a", "ftp://h/b", False),
]


@pytest.mark.parametrize("old, new, followed", REDIRECTS)
def test_redirects_stay_on_the_host_and_encrypted(old, new, followed):
    def ask():
        return _SameHost().redirect_request(Request(old), io.BytesIO(), 302, "Found", Message(), f"{new}?sig=secret")

    if followed:
        assert ask().full_url.startswith(new)
    else:
        with pytest.raises(RedirectRefused) as refused:
            ask()
        assert "secret" not in str(refused.value)


def test_a_redirect_of_a_real_server_is_followed_or_named():
    def answer(connection, head, ended):
        asked = head.split()[1]
        if asked == b"/moved.jsonl":
            connection.sendall(MOVED % b"/e.jsonl")
        elif asked == b"/away.jsonl":
            connection.sendall(MOVED % b"http://localhost:1/e.jsonl")
        else:
            body = b"" if head.startswith(b"HEAD") else EVENT
            connection.sendall(OK + b"Content-Length: %d\r\n\r\n" % len(EVENT) + body)

    with server(answer) as address:
        with closing(open_source(f"http://{address}/moved.jsonl", {})) as source:
            found = []
            until(lambda: found.extend(source.poll(0.1)) or found, what="the event")
        assert found[0].value == EVENT
        with pytest.raises(UnusableSource, match="localhost:1/e.jsonl"):
            open_source(f"http://{address}/away.jsonl", {})


# ---- schema registries

PAIR = {"type": "record", "name": "Pair", "fields": [{"name": "near", "type": "string"}]}


def topic(registry: Registry, number: int = 1) -> DecodedTopic:
    return DecodedTopic(MemorySource("t/0", {}, items=[framed(number, b"\x02b")]), Schemas(registry))


def test_a_registry_that_drips_is_away_and_named(monkeypatch):
    monkeypatch.setattr(schema_registry, "REQUEST_SECONDS", 0.4)
    monkeypatch.setattr(schema_registry, "AWAY_SECONDS", 0.1)
    with server(after(OK + b"\r\n", drip())) as address:
        with pytest.raises(RegistryAway, match="0.4 s"):
            Registry(f"http://{address}").ask("/schemas/ids/1", 0.4)
        source, notices = topic(Registry(f"http://{address}")), []
        until(lambda: source.poll(0.02) or not source.ready(), what="it to be away")
        notices += source.notices()
        assert address in source.away()
        assert len(notices) == 1
        assert address in notices[0]
        assert source.lag() == {"t/0": 1}
        source.close()


def test_references_are_asked_once_each_and_bounded(monkeypatch):
    registry = SchemaRegistry()
    try:
        for level in range(12):  # each of 12 refers to all 12 of the next level: 12 ** 11 ways
            for number in range(12):
                schema = PAIR | {"name": f"T{level}x{number}"}
                below = [{"name": f"T{level + 1}x{n}", "subject": f"s{level + 1}x{n}", "version": 1} for n in range(12)]
                registry.add(schema, subject=f"s{level}x{number}", references=below if level < 11 else None)
        known = Registry(registry.url).schema(1)
        assert known.schema is None and str(schema_registry.MAX_REFERENCES) in known.problem
        assert len(registry.asked) <= schema_registry.MAX_REFERENCES + 1
        registry.asked.clear()
        known = Registry(registry.url).schema(12 * 10 + 1)  # one level below it: each asked once
        assert known.schema is not None and len(registry.asked) == len(set(registry.asked)) == 13
        own = {"name": "Own", "subject": "own", "version": 1}
        number = registry.add(PAIR | {"name": "Own"}, subject="own", references=[own])
        assert "itself" in Registry(registry.url).schema(number).problem
    finally:
        registry.close()


def test_one_schema_has_one_deadline_however_many_references_it_has(monkeypatch):
    monkeypatch.setattr(schema_registry, "SCHEMA_SECONDS", 0.3)
    registry = SchemaRegistry()
    try:
        references = [{"name": f"T{n}", "subject": f"s{n}", "version": 1} for n in range(50)]
        for n in range(50):
            registry.add(PAIR | {"name": f"T{n}"}, subject=f"s{n}")
        number = registry.add(PAIR, references=references)
        registry.slow = 0.05
        began = time.monotonic()
        with pytest.raises(RegistryAway):
            Registry(registry.url).schema(number)
        assert time.monotonic() - began < 2
    finally:
        registry.close()


@pytest.mark.parametrize("body", [b"[" * 200_000, b"{}", b"\xff", b"1" * 5000])
def test_what_is_no_schema_is_an_answer_to_come(body):
    with server(after(OK + b"\r\n" + body, lambda *_: None)) as address, pytest.raises(RegistryAway):
        Registry(f"http://{address}").schema(1)


def test_an_endless_schema_is_bounded(monkeypatch):
    monkeypatch.setattr(schema_registry, "MAX_SCHEMA_BYTES", 100_000)
    text = json.dumps({"schema": "x" * 90_000}).encode()
    with server(after(OK + b"\r\n", drip(text))) as address:
        known = Registry(f"http://{address}").schema(1)
    assert "100,000" in known.problem


def test_a_registry_that_redirects_gets_no_credentials_elsewhere():
    asked = []

    def elsewhere(connection, head, ended):
        asked.append(head)

    with server(elsewhere) as other:
        moved = MOVED % f"http://{other}/".encode()
        with server(after(moved, lambda *_: None)) as address, pytest.raises(RegistryAway, match="302"):
            Registry(f"http://{address}", "user", "password").schema(1)
    assert not asked
