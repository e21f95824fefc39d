"""The canonical order beside a snapshot: made once, the same bytes from it, never believed when it is wrong."""

import json

import numpy as np
import pytest

from connectors.disk import Disk
from stream_engine import exports
from stream_engine.commands.by_name import by_name
from stream_engine.data import container
from stream_engine.data.comparisons import Triplet
from stream_engine.exports.partial_order import partial_order
from stream_engine.state import sweeping
from stream_engine.state.engine import Engine
from stream_engine.state.order_file import KIND
from stream_engine.state.store import Store
from tests.support.generators import planted_triplets

MAKE = "stream_engine.exports.partial_order.kept_of_votes"


def learned(seed=0, n=7):
    rng = np.random.default_rng(seed)
    engine = Engine(("triplet_counts",))
    rows = planted_triplets(rng, rng.random((n, 2)), 150, flip=0.3)
    engine.learn_many([Triplet(*(f"o{i}" for i in row)) for row in rows.tolist()])
    return engine


@pytest.fixture
def lines():
    return []


@pytest.fixture
def store(tmp_path, lines):
    store = Store(tmp_path, tell=lines.append)
    store.publish(learned().snapshot()._replace(sequence=1))
    return store


def arrays_of(published):
    return {name: array.tolist() for name, array in partial_order(published)["partial_order"].arrays.items()}


def test_a_second_export_reads_what_the_first_one_made(store, lines, monkeypatch):
    bare = arrays_of(store.published()._replace(order_file=None))
    path = store.snapshot_path(1).with_suffix(".order")
    assert not path.exists()
    assert arrays_of(store.published()) == bare and path.exists()
    monkeypatch.setattr(MAKE, lambda rows, net: pytest.fail("made again"))
    assert arrays_of(store.published()) == bare and not lines
    assert "artifacts" not in {entry.name for entry in store.directory.iterdir()}


def changed(path, kind=KIND, meta=None, kept=None, **more):
    """The file with something else in it, its checksum right."""
    _, header, arrays, _ = container.decode(path.read_bytes())
    arrays = {"kept": arrays["kept"] if kept is None else kept} | more
    path.write_bytes(b"".join(container.encode(kind, header | (meta or {}), arrays)[0]))


def everything(store, path):
    """Every net vote, cycles and all, with its weight."""
    from stream_engine.order.canonical_order import net_votes
    from stream_engine.state.snapshot import triplet_columns

    net = net_votes(triplet_columns(store.read(1)))[1]
    changed(path, meta={"weight": int(net.sum())}, kept=np.packbits(np.ones(len(net), bool)))


def one_bit_more(store, path):
    bits = container.decode(path.read_bytes())[2]["kept"].copy()
    rows = container.decode(path.read_bytes())[1]["net_votes"]
    assert rows % 8, "the world has to leave bits over"
    bits[-1] |= 1
    changed(path, kept=bits)


WRONG = {
    "cut short": lambda store, path: path.write_bytes(path.read_bytes()[:-1]),
    "of another snapshot": lambda store, path: changed(path, meta={"snapshot": "0" * 64}),
    "of other votes": lambda store, path: changed(path, meta={"weight": 1}),
    "another kind": lambda store, path: changed(path, kind="artifact"),
    "another array": lambda store, path: changed(path, more=np.zeros(1)),
    "too long": lambda store, path: changed(path, kept=np.zeros(1000, np.uint8)),
    "not bits": lambda store, path: changed(path, kept=np.zeros(3)),
    "a bit behind the end": one_bit_more,
    "a cycle": everything,
}


@pytest.mark.parametrize("wrong", WRONG)
def test_a_wrong_one_is_told_and_made_anew(store, lines, wrong):
    right = arrays_of(store.published())
    path = store.snapshot_path(1).with_suffix(".order")
    bytes_of_it = path.read_bytes()
    WRONG[wrong](store, path)
    assert path.read_bytes() != bytes_of_it
    assert arrays_of(store.published()) == right
    assert len(lines) == 1 and lines[0].startswith("000000000001.order: ")
    assert path.read_bytes() == bytes_of_it


def test_names_do_not_use_the_order_of_objects_as_seen(store):
    partial_order(store.published())
    published = by_name(store.published())
    assert published.order_file is None
    assert arrays_of(published) == arrays_of(by_name(store.published()._replace(order_file=None)))


def test_it_goes_with_its_snapshot(store):
    partial_order(store.published())
    store.publish(learned(1).snapshot()._replace(sequence=2))
    partial_order(store.published())
    assert store.prune(1) == [1]
    assert sorted(path.name for path in (store.directory / "snapshots").iterdir()) == [
        "000000000002.order",
        "000000000002.snapshot",
    ]


def test_to_forget_removes_those_of_older_snapshots(store):
    partial_order(store.published())
    snapshot, _ = store.publish(learned(1).snapshot()._replace(sequence=2))
    sweeping.mark(store.directory, Disk(), 2, snapshot.digest)
    sweeping.finish(store.directory)
    assert [path.name for path in (store.directory / "snapshots").iterdir()] == ["000000000002.snapshot"]


def test_one_whose_snapshot_went_meanwhile_is_not_left_behind(store):
    published = store.published()
    store.snapshot_path(1).unlink()
    partial_order(published)
    assert list((store.directory / "snapshots").iterdir()) == []


def test_a_state_that_cannot_be_written_is_exported_all_the_same(store, lines):
    class Full(Disk):
        def write_new(self, path, chunks):
            raise OSError("no space")

    right = arrays_of(store.published())
    store.snapshot_path(1).with_suffix(".order").unlink()
    store.disk = Full()
    assert arrays_of(store.published()) == right and not lines
    assert len(list((store.directory / "snapshots").iterdir())) == 1


def test_it_names_nothing(store):
    partial_order(store.published())
    _, meta, arrays, _ = container.decode(store.snapshot_path(1).with_suffix(".order").read_bytes())
    assert set(arrays) == {"kept"} and set(meta) == {"snapshot", "net_votes", "weight"}
    assert not any(name in json.dumps(meta) for name in store.read(1).objects)
    assert exports.contents("partial_order", store.published())
