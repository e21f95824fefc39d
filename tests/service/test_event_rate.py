"""The rate of a run is that of its events, whoever looks and however seldom."""

import time

import pytest

from stream_engine.service.event_rate import WINDOW_SECONDS, EventRate


@pytest.fixture
def clock(monkeypatch):
    now = [1000.25]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    return now


@pytest.mark.parametrize("looks", [False, True])
def test_the_rate_is_that_of_the_last_seconds_and_ends_without_events(clock, looks):
    rate, times = EventRate(), []
    for number in range(400):
        clock[0] += 0.1
        rate.add(3 if number % 2 else 4)
        times.append((clock[0], 3 if number % 2 else 4))
        if looks:
            assert rate.per_second() >= 0
    first = int(clock[0]) - WINDOW_SECONDS + 1
    assert rate.per_second() == pytest.approx(sum(n for at, n in times if at >= first) / (clock[0] - first))
    assert rate.per_second() == pytest.approx(35, rel=0.05)
    clock[0] += 43
    assert rate.per_second() == 0 and rate.seconds_since_last() == pytest.approx(43)
    rate.add(0)  # all of a block were rejected
    assert rate.per_second() == 0 and rate.seconds_since_last() == 0


def test_at_the_start_the_rate_is_a_mean_since_the_start(clock):
    rate = EventRate()
    assert rate.per_second() == 0
    clock[0] += 2
    rate.add(50)
    assert rate.per_second() == 25
