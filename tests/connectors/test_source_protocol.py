"""Every source that is registered answers everything that a source may be asked, also before anything was read."""

import io
from collections.abc import Callable
from pathlib import Path

import pytest

from connectors import SOURCES, STORES, Position, Source, open_source
from connectors.stores.source import StoreSource

MEMBERS = {name for name in [*vars(Source), *Source.__annotations__] if not name.startswith("_")}


def in_file(folder: Path, text: str = '{"id": 1}\n') -> str:
    path = folder / "events.jsonl"
    path.write_text(text)
    return str(path)


def deltas(folder: Path) -> Source:
    (folder / "delta").mkdir()
    (folder / "delta" / "job.json").write_text('{"format": 1, "query": "q"}')
    return open_source(f"deltas://{folder}", {})


def in_store(folder: Path) -> Source:
    """The same source for all; tests/connectors/test_stores.py has real servers."""
    return StoreSource("s3", "b/k", {}, follow=True)


WORLDS: dict[str, Callable[[Path], Source]] = {
    "file": lambda folder: open_source(in_file(folder), {}),
    "file, followed": lambda folder: open_source(in_file(folder), {}, follow=True),
    "stdin": lambda folder: open_source("-", {}, stream=io.BytesIO(b"1\n")),
    "stdin, arrow": lambda folder: open_source("-", {}, stream=io.BytesIO(b""), format="arrow"),
    "kafka": lambda folder: open_source("kafka://127.0.0.1:1/t", {}, start="earliest"),
    "deltas": deltas,
    "s3": in_store,
    "gs": in_store,
    "http": in_store,
    "https": in_store,
}


def test_every_registered_source_is_here():
    assert {name.partition(",")[0] for name in WORLDS} == set(SOURCES)


@pytest.mark.parametrize("world", WORLDS)
def test_a_source_answers_everything(world, tmp_path, monkeypatch):
    monkeypatch.setattr("connectors.stores.source.objects_at", lambda scheme, rest: [])
    source = WORLDS[world](tmp_path)
    try:
        assert [name for name in MEMBERS if not hasattr(source, name)] == []
        assert isinstance(source.one_by_one, bool) and source.one_by_one == (world == "file" or world in STORES)
        assert source.opened() == {} and source.lag_seconds() == {} and isinstance(source.lag(), dict)
        assert isinstance(source.finished(), bool) and isinstance(source.ready(), bool)
        assert all(isinstance(notice, str) for notice in source.notices())
        source.published({"another": Position(3)})
    finally:
        source.close()
