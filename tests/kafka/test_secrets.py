"""A password that the engine is given is in nothing that it says, shows, keeps or passes on."""

from pathlib import Path

import pytest

from tests.support.kafka_broker import PASSWORD, USER
from tests.support.process import engine, one_line, until
from tests.support.running_engine import Engine

pytestmark = pytest.mark.kafka
EVENT = b'{"anchor": "a", "near": "b", "far": "c"}'


def test_the_password_stays_secret(own_broker, new_topic, send, tmp_path):
    topic = new_topic()
    send(topic, [EVENT, b"{bad"])
    secret = tmp_path / "password"
    secret.write_text(PASSWORD + "\n")
    uri = f"kafka://{own_broker.secure_bootstrap}/{topic}"
    config = (
        f'source = ["{uri}"]\n[kafka]\nsecurity_protocol = "SASL_SSL"\nsasl_mechanism = "SCRAM-SHA-512"\n'
        f'sasl_plain_username = "{USER}"\nssl_cafile = "{own_broker.certificate}"\n'
        f'sasl_plain_password = {{ file = "{secret}" }}\n[log]\nlevel = "debug"\n'
    )
    running = Engine(
        tmp_path,
        uri,
        "--snapshot-interval",
        "0.2",
        "--max-reject-ratio",
        "1",
        config=config,
    )
    try:
        until(
            lambda: running.figure("records_total") == 2 and running.figure("snapshot_sequence") >= 1, what="a snapshot"
        )
        process = Path(f"/proc/{running.process.pid}")
        seen = {name: (process / name).read_bytes() for name in ("cmdline", "environ")}
        seen |= {path: running.get(path).encode() for path in ("/metrics", "/snapshot", "/healthz")}
    finally:
        running.stop()
    seen["log"] = running.said.read_bytes()
    seen["check-config"] = engine("check-config", tmp_path / "engine.toml").stdout.encode()
    seen["inspect"] = engine("inspect", "--state", running.state, "--json").stdout.encode()
    seen |= {str(path): path.read_bytes() for path in running.state.rglob("*") if path.is_file()}
    secret.write_text("wr0ng-" + PASSWORD)
    seen["refused"] = one_line(
        engine(
            "run",
            uri,
            "--state",
            tmp_path / "other",
            "--start",
            "earliest",
            "--no-refits",
            "--config",
            tmp_path / "engine.toml",
            status=None,
        ).stderr
    ).encode()
    assert b"uthentication" in seen["refused"]
    assert len(seen) > 9 and [name for name, content in seen.items() if PASSWORD.encode() in content] == []
