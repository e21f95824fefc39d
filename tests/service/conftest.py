"""Certificates."""

import pytest

from tests.support.served import make_certificate


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    """A certificate of localhost and its key, as files."""
    return make_certificate(tmp_path_factory.mktemp("tls"))
