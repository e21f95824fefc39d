"""What people are told beside what is on the disk; and the maker of questions over a real state."""

import asyncio
import itertools
import threading
import time
from types import SimpleNamespace

import numpy as np
import pytest
from prometheus_client import CollectorRegistry
from scipy.stats import chi2

from connectors.disk import Disk
from stream_engine.collect.access import Access
from stream_engine.collect.line_log import LineLog, lines_of
from stream_engine.collect.owner import Owner, _Figures
from stream_engine.collect.participant_service import Logs, ParticipantService
from stream_engine.collect.question_maker import Maker, MakerSettings, Request, ellipse_size
from stream_engine.collect.question_pool import QuestionPool
from stream_engine.collect.sessions import Sessions, restored
from stream_engine.collect.study import Asking, Catching, CatchTrial, Quota, Study
from stream_engine.state.artifact import Artifact
from tests.support.facts import states
from tests.support.process import engine, jsonl

NAMES = list("abcdefgh")


class Doubtful(Disk):
    """A disk that syncs when it is let go, and whose next appends may fail."""

    def __init__(self):
        self.go, self.full = threading.Event(), False
        self.go.set()

    def append(self, path, chunks) -> None:
        if self.full:
            raise OSError(28, "No space left on device")
        super().append(path, chunks)

    def fsync(self, path) -> None:
        assert self.go.wait(600)
        super().fsync(path)


@pytest.fixture
def study(tmp_path):
    """`study(Study())`: the people of a study, and the disk of its answers."""
    made: list[Logs] = []

    def make(study: Study | None = None):
        disk, access = Doubtful(), Access(tmp_path)
        logs = Logs(LineLog(tmp_path / "answers.jsonl", disk), *(LineLog(tmp_path / n) for n in ("s", "r")))
        made.append(logs)
        pool = QuestionPool(study or Study(), NAMES, access.study, seed=1)
        return ParticipantService(study or Study(), access, Sessions(), pool, logs), disk, logs

    yield make
    for logs in made:
        logs.close()


def nobody_is_refused(given) -> None:
    """For who may all answer."""


def test_two_at_once_count_once_and_neither_is_told_before_it_is_durable(study):
    people, disk, logs = study()

    async def both():
        (asked,) = (await people.questions("w", 1, False))["questions"]
        given = {"id": asked["id"], "worker": "w", "chosen": asked["shown"][0]}
        disk.go.clear()
        one, other = (asyncio.create_task(people.answers([given], nobody_is_refused)) for _ in range(2))
        await asyncio.sleep(0.3)
        assert not one.done() and not other.done()
        disk.go.set()
        return [await each for each in (one, other)]

    assert [status for status, _ in asyncio.run(both())] == [200, 200]
    assert len(list(lines_of(logs.answers.path))) == 1 and people.sessions.total == 1


def test_what_could_not_be_written_is_told_so_and_may_be_sent_again(study):
    people, disk, logs = study()

    async def twice():
        (asked,) = (await people.questions("w", 1, False))["questions"]
        given = {"id": asked["id"], "worker": "w", "chosen": asked["shown"][0]}
        disk.full = True
        first = await people.answers([given], nobody_is_refused)
        await asyncio.sleep(0.05)
        disk.full = False
        return first, await people.answers([given], nobody_is_refused)

    first, second = asyncio.run(twice())
    assert first[0] == 503 and first[1]["refused"][0]["refused"] == "not_durable"
    assert second == (200, {"counted": 1, "again": 0}) and people.sessions.total == 1
    again = restored(lines_of(logs.answers.path), lines_of(logs.sessions.path))
    assert again.total == 1 and not again.open


def test_a_person_is_asked_no_more_than_his_quota(study):
    people, _, _ = study(Study(quota=Quota(person=5)))

    async def ask():
        said = [await people.questions("w", 3, False) for _ in range(3)]
        assert ["why" in each for each in said] == [False, False, True] and said[2]["ended"] == ""
        assert states(said[2]["why"], "(5) … again=1")
        many = [len(each["questions"]) for each in said]
        again = (await people.questions("w", 4, True))["questions"]
        return many, [each["id"] for each in again], (await people.questions("v", 9, False))["questions"]

    many, again, other = asyncio.run(ask())
    assert many == [3, 2, 0]
    assert again == list(people.sessions.people["w"].open)[:4]
    assert len(other) == 5


