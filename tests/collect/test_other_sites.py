"""Pages of other sites: who is named by --allow-origin may ask and answer, nobody else, and nobody reaches the owner's
paths. By real preflight requests, and by a real page of another origin in a real browser."""

import http.server
import threading

import httpx
import pytest
from PIL import Image

from tests.support.collecting import get, post
from tests.support.process import engine, one_line, until

NO_REFITS = "[snapshot]\ninterval = 1.0\n[refits]\nkinds = []\n"
LAB, OTHER = "https://lab.example", "https://evil.example"
PAGE = """<!doctype html><title>a page of a lab</title><img id="picture"><p id="said"></p><script>
const base = new URLSearchParams(location.search).get("base"), say = (text) => { said.textContent = text; };
(async () => {
  try {
    const asked = await (await fetch(`${base}/questions?worker=w`)).json();
    const [question] = asked.questions;
    picture.src = `${base}/${asked.show[question.anchor].from}`;
    await picture.decode();
    const headers = { "Content-Type": "application/json" };
    const body = JSON.stringify({ id: question.id, worker: "w", chosen: question.shown[0] });
    const answer = await (await fetch(`${base}/answers`, { method: "POST", headers, body })).json();
    const owner = await fetch(`${base}/study`).then(() => "read", () => "barred");
    say(`counted ${answer.counted}, owner's figures ${owner}`);
  } catch (error) { say(`failed: ${error}`); }
})();
</script>"""


def preflight(url: str, origin: str, method: str) -> httpx.Response:
    asked = {
        "Origin": origin,
        "Access-Control-Request-Method": method,
        "Access-Control-Request-Headers": "content-type",
    }
    return httpx.options(url, headers=asked, timeout=120)


def test_only_who_is_named_may_ask_and_only_what_is_for_participants(collecting):
    study = collecting("--allow-origin", LAB, "--allow-origin", "https://two.example:443", config=NO_REFITS)
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
    study = collecting(config=NO_REFITS)
    said = preflight(f"{study.base}/answers", LAB, "POST")
    assert said.status_code == 405 and "access-control-allow-origin" not in said.headers
    asked = get(f"{study.base}/questions", params={"worker": "w"}, headers={"Origin": LAB})
    assert asked.status_code == 200 and not [name for name in asked.headers if name.startswith("access-control")]


@pytest.mark.parametrize("origin", ["*", "lab.example", "https://lab.example/page", "file://x"])
def test_what_is_no_origin_is_said_in_one_line(tmp_path, names, origin):
    asked = ["collect", "--objects", names, "--state", tmp_path / "s", "--allow-origin", origin]
    assert f"--allow-origin: got {origin!r}, expected http(s)://HOST" in one_line(engine(*asked, status=2).stderr)


class _Page(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.end_headers()
        self.wfile.write(PAGE.encode())

    def log_message(self, *_) -> None:
        """Nothing."""


@pytest.fixture
def elsewhere():
    """A page of another origin, http://localhost:PORT, really served."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Page)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://localhost:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.mark.browser
@pytest.mark.parametrize("allowed", [True, False])
def test_a_page_of_another_origin_in_a_browser(collecting, browser, elsewhere, tmp_path, allowed):
    (tmp_path / "pictures").mkdir()
    for n in range(4):
        Image.new("RGB", (8, 6), (60 * n, 255 - 60 * n, 128)).save(tmp_path / "pictures" / f"p{n}.png")
    study = collecting("--allow-origin", elsewhere if allowed else LAB, objects=tmp_path / "pictures", config=NO_REFITS)
    page = browser.new_page()
    try:
        page.goto(f"{elsewhere}/?base={study.base}")
        until(lambda: page.evaluate("said.textContent !== ''"))
        said = page.inner_text("#said")
    finally:
        page.close()
    if allowed:
        assert said == "counted 1, owner's figures barred" and len(study.log()) == 1
    else:
        assert said.startswith("failed: ") and study.log() == []
