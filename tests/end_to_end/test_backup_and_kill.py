"""Two real processes over one state, one after the other: a backup is taken while the first runs, and it is killed.

Nothing is lost or counted twice, in what goes on and in what is restored from the backup. Recipes for a person."""

import json
import random
import shutil
from pathlib import Path

import pytest

from connectors import Position
from stream_engine.state.snapshot import encode
from stream_engine.state.store import Store
from tests.end_to_end.test_service import stream
from tests.support.process import engine, jsonl, records, state_of, until
from tests.support.running_engine import Engine


@pytest.fixture
def lines() -> list[str]:
    made = [json.dumps(each) if isinstance(each, dict) else each for each in stream(random.Random(3), 600)]
    made[::50] = [f'{{"broken {n}' for n in range(len(made[::50]))]
    return made


def but_for_marks(state: Path) -> tuple:
    """`state_of`, but for how a file is known: a followed one by its first bytes, another by all of it."""
    snapshot = Store(state).latest().snapshot
    plain = snapshot._replace(
        sequence=0,
        positions={name: Position(at.offset) for name, at in snapshot.positions.items()},
        counters={**snapshot.counters, "progressive": {}, "sinks": {}},
    )
    return b"".join(encode(plain)[0]), state_of(state)[1]


def test_another_process_goes_on_when_the_first_is_killed(tmp_path, lines):
    file = jsonl(tmp_path / "events.jsonl", lines[:300])
    folders = [tmp_path / name for name in ("one", "two")]
    for folder in folders:
        folder.mkdir()
    often = ("--follow", "--snapshot-interval", "0.1")
    first = Engine(folders[0], file, *often)
    try:
        until(lambda: records(first.state) >= 300, what="the first events")
        engine("backup", "--state", first.state, "--to", tmp_path / "copy")
        with file.open("a") as more:
            more.write("".join(line + "\n" for line in lines[300:450]))
        until(lambda: records(first.state) > 300, what="more events")
    finally:
        first.process.kill()
        first.process.wait()
    with file.open("a") as more:
        more.write("".join(line + "\n" for line in lines[450:]))
    second = Engine(folders[1], file, *often, "--state", first.state)
    try:
        until(lambda: records(first.state) >= len(lines), what="the others")
    finally:
        second.stop()
    shutil.copytree(next((tmp_path / "copy").iterdir()), tmp_path / "restored")
    engine("verify", "--state", tmp_path / "restored")
    assert records(tmp_path / "restored") == 300
    for state in ("restored", "uninterrupted"):
        engine("run", file, "--state", tmp_path / state, "--no-refits")
        assert but_for_marks(tmp_path / state) == but_for_marks(first.state), state