CATCH = CatchTrial(anchor="a", shown=("b", "c"), right="b")


def asked_until_the_end(people, right: bool) -> list[dict]:
    """How far somebody is before each screen, who answers one after the other, catch trials all right or all wrong."""

    async def answer() -> list[dict]:
        said = []
        while (asked := await people.questions("w", 1, False))["questions"]:
            (screen,) = asked["questions"]
            said.append(asked | {"failed": people.sessions.people["w"].failed})
            given = {"id": screen["id"], "worker": "w", "chosen": "b" if right else "c"}
            if {"b", "c"} != {*screen["shown"]}:
                given["chosen"] = screen["shown"][0]
            assert (await people.answers([given], nobody_is_refused))[0] == 200
        return [*said, asked | {"failed": people.sessions.people["w"].failed}]

    return asyncio.run(answer())


@pytest.mark.parametrize("quota, every", [(4, 2), (4, 3), (5, 2), (3, 1), (4, 4)])
def test_so_many_screens_come_as_are_said_at_the_start(study, quota, every):
    people, _, _ = study(Study(quota=Quota(person=quota), catch=(CATCH,), catching=Catching(every=every)))
    *said, end = asked_until_the_end(people, right=True)
    assert end["ended"] == "done" and end["failed"] == 0
    assert {each["of"] for each in (*said, end)} == {len(said)}
    assert [each["answered"] for each in (*said, end)] == [*range(len(said) + 1)]


@pytest.mark.parametrize("most", [1, 2])
def test_only_who_fails_more_catch_trials_than_may_be_is_excluded(study, most):
    catching = Catching(every=1, most_failed=most)
    people, _, _ = study(Study(quota=Quota(person=20), catch=(CATCH,), catching=catching))
    said = asked_until_the_end(people, right=False)
    assert [each["ended"] for each in said] == ["excluded" if each["failed"] > most else "" for each in said]
    assert said[-1]["failed"] == most + 1
    head, [row] = Owner._people_table(SimpleNamespace(_people=people))
    told = dict(zip(head, row))
    assert (told["catch_passed"], told["catch_failed"], told["ended"]) == (0, most + 1, "excluded")


def test_the_stop_rule_ends_it_for_everybody(study):
    people, _, _ = study(Study(quota=Quota(ellipse=0.3)))
    for ellipse, ended in ((None, ""), (0.5, ""), (0.3, "done")):
        people.ellipse = ellipse
        assert asyncio.run(people.questions("w", 1, False))["ended"] == ended


def test_the_size_of_regions_is_the_median_of_their_longest_half_axes():
    rng, n, d = np.random.default_rng(3), 7, 2
    points, factors = rng.normal(size=(n, d)), rng.normal(size=(n, d, d))
    covariance = factors @ factors.transpose(0, 2, 1)
    spread = np.sqrt(np.mean([np.sum((x - points.mean(axis=0)) ** 2) for x in points]))
    longest = [np.sqrt(chi2.ppf(0.95, d) * np.linalg.svd(each)[1][0]) for each in covariance]
    made = Artifact("embedding", "", 1, {}, 0, {"X": points, "covariance": covariance}, {})
    assert ellipse_size(made) == pytest.approx(np.median(longest) / spread)
    assert ellipse_size(None) is ellipse_size(made._replace(arrays={"X": points})) is None
    assert ellipse_size(made._replace(arrays={"X": points * 0, "covariance": covariance})) is None


@pytest.mark.parametrize("start", ["random", "coverage", "landmark"])
def test_until_there_is_an_embedding_a_design_asks(tmp_path, start):
    maker = Maker(MakerSettings(str(tmp_path / "state"), "pick", "information-gain", start, 0.15, 0))
    questions = maker.answer(Request(time.time(), 500, NAMES)).questions
    assert {sampler for _, sampler, _ in questions} == {start}
    assert [propensity is None for _, _, propensity in questions] == [start != "random"] * len(questions)


