"""The state that exports and documents are compared on, made once a process."""

import pytest

from tests.support import told


@pytest.fixture(scope="session")
def published():
    return told.published()


@pytest.fixture(scope="session")
def world(published) -> told.World:
    return told.World(published, told.events())


@pytest.fixture(scope="session")
def study(published) -> told.World:
    """The state with a figure wherever a report can have one."""
    return told.World(told.studied(), told.events())
