"""What the page of each world says, shows and draws, and what the commands print that made it."""

import contextlib
from pathlib import Path

import pytest

from stream_engine.report.findings.facts import Commands
from stream_engine.report.material import material
from stream_engine.report.page import sections
from stream_engine.state.store import Store
from tests.support.approved import unchanging
from tests.support.approved_pages import page_text
from tests.support.approved_sessions import SESSIONS
from tests.support.approved_studies import WORLDS


def test_every_document_is_of_a_world():
    documents = [*(Path(__file__).parent / "documents").glob("test_[ps]*/*].txt")]  # of pages, sessions, states
    names = {path.stem.partition("[")[2].removesuffix("]").partition(",")[0] for path in documents}
    assert names == {*WORLDS, *SESSIONS}


@pytest.mark.parametrize("name", WORLDS)
def test_commands(name, world, approved):
    assert unchanging(world(name)[1]) == approved


@pytest.mark.parametrize("name", WORLDS)
def test_page(name, world, approved):
    folder, _ = world(name)
    _, _, listed, whole, without = WORLDS[name]
    with contextlib.chdir(folder):
        store = Store("state")
        commands = Commands("state", lists=listed)
        of = material(store.published(), store.noted("progressive"), listed, commands)
        shown = {key: section for key, section in sections(of).items() if key not in without}
        assert page_text(of, shown, whole) == approved
