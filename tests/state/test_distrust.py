"""A right checksum is no promise: thousands of crafted files are opened as every verb does, in a process whose death
would be seen. See tests/support/crafted_files.py for what is wrong with them, crafted_reader.py for what is asked.
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterable
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

from stream_engine.counts import ACCUMULATORS, accumulator
from stream_engine.data.container import Corrupt
from stream_engine.refits import REFITS
from stream_engine.state import artifact as artifacts
from stream_engine.state import snapshot as snapshots
from stream_engine.state.artifact_checks import check_artifact, schema_of
from stream_engine.state.artifact_schemas import SCHEMAS
from stream_engine.state.engine import Engine
from stream_engine.state.store import Store
from tests.support import crafted_worlds as worlds
from tests.support.crafted_files import changed_arrays, crafted, opened, put_together
from tests.support.forked_commands import Forked
from tests.support.process import ENVIRONMENT, engine, one_line

EVERY = int(os.environ.get("CRAFTED_EVERY", "29"))  # n-th crafted file is opened; with 1 all, some minutes


class Seen(NamedTuple):
    """What a process said of the files that it opened."""

    files: int
    accepted: int
    wrong: list[str]


def opened_by_a_process(folder: Path, good: bytes, files: Iterable[tuple[str, str, bytes]]) -> Seen:
    """`(kind, what is wrong, file)` one after the other in one process; where it dies, another goes on after that."""
    folder.mkdir()
    (folder / "good.snapshot").write_bytes(good)
    index = []
    for number, (kind, what, data) in enumerate(files):
        (folder / str(number)).write_bytes(data)
        index.append([str(number), kind, what])
    left, accepted, wrong = index, 0, []
    while left:
        (folder / "index.json").write_text(json.dumps(left))
        command = [sys.executable, "-m", "tests.support.crafted_reader", str(folder)]
        done = Forked(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=ENVIRONMENT, text=True)
        printed, errors = done.communicate(timeout=250)
        lines = [json.loads(line) for line in printed.splitlines()]
        said = [line for line in lines if "file" not in line]
        begun = [line for line in lines if "file" in line]
        accepted += sum(line.get("accepted", False) for line in said)
        wrong += [f"{a['kind']}: {a['what']}: {b}" for a, b in zip(begun, said) if "wrong" in b]
        if done.returncode:
            wrong.append(f"{begun[-1] if begun else 'start'}: exit {done.returncode}: {errors[-300:]}")
            if not begun:
                break
        left = left[max(len(begun), 1) :] if done.returncode else []
    return Seen(len(index), accepted, wrong)


def files_of_states() -> Iterable[tuple[str, str, bytes]]:
    """Of a state with everything every n-th file, beginning elsewhere by clock; all about the guards."""
    for begin, by in enumerate(("count", "time")):
        whole = worlds.as_bytes(worlds.state(by=by))
        for what, data in crafted(whole, 400, begin, EVERY, begin * (EVERY // 2)):
            yield "snapshot", f"by {by}: {what}", data
    for guard in worlds.GUARDS:
        header, arrays = opened(worlds.as_bytes(worlds.state(guard, accumulators=("triplet_counts",))))
        for name in (name for name in arrays if name.startswith("partial_order/")):
            for what, changed in islice(changed_arrays(arrays[name]), 0, None, 2):
                yield "snapshot", f"{guard} {name}: {what}", put_together(header, {**arrays, name: changed})


def test_no_crafted_state_does_harm(tmp_path):
    good = worlds.as_bytes(worlds.state()._replace(sequence=1))
    seen = opened_by_a_process(tmp_path / "files", good, files_of_states())
    assert not seen.wrong, "\n".join(seen.wrong[:20])
    assert seen.files > 350 and 10 < seen.accepted < seen.files / 4, seen


def test_no_crafted_artifact_does_harm(tmp_path):
    good, made_of_it = worlds.files()
    for data in made_of_it.values():  # as refits make them: what is there to refuse the others refuses none of these
        check_artifact(artifacts.decode(data), worlds.OBJECTS)
    files = [
        (kind, what, data)
        for number, (kind, made) in enumerate(made_of_it.items())
        for what, data in crafted(made, 40, 0, EVERY, number % EVERY)
    ]
    seen = opened_by_a_process(tmp_path / "files", good, files)
    assert not seen.wrong, "\n".join(seen.wrong[:20])
    assert seen.files > 300 and seen.accepted < seen.files, seen


def test_harm_is_seen(tmp_path):
    """What the two tests above rest on: an array that nobody checked, planted in the reader's way, and a process that
    dies."""
    good = worlds.as_bytes(worlds.state(accumulators=("adds3",))._replace(sequence=1))
    header, arrays = opened(worlds.as_bytes(worlds.state(accumulators=("adds3",))))
    bad = put_together(header, {**arrays, "adds3/i": arrays["adds3/i"] + 2**20})
    folder = tmp_path / "files"
    planted = [(kind, f"{kind} of it", bad) for kind in ("snapshot", "unchecked", "die", "snapshot")]
    seen = opened_by_a_process(folder, good, planted)
    assert (seen.files, seen.accepted) == (4, 0)
    unchecked, dies = seen.wrong
    assert "unchecked of it" in unchecked and "IndexError" in unchecked
    assert "die of it" in dies and "exit -11" in dies


@pytest.mark.parametrize("name", ACCUMULATORS)
def test_every_accumulator_declares_its_state(name):
    """What is not declared is not looked into: a newcomer says what its arrays are."""
    kind = accumulator(name)
    held = kind.HOLDS or {**kind.SUMS.HOLDS}
    state = worlds.state(by="time").section(name)
    assert held.keys() <= state.keys() and len(state.keys() - held.keys()) <= 4, (held.keys(), state.keys())


@pytest.mark.parametrize("kind", REFITS)
def test_every_refit_declares_its_arrays(kind):
    schema = schema_of(kind)
    assert schema
    assert schema.axes
    assert kind not in SCHEMAS or schema.required


def test_the_snapshot_before_a_crafted_one_serves_every_verb(tmp_path):
    """A cycle in the partial order shows only where the order is built; run then goes on from the one before."""
    state, events = tmp_path / "state", tmp_path / "events.jsonl"
    events.write_bytes(worlds.events())
    engine("run", events, "--state", state, "--no-refits")
    store = Store(state)
    good = store.latest().snapshot
    header, arrays = opened(worlds.as_bytes(good))
    header["meta"]["sequence"] = good.sequence + 1
    kept = arrays["partial_order/kept"]
    turned = kept[:1][:, [2, 3, 0, 1]]
    both = np.unique(np.concatenate([kept, turned]), axis=0).astype(np.int32)
    negative = {**arrays, "triplet_counts/anchor": arrays["triplet_counts/anchor"] - 1}
    for wrong, line in (({**arrays, "partial_order/kept": both}, "a cycle"), (negative, "anchor: got -1")):
        store.snapshot_path(good.sequence + 1).write_bytes(put_together(header, wrong))
        for verb in (
            ["inspect"],
            ["export", "--out", tmp_path / "out", "adds3"],
            ["ask", "--out", tmp_path / "q"],
            ["refit", "spectral"],
        ):
            done = engine(verb[0], "--state", state, *verb[1:])
            told = "snapshot 000000000002" in done.stderr
            assert told == (line != "a cycle") and (not told or line in one_line(done.stderr))
        done = engine("merge", state, "--out", tmp_path / line.replace(" ", ""))
        assert line in done.stderr and f"snapshot {1}" in done.stdout
    done = engine("run", events, "--state", state, "--no-refits")
    assert "problem=" in done.stderr and "snapshot 000000000002" in done.stderr
    assert store.latest().snapshot.positions == good.positions


def _with_first(value):
    def changed(array):
        array = array.copy()
        array.reshape(-1)[0] = value
        return array

    return changed


NO_STREAM_MADE = [  # array, and what is done to it
    *[
        (f"{name}/w", _with_first(bad))
        for name in ("adds3_decayed", "adds3_weighted")
        for bad in (np.nan, np.inf, 1e200)
    ],
    *[
        (f"{name}/{which}", _with_first(bad))
        for name in ("triplet_counts_weighted", "triplet_counts_decayed")
        for which in ("n_lo", "n_hi")
        for bad in (np.nan, np.inf, -1.0)
    ],
    *[("adds3_weighted/squares", lambda array, bad=bad: np.array(bad)) for bad in (np.nan, np.inf, -1.0)],
    ("judgements/times", _with_first(2**30 - 1)),
    ("judgements/times", lambda array: array.astype(np.int64)),
    ("judgements/time", _with_first(np.nan)),
    ("judgements/time", _with_first(np.inf)),
    ("judgements/time", _with_first(-0.0)),
    ("judgements/time", lambda array: np.full_like(array, -np.inf)),
    ("judgements/worker", lambda array: np.full_like(array, -1)),
    ("judgements/worker", lambda array: np.zeros_like(array)),
    ("window/untimed", lambda array: np.array(10**6)),
    ("window/late", lambda array: np.array(10**6)),
    ("adds3_decayed/untimed", lambda array: np.array(10**6)),
]


@pytest.mark.parametrize("number", range(len(NO_STREAM_MADE)))
def test_values_that_no_stream_makes_are_refused(number):
    name, change = NO_STREAM_MADE[number]
    header, arrays = opened(worlds.as_bytes(worlds.state(by="time")))
    snapshots.decode(put_together(header, arrays))
    with pytest.raises(Corrupt, match=f"^{name.partition('/')[0]}: ") as refused:
        snapshots.decode(put_together(header, {**arrays, name: change(arrays[name])}))
    assert "\n" not in str(refused.value)


def test_a_snapshot_under_another_number_is_refused(tmp_path):
    store = Store(tmp_path)
    store.publish(Engine(("adds3",)).snapshot())
    store.snapshot_path(7).write_bytes(store.snapshot_path(1).read_bytes())
    with pytest.raises(Corrupt, match="000000000007.*snapshot 1"):
        store.read(7)


@pytest.mark.parametrize(
    "noted",
    [b"[" * 100_000, b"[1]", b"null", b'"x"', b"\xff", b'{"x": 1}', b'{"snapshot": 1, "sampled": "x", "seen": 2}'],
)
def test_figures_that_anybody_wrote_are_no_harm(noted, tmp_path):
    Store(tmp_path).publish(worlds.learned(Engine()).snapshot())
    if noted.startswith(b"{"):
        Store(tmp_path).note("progressive", json.loads(noted))
    else:
        (tmp_path / "progressive.json").write_bytes(noted)
    said = engine("inspect", "--state", tmp_path).stdout
    assert ("progressive.json" in said) == noted.startswith(b"{")
    engine("inspect", "--state", tmp_path, "--json")
