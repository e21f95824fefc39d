"""Whatever anybody sends to a study is answered, with no status of 500; pages of other sites change nothing."""

import csv
import io
import os
import zipfile
from itertools import product
from urllib.parse import quote

import httpx
import pytest

from tests.support.collecting import ALONE, ENGINE, Participant, first_shown

TEXTS = ["²", "9" * 5000, "-1", "", "1e3", "\x00", "\x1b[2J", "‮", "a" * 300, "é" * 200, "..", "=1+1", "1" * 19]
WORKER = "=HYPERLINK(1)"
BODIES = [
    b"",
    b"{",
    b"\xff",
    b"null",
    b"[[]]",
    b"[" * 50_000,
    b'{"a":' * 50_000,
    b"1" * 5000,
    b'{"worker":"\\ud800","id":1}',
    b'{"worker":' + b"9" * 40 + b',"id":"x"}',
    b'{"worker":"w","id":{"a":1e308},"chosen":[[]]}',
    b'{"paused":"x"}',
    b"x" * 2_000_000,
]
FOREIGN = ({"Origin": "https://evil.example"}, {"Origin": "null"}, {"Sec-Fetch-Site": "cross-site"})


@pytest.fixture
def study(tmp_path, collecting):
    folder = tmp_path / "objects"
    folder.mkdir()
    for name in ("one", "two", "three", "-four"):
        (folder / f"{name}.txt").write_text(name)
    (tmp_path / "secret.txt").write_text("secret")
    (folder / "leak.txt").symlink_to("../secret.txt")
    os.mkfifo(folder / "pipe.txt")
    return lambda program: collecting("--allow-origin", "https://lab.example", objects=folder, program=program)


def test_every_request_is_answered_and_no_page_elsewhere_changes_anything(study):
    study = study(ENGINE)
    owner = {"Authorization": f"Bearer {study.token}"}
    with httpx.Client(base_url=study.base, timeout=60) as http:
        answers = []
        for text in TEXTS:
            for path, name in product(("/questions", "/links"), ("n", "worker", "workers", "key")):
                answers.append(http.get(path, params={name: text}, headers=owner))
            for path in ("/media/", "/collected/", "/export/"):
                answers.append(http.get(path + quote(text, safe=""), headers=owner))
            answers.append(http.put(f"/objects/{quote(text, safe='')}.txt", content=b"x" * 5000, headers=owner))
        for path, body in product(("/answers", "/consent", "/pause", "/predict"), BODIES):
            answers.append(http.post(path, content=body, headers=owner | {"Content-Type": "application/json"}))
        wrong = [
            (each.request.method, each.url.path[:50], each.status_code) for each in answers if each.is_server_error
        ]
        assert {status for *_, status in wrong} <= {502, 503}, wrong  # 503: the engine is starting
        assert (
            http.get("/questions?worker=w&n=²").status_code == http.get("/links?n=²", headers=owner).status_code == 400
        )
        assert http.get("/media/leak").status_code == 404 and len(study.study()["skipped"]) == 2

        basic, json = ("owner", study.token), {"paused": True}
        for headers in (*FOREIGN, {"Origin": "https://lab.example"}):
            for path in ("/pause", "/answers", "/consent", "/predict"):
                expected = (
                    403
                    if headers not in ({"Origin": "https://lab.example"},) or path in ("/pause", "/predict")
                    else 400
                )
                sent = http.post(path, json=json, headers=headers, auth=basic)
                assert sent.status_code == expected, (path, headers, sent.text)
            assert http.put("/objects/new.txt", content=b"x", headers=headers, auth=basic).status_code == 403
        for type in ("text/plain", "application/x-www-form-urlencoded"):
            sent = http.post("/pause", content=b'{"paused": true}', headers={"Content-Type": type}, auth=basic)
            assert sent.status_code == 415
        assert not study.study()["paused"]
        assert http.post("/pause", json=json, auth=basic).status_code == 200
        http.post("/pause", json={"paused": False}, headers=owner)


def test_tables_are_safe_to_open(study):
    study = study(ALONE)
    with httpx.Client() as http:
        participant = Participant(study.base, WORKER, first_shown)
        participant.answer(http, participant.ask(http)[0])

    def workers(text: str) -> list[str]:
        return [row["worker"] for row in csv.DictReader(io.StringIO(text))]

    for raw, expected in (("", f"'{WORKER}"), ("?raw=1", WORKER)):
        assert workers(study.owner(f"/participants.csv{raw}").text) == [expected]
        again = f"{raw}&workers={WORKER}" if raw else f"?workers={WORKER}"
        assert workers(study.owner(f"/links{again}").text) == [expected]
        with zipfile.ZipFile(io.BytesIO(study.owner(f"/download{raw}").content)) as archive:
            assert workers(archive.read("participants.csv").decode()) == [expected]
            names = [row["object"] for row in csv.DictReader(io.StringIO(archive.read("objects.csv").decode()))]
            assert ("-four" in names) == bool(raw) and ("'-four" in names) != bool(raw)
            assert not [name for name in archive.namelist() if "leak" in name]
