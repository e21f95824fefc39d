"""Slow and silent clients: each waits for its turn or is cut, and nobody else notices."""

import contextlib
import itertools
import json
import logging
import ssl
import time
from http.client import HTTPResponse

import httpx

from stream_engine.data import logs
from stream_engine.data.descriptors import connections_allowed, raised_limit
from stream_engine.data.rate_limit import RateLimit, RateLimitFilter
from stream_engine.service.http import listener
from tests.support.process import until
from tests.support.served import Lines, closed_by_server, served, stored

PREDICT = b"POST /predict HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 9\r\n\r\n"
ASK = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"


def test_silent_connections_give_way_to_new_ones(tmp_path, monkeypatch):
    monkeypatch.setattr(listener, "MAX_CONNECTIONS", 16)
    with served(tmp_path) as world:
        silent = [world.connect() for _ in range(60)]
        assert world.http.get("/healthz").status_code == 200
        until(lambda: world.refused("gave_way") >= 40, what="silent ones to give way")
        assert world.connections() <= 16
        assert closed_by_server(silent[0]) and world.log.events("info").count("listening") == 1
        said = [event for event in world.log.events("info") if "gave" in event or "longest silent" in event]
        assert len(said) == 1  # of some forty


def test_answers_being_sent_do_not_give_way_and_the_end_of_a_run_cuts_them(tmp_path, monkeypatch):
    monkeypatch.setattr(listener, "MAX_CONNECTIONS", 3)
    monkeypatch.setattr(listener, "IDLE_TIMEOUT", 240.0)  # nobody is closed because this machine is slow
    with served(tmp_path) as world:
        world.published = stored(tmp_path, 1500).published()
        readers = [world.connect(receive=4096) for _ in range(3)]
        for each in readers:
            each.sendall(b"GET /export/adds3.csv HTTP/1.1\r\nHost: localhost\r\n\r\n")
            assert each.recv(12) == b"HTTP/1.1 200"
        silent = [world.connect() for _ in range(2 * listener.RESERVED_CONNECTIONS)]  # the reserve, twice
        assert world.http.get("/healthz").status_code == 200 and world.http.get("/metrics").status_code == 503
        assert closed_by_server(silent[0]) and world.refused("full") > 2 * listener.RESERVED_CONNECTIONS
        assert world.refused("gave_way") == 0
        readers.pop().close()
        until(lambda: world.connections() == 2, what="the place of the reader that left")
        assert world.http.get("/healthz").status_code == 200
        world.listener.close()
        assert all(map(closed_by_server, readers))
    assert not (tmp_path / "served").exists() and not world.log.events("error")


def test_a_request_that_drips_in_is_closed_and_so_is_a_body_that_never_ends(tmp_path, monkeypatch):
    monkeypatch.setattr(listener, "IDLE_TIMEOUT", 1.0)
    with served(tmp_path) as world:
        dripping, silent, after = world.connect(), world.connect(), world.connect()
        after.sendall(ASK)
        assert after.recv(100).startswith(b"HTTP/1.1 200")
        for byte in ASK[:-1]:
            try:
                dripping.send(bytes([byte]))
            except ConnectionError:
                break
            time.sleep(0.05)
        for each in (dripping, silent, after):
            assert closed_by_server(each)
        assert world.refused("silent") == 3
        assert not any("closed" in event for level in ("info", "warning") for event in world.log.events(level))
        posting = world.connect()
        posting.sendall(b"POST /healthz HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000000\r\n\r\n" + b"x" * 99)
        said = posting.recv(1000)
        assert said.startswith(b"HTTP/1.1 405")
        assert b"connection: close" in said
        assert closed_by_server(posting)


def test_a_body_that_nobody_asked_for_does_not_cost_the_next_request(tmp_path):
    with served(tmp_path) as world:
        posting = world.connect()
        posting.sendall(b"POST /healthz HTTP/1.1\r\nHost: localhost\r\nContent-Length: 3\r\n\r\n")
        time.sleep(0.1)
        posting.sendall(b"abc")
        for status in (405, 200):
            answer = HTTPResponse(posting)
            answer.begin()
            assert answer.status == status and answer.read()
            posting.sendall(ASK)


def test_a_reader_that_does_not_read_is_cut_and_one_that_reads_slowly_is_not(tmp_path, monkeypatch):
    monkeypatch.setattr(listener, "READER_TIMEOUT", 1.0)
    with served(tmp_path) as world:
        world.published = stored(tmp_path, 1500).published()
        stuck, slow = world.connect(receive=4096), world.connect(receive=4096)
        for each in (stuck, slow):
            each.sendall(b"GET /export/adds3.csv HTTP/1.1\r\nHost: localhost\r\n\r\n")
        until(lambda: slow.recv(4096) and time.sleep(0.1) is None and world.refused("slow_reader"), what="a cut")
        assert slow.recv(12) and world.refused("slow_reader") == 1


