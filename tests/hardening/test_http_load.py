"""A real engine with many clients: readers of one export at once, idle sockets, probes, SIGTERM amid downloads."""

import random
import socket
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from itertools import combinations

import pytest

from stream_engine.service.http.listener import IDLE_TIMEOUT
from tests.support.process import jsonl, until
from tests.support.running_engine import Engine

OBJECTS = 400


def test_readers_idle_sockets_and_sigterm(tmp_path):
    rng, pairs = random.Random(0), list(combinations([f"o{i}" for i in range(6)], 2))
    asked = [(f"o{anchor}", *pair) for anchor in range(6, OBJECTS) for pair in rng.sample(pairs, 13)]
    file = jsonl(tmp_path / "events.jsonl", [dict(zip(("anchor", "near", "far"), row)) for row in asked])
    engine = Engine(tmp_path, str(file), "--follow", config="[snapshot]\ninterval = 1.0\n")
    host, _, port = engine.address.rpartition(":")
    with ExitStack() as stack, ThreadPoolExecutor(3) as pool:

        def connected() -> socket.socket:
            connection = stack.enter_context(socket.socket())
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            connection.connect((host, int(port)))
            return connection

        try:
            until(lambda: engine.figure("records_total") and engine.figure("snapshot_sequence"), what="a snapshot")
            began, silent = time.monotonic(), [connected() for _ in range(60)]
            downloads = [pool.submit(engine.get, "/export/k1.csv") for _ in range(3)]
            while not all(each.done() for each in downloads):
                assert all(engine.get(path) for path in ("/metrics", "/healthz", "/readyz"))
            assert len({each.result() for each in downloads}) == 1
            late = time.monotonic() - began > IDLE_TIMEOUT - 1  # on a machine that is busy with other things
            for each in [] if late else silent:
                each.setblocking(False)
                with pytest.raises(BlockingIOError):  # it is still open
                    each.recv(1)
            for each in [connected() for _ in range(3)]:
                each.sendall(b"GET /export/k1.csv HTTP/1.1\r\nHost: localhost\r\n\r\n")
                assert each.recv(12) == b"HTTP/1.1 200"
        finally:
            engine.stop()
    said = engine.said.read_text()
    assert "Traceback" not in said
    assert '"exception"' not in said
    assert len(said) < 9000
