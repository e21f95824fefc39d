"""`stream-engine collect` as people use it: a real process, real HTTP. Every answer that was acknowledged is counted by
the engine exactly once, whatever is killed; what is no answer gets a clear 4xx, and is counted and kept."""

import concurrent.futures
import csv
import io
import json
import os
import random
import re
import signal
import time
from functools import partial

import httpx
import pytest

from stream_engine.state.store import Store
from tests.collect.conftest import WORDS
from tests.support.collecting import (
    ALONE,
    COMPILING,
    FAST,
    Participant,
    first_shown,
    get,
    post,
    put,
    read_by_the_engine,
)
from tests.support.process import engine, one_line, until


def counted_by_the_engine(study) -> dict:
    """The summary of the last snapshot, made when the study ended."""
    return Store(study.state).newest().counters


def test_from_names_to_a_map_exactly_once_and_everything_to_take_along(collecting, tmp_path):
    study = collecting(study="[quota]\nperson = 30\n", config=FAST)
    people, before = [Participant(study.base, f"w{n}", first_shown) for n in range(6)], time.time()

    def take_part(person: Participant) -> None:
        with httpx.Client(timeout=120) as http:
            while questions := person.ask(http, 3):
                for each in questions:
                    assert person.answer(http, each)["counted"] == 1

    with concurrent.futures.ThreadPoolExecutor(6) as pool:
        list(pool.map(take_part, people))
    assert {person.ended for person in people} == {"done"} and len({person.code for person in people}) == 6
    told = study.study()
    assert (told["answers"], told["people"], told["done"], told["excluded"]) == (180, 6, 6, 0)
    log = study.log()
    assert {each["id"]: each["chosen"][0] for each in log} == {k: v for p in people for k, v in p.acknowledged.items()}
    assert all({"worker", "time", "sampler", "shown", "anchor", "seconds"} <= each.keys() for each in log)
    for person in people:  # nobody was asked the same twice
        asked = [(e["anchor"], frozenset(e["shown"])) for e in log if e["worker"] == person.worker]
        assert len(asked) == len(set(asked)) == 30
    until(lambda: study.study()["ready"] > 0, what="questions by the maker", seconds=COMPILING)
    until(lambda: read_by_the_engine(study) == 180, what="the engine to read", seconds=COMPILING)
    metrics = study.engines("/metrics", "stream_engine_events_total").text
    assert 'stream_engine_collect_total{what="answers"} 180.0' in metrics
    assert study.engines("/", "<!doctype html>")
    assert [json.loads(line) for line in study.owner("/collected/answers.jsonl").text.splitlines()] == log
    rows = list(csv.DictReader(io.StringIO(study.owner("/participants.csv").text)))
    assert {row["worker"]: (row["answers"], row["code"]) for row in rows} == {p.worker: ("30", p.code) for p in people}
    for row in rows:  # from the first question that was sent to the last answer
        answered = [each["time"] for each in log if each["worker"] == row["worker"]]
        assert before - 1 < float(row["first"]) < min(answered)
        assert float(row["latest"]) == pytest.approx(max(answered), abs=0.002)
    study.stop()
    counters = counted_by_the_engine(study)
    assert counters["events"] == counters["comparisons"] == 180 and not counters["rejected"]
    said = set(re.findall(r"[A-Za-z0-9]+", study.said.read_text().replace(str(tmp_path), "")))
    assert said and not said & {*WORDS, *(person.worker for person in people)}  # no names in logs


