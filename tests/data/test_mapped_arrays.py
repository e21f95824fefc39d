"""Counts on disk: the same values, bytes, exports and refusals as in memory, and nothing left behind, however it
ends."""

import gc
import os
import signal
import tempfile
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stream_engine.data import mapped_arrays
from stream_engine.data.mapped_arrays import PREFIX
from stream_engine.state.snapshot import frozen
from stream_engine.testing.accumulators import same
from stream_engine.testing.batches import random_stream
from tests.support.accumulator_variants import VARIANTS
from tests.support.facts import states
from tests.support.generators import planted_triplets
from tests.support.process import engine, jsonl, one_line, started, until

COUNTED = [
    name
    for name in VARIANTS
    if name.startswith(("adds", "triplet_counts", "quadruplet_counts", "worker_votes"))
    and "decayed" not in name
    and "weighted" not in name
]


def worlds():
    return st.integers(0, 2**32 - 1).map(lambda seed: random_stream(np.random.default_rng(seed)))


def learned(make, stream):
    made = make()
    for batch in stream:
        made.update(batch)
    return made


@pytest.fixture
def on_disk(tmp_path):
    return mapped_arrays.on_disk(tmp_path / "scratch", 1)


def mapped() -> int:
    """Unnamed files of this process that are mapped now."""
    gc.collect()
    return sum("(deleted)" in line and "/scratch/" in line for line in Path("/proc/self/maps").read_text().splitlines())


@pytest.mark.parametrize("name", COUNTED)
def test_every_count_is_the_same(tmp_path_factory, name):
    make, folder = VARIANTS[name], tmp_path_factory.mktemp("space") / "scratch"

    @settings(max_examples=8, deadline=None)
    @given(stream=worlds(), after=worlds())
    def law(stream, after):
        n = max(batch.n_objects for batch in stream)
        after = [batch._replace(n_objects=max(batch.n_objects, n)) for batch in after]
        new_id = np.random.default_rng(n).permutation(n)

        def everything(allocation):
            counts = learned(partial(make, allocation=allocation), stream)
            first = frozen(counts.state(), allocation)
            again = type(counts).from_state(first, allocation)
            for batch in after:
                again.update(batch)
            counts.merge(again)
            return [first, frozen(counts.state(), allocation), again.state(), type(counts).renamed(first, new_id)]

        here, allocation = everything(mapped_arrays.IN_MEMORY), mapped_arrays.on_disk(folder, 1)
        there = everything(allocation)
        assert all(same(one, other) for one, other in zip(here, there))
        del there
        allocation.close()

    law()
    assert not folder.exists()


def test_large_arrays_are_on_disk_and_go_with_their_names(on_disk):
    allocation, before = mapped_arrays.on_disk(on_disk.folder, 800), mapped()
    small, large = allocation.allocate(100, np.int64), allocation.allocate(101, np.int64)
    copy, view = allocation.copied(large), large[:50]
    assert mapped() == before + 2
    assert large.flags.writeable
    assert type(large) is np.ndarray
    assert all(mapped_arrays.is_whole(array) for array in (small, large, copy)) and not mapped_arrays.is_whole(view)
    copy.setflags(write=False)
    assert frozen({"x": copy})["x"] is copy  # handed over: no second copy
    view.setflags(write=False)
    assert frozen({"x": view})["x"] is not view
    assert not list(on_disk.folder.iterdir())
    del small, large, copy, view
    assert mapped() == before


def test_blocks_are_reserved_before_they_are_written(on_disk):
    """Else a disk that fills later would be SIGBUS in the middle of a sort."""
    held = on_disk.allocate(1 << 17, np.int64)
    links = {fd: os.readlink(fd) for fd in Path("/proc/self/fd").iterdir() if os.path.lexists(fd)}
    (file,) = [fd for fd, to in links.items() if to.startswith(str(on_disk.folder))]
    assert os.stat(file).st_blocks * 512 >= held.nbytes == os.stat(file).st_size


@pytest.fixture
def events(tmp_path, request):
    """Comparisons, and a configuration with everything above a byte on disk."""
    rng = np.random.default_rng(0)
    rows = planted_triplets(rng, rng.normal(size=(getattr(request, "param", 60), 2)), 6000, 0.2)
    (tmp_path / "disk.toml").write_text(
        'accumulators = ["adds3", "adds4", "triplet_counts", "quadruplet_counts"]\n[counts]\non_disk_above = 1\n'
    )
    (tmp_path / "memory.toml").write_text((tmp_path / "disk.toml").read_text().replace("above = 1", "above = 0"))
    return jsonl(
        tmp_path / "events.jsonl", [dict(zip(("anchor", "near", "far"), map(str, row))) for row in rows.tolist()]
    )


