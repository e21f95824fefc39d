"""What is an answer and what is none; what is remembered of people, and made anew from the two logs."""

import itertools

import msgspec
import pytest

from stream_engine.collect.accepted_answers import MAX_ANSWERS, REASONS, Rejection, accept, answers_in
from stream_engine.collect.question_pool import NothingLeft, Question, QuestionPool
from stream_engine.collect.screens import CATCH, REPEAT, Consent
from stream_engine.collect.sessions import ParticipantSession, Sessions, restored
from stream_engine.collect.study import Asking, Catching, CatchTrial, Study
from stream_engine.formats.json_events import Decoder
from stream_engine.formats.options import EventOptions

NAMES = list("abcdefgh")


def asked(sessions: Sessions, worker: str = "w", now: float = 0.0, study: Study | None = None):
    """A screen that was sent."""
    pool = QuestionPool(study or Study(), NAMES, "study1", seed=1)
    screen = pool.screen(worker, sessions.person(worker), now)
    sessions.add_question(screen)
    return screen


def refused(given, sessions: Sessions, now: float = 1.0) -> str:
    with pytest.raises(Rejection) as error:
        accept(given, sessions, "study1", now)
    assert "\n" not in str(error.value) and error.value.status == REASONS[error.value.reason]
    return error.value.reason


def test_every_reason_to_refuse_an_answer():
    sessions = Sessions()
    screen = asked(sessions)
    right = {"id": screen.id, "worker": "w", "chosen": screen.shown[0]}
    assert refused("text", sessions) == "not_an_answer"
    assert refused(None, sessions) == "not_an_answer"
    for worker in (None, "", "x" * 129, "a\nb", True, 1.5, ["w"]):
        assert refused(right | {"worker": worker}, sessions) == "not_an_answer"
    for key in (None, 7, ["x"]):
        assert refused(right | {"id": key}, sessions) == "not_an_answer"
    assert refused(right | {"id": "other7-00"}, sessions) == "other_study"
    assert refused(right | {"id": "study1-00"}, sessions) == "not_asked"
    assert refused(right | {"worker": "somebody"}, sessions) == "stranger"
    for chosen in (None, 7, [7], {}):
        assert refused(right | {"chosen": chosen}, sessions) == "not_an_answer"
    for chosen in ("nobody", [], list(screen.shown), [screen.shown[0]] * 2, screen.anchor):
        assert refused(right | {"chosen": chosen}, sessions) == "not_shown"
    assert sessions.total == 0 and sessions.late(100.0, 50.0) == 1
    assert refused(right, sessions) == "late"


def test_the_first_question_of_a_participant_stays_the_first():
    sessions = Sessions()
    for time in (5.0, 9.0, 7.0):
        asked(sessions, "w", time)
    assert sessions.person("w").first == 5.0


def test_each_late_question_is_given_up_once():
    sessions = Sessions()
    first, second = asked(sessions, "w", 0.0), asked(sessions, "v", 80.0)
    assert [sessions.late(now, 50.0) for now in (49.0, 60.0, 61.0, 140.0)] == [0, 1, 0, 1]
    assert sessions.given_up == {first.id, second.id}


@pytest.mark.parametrize("body", [b"", b"{", b"\xff", b"[" * 100_000])
def test_what_is_no_json(body):
    with pytest.raises(Rejection) as error:
        answers_in(body)
    assert error.value.reason == "not_json"


@pytest.mark.parametrize("many", [0, MAX_ANSWERS + 1])
def test_too_many_or_no_answers_at_once(many):
    with pytest.raises(Rejection, match=f"got {many} answers"):
        answers_in(msgspec.json.encode([{}] * many))


@pytest.mark.parametrize(
    "asking",
    [
        Asking(),
        Asking(type="triplet"),
        Asking(type="odd_one_out"),
        Asking(shown=4, choose=2),
    ],
    ids=lambda each: f"{each.type}{each.shown}",
)
def test_an_answer_is_an_event_that_the_engine_reads(asking):
    sessions, study = Sessions(), Study(asking=asking)
    screen = asked(sessions, study=study)
    chosen = list(screen.shown[: asking.choose])
    counted = accept({"id": screen.id, "worker": "w", "chosen": chosen, "seconds": 1.23456}, sessions, "study1", 9.5)
    told = counted.event
    assert told["seconds"] == 1.235
    assert told["time"] == 9.5
    assert told["worker"] == "w"
    assert told["id"] == screen.id
    assert told["sampler"] == "random" and (told.get("propensity") is None) == (asking.shown > 2)
    decoded = Decoder(EventOptions())(msgspec.json.encode(told))
    assert not decoded.rejected and decoded.events == {asking.type: 1}
    rest = [name for name in screen.shown if name not in chosen]
    if asking.type == "odd_one_out":
        one, other = rest
        wanted = {(one, other, chosen[0]), (other, one, chosen[0])}
    else:
        wanted = {(screen.anchor, near, far) for near in chosen for far in rest}
    assert {tuple(decoded.names[i] for i in row) for row in decoded.triplets.tolist()} == wanted
    again = accept({"id": screen.id, "worker": "w", "chosen": screen.shown[-1]}, sessions, "study1", 9.5)
    assert again is None and sessions.total == 1
    assert refused({"id": screen.id, "worker": "v", "chosen": screen.shown[0]}, sessions) == "stranger"


