"""What other programs get of the newest fit: predictions, neighbours, questions; and what they get for bad requests."""

import json
import time

import jsonschema
import numpy as np
import pytest
from openapi_spec_validator import validate

from stream_engine.asking import knowledge, queue
from stream_engine.exports.object_places import nearest, of_embedding
from stream_engine.service.http import live_answers, live_questions, request_values
from stream_engine.service.http.built_files import fingerprint
from stream_engine.service.http.paths import ADMIN, MAX_ASKED, MAX_QUESTIONS, READ
from stream_engine.state.published import Published
from stream_engine.state.store import Store
from tests.conftest import ROOT
from tests.support.generators import planted_triplets
from tests.support.pages import run_page
from tests.support.process import engine, jsonl, until
from tests.support.served import TOKEN, bearer, closed_by_server, served

nearest_made = live_answers._nearest
NAMES = ["lemon", "lime", "bread", "bun", "cake", "rice", "soup", "beer"]
QUESTIONS = [
    {"anchor": NAMES[0], "left": NAMES[1], "right": NAMES[2]},
    {"near": [NAMES[3], NAMES[4]], "far": [NAMES[3], NAMES[5]]},
    {"anchor": "nobody's", "left": NAMES[1], "right": NAMES[2]},
]
ONE = {"questions": QUESTIONS[:1]}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A state of some answers by two participants, with an embedding."""
    folder, rng = tmp_path_factory.mktemp("live"), np.random.default_rng(0)
    rows = planted_triplets(rng, rng.normal(size=(len(NAMES), 2)), 120, 0.1).tolist()
    told = [dict(zip(("anchor", "near", "far"), (NAMES[i] for i in row))) for row in rows]
    events = jsonl(folder / "events.jsonl", [each | {"worker": f"p{i % 2}"} for i, each in enumerate(told)])
    engine("run", events, "--state", folder / "state", "--no-refits")
    engine("refit", "--state", folder / "state", "embedding", "--set", "dimensions=2")
    jsonl(folder / "questions.jsonl", QUESTIONS)
    return folder


@pytest.fixture(scope="module")
def published(folder) -> Published:
    return Store(folder / "state").published()


@pytest.fixture
def world(tmp_path, published):
    with served(tmp_path) as world:
        world.published = published
        yield world


def checked(world, path: str, answer) -> dict:
    """The JSON of an answer, which is as the document says."""
    document = world.http.get("/openapi.json").json()
    (operation,) = document["paths"][path].values()
    schema = operation["responses"]["2XX"]["content"]["application/json"]["schema"]
    assert answer.status_code == 200, answer.text
    jsonschema.validate(answer.json(), schema | {"components": document["components"]})
    return answer.json()


def test_the_document_is_openapi_and_has_every_path(world, tmp_path):
    document = world.http.get("/openapi.json").json()
    validate(document)
    assert set(document["paths"]) == {path.replace(":path", "") for path in READ}
    with served(tmp_path / "other", admin_token=TOKEN) as other:
        validate(whole := other.http.get("/openapi.json", headers=bearer(TOKEN)).json())
        assert set(whole["paths"]) - set(document["paths"]) == set(ADMIN)


def test_predictions_are_those_of_the_command(world, folder):
    said = checked(world, "/predict", world.http.post("/predict", json={"questions": QUESTIONS}))
    done = engine("predict", "--state", folder / "state", folder / "questions.jsonl")
    p = [json.loads(line)["p"] for line in done.stdout.splitlines()]
    assert [each["p"] for each in said["predictions"]] == p
    assert p[2] is None
    assert 0 < p[0] < 1
    assert said["snapshot"] == world.published.snapshot.sequence and said["model"] == "embedding"
    assert world.http.post("/predict", json=ONE | {"model": "embedding"}).json()["predictions"][0]["p"] == p[0]


def test_neighbours_are_those_of_the_exports(world):
    places = of_embedding(world.published, len(NAMES))
    names = world.published.snapshot.objects
    wanted = [names[i] for i in nearest(places.points, np.array([0]))[0]]
    said = checked(world, "/nearest", world.http.get("/nearest", params={"object": names[0], "k": 3}))
    assert [each["object"] for each in said["nearest"]] == wanted
    distance = np.linalg.norm(places.points[0] - places.points[names.index(wanted[0])])
    assert said["nearest"][0]["distance"] == pytest.approx(distance)
    everything = world.http.get("/nearest", params={"object": names[0], "k": 1000}).json()["nearest"]
    assert len(everything) == len(NAMES) - 1


def question(asked: dict) -> tuple:
    return asked["anchor"], *sorted(asked["shown"])


def test_a_question_is_asked_once_until_all_are_and_then_of_each_participant_once(world, monkeypatch):
    left = knowledge.questions_left(knowledge.knowledge_of(world.published.snapshot))
    assert 0 < left < 150
    said = checked(world, "/ask", world.http.get("/ask", params={"n": 7, "participant": "p0"}))
    assert all(each["worker"] == "p0" and each["type"] == "pick" for each in said["questions"])
    given = [question(each) for each in said["questions"]]
    while more := world.http.get("/ask", params={"n": 50}).json()["questions"]:
        assert all("worker" not in each for each in more)
        given += [question(each) for each in more]
    assert len(given) == len(set(given)) == left  # nobody in particular gets none twice
    mine: list[tuple] = []
    while more := world.http.get("/ask", params={"n": 100, "participant": "new"}).json()["questions"]:
        mine += [question(each) for each in more]
    assert len(mine) == len(set(mine)) == knowledge.count_questions(len(NAMES))
    answered = knowledge.codes_answered_by(world.published.snapshot, "p0")
    theirs = []
    while more := world.http.get("/ask", params={"n": 100, "participant": "p0"}).json()["questions"]:
        theirs += [question(each) for each in more]
    assert len(theirs) + len(answered) + 7 == knowledge.count_questions(
        len(NAMES)
    )  # not what they answered or were just asked
    monkeypatch.setattr(live_questions, "MIN_SECONDS_BETWEEN", 0.0)
    monkeypatch.setattr(live_questions, "TIMES_LAST_CHOICE", 0.0)
    monkeypatch.setattr(queue, "EXPIRY_SECONDS", -1.0)
    assert len(world.http.get("/ask", params={"n": 5}).json()["questions"]) == 5  # nobody answered


def test_an_answer_has_the_number_of_the_snapshot_that_it_rests_on(world):
    """A fit is often older than the newest snapshot; questions are chosen by the counts."""
    fitted = world.published.artifacts["embedding"].sequence
    world.published = world.published._replace(snapshot=world.published.snapshot._replace(sequence=99))
    assert world.http.get("/nearest", params={"object": NAMES[0]}).json()["snapshot"] == fitted
    assert world.http.post("/predict", json=ONE).json()["snapshot"] == fitted
    assert world.http.get("/ask?n=1").json()["snapshot"] == 99


def test_what_is_newer_answers_from_then_on(world, monkeypatch):
    monkeypatch.setattr(live_questions, "MIN_SECONDS_BETWEEN", 0.0)
    monkeypatch.setattr(live_questions, "TIMES_LAST_CHOICE", 0.0)
    before = world.http.post("/predict", json=ONE).json()
    world.http.get("/ask")
    world.published = world.published._replace(
        snapshot=world.published.snapshot._replace(sequence=99, digest="other"), artifacts={}
    )
    assert world.http.post("/predict", json=ONE).status_code == 404  # there was a fit, and there is none now
    assert world.http.get("/nearest", params={"object": NAMES[0]}).status_code == 404
    assert before["snapshot"] != 99
    until(lambda: world.http.get("/ask?n=1").json()["snapshot"] == 99)  # chosen meanwhile
    world.published = None
    for path in ("/ask", f"/nearest?object={NAMES[0]}"):
        assert world.http.get(path).status_code == 404
    assert world.http.post("/predict", json=ONE).status_code == 404


def test_what_nobody_asks_for_is_let_go(world, monkeypatch):
    made = []
    monkeypatch.setattr(live_answers, "_nearest", lambda *of: made.append(nearest_made(*of)) or made[-1])
    monkeypatch.setattr(live_answers, "IDLE", 0.0)

    def again() -> int:
        assert world.http.get("/nearest", params={"object": NAMES[0]}).status_code == 200
        return len(made)

    until(lambda: again() > 1)
    monkeypatch.setattr(live_answers, "IDLE", 60.0)
    until(lambda: again() == again())


def test_the_page_of_the_manual_says_what_comes(world, tmp_path):
    page = ROOT / "stream_engine" / "docs" / "how-to" / "live_answers.md"
    run_page(page, tmp_path, lambda line: line.replace("127.0.0.1:9108", world.address))


BAD_BODIES = [
    (b"{", 400, "truncated"),
    (b'{"questions": [{"anchor": "\xff", "left": "a", "right": "b"}]}', 400, "utf-8"),
    (b'{"questions": [{"x": ' + b"[" * 100_000, 400, "recursion"),
    (b'{"questions": []}', 400, "length >= 1"),
    (b'{"questions": [{}], "modle": ""}', 400, "modle"),
    (b'{"questions": [{"anchor": "a", "left": "b", "right": "b"}]}', 400, "questions[0]"),
    (b'{"questions": [{"near": ["a"], "far": ["b", "c"]}]}', 400, "near"),
    (json.dumps({"questions": QUESTIONS[:1] * (MAX_QUESTIONS + 1)}).encode(), 400, str(MAX_QUESTIONS)),
    (json.dumps({"questions": QUESTIONS[:1], "model": "adds3"}).encode(), 404, "embedding"),
    (b" " * (live_answers.MAX_BODY_BYTES + 1), 413, "1,048,576"),
]


def test_a_bad_body_is_refused_in_one_line(world):
    for body, status, why in BAD_BODIES:
        answer = world.http.post("/predict", content=body, headers={"Content-Type": "application/json; charset=utf-8"})
        assert (answer.status_code, answer.text.count("\n")) == (status, 1) and why in answer.text, answer.text


def test_bad_queries_types_and_methods_are_refused(world):
    for path, status, why in (
        ("/nearest", 400, "object"),
        ("/nearest?object=none", 404, "none"),
        (f"/nearest?object={'x' * 2000}", 400, "1024"),
        (f"/nearest?object={NAMES[0]}&k=0", 400, ">= 1"),
        (f"/nearest?name={NAMES[0]}", 400, "name"),
        ("/ask?n=many", 400, "int"),
        (f"/ask?n={MAX_ASKED + 1}", 400, str(MAX_ASKED)),
        ("/ask?worker=p1", 400, "worker"),
        ("/predict", 405, ""),
    ):
        answer = world.http.get(path)
        assert answer.status_code == status and why in answer.text, (path, answer.text)
    for kind in ("text/plain", "application/x-www-form-urlencoded", ""):
        answer = world.http.post("/predict", content=json.dumps(ONE), headers={"Content-Type": kind})
        assert answer.status_code == 415, kind
    assert world.http.get("/ask", headers={"Sec-Fetch-Site": "cross-site"}).status_code == 403
    assert world.http.post("/ask").status_code == world.http.delete("/nearest").status_code == 405


def test_tokens_and_hosts_are_as_elsewhere(tmp_path, published):
    with served(tmp_path, token=TOKEN) as world:
        world.published = published
        for method, path in (("POST", "/predict"), ("GET", f"/nearest?object={NAMES[0]}"), ("GET", "/ask")):
            body = {"json": ONE} if method == "POST" else {}
            for headers, status in (
                ({}, 401),
                (bearer(TOKEN + "x"), 401),
                (bearer(TOKEN), 200),
                (bearer(TOKEN) | {"Host": "evil.com"}, 421),
            ):
                answer = world.http.request(method, path, headers=headers, **body)
                assert answer.status_code == status, (path, headers)
        assert world.http.get("/openapi.json").status_code == 401


def test_bodies_that_drip_in_are_given_up_and_only_so_many_are_read_at_once(world, monkeypatch):
    monkeypatch.setattr(live_answers, "MAX_BODIES", 2)
    monkeypatch.setattr(request_values, "SECONDS", 2.0)
    monkeypatch.setattr(request_values, "SLOWEST", 1 << 30)
    head = b"POST /predict HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 99\r\n\r\n{"
    slow = [world.connect() for _ in range(2)]
    for each in slow:
        each.sendall(head)
    time.sleep(0.5)
    assert world.http.post("/predict", json=ONE).status_code == 503
    assert world.http.get("/healthz").status_code == 200
    for each in slow:
        assert each.recv(12) == b"HTTP/1.1 408" and closed_by_server(each)
    assert world.http.post("/predict", json=ONE).status_code == 200


def test_excluding_a_participant_changes_the_fingerprint(published):
    assert fingerprint(published) != fingerprint(published._replace(excluded=("p1",)))