def test_bodies_that_do_not_come_give_way(tmp_path, monkeypatch):
    monkeypatch.setattr(listener, "MAX_CONNECTIONS", 4)
    with served(tmp_path) as world:
        owing = [world.connect() for _ in range(12)]
        for each in owing:
            each.sendall(PREDICT)
            time.sleep(0.02)
        assert world.http.get("/metrics").status_code == 200
        assert closed_by_server(owing[0])
        assert world.refused("full") == 0
        assert world.connections() <= 5


def test_handshakes_have_few_places_and_those_that_said_hello_keep_them(tmp_path, certificate, monkeypatch):
    monkeypatch.setattr(listener, "MAX_HANDSHAKES", 8)
    cert, key = certificate
    trusting = ssl.create_default_context(cafile=cert)
    hello = client_hello(trusting)
    with served(tmp_path, tls_certificate=cert, tls_key=key) as world:
        half = [world.connect() for _ in range(3)]
        for each in half:
            each.sendall(hello)  # and nothing after the answer to it
            assert each.recv(1)
        others = []
        for number in range(64):
            others.append(world.connect())
            others[-1].sendall(hello[: number % len(hello)])  # nothing, a byte, a part
        with httpx.Client(base_url=f"https://{world.address}", verify=trusting) as client:
            assert client.get("/healthz").status_code == 200
        assert closed_by_server(others[0])
        assert world.refused("gave_way") >= 50
        assert world.connections() <= 1
        for each in half:
            each.settimeout(0.1)
            assert not closed_by_server(each)


def test_a_hello_that_drips_in_ends_with_the_handshakes_time(tmp_path, certificate, monkeypatch):
    monkeypatch.setattr(listener, "HANDSHAKE_TIMEOUT", 0.5)
    cert, key = certificate
    hello = client_hello(ssl.create_default_context(cafile=cert))
    with served(tmp_path, tls_certificate=cert, tls_key=key) as world:
        dripping, half, wrong = (world.connect() for _ in range(3))
        wrong.sendall(b"\x16\x03\x01\xff\xff")
        half.sendall(hello)
        assert closed_by_server(wrong)
        began = time.monotonic()
        for byte in hello:
            try:
                dripping.send(bytes([byte]))
            except ConnectionError:
                break
            time.sleep(0.05)
        assert time.monotonic() - began < 0.05 * len(hello) / 2
        assert closed_by_server(dripping)
        assert closed_by_server(half)
        assert not world.connections()


def client_hello(context: ssl.SSLContext) -> bytes:
    """What a client sends first."""
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    with contextlib.suppress(ssl.SSLWantReadError):
        context.wrap_bio(incoming, outgoing, server_hostname="localhost").do_handshake()
    return outgoing.read()


def test_a_head_that_is_too_long_or_no_http_is_refused(tmp_path):
    with served(tmp_path) as world:
        for text in (b"\x16\x03\x01\n\r\n\r\n", b"GET / HTTP/1.1\r\n\r\n", b"GET / HTTP/1.1\r\nx: " + 17_000 * b"y"):
            odd = world.connect()
            odd.sendall(text)
            assert odd.recv(12) == b"HTTP/1.1 400" and closed_by_server(odd)
        for size, status in ((64 << 10, 431), (17_000, 431), (15_000, 200)):  # at once
            whole = world.connect()
            whole.sendall(ASK[:-2] + b"x: " + size * b"y" + b"\r\n\r\n")
            assert whole.recv(12) == b"HTTP/1.1 %d" % status
        assert world.refused("head") == 2


def test_lines_are_said_once_an_interval_with_their_number(capsys):
    clock = itertools.count(0, 25)
    limit = RateLimitFilter(RateLimit(60.0, lambda: float(next(clock))))
    before = logging.getLogger().handlers[:], logging.getLogger().level
    try:
        logs.configure("json", "info")
        for handler in logging.getLogger().handlers:
            handler.filters[:] = [limit]
        for number in range(7):
            logging.getLogger("some.library").error("refused %d", number)
        logging.getLogger("some.library").error("else")
    finally:
        logging.getLogger().handlers[:], _ = before
        logging.getLogger().setLevel(before[1])
    said = [json.loads(line)["event"].partition(" times")[0] for line in capsys.readouterr().err.splitlines()]
    assert said == [
        "refused 0",
        "refused 3 (3",
        "refused 6 (3",
        "else",
    ]


def test_connections_leave_descriptors_for_the_rest():
    log = Lines()
    assert connections_allowed(512, raised_limit(), log) == 512 and not log.said
    assert connections_allowed(512, 1024, log) < 384
    ((level, event, details),) = log.said
    assert level == "warning"
    assert "LimitNOFILE" in event
    assert details["limit"] == 1024
