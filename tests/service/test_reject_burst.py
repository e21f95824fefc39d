"""Many rejected events in a row: a wrong option before anything was right, else dead letters, a line and a metric."""

import pytest

from connectors.files.dead_letters import DeadLetterFile
from stream_engine.service.context import RunFailed
from stream_engine.service.dead_letters import MIN_EVENTS, DeadLetters
from tests.support.process import engine, jsonl, one_line, summary
from tests.support.run_pieces import BusyFile, World, block_of

RIGHT = ['{"anchor": "a", "near": "b", "far": "c"}', '{"anchor": "b", "near": "c", "far": "d"}']
BURST = 700


def run(source, state, status=0, *more):
    return engine("run", source, "--state", state, "--no-refits", *more, status=status)


@pytest.fixture
def counted(tmp_path):
    """A file of which a state has counted 20 events."""
    (tmp_path / "in").mkdir()
    path = jsonl(tmp_path / "in" / "1.jsonl", RIGHT * 10)
    run(path, tmp_path / "s")
    return path


@pytest.mark.parametrize("burst", ["{}", "no json", '{"anchor": "a", "near": "b", "far": "c", "time": 1e18}'])
def test_a_burst_at_the_position_of_a_restart_is_dead_letters_and_no_crash_loop(tmp_path, counted, burst):
    with counted.open("a") as file:
        file.write(f"{burst}\n" * BURST)
    said = run(counted, tmp_path / "s").stderr
    assert "ERROR" in said.upper() and str(BURST) in said
    with counted.open("a") as file:
        file.write(f"{burst}\n" * BURST)
    run(counted, tmp_path / "s")
    with counted.open("a") as file:
        file.write(f"{RIGHT[0]}\n")
    run(counted, tmp_path / "s")
    told = summary(tmp_path / "s")
    assert told["events"] == 21 and sum(told["rejected"].values()) == 2 * BURST
    assert len((tmp_path / "s" / "dead_letters" / "000001.jsonl").read_text().splitlines()) == 2 * BURST


def test_a_new_file_of_a_source_that_was_right_is_dead_letters(tmp_path, counted):
    pattern = counted.parent / "*.jsonl"
    jsonl(counted.parent / "2.jsonl", ["{}"] * BURST)
    run(pattern, tmp_path / "s")
    assert summary(tmp_path / "s")["rejected"] == {"missing_field": BURST}


def test_a_wrong_file_ends_the_run_and_is_not_kept(tmp_path, counted):
    wrong = jsonl(tmp_path / "wrong.jsonl", [*RIGHT, *["{}"] * BURST])
    for state, before in ((tmp_path / "s", 20), (tmp_path / "new", None)):
        said = one_line(run(wrong, state, 1).stderr)
        assert "--max-reject-ratio" in said
        if before:
            assert summary(state)["events"] == before and not summary(state)["rejected"]
    few = jsonl(tmp_path / "few.jsonl", ["{}"] * 3)
    one_line(run(few, tmp_path / "s", 1).stderr)


@pytest.mark.parametrize(
    "right, wrong, stops", [(60, 50, False), (60, 90, True), (0, 3, True), (4, 5, False), (8, 9, True)]
)
def test_a_preview_says_whether_a_run_would_stop(tmp_path, right, wrong, stops):
    path = jsonl(tmp_path / "a.jsonl", RIGHT[:1] * right + ["{}"] * wrong)
    said = engine("preview", path, status=int(stops)).stdout
    assert (f"would stop: {wrong / (right + wrong):.0%} of" in said) == ("would stop" in said) == stops
    run(path, tmp_path / "s", int(stops))


def share(world) -> float:
    return world.metrics.registry.get_sample_value("stream_engine_rejected_share")


def test_a_run_goes_on_once_a_snapshot_has_counted_its_input_and_says_when_it_is_over():
    world = World(BusyFile(0))
    right, wrong = block_of([line.encode() for line in RIGHT] * MIN_EVENTS), block_of([b"{}"] * MIN_EVENTS * 3)
    letters: DeadLetters = world.dead_letters
    letters.keep(right, 1)
    assert share(world) == 0
    letters.after_publishing({})
    letters.keep(wrong, 1)
    assert share(world) == 1.0  # of the newest
    (burst,) = world.said("share")
    assert burst["reason"] == "missing_field" and burst["share"] > 0.5
    letters.keep(right, 1)
    assert share(world) == 0.0 and len(world.said("share")) == 2
    letters.keep(block_of([b"{}"] * (MIN_EVENTS // 2)), 1)
    assert share(world) == 0.5
    for line in RIGHT * MIN_EVENTS * 4:  # one at a time, as a slow stream brings them
        letters.keep(block_of([line.encode()]), 1)
    assert share(world) < 0.001


def test_a_block_without_rejected_events_can_be_the_one_that_makes_the_share_known():
    """Of the first 100 events most are rejected, but none of the block that completes them."""
    for proven in (True, False):
        world = World(BusyFile(0))
        right, wrong = block_of([line.encode() for line in RIGHT] * 20), block_of([b"{}"] * (MIN_EVENTS - 39))
        if proven:
            world.dead_letters._proven.add("file")
        world.dead_letters.keep(wrong, 1)
        if proven:
            world.dead_letters.keep(right, 1)
            assert share(world) > 0.5 and len(world.said("share")) == 1
        else:
            with pytest.raises(RunFailed, match="missing required field|anchor"):
                world.dead_letters.keep(right, 1)


def test_inputs_may_come_while_a_snapshot_is_published(tmp_path):
    """The thread that publishes looks at all inputs, while the main thread adds new ones."""

    class Growing(dict):
        def __getitem__(self, where):
            letters._n_seen[f"{where}'"] = MIN_EVENTS  # as the main thread may between any two steps
            return super().__getitem__(where)

    letters: DeadLetters = World(DeadLetterFile(tmp_path)).dead_letters
    letters._n_seen, letters._n_rejected = {"a": MIN_EVENTS, "b": MIN_EVENTS}, Growing(a=0, b=0)
    letters.after_publishing({})
    assert letters._proven == {"a", "b"}
