"""Who may ask: hosts, tokens, TLS, the headers that browsers obey, and the warnings of an open door."""

import base64
import ssl
from pathlib import Path

import httpx
import pytest

from stream_engine.input.settings import BadSettings
from stream_engine.service.http import certificate as certificates
from stream_engine.service.http import listener
from tests.support.crafted_worlds import published as state
from tests.support.facts import states
from tests.support.process import until
from tests.support.served import OTHER, TOKEN, bearer, make_certificate, served

ADMIN = OTHER
READABLE = ("/metrics", "/snapshot", "/export/adds3.npz", "/progressive", "/none")


def test_only_our_own_names_are_answered(tmp_path):
    with served(tmp_path, allowed_hosts=("engine", "*.example.org")) as world:
        for host in ("localhost:1", "127.0.0.1", "[::1]:80", "ENGINE:9108", "a.b.example.org", "localhost."):
            assert world.http.get("/healthz", headers={"Host": host}).status_code == 200, host
        for host in ("evil.com", "engine.evil.com", "example.org.evil.com", "10.0.0.7", "evilexample.org", ""):
            answer = world.http.get("/metrics", headers={"Host": host})
            assert answer.status_code == 421 and "allowed_hosts" in answer.text, host
        assert world.refused("host") == 6
        assert len([event for event in world.log.events("warning") if "host" in event]) == 1
    with served(tmp_path, "0.0.0.0:0") as world:
        for host, status in (("10.0.0.7:9108", 200), ("evil.com", 421)):
            assert world.http.get("/healthz", headers={"Host": host}).status_code == status


def test_a_token_is_asked_for_on_everything_but_the_probes(tmp_path):
    with served(tmp_path, token=TOKEN) as world:
        world.published = state()
        assert world.http.get("/healthz").status_code == world.http.get("/readyz").status_code == 200
        basic = {"Authorization": "Basic " + base64.b64encode(f"me:{TOKEN}".encode()).decode()}
        for path in READABLE:
            for wrong in ({}, bearer("x" * 21), bearer(TOKEN[:-1]), {"Authorization": TOKEN}, bearer("é" * 20)):
                answer = world.http.get(path, headers={k: v.encode("latin-1") for k, v in wrong.items()})
                assert answer.status_code == 401 and answer.headers["www-authenticate"].startswith("Bearer"), wrong
            for right in (bearer(TOKEN), basic):
                assert world.http.get(path, headers=right).status_code == (404 if path == "/none" else 200)
        assert world.refused("token") == 5 * len(READABLE) and TOKEN not in str(world.log.said)


def test_an_open_door_is_said(tmp_path):
    for listen, settings, said in (
        ("127.0.0.1:0", {}, None),
        ("0.0.0.0:0", {}, "[http]"),
        ("0.0.0.0:0", {"token": TOKEN}, "clear text"),
    ):
        with served(tmp_path, listen, **settings) as world:
            warnings = world.log.events("warning")
            assert [states(line, said) for line in warnings] == [True] if said else not warnings


def test_every_answer_has_the_headers_that_browsers_obey(tmp_path):
    with served(tmp_path, token=TOKEN) as world:
        world.published = state()
        for path, headers in (("/healthz", {}), ("/snapshot", bearer(TOKEN)), ("/x", bearer(TOKEN)), ("/x", {})):
            answer = world.http.get(path, headers=headers)
            assert answer.headers["x-content-type-options"] == "nosniff" and answer.headers["x-frame-options"] == "DENY"
            assert answer.headers["content-security-policy"].startswith("default-src 'none'")
            assert answer.headers["cache-control"] == ("no-cache" if path == "/snapshot" else "no-store")
            assert "server" not in answer.headers


