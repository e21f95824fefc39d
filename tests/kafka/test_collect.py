"""`stream-engine collect --log kafka://…`: answers on a real topic, each once, whatever is killed or away."""

import json

import httpx
import pytest

from connectors import SinkUnavailable, UnusableSource
from connectors.kafka.client import BrokerUnavailable
from connectors.kafka.written_topics import LinesTopic
from stream_engine.collect.line_log import TopicLog
from stream_engine.state.store import Store
from tests.collect.conftest import collecting, names  # noqa: F401
from tests.collect.test_collect import NO_REFITS, kills_under_load, read_by_the_engine
from tests.support.collecting import COMPILING, Participant, first_shown
from tests.support.kafka_reading import on_topic
from tests.support.process import engine, free_ports, one_line, until

pytestmark = pytest.mark.kafka
LONG = "[quota]\nperson = 100000\n"


def values(bootstrap: str, topic: str) -> list[bytes]:
    return [each.value for each in on_topic(bootstrap, topic)]


def test_lines_that_were_told_are_on_the_topic_once_while_the_broker_goes_and_comes(own_broker, new_topic):
    topic = new_topic(partitions=2)
    log = TopicLog(f"kafka://{own_broker.bootstrap}/{topic}", {})
    try:
        first = [log.append(b"%d" % n) for n in range(50)]
        assert all(each.result(60) for each in first) and not log.delay
        sent = [log.append(b"%d" % n) for n in range(50, 100)]  # some of them are under way
        own_broker.kill()
        sent += [log.append(b"%d" % n) for n in range(100, 150)]
        until(lambda: log.delay, 120, "the log to say that it waits")
        assert not sent[-1].done()
        own_broker.restart()
        assert all(each.result(120) for each in sent)
        until(lambda: not log.delay, 60, "the log to go on")
        wanted = sorted(b"%d" % n for n in range(150))
        assert sorted(log.lines()) == sorted(values(own_broker.bootstrap, topic)) == wanted
    finally:
        log.close()


def test_who_opens_the_topic_later_shuts_out_who_opened_it_before(broker, new_topic):
    uri = f"kafka://{broker.bootstrap}/{new_topic()}"
    one = TopicLog(uri, {})
    assert one.append(b"a").result(60)
    two = TopicLog(uri, {})
    try:
        assert two.append(b"b").result(60)
        with pytest.raises(RuntimeError, match="another process"):
            one.append(b"c").result(120)
        assert one.problem and list(two.lines()) == [b"a", b"b"]
    finally:
        one.close()
        two.close()


@pytest.mark.parametrize("committed", [True, False])
def test_where_the_outcome_is_not_known_the_topic_is_asked(broker, new_topic, committed):
    """The acknowledgement of a commit is lost, or the transaction: nobody can tell which before the topic is read."""
    log = TopicLog(f"kafka://{broker.bootstrap}/{new_topic()}", {})
    write, lost = log._topic.write, []

    def doubtful(lines) -> None:
        if not lost:
            if committed:
                known = dict(log._topic._known)
                write(lines)
                log._topic._known = known  # as where no answer came
            lost.append(lines)
            raise BrokerUnavailable("the connection ended")
        write(lines)

    try:
        assert log.append(b"a").result(60)
        log._topic.write = doubtful
        assert all(each.result(120) for each in [log.append(b"b"), log.append(b"c")])
        assert lost and sorted(log.lines()) == [b"a", b"b", b"c"]
    finally:
        log.close()


def test_who_was_shut_out_by_one_that_wrote_nothing_goes_on(broker, new_topic):
    uri = f"kafka://{broker.bootstrap}/{new_topic()}"
    log, other = TopicLog(uri, {}), LinesTopic(uri)
    try:
        other.open()
        assert log.append(b"a").result(120) and list(log.lines()) == [b"a"]
    finally:
        other.close()
        log.close()


def test_a_topic_that_is_not_there_and_a_broker_that_is_not(broker):
    with pytest.raises(UnusableSource, match="topic"):
        TopicLog(f"kafka://{broker.bootstrap}/nowhere", {})
    (port,) = free_ports(1)
    with pytest.raises(SinkUnavailable, match="broker"):
        TopicLog(f"kafka://127.0.0.1:{port}/t", {})


@pytest.fixture
def on_a_topic(collecting, broker, new_topic):  # noqa: F811
    """A study whose answers are on a topic, and that topic."""

    def start(study=LONG):
        topic = new_topic()
        made = collecting("--log", f"kafka://{broker.bootstrap}/{topic}", study=study, config=NO_REFITS)
        made.log = lambda name="answers", of=made.log: (
            of(name) if name != "answers" else [json.loads(each) for each in values(broker.bootstrap, topic)]
        )
        return made, topic

    return start


def test_kills_of_either_side_lose_nothing_and_count_nothing_twice(on_a_topic):
    study, _ = on_a_topic()
    told = kills_under_load(study, people=4, rounds=3, seed=11)
    assert told["counted"] == told["in the log"] >= told["acknowledged"] >= 60


def test_answers_are_on_the_topic_and_a_study_remembers_them(on_a_topic, broker, tmp_path):
    study, topic = on_a_topic("[quota]\nperson = 4\n")
    person = Participant(study.base, "w", first_shown)
    with httpx.Client(timeout=120) as http:
        for each in person.ask(http, 4):
            assert person.answer(http, each)["counted"] == 1
            assert person.answer(http, each)["again"] == 1  # sent once more
    assert [each["id"] for each in study.log()] == list(person.acknowledged)
    until(lambda: read_by_the_engine(study) == 4, COMPILING, "the engine to read the topic")
    assert [json.loads(line) for line in study.owner("/collected/answers.jsonl").text.splitlines()] == study.log()
    study.kill()
    study.start()
    with httpx.Client(timeout=120) as http:
        assert person.ask(http, 1) == [] and person.ended == "done"
    study.stop()
    counters = Store(study.state).newest().counters
    assert counters["events"] == 4 and not counters["rejected"]
    names_file, (port,) = study._objects, free_ports(1)
    again = ["collect", "--objects", names_file, "--listen", f"127.0.0.1:{port}", "--state"]
    assert f"kafka://HOST:PORT/{topic}" in one_line(engine(*again, study.state, status=2).stderr)
    uri = f"kafka://{broker.bootstrap}/"
    assert f"expected {topic}" in one_line(engine(*again, study.state, "--log", f"{uri}other", status=2).stderr)
    stranger = one_line(engine(*again, tmp_path / "new", "--log", f"{uri}{topic}", status=2).stderr)
    assert f"{topic}: holds " in stranger
