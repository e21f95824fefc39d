"""Pages of other sites: who is named by --allow-origin may ask and answer, nobody else, and nobody reaches the owner's
paths. By real preflight requests, and by a real page of another origin in a real browser."""

import httpx
import pytest

from tests.support.collecting import ALONE, get, post
from tests.support.process import engine, one_line

LAB, OTHER = "https://lab.example", "https://evil.example"


def preflight(url: str, origin: str, method: str) -> httpx.Response:
    asked = {
        "Origin": origin,
        "Access-Control-Request-Method": method,
        "Access-Control-Request-Headers": "content-type",
    }
    return httpx.options(url, headers=asked, timeout=120)


def test_only_who_is_named_may_ask_and_only_what_is_for_participants(collecting):
    study = collecting("--allow-origin", LAB, "--allow-origin", "https://two.example:443", program=ALONE)
    for origin in (LAB, "https://two.example"):
        said = preflight(f"{study.base}/answers", origin, "POST")
        assert said.status_code == 204 and said.headers["access-control-allow-origin"] == origin
        assert said.headers["access-control-allow-methods"] == "POST" and "Origin" in said.headers["vary"]
        assert said.headers["access-control-allow-headers"] == "content-type"
    assert preflight(f"{study.base}/questions", LAB, "GET").status_code == 204
    for path, origin, method in [
        ("/answers", OTHER, "POST"),
        ("/answers", f"{LAB}.evil.example", "POST"),
        ("/answers", "null", "POST"),
        ("/answers", LAB, "PUT"),
        ("/questions", LAB, "DELETE"),
        ("/study", LAB, "GET"),
        ("/objects/x.txt", LAB, "PUT"),
        ("/download", LAB, "GET"),
    ]:
        said = preflight(f"{study.base}{path}", origin, method)
        assert said.status_code >= 400 and "access-control-allow-origin" not in said.headers, (path, origin, method)
    asked = get(f"{study.base}/questions", params={"worker": "w"}, headers={"Origin": LAB})
    assert asked.headers["access-control-allow-origin"] == LAB and "Origin" in asked.headers["vary"]
    assert "access-control-allow-credentials" not in asked.headers
    refused = post(f"{study.base}/answers", content=b"<html>", headers={"Origin": LAB})
    assert refused.status_code == 400 and refused.headers["access-control-allow-origin"] == LAB  # says why, there too
    for path, origin in (("/questions?worker=v", OTHER), ("/study", LAB), ("/ask", LAB), ("/", LAB)):
        assert "access-control-allow-origin" not in get(f"{study.base}{path}", headers={"Origin": origin}).headers


def test_nobody_is_allowed_unless_it_is_said(collecting):
    study = collecting(program=ALONE)
    said = preflight(f"{study.base}/answers", LAB, "POST")
    assert said.status_code == 405 and "access-control-allow-origin" not in said.headers
    asked = get(f"{study.base}/questions", params={"worker": "w"}, headers={"Origin": LAB})
    assert asked.status_code == 200 and not [name for name in asked.headers if name.startswith("access-control")]


@pytest.mark.parametrize("origin", ["*", "lab.example", "https://lab.example/page", "file://x"])
def test_what_is_no_origin_is_said_in_one_line(tmp_path, names, origin):
    asked = ["collect", "--objects", names, "--state", tmp_path / "s", "--allow-origin", origin]
    assert f"--allow-origin: got {origin!r}, expected http(s)://HOST" in one_line(engine(*asked, status=2).stderr)