def test_kills_of_either_side_lose_nothing_and_count_nothing_twice(collecting):
    """SIGKILL of the HTTP side or of the engine while people answer; each sends again what was not acknowledged."""
    study, rng, ended = collecting(study="[quota]\nperson = 100000\n"), random.Random(7), []
    persons = [Participant(study.base, f"w{n}", first_shown) for n in range(6)]

    def insist(do):
        """Until the server takes it: what every client does."""
        while True:
            try:
                return do()
            except httpx.TransportError:
                if ended:
                    return None
                time.sleep(0.05)
            except httpx.HTTPStatusError as error:
                if error.response.status_code < 500:
                    raise
                time.sleep(0.05)

    def take_part(person: Participant) -> None:
        with httpx.Client(timeout=120) as http:
            while not ended:
                for each in insist(lambda: person.ask(http, 2, again=True)) or ():
                    insist(lambda each=each: person.answer(http, each))
                    if rng.random() < 0.1:  # a double click
                        insist(lambda each=each: person.answer(http, each))

    with concurrent.futures.ThreadPoolExecutor(len(persons)) as pool:
        at_work = [pool.submit(take_part, person) for person in persons]
        try:
            for number in range(3):
                before = sum(len(person.acknowledged) for person in persons)
                until(
                    lambda b=before: sum(len(p.acknowledged) for p in persons) > b + 20,
                    what="answers",
                    seconds=COMPILING,
                )
                time.sleep(rng.random())
                if number % 2:
                    until(lambda: "engine_process" in study.children(), what="the engine", seconds=COMPILING)
                    os.kill(study.children()["engine_process"], signal.SIGKILL)
                else:
                    study.kill()
                    study.start()
        finally:
            ended.append(True)
        for each in at_work:
            each.result(240)
    acknowledged = {key: chosen for person in persons for key, chosen in person.acknowledged.items()}
    ids = [each["id"] for each in study.log()]
    assert len(ids) == len(set(ids)) and acknowledged.keys() <= set(ids)
    assert {each["id"]: each["chosen"][0] for each in study.log() if each["id"] in acknowledged} == acknowledged
    until(
        lambda: study.children().keys() >= {"engine_process"} and read_by_the_engine(study) == len(ids),
        what="reading",
        seconds=COMPILING,
    )
    study.stop()
    counters = counted_by_the_engine(study)
    assert counters["events"] == len(ids) and not counters["rejected"]


def test_everything_that_is_no_answer_is_refused_counted_and_kept(collecting):
    study = collecting(study="[quota]\nperson = 5\n[access]\nbody_bytes = 2000\nmost_open = 4\n")
    send = lambda body: post(f"{study.base}/answers", content=body)  # noqa: E731
    question = get(f"{study.base}/questions", params={"worker": "w"}).json()["questions"][0]
    right = {"id": question["id"], "worker": "w", "chosen": question["shown"][0]}
    other = study.study()["study"][::-1] + "x-00"
    wrong = [
        ("not_json", 400, b"<html>"),
        ("not_an_answer", 400, b"[]"),
        ("too_large", 413, b'{"worker": "' + b"x" * 4000 + b'"}'),
        ("not_asked", 404, json.dumps(right | {"id": question["id"][:-1] + "Z"}).encode()),
        ("other_study", 409, json.dumps(right | {"id": other}).encode()),
        ("stranger", 403, json.dumps(right | {"worker": "v"}).encode()),
        ("not_shown", 422, json.dumps(right | {"chosen": "nobody"}).encode()),
    ]
    for reason, status, body in wrong:
        answer = send(body)
        said = answer.json()
        assert answer.status_code == status, (reason, answer.text)
        assert said["why"], (reason, answer.text)
        assert "\n" not in said["why"], (reason, answer.text)
    some = send(json.dumps([right, right | {"chosen": "nobody", "id": question["id"][:-1] + "Z"}]).encode())
    assert some.status_code == 404
    assert some.json()["counted"] == 1
    assert some.json()["refused"][0]["at"] == 1
    again = send(json.dumps(right).encode())
    assert again.status_code == 200 and again.json()["again"] == 1
    counts = study.study()["since_start"]
    assert {reason: counts[f"refused {reason}"] for reason, _, _ in wrong} == {
        reason: 1 + (reason == "not_asked") for reason, _, _ in wrong
    }
    kept = study.log("refused")
    assert [each["reason"] for each in kept if each["given"] != "null"] == [
        "not_json",
        "not_an_answer",
        *(reason for reason, _, _ in wrong[3:]),
        "not_asked",
    ]
    for bad in ("0", "101", "x", ""):
        assert get(f"{study.base}/questions", params={"worker": "w", "n": bad}).status_code == 400
    assert get(f"{study.base}/questions").status_code == 400
    for path in ("/", "/study", "/metrics", "/collected/answers.jsonl", "/participants.csv", "/export/objects.json"):
        assert get(f"{study.base}{path}").status_code == 401
    assert get(f"{study.base}/owner?token=wrong").status_code == 401
    entered = get(f"{study.base}/owner?token={study.token}")
    assert entered.status_code == 303 and "httponly" in entered.headers["set-cookie"].lower()
    assert get(f"{study.base}/study", cookies=dict(entered.cookies)).status_code == 200
    predict = partial(post, f"{study.base}/predict", json={"questions": [{"anchor": "a"}]})
    assert predict().status_code == 401
    owners = {"Authorization": f"Bearer {study.token}"}
    answer = until(
        lambda: (got := predict(headers=owners)).status_code != 503 and got, what="the engine", seconds=COMPILING
    )
    assert answer.status_code == 400 and "questions[0]" in answer.text
    hostile = get(f"{study.base}/ask", headers={"Host": "evil.example"})
    assert hostile.status_code == 421
    held = [get(f"{study.base}/questions", params={"worker": "hoarder", "n": 4}).status_code for _ in range(2)]
    assert held == [200, 429]