@pytest.mark.parametrize(
    ("given", "kept"),
    [(0, 0.0), (0.25, 0.25), (7, 7.0), (1e9, 1e6), (-0.001, None), (float("inf"), None), (True, None), ("3", None)],
)
def test_how_long_it_took_is_kept_where_it_is_a_number_that_can_be(given, kept):
    sessions = Sessions()
    screen = asked(sessions)
    answer = {"id": screen.id, "worker": "w", "chosen": screen.shown[0], "seconds": given}
    assert accept(answer, sessions, "study1", 1.0).event.get("seconds") == kept


def test_nobody_is_asked_the_same_twice_until_nothing_is_left():
    pool, person = QuestionPool(Study(), NAMES[:5], "study1", seed=3), ParticipantSession()
    pool.refill([Question(("a", "b", "c"), "information-gain", 0.85)] * 3)
    first = pool.screen("w", person, 0.0)
    assert (first.anchor, {*first.shown}, first.sampler, first.propensity) == (
        "a",
        {"b", "c"},
        "information-gain",
        0.85,
    )
    person.screen_keys.add(first.key())
    for _ in range(29):
        made = pool.screen("w", person, 0.0)
        assert made.key() not in person.screen_keys and made.sampler == "random"
        person.screen_keys.add(made.key())
    with pytest.raises(NothingLeft):
        pool.screen("w", person, 0.0)
    assert len(pool.ready) == 2  # for others
    assert pool.screen("v", ParticipantSession(), 0.0).sampler == "information-gain"


def test_sides_are_at_random():
    pool = QuestionPool(Study(), NAMES, "study1", seed=0)
    left = 0
    for _ in range(400):
        pool.refill([Question(("a", "b", "c"), "random", 0.1)])
        left += pool.screen("w", ParticipantSession(), 0.0).shown[0] == "b"
    assert 150 < left < 250


def test_a_repeat_share_is_asked_again_and_points_at_the_first():
    study = Study(asking=Asking(repeat_share=0.5, repeat_after=3))
    pool, sessions = QuestionPool(study, NAMES, "study1", seed=5), Sessions()
    asked = {}  # the screens of each question
    for n in range(100):
        screen = pool.screen("w", sessions.person("w"), float(n))
        earlier = asked.setdefault((screen.anchor, frozenset(screen.shown)), [])
        if screen.sampler == REPEAT:
            assert screen.repeats == earlier[0] and not screen.propensity
        earlier.append(screen.id)
        sessions.add_question(screen)
        accept({"id": screen.id, "worker": "w", "chosen": screen.shown[0]}, sessions, "study1", float(n))
    repeated = 100 - len(asked)
    assert 30 < repeated < 70 and sessions.person("w").repeats == repeated
    assert max(map(len, asked.values())) > 2


def test_catch_trials_come_in_turns_and_are_no_events():
    study = Study(catch=(CatchTrial(anchor="a", shown=("b", "h"), right="b"),), catching=Catching(every=4))
    pool, sessions, outcomes = QuestionPool(study, NAMES, "study1", seed=5), Sessions(), itertools.cycle("bh")
    for n in range(25):
        screen = pool.screen("w", sessions.person("w"), float(n))
        sessions.add_question(screen)
        assert (screen.sampler == CATCH) == (n % 5 == 4)
        assert set(screen.public()) == {"id", "type", "anchor", "shown", "choose"}  # the same for both
        chosen = next(outcomes) if screen.right else screen.shown[0]
        counted = accept({"id": screen.id, "worker": "w", "chosen": chosen}, sessions, "study1", float(n))
        assert (counted.event is None) == bool(screen.right)
    person = sessions.person("w")
    assert (person.passed, person.failed, person.answered, sessions.total) == (3, 2, 20, 20)


def test_what_is_remembered_is_made_anew_from_the_logs():
    study = Study(catch=(CatchTrial(anchor="a", shown=("b", "h"), right="b"),), catching=Catching(every=4))
    pool, sessions = QuestionPool(study, NAMES, "study1", seed=5), Sessions()
    answers, lines = [], [msgspec.json.encode(Consent("w0", 1.0)), b""]
    sessions.person("w0").consented = True
    for n in range(66):  # the last ones are no catch trials
        screen = pool.screen(f"w{n % 3}", sessions.person(f"w{n % 3}"), float(n))
        sessions.add_question(screen)
        lines.append(msgspec.json.encode(screen))
        if n % 7 == 0:
            continue  # never answered
        given = {"id": screen.id, "worker": screen.worker, "chosen": screen.shown[0]}
        counted = accept(given, sessions, "study1", float(n))
        if counted.event:
            answers.append(msgspec.json.encode(counted.event))
        else:
            lines.append(msgspec.json.encode(counted.caught))
    again = restored([*answers, answers[0], b""], lines)
    assert again.open == sessions.open
    assert again.answered == sessions.answered
    assert again.total == sessions.total
    assert list(again.people) == list(sessions.people)
    for worker, person in sessions.people.items():
        assert again.people[worker] == person


def test_an_answer_that_could_not_be_written_is_asked_for_again():
    sessions = Sessions()
    screen = asked(sessions)
    given = {"id": screen.id, "worker": "w", "chosen": screen.shown[0]}
    before = msgspec.json.encode([*sessions.open])
    counted = accept(given, sessions, "study1", 1.0)
    sessions.forget(counted.screen)
    assert msgspec.json.encode([*sessions.open]) == before
    assert sessions.total == 0
    assert not sessions.answered
    assert accept(given, sessions, "study1", 1.0) is not None
