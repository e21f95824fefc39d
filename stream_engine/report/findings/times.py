"""Event times that lead to wrong ages where the state forgets by time: jumps ahead, and times in the future."""

import time
from collections.abc import Iterator
from datetime import UTC, datetime

from stream_engine.counts import Forgetting
from stream_engine.data.numbers_in_words import amount
from stream_engine.formats.options import MAX_TIME_AHEAD
from stream_engine.report.findings import WARNING, Finding
from stream_engine.report.findings.facts import Facts
from stream_engine.report.findings.words import percent
from stream_engine.state.event_time import newest_time

DAY = 86_400.0


def times(facts: Facts) -> Iterator[Finding]:
    """Warnings; nothing where the state does not forget by time."""
    snapshot = facts.published.snapshot
    if jumps := snapshot.counters.get("time_jumps"):
        forgetting = Forgetting(**snapshot.settings["forgetting"])
        first, then, number = jumps["from"], jumps["to"], jumps["number"]
        largest = "the largest is" if number > 1 else "it is"
        decays = "half_life" in snapshot.settings["forgetting"]
        effect = (
            f"older answers then counted {percent(2.0 ** -((then - first) / forgetting.half_life))} of what they had"
            if decays
            else "all older answers left the window"
        )
        text = (
            f"The time of events jumped ahead {amount(number, 'time')} by more than "
            f"{'the half-life' if decays else 'the window'}; {largest} from {day(first)} to {day(then)} "
            f"({span(then - first)}), and {effect}. Expected after a pause; otherwise a clock was wrong."
        )
        yield Finding("time_jumps", text, dict(jumps), level=WARNING)
    newest = newest_time(snapshot)
    if newest is not None and newest > time.time() + MAX_TIME_AHEAD:
        text = (
            f"The newest time of an event is {day(newest)}, in the future: until then, all new answers count as old. "
            "Read the input again with --start-over, which rejects such an event (input.max_time_ahead)."
        )
        yield Finding("future_time", text, {"newest": newest}, level=WARNING)


def day(seconds: float) -> str:
    """A time in a sentence.

    >>> day(0.0), day(1e18)
    ('1970-01-01 00:00 UTC', '1e+18 s since 1970')
    """
    try:
        return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M UTC")
    except (OverflowError, ValueError, OSError):
        return f"{seconds:.3g} s since 1970"


def span(seconds: float) -> str:
    """A length of time in a sentence.

    >>> span(2 * DAY), span(90.0)
    ('2 days', '90 s')
    """
    return f"{seconds / DAY:,.0f} days" if seconds >= 2 * DAY else f"{seconds:,.0f} s"