def test_late_answers_and_consent_and_invitations(collecting):
    study = collecting(
        study="[quota]\nanswer_within = 0.5\n[texts]\nconsent = 'Please agree.'\n[access]\ninvited_only = true\n",
        program=ALONE,
    )
    assert get(f"{study.base}/questions", params={"worker": "p0001"}).status_code == 403
    rows = list(csv.DictReader(io.StringIO(study.owner("/links?n=2").text)))
    assert [row["worker"] for row in rows] == ["p0001", "p0002"]
    key = rows[0]["link"].rpartition("key=")[2]
    asked = {"worker": "p0001", "key": key}
    needed = get(f"{study.base}/questions", params=asked).json()
    assert needed["consent"] == "needed" and needed["questions"] == []
    for path in ("/participants.csv", "/participants.json"):  # whoever is sent no question takes no part
        assert "p0001" not in study.owner(path).text
    assert study.study()["people"] == 0
    assert post(f"{study.base}/consent", params={"key": key}, json={"worker": "p0002"}).status_code == 403
    assert post(f"{study.base}/consent", params={"key": key}, json={"worker": "p0001"}).status_code == 200
    question = get(f"{study.base}/questions", params=asked).json()["questions"][0]
    assert study.study()["people"] == 1 and "p0001" in study.owner("/participants.csv").text
    time.sleep(0.6)
    body = {"id": question["id"], "worker": "p0001", "chosen": question["shown"][0]}
    late = post(f"{study.base}/answers", params={"key": key}, json=body)
    assert late.status_code == 410 and late.json()["refused"][0]["refused"] == "late"
    assert post(f"{study.base}/answers", json=body).status_code == 403
    study.kill()
    study.start()
    assert len(get(f"{study.base}/questions", params=asked).json()["questions"]) == 1  # consent is remembered


def test_too_many_requests_are_told_to_wait(collecting):
    study = collecting(study="[access]\nrequests_a_second = 0.001\n", program=ALONE)  # 1 at once, then 1 in 1,000 s
    answers = [get(f"{study.base}/questions", params={"worker": "w"}) for _ in range(3)]
    assert [each.status_code for each in answers] == [200, 429, 429]
    assert answers[-1].headers["retry-after"] and answers[-1].json()["refused"] == "too_many"


def test_a_total_ends_a_study_for_everybody(collecting):
    study = collecting(study="[quota]\ntotal = 3\n[texts]\ncode = 'SAME'\n", program=ALONE)
    person = Participant(study.base, "w", first_shown)
    with httpx.Client(timeout=120) as http:
        for each in person.ask(http, 3):
            said = person.answer(http, each)
        assert said["ended"] == "done" and said["code"] == "SAME"
        late = Participant(study.base, "v", first_shown)
        assert late.ask(http) == [] and late.ended == "done"
    assert study.study()["enough"] == "total"


