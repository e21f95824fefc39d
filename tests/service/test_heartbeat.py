"""/healthz follows the loop: waits and long steps that are known are life, silence is not."""

import re
import time

from stream_engine.service import heartbeat
from stream_engine.service.heartbeat import Heartbeat
from tests.support.process import until
from tests.support.served import served


def test_a_loop_that_does_not_tick_fails_healthz(tmp_path):
    with served(tmp_path) as world:
        assert world.http.get("/healthz").text == "alive\n"
        world.heartbeat.wedged_after = 0.0
        until(lambda: world.http.get("/healthz").status_code == 503, what="a wedged loop")
        for path in ("/healthz", "/readyz"):
            answer = world.http.get(path)
            assert answer.status_code == 503 and re.search(r"\d+ s", answer.text), path
        world.heartbeat.wedged_after = 1000.0
        world.heartbeat.tick()
        assert world.http.get("/healthz").status_code == 200


def test_a_long_step_may_take_longer_and_not_for_ever(monkeypatch):
    beating = Heartbeat(0.0)
    with beating.long("the copy of the state"):
        assert beating.wedged() == ""
        monkeypatch.setattr(heartbeat, "LONG_STEP_SECONDS", 0.0)
        assert "0" in until(beating.wedged)
    beating.warm = True
    with beating.block():
        assert until(beating.wedged)


def test_the_first_block_is_a_long_step():
    beating = Heartbeat(0.0)
    with beating.block():
        time.sleep(0.01)
        assert beating.wedged() == ""
