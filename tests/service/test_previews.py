"""What a preview says of files: of what it is, and what a copy that was sent twice counts as."""

from collections import Counter

import pytest

from stream_engine.service.preview import Preview
from stream_engine.service.preview_text import as_text
from tests.support.facts import states
from tests.support.process import engine, jsonl


@pytest.mark.parametrize("whole", [True, False])
def test_what_is_only_known_of_the_beginning_is_said_to_be_so_far(whole):
    said = as_text(Preview("", [], sets=[3, 2], whole=whole), "f.csv")
    assert ("so far" in said) == ("beginning of the input" in said) == (not whole)


def test_the_share_of_rejected_events_is_of_those_that_no_filter_excludes():
    found = Preview("", [], events=60, filtered=900, refused=Counter(not_distinct=30, missing_field=10))
    assert found.rejected_share == 0.4
    assert not found.is_refused and Preview("", [], events=30, filtered=900, refused=Counter(few=40)).is_refused


def test_copies_that_were_sent_twice_are_no_repeated_questions(tmp_path):
    """Nine answers at different times, three of them once more at the same time, and one question that is asked again
    twice, at which the participant says something else than at first, both times."""
    made = [
        {"anchor": f"o{i}", "near": f"o{i + 1}", "far": f"o{i + 2}", "worker": "w", "time": f"2026-01-01T10:00:0{i}.5Z"}
        for i in range(9)
    ]
    turned = {**made[4], "near": made[4]["far"], "far": made[4]["near"]}
    again = [{**turned, "time": f"2026-01-01T10:3{i}:00.5Z"} for i in range(2)]
    said = engine("preview", jsonl(tmp_path / "f.jsonl", [*made, *made[:3], *again])).stdout
    assert states(said, "2 repetitions of questions, 1 answered as before")
    assert states(said, "3 responses were sent twice")
