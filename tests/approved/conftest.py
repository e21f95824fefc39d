"""The worlds whose documents are approved, each made once a session."""

import pytest

from tests.support.approved import Document
from tests.support.approved_worlds import made


@pytest.fixture
def approved(snapshot):
    """What a person has approved under the name of the test."""
    return snapshot.use_extension(Document)


@pytest.fixture(scope="session")
def world(tmp_path_factory):
    """`world(name)`: its folder, and what its commands printed."""
    known = {}

    def at(name: str):
        if name not in known:
            folder = tmp_path_factory.mktemp(name)
            known[name] = folder, made(folder, name)
        return known[name]

    return at