def test_objects_come_while_people_answer(collecting, tmp_path):
    folder = tmp_path / "sounds"
    folder.mkdir()
    for n in range(3):
        (folder / f"s{n}.wav").write_bytes(b"RIFF\x24\0\0\0WAVEfmt " + bytes(40))
    (folder / "not.png").write_bytes(b"<svg onload=alert(1)>")
    study = collecting(objects=folder, program=ALONE)
    assert study.study()["objects"] == 3 and "not.png" in study.study()["skipped"]
    own = {"Authorization": f"Bearer {study.token}"}
    sent = lambda name, body, **more: put(f"{study.base}/objects/{name}", content=body, **more).status_code  # noqa: E731
    text = "Ein Satz, so lang wie nötig.".encode()
    assert sent("t.txt", text) == 405 or sent("t.txt", text) == 401
    assert sent("t.txt", text, headers=own) == 201
    assert sent("t.txt", text, headers=own) == 422
    for name, body in (("x.png", b"<html>"), ("x.txt", b"na\xefve"), ("x.txt", b" \n"), ("x.TXT", b"x" * 4001)):
        assert sent(name, body, headers=own) == 422
    assert sent("..%2Fx.txt", text, headers=own) in (404, 405, 422)
    assert sent(".x.txt", text, headers=own) == 422
    until(lambda: study.study()["objects"] == 4, what="the new object", seconds=120)
    seen: dict = {}
    for n in range(30):
        seen |= get(f"{study.base}/questions", params={"worker": f"w{n}"}).json()["show"]
    assert seen["t"] == {"text": "Ein Satz, so lang wie nötig."} and seen["s1"]["media"] == "audio/wav"
    media = get(f"{study.base}/{seen['s1']['from']}")
    assert media.status_code == 200 and media.headers["content-type"] == "audio/wav"
    assert media.headers["x-content-type-options"] == "nosniff"
    for path in ("media/not", "media/..%2f..%2fcollect%2fsecret", "media/none"):
        assert get(f"{study.base}/{path}").status_code == 404


def test_behind_a_proxy_with_a_prefix(collecting):
    study = collecting("--prefix", "/study", "--behind-proxy", program=ALONE)
    assert f"{study.base}/study/ask" in study.said.read_text()
    for prefix in ("", "/study"):
        assert get(f"{study.base}{prefix}/ask").status_code == 200
        assert get(f"{study.base}{prefix}/ask.js").headers["content-type"].startswith("text/javascript")
        assert get(f"{study.base}{prefix}/questions", params={"worker": "w"}).status_code == 200
    assert f"w,{study.base}/study/ask?worker=w&key=" in study.owner("/links?workers=w").text
    said = {"X-Forwarded-Proto": "https", "X-Forwarded-Host": "lab.example", "X-Forwarded-Prefix": "/s/"}
    own = {"Authorization": f"Bearer {study.token}"}
    links = get(f"{study.base}/study/links?workers=w", headers=said | own).text
    assert "w,https://lab.example/s/ask?worker=w&key=" in links


@pytest.mark.parametrize(
    "study, said",
    [
        ("[quota]\nperson = -1\n", "--study .*: quota.person: expected `int` >= 0"),
        ("[asking]\nshwn = 2\n", r"--study .*: asking.shwn: unknown key; did you mean shown\?"),
        ("[asking]\nshown = 12\n", "--study .*: asking.shown: got 12, expected at most 11: there are 12 objects"),
        (
            "[catching]\nmost_failed = 1\n",
            r"--study \S*: catching.most_failed: got 1 without catch trials, .*\[\[catch",
        ),
        (
            "[[catch]]\nanchor = 'apple'\nshown = ['pear', 'bas']\nright = 'pear'\n",
            r"--study .*: catch: there is no object 'bas'; did you mean 'bus'\?",
        ),
        (
            "[[catch]]\nanchor = 'xyz'\nshown = ['pear', 'bus']\nright = 'pear'\n",
            "--study .*: catch: there is no object 'xyz'; expected one of the 12 of --objects",
        ),
        ("[asking]\nstrategy = 'best'\n", "strategy.*'best'"),
        (
            "[[catch]]\nanchor = 'a'\nshown = ['b', 'c']\nright = 'd'\n",
            r"--study .*: catch\[0\]: got anchor .*right 'd'; expected",
        ),
        ("x = ", "--study .*: Invalid value"),
    ],
)
def test_a_study_file_that_is_wrong_is_said_in_one_line(tmp_path, names, study, said):
    (tmp_path / "study.toml").write_text(study)
    done = engine(
        *("collect", "--objects", names, "--state", tmp_path / "s", "--study", tmp_path / "study.toml"), status=2
    )
    assert re.search(said, one_line(done.stderr)), done.stderr