def test_tls_by_files(tmp_path, certificate, monkeypatch):
    monkeypatch.setattr(listener, "HANDSHAKE_TIMEOUT", 1.0)
    cert, key = certificate
    with served(tmp_path, "0.0.0.0:0", tls_certificate=cert, tls_key=key, token=TOKEN) as world:
        assert not world.log.events("warning")
        world.published = state()
        trusting = ssl.create_default_context(cafile=cert)
        with httpx.Client(base_url=f"https://{world.address}", verify=trusting) as client:
            assert client.get("/export/adds3.npz", headers=bearer(TOKEN)).status_code == 200
        silent = world.connect()  # never shakes hands
        assert silent.recv(1) == b""
        assert world.http.get("/healthz").status_code == 400


def test_tls_files_that_cannot_be_used_are_said(tmp_path, certificate):
    cert, key = certificate
    (tmp_path / "broken").write_text("no certificate")
    for files in (("/nowhere", key), (cert, str(tmp_path / "broken")), (cert, str(tmp_path))):
        with (
            pytest.raises(BadSettings, match="http.tls_certificate.*PEM"),
            served(tmp_path, tls_certificate=files[0], tls_key=files[1]),
        ):
            pass


def test_admin_needs_its_own_token(tmp_path):
    with served(tmp_path, token=TOKEN) as world:  # no admin_token: there is nothing to post to
        assert world.http.post("/admin/pause", headers=bearer(TOKEN)).status_code == 404
    with served(tmp_path, token=TOKEN, admin_token=OTHER) as world:
        for wrong in ({}, bearer(TOKEN)):
            assert world.http.post("/admin/pause", headers=wrong).status_code == 401
        assert not world.requests.paused
        assert world.http.get("/admin/pause", headers=bearer(OTHER)).status_code == 405
        assert [world.http.get("/metrics", headers=bearer(each)).status_code for each in (TOKEN, OTHER)] == [200, 200]
        assert world.http.get("/metrics").status_code == 401 and world.http.get("/healthz").status_code == 200
        assert world.http.post("/admin/pause", headers=bearer(OTHER)).json() == {"paused": True}
        assert world.requests.paused and world.http.post("/admin/resume", headers=bearer(OTHER)).status_code == 200
    with served(tmp_path, admin_token=OTHER) as world:  # what can be read stays open, what can be asked does not
        assert world.http.get("/metrics").status_code == 200 and world.http.post("/admin/pause").status_code == 401


def test_what_admin_takes_and_what_it_refuses(tmp_path):
    with served(tmp_path, admin_token=OTHER) as world:
        world.http.headers.update(bearer(OTHER))
        post = world.http.post
        assert post("/admin/refit?kind=spectral").status_code == 409  # nothing is published
        world.published, world.running = state(), ("hierarchy", "sdp_clustering")
        assert (
            post("/admin/snapshot").json() == {"asked": "snapshot", "newest": 1} and world.requests.snapshot == "admin"
        )
        assert post("/admin/refit?kind=spectral").status_code == 202 and world.requests.refits == {"spectral"}
        assert post("/admin/refit?kind=sdp_clustering").status_code == 409
        for path in ("/admin/refit", "/admin/refit?kind=nonsense", "/admin/log-level?level=loud"):
            answer = post(path)
            assert answer.status_code == 400
            assert "expected" in answer.text
            assert answer.text.count("\n") == 1


FOREIGN = {"Origin": "https://evil.example"}
BASIC = ("anybody", ADMIN)
SITES = [  # headers of a POST with the credentials that a browser keeps, and whether it is answered
    (FOREIGN, False),
    (FOREIGN | {"Content-Type": "text/plain"}, False),
    (FOREIGN | {"Content-Type": "application/json"}, False),
    ({"Origin": "null"}, False),
    ({"Origin": "http://localhost:1", "Content-Type": "application/json"}, False),  # another service of this machine
    ({"Origin": "http://OURS.evil.example"}, False),
    ({"Sec-Fetch-Site": "cross-site"}, False),
    ({"Sec-Fetch-Site": "same-site", "Content-Type": "application/json"}, False),
    ({"Content-Type": "text/plain"}, False),
    ({"Content-Type": "application/x-www-form-urlencoded", "Sec-Fetch-Site": "same-origin"}, False),
    ({"Content-Type": "multipart/form-data; boundary=x"}, False),
    ({}, False),  # a browser too old to say where it comes from
    ({"Content-Type": "application/json"}, True),
    ({"X-Requested-With": "curl"}, True),
    ({"Origin": "http://OURS"}, True),
    ({"Sec-Fetch-Site": "same-origin", "Origin": "https://proxied.example"}, True),
    ({"Sec-Fetch-Site": "none"}, True),
    ({"Origin": "https://study.example:8443"}, True),  # [http] allowed_hosts, behind a proxy that writes another Host
    ({"Origin": "https://lab.example", "X-Forwarded-Host": "lab.example"}, True),
]


