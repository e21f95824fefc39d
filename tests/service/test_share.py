"""A state keeps the share of the partitions that it was made with: another one is refused before anything is read."""

import pytest

from connectors import Position
from stream_engine.input.settings import BadSettings
from stream_engine.input.settings.loading import load
from stream_engine.service.partition_share import agreed_share, asked_share
from stream_engine.service.resumed import restore_engine
from stream_engine.state.engine import Engine

ALL = {f"votes/{number}": Position(5) for number in range(4)}
EVEN = {name: position for name, position in ALL.items() if int(name[-1]) % 2 == 0}


def asked(share, *sources):
    given = {"source": list(sources) or ["kafka://h:9092/votes"], "state": "s", "input.shard": share}
    return load(None, given, {})


@pytest.mark.parametrize(
    ("made_with", "share", "positions"),
    [("0/2", "1/2", EVEN), ("0/2", "0/3", EVEN), ("0/2", None, EVEN), (None, "0/2", ALL), ("0/2", "0/1", EVEN)],
)
def test_another_share_is_refused_and_both_are_named(made_with, share, positions):
    with pytest.raises(BadSettings) as said:
        agreed_share(asked(share), made_with, positions)
    for told in (made_with, share):
        assert (f"the share {told} " if told not in (None, "0/1") else "all partitions") in str(said.value)
    assert "--into" in str(said.value)


def test_the_same_share_goes_on_and_all_partitions_are_no_share():
    assert agreed_share(asked("00/2"), "0/2", EVEN) == "0/2"
    assert agreed_share(asked("0/1"), None, ALL) is None and asked_share(asked("0/1")) is None
    assert agreed_share(asked("1/3"), "1/3", {"votes/1": Position(1), "votes/4": Position(0)}) == "1/3"  # it has grown


def test_a_state_of_before_shares_were_remembered_takes_the_one_that_fits():
    assert agreed_share(asked("0/2"), None, EVEN) == "0/2"
    assert agreed_share(asked("0/2"), None, {**EVEN, "/data/a.jsonl": Position(1), "other/1": Position(1)}) == "0/2"


def test_a_run_over_files_leaves_the_share_alone():
    assert agreed_share(asked(None, "backfill.jsonl"), "0/2", EVEN) == "0/2"


def test_the_share_goes_into_the_snapshot_of_a_first_run_and_out_of_a_sum():
    first = restore_engine(asked("1/2"), None)
    assert first.share == "1/2"
    first.positions = {"votes/1": Position(3)}
    snapshot = first.snapshot()
    assert restore_engine(asked("1/2"), snapshot).share == "1/2"
    with pytest.raises(BadSettings, match="1/2"):
        restore_engine(asked(None), snapshot)
    both, other = Engine.restore(snapshot), restore_engine(asked("0/2"), None)
    other.positions = {"votes/0": Position(3)}
    both.merge(other)
    with pytest.raises(BadSettings, match="1/2"):
        restore_engine(asked("1/2"), both.snapshot())
    assert restore_engine(asked(None), both.snapshot()).share is None