@pytest.mark.parametrize("kind", ["pick", "odd_one_out"])
def test_the_maker_asks_nothing_twice_and_only_about_objects_of_the_study(tmp_path, kind):
    told = MakerSettings(str(tmp_path / "state"), kind, "information-gain", "random", 0.15, 0)
    maker, now = Maker(told), time.time()
    first = maker.answer(Request(now, 30, NAMES[:5]))
    assert first.fresh
    assert first.snapshot == -1
    assert "embedding" in first.about
    rows = [row for row, _, _ in first.questions]
    assert len({(row[0], frozenset(row)) for row in rows}) == len(rows) == 30  # all that there are
    assert not maker.answer(Request(now, 0)).questions
    events = [{"anchor": "a", "near": b, "far": c} for b, c in itertools.combinations(["b", "c", "zebra"], 2)]
    engine("run", jsonl(tmp_path / "e.jsonl", events), "--state", tmp_path / "state", "--no-refits")
    asked = [(now, row) for row in rows[:10]]
    second = maker.answer(Request(now, 500, [], asked))
    assert second.fresh and second.snapshot >= 0
    left = {(row[0], frozenset(row)) for row, _, _ in second.questions}
    assert "zebra" not in {name for row, _, _ in second.questions for name in row}
    gone = {(row[0], frozenset(row)) for row in rows[:10]} | {("a", frozenset("abc"))}
    if kind == "odd_one_out":
        gone |= {(name, objects) for _, objects in gone - {("a", frozenset("abc"))} for name in objects}
    assert not left & gone and left | gone == {(row[0], frozenset(row)) for row in rows}
    later = maker.answer(Request(now + 3600, 0, ["f"]))  # what was given up may be asked again, a new object too
    assert later.fresh and {(row[0], frozenset(row)) for row, _, _ in later.questions} >= left
    assert "f" in {name for row, _, _ in later.questions for name in row}


@pytest.mark.parametrize("kind", ["pick", "odd_one_out"])
def test_who_has_answered_all_questions_there_are_is_done_for_the_owner_too(tmp_path, kind):
    access, asked = Access(tmp_path), Study(asking=Asking(type=kind))
    logs = Logs(*(LineLog(tmp_path / name) for name in "asr"))
    pool = QuestionPool(asked, NAMES[:4], access.study, seed=1)
    people = ParticipantService(asked, access, Sessions(), pool, logs)

    async def answer_all():
        while questions := (await people.questions("w", 5, True))["questions"]:
            for each in questions:
                answer = {"id": each["id"], "worker": "w", "chosen": each.get("shown", each.get("objects"))[0]}
                assert (await people.answers([answer], lambda _: None))[0] == 200
        return await people.questions("w", 5, True)

    content = asyncio.run(answer_all())
    logs.close()
    person, n = people.sessions.person("w"), {"pick": 12, "odd_one_out": 4}[kind]
    assert content["ended"] == people.end_of(person) == "done" and content["answered"] == content["of"] == n
    assert people.progress("w", person)["code"] == content["code"]
    again = restored(*(list(lines_of(tmp_path / name)) for name in "as"))
    assert ParticipantService(asked, access, again, pool, logs).end_of(again.person("w")) == "done"


def test_each_metric_counts_what_it_is_called(study):
    """Two people are asked four questions, of which one is answered; five more lie ready."""
    people, _, _ = study()

    async def go() -> None:
        (first, *_) = (await people.questions("a", 3, False))["questions"]
        await people.questions("b", 1, False)
        given = {"id": first["id"], "worker": "a", "chosen": first["shown"][0]}
        assert (await people.answers([given], nobody_is_refused))[0] == 200

    asyncio.run(go())
    people.pool.refill([None] * 5)
    registry = CollectorRegistry()
    registry.register(_Figures(people))
    names = ("people", "waiting", "ready", "answers_counted")
    assert [registry.get_sample_value(f"stream_engine_collect_{name}") for name in names] == [2, 3, 5, 1]