def test_pages_of_other_sites_change_nothing(tmp_path):
    with served(tmp_path, admin_token=ADMIN, token=TOKEN, allowed_hosts=("study.example",)) as world:
        for headers, answered in SITES:
            sent = {name: value.replace("OURS", world.address) for name, value in headers.items()}
            answer = world.http.post("/admin/pause", auth=BASIC, headers=sent)
            assert (answer.status_code == 200) == answered == world.requests.paused, (sent, answer.text)
            assert answered or answer.status_code in (403, 415)
            world.requests.paused = False
        assert (
            world.http.post("/admin/pause", headers=bearer(ADMIN)).status_code == 200
        )  # no browser sends that by itself
        assert world.http.post("/admin/pause", headers=bearer(ADMIN) | FOREIGN).status_code == 403
        posted = {"json": {"questions": []}, "auth": ("x", TOKEN)}
        assert world.http.post("/predict", headers=FOREIGN, **posted).status_code == 403
        assert world.http.post("/predict", **posted).status_code not in (403, 415)
        assert world.http.get("/metrics", headers=FOREIGN, auth=("x", TOKEN)).status_code == 200
        assert world.refused("origin") == sum(not answered for _, answered in SITES) + 2


@pytest.mark.parametrize(
    ("target", "host", "status"),
    [
        ("http://localhost/healthz", "localhost", 200),
        ("HTTPS://LocalHost:80/healthz?x=1", "evil.example", 200),  # the target's host counts
        ("http://evil.example/healthz", "localhost", 421),
        ("http://user@localhost/healthz", "localhost", 421),
        ("http://localhost/nothing", "localhost", 404),
        ("http://localhost", "localhost", 200),
        ("//localhost/healthz", "localhost", 404),
    ],
)
def test_a_target_in_absolute_form_is_that_of_its_path(tmp_path, target, host, status):
    with served(tmp_path) as world:
        asked = world.connect()
        asked.sendall(f"GET {target} HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
        assert asked.recv(12) == b"HTTP/1.1 %d" % status


def shown_by(address: str) -> bytes:
    """The certificate that a listener shows now."""
    return ssl.get_server_certificate((address.partition(":")[0], int(address.rpartition(":")[2]))).encode()


def test_a_renewed_certificate_is_used_by_itself_and_one_without_its_key_is_not(tmp_path, monkeypatch, certificate):
    monkeypatch.setattr(certificates, "RENEWAL_SECONDS", 0.05)
    cert, key = Path(tmp_path / "cert"), Path(tmp_path / "key")
    cert.write_bytes(Path(certificate[0]).read_bytes())
    key.write_bytes(Path(certificate[1]).read_bytes())
    with served(tmp_path, tls_certificate=str(cert), tls_key=str(key)) as world:
        before = shown_by(world.address)
        new_cert, new_key = make_certificate(tmp_path)
        cert.write_bytes(Path(new_cert).read_bytes())
        world.listener.renew_certificate()
        until(lambda: any("cannot be used" in event for event in world.log.events("warning")), what="the complaint")
        assert shown_by(world.address) == before
        cert.unlink()
        assert shown_by(world.address) == before
        cert.write_bytes(Path(new_cert).read_bytes())
        key.write_bytes(Path(new_key).read_bytes())
        until(lambda: shown_by(world.address) != before, what="the new certificate")
        assert len(world.log.events("warning")) <= 2
