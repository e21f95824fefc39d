"""What commands print that are typed one after another: a state that grows and is cleaned, sums, mistakes."""

import pytest

from tests.support.approved import unchanging
from tests.support.approved_sessions import SESSIONS


@pytest.mark.parametrize("name", SESSIONS)
def test_commands(name, world, approved):
    assert unchanging(world(name)[1]) == approved