@pytest.mark.parametrize("events, kinds", [(60, ["k1", "k2"]), (4200, [])], indirect=["events"])  # W dense, and sparse
def test_a_run_gives_the_same_bytes(tmp_path, events, kinds):
    found = []
    for where in ("memory", "disk"):
        state, out = tmp_path / where / "s", tmp_path / where / "out"
        first = jsonl(tmp_path / "some.jsonl", events.read_text().splitlines()[:2500])
        engine(
            "run",
            first,
            "--state",
            state,
            "--no-refits",
            "--config",
            tmp_path / f"{where}.toml",
            "--snapshot-every",
            "1000",
        )
        engine("run", first, events, "--state", state, "--no-refits", "--config", tmp_path / f"{where}.toml")
        engine("export", "--state", state, "--out", out, "adds3", "adds4", "triplet_counts", *kinds)
        assert not (state / "scratch").exists()
        files = [*sorted((state / "snapshots").iterdir()), *sorted(out.iterdir())]
        found.append({file.name: file.read_bytes() for file in files})
    assert found[0].keys() == found[1].keys() and len(found[0]) >= 5
    assert [name for name in found[0] if found[0][name] != found[1][name]] == []


def test_nothing_is_left_after_kill_and_restart(tmp_path, events):
    state, config = tmp_path / "s", tmp_path / "disk.toml"
    running = started(
        "run", events, "--follow", "--state", state, "--no-refits", "--config", config, "--snapshot-interval", "0.2"
    )
    try:
        until(lambda: list((state / "snapshots").glob("*.snapshot")), what="a snapshot")
        maps = Path(f"/proc/{running.pid}/maps").read_text()
        assert "/scratch/" in maps  # counts, in files that have no name any more
    finally:
        running.send_signal(signal.SIGKILL)
        running.communicate()
    assert list((state / "scratch").iterdir()) == []
    with tempfile.NamedTemporaryFile(prefix=PREFIX, dir=state / "scratch", delete=False) as left:
        left.write(b"x")  # as a file system without O_TMPFILE may leave it
    engine("run", events, "--state", state, "--no-refits", "--config", config)
    assert not (state / "scratch").exists()


def test_files_of_others_are_left_alone_behind_a_link_too(tmp_path):
    other = tmp_path / "larger disk"
    (other / f"{PREFIX}of_2025").mkdir(parents=True)
    names = ["thesis.txt", f"{PREFIX}2024.csv", f"{PREFIX}abcdefgh.csv", "tmpabcdefgh"]
    for name in names:
        (other / name).write_text("precious")
    (other / f"{PREFIX}_linked_").symlink_to(other / "thesis.txt")
    (other / f"{PREFIX}leftover").write_text("of a killed process")
    (tmp_path / "scratch").symlink_to(other)
    allocation = mapped_arrays.on_disk(tmp_path / "scratch", 1)
    allocation.allocate(1000, np.int64)[:] = 1
    allocation.close()
    left = {path.name for path in other.iterdir()}
    assert (
        left == {*names, f"{PREFIX}of_2025", f"{PREFIX}_linked_"} and (other / "thesis.txt").read_text() == "precious"
    )


def test_a_folder_that_cannot_be_used(tmp_path, events):
    state = tmp_path / "s"
    state.mkdir()
    (state / "scratch").write_text("in the way")
    done = engine("run", events, "--state", state, "--no-refits", "--config", tmp_path / "disk.toml", status=1)
    said = one_line(done.stderr)
    assert states(said, f"{state / 'scratch'} … counts.on_disk_above")


def test_columns_are_repeated_in_blocks(monkeypatch):
    monkeypatch.setattr(mapped_arrays, "BLOCK", 4)
    rng = np.random.default_rng(0)
    for _ in range(200):
        sizes = rng.integers(1, 9, rng.integers(0, 12))
        start, values = np.append(0, sizes.cumsum()), rng.integers(0, 99, len(sizes)).astype(np.int32)
        assert np.array_equal(mapped_arrays.IN_MEMORY.repeated(values, start), np.repeat(values, sizes))
